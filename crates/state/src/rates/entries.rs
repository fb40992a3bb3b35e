//! The spent part of rates, by tool and caller.

use std::collections::BTreeMap;

use kitbag_policy::{RateExceeded, RateUse, Rates};
use serde::{Deserialize, Serialize};

use crate::rates::error::TakeError;

/// The spent part of rates, by key.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Entries(pub(crate) BTreeMap<String, RateUse>);

impl Entries {
    /// Counts a call under all of these keys or none, and keeps at most `most` entries.
    pub(crate) fn take(
        &mut self,
        counted: &[(&Rates, String)],
        now: u64,
        most: usize,
    ) -> Result<(), TakeError> {
        let mut taken = Vec::new();
        let mut refused: Option<(usize, RateExceeded)> = None;
        for (at, (rates, key)) in counted.iter().enumerate() {
            let mut spent = self.0.get(key).cloned().unwrap_or_default();
            match rates.take(&mut spent, now) {
                Ok(()) => taken.push((key, spent)),
                Err(used_up) => {
                    let is_later =
                        refused.is_none_or(|(_, other)| other.retry_after < used_up.retry_after);
                    refused = if is_later { Some((at, used_up)) } else { refused };
                }
            }
        }
        if let Some((at, used_up)) = refused {
            return Err(TakeError::UsedUp { at, used_up });
        }
        self.0.retain(|_, spent| !spent.is_over(now));
        for (key, spent) in taken {
            while self.0.len() >= most && !self.0.contains_key(key) {
                let first = self.0.iter().min_by_key(|(_, spent)| spent.over_at());
                let Some(first) = first.map(|(key, _)| key.clone()) else { break };
                self.0.remove(&first);
            }
            self.0.insert(key.clone(), spent);
        }
        Ok(())
    }
}
