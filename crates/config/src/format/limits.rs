//! The form of limits in a file, and their ceilings.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Deserialize;

use super::grants::CeilingGrantsConfig;
use crate::format::span::{At, Written};
use crate::layers::limits::{LimitSet, with_limits};
use crate::read::file::SourceFile;

macro_rules! define {
    ([$($function:ident)*] $($key:ident: $param:ident $map:ident $form:ident, $variable:literal $parse:expr,
       $untrusted:expr, [$($default:literal)?],
       $flag_help:literal, $help:literal $(, $limit_help:literal, $ceiling_help:literal)?;)*) => {
        /// The limits of one call.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(inline, title = "Limits")]
        pub(crate) struct LimitsConfig {
            $(
                #[doc = $help]
                $(#[doc = $limit_help])?
                $(#[schemars(extend("default" = $default))])?
                pub(crate) $key: Option<Written<$form>>,
            )*
        }

        /// The highest limits and the widest grants that the files of a workspace may set.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(inline, title = "Ceilings")]
        pub(crate) struct CeilingConfig {
            $(
                #[doc = $help]
                $(#[doc = $ceiling_help])?
                $(#[schemars(extend("default" = $default))])?
                pub(crate) $key: Option<Written<$form>>,
            )*
            /// The widest grants for the files and components of a trusted workspace. A kind that
            /// is not listed is not limited.
            pub(crate) grants: Option<Written<CeilingGrantsConfig>>,
        }

        impl LimitsConfig {
            /// Returns the value of each limit in a file.
            pub(crate) fn at<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
                LimitSet { $($key: self.$key.as_ref().map(|written| written.at(file))),* }
            }
        }

        impl CeilingConfig {
            /// Returns the ceiling of each limit in a file.
            pub(crate) fn limits<'a>(&'a self, file: &'a SourceFile) -> WrittenLimits<'a> {
                LimitSet { $($key: self.$key.as_ref().map(|written| written.at(file))),* }
            }
        }
    };
}

with_limits!(define);

/// Limits or ceilings, as written in a file.
pub(crate) type WrittenLimits<'a> = LimitSet<
    Option<At<'a, String>>,
    Option<At<'a, String>>,
    Option<At<'a, NonZeroU64>>,
    Option<At<'a, NonZeroU64>>,
>;
