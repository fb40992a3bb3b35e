//! The description of a component in a custom section, which is read without running the component.

use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::description::DescribeResult;
use crate::inspect::Support;

/// The name of the section.
const NAME: &str = "kitbag:describe";

/// The name of the section with the manifest of a component for ACT.
pub const ACT_MANIFEST: &str = "act:component";

/// The name of the section with the skill of a component for ACT.
const ACT_SKILL: &str = "act:skill";

/// Reads the section of a component. `None` if it has none, or if the component is malformed, which
/// another check reports.
///
/// The section must be in the component itself or in a core module directly in it, where a linker
/// puts the sections of Rust. A nested component is another tool that this one was composed from.
pub fn described(component: &[u8], support: &Support) -> Option<DescribeResult> {
    let mut found = Vec::new();
    custom_sections(component, |within, name, data| {
        use Encoding::{Component, Module};
        if name == NAME && matches!(within, [Component] | [Component, Module]) {
            found.push(data);
        }
    })?;
    let described = match found[..] {
        [] => return None,
        [section] => DescribeResult::read(section, support),
        _ => {
            let problem = format!("it has two sections `{NAME}`, but may have only one");
            return Some(DescribeResult::Unusable(problem));
        }
    };
    Some(match described {
        DescribeResult::Unusable(problem) => {
            DescribeResult::Unusable(format!("its section `{NAME}`: {problem}"))
        }
        described => described,
    })
}

/// Returns the version in the section `version` of a component, which tools such as
/// `wasm-tools metadata add` write.
pub(crate) fn version(component: &[u8]) -> Option<String> {
    const MOST_BYTES: usize = 64;
    let mut found = None;
    custom_sections(component, |within, name, data| {
        if within.len() == 1 && name == "version" {
            found.get_or_insert(data);
        }
    })?;
    let text = str::from_utf8(found?).ok()?.trim();
    let fits = |c: char| c.is_ascii_graphic();
    (text.len() <= MOST_BYTES && !text.is_empty() && text.chars().all(fits))
        .then(|| text.to_owned())
}

/// Returns the data of the section `act:component`, in which a component for ACT declares its name and
/// the access that it needs. The last of several sections takes effect, as in ACT itself.
pub(crate) fn act_manifest(component: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    custom_sections(component, |within, name, data| {
        use Encoding::{Component, Module};
        if name == ACT_MANIFEST && matches!(within, [Component] | [Component, Module]) {
            found = Some(data);
        }
    })?;
    found.map(<[u8]>::to_owned)
}

/// Returns the data of the section `act:skill`, the skill of a component for ACT as a tar archive. The
/// first of several sections takes effect, as in ACT itself.
pub fn act_skill(component: &[u8]) -> Option<&[u8]> {
    let mut found = None;
    custom_sections(component, |within, name, data| {
        use Encoding::{Component, Module};
        if name == ACT_SKILL && matches!(within, [Component] | [Component, Module]) {
            found.get_or_insert(data);
        }
    })?;
    found
}

/// Calls `visit` with the name and data of each custom section and its enclosing items, outermost
/// first. Skips functions. `None` if the component is malformed.
pub(crate) fn custom_sections<'a>(
    component: &'a [u8],
    mut visit: impl FnMut(&[Encoding], &'a str, &'a [u8]),
) -> Option<()> {
    let (mut within, mut outer) = (Vec::new(), Vec::new());
    let (mut parser, mut rest) = (Parser::new(0), component);
    loop {
        let Chunk::Parsed { consumed, payload } = parser.parse(rest, true).ok()? else {
            return None;
        };
        rest = &rest[consumed..];
        match payload {
            Payload::Version { encoding, .. } => within.push(encoding),
            Payload::CustomSection(section) => visit(&within, section.name(), section.data()),
            Payload::CodeSectionStart { size, .. } => {
                parser.skip_section();
                rest = rest.get(size as usize..)?;
            }
            Payload::ModuleSection { parser: inner, .. }
            | Payload::ComponentSection { parser: inner, .. } => {
                outer.push(std::mem::replace(&mut parser, inner));
            }
            Payload::End(_) => {
                within.pop();
                match outer.pop() {
                    Some(next) => parser = next,
                    None => return Some(()),
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    /// Accepts only lists of variables.
    const SUPPORT: Support = Support {
        check_grants: |grants| {
            grants.get("env").map_or(Ok(()), |env| Vec::<String>::deserialize(env).map(drop))
        },
        ..Support::ANY
    };

    /// Encodes a custom section.
    fn section(name: &str, data: &[u8]) -> Vec<u8> {
        let mut content = vec![u8::try_from(name.len()).unwrap()];
        content.extend(name.as_bytes());
        content.extend(data);
        let mut section = vec![0];
        let mut left = content.len();
        while left > 0x7f {
            section.push(left as u8 | 0x80);
            left >>= 7;
        }
        section.push(left as u8);
        section.extend(content);
        section
    }

    /// Encodes a component with sections at its end.
    fn component(text: &str, sections: &[Vec<u8>]) -> Vec<u8> {
        let mut component = wat::parse_str(text).unwrap();
        sections.iter().for_each(|section| component.extend(section));
        component
    }

    #[track_caller]
    fn check(component: &[u8], expected: Option<Result<&str, &str>>) {
        let described = described(component, &SUPPORT);
        let found = described.as_ref().map(|described| match described {
            DescribeResult::Description(description) => Ok(&*description.tools[0].name),
            DescribeResult::Unusable(problem) => Err(&**problem),
            DescribeResult::Nothing => unreachable!("the section has a description"),
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn sections_of_component_and_direct_modules_are_read() {
        let own = section(NAME, br#"{"name":"own"}"#);
        check(&component("(component)", &[]), None);
        check(&component("(component)", &[section("kitbag", b"x")]), None);
        check(&component("(component)", std::slice::from_ref(&own)), Some(Ok("own")));
        let inner = r#"(component (core module (@custom "kitbag:describe" "{\"name\":\"in\"}")))"#;
        check(&component(inner, &[]), Some(Ok("in")));
        let two = "it has two sections `kitbag:describe`, but may have only one";
        check(&component(inner, std::slice::from_ref(&own)), Some(Err(two)));
        check(&component("(component)", &[own.clone(), own.clone()]), Some(Err(two)));
        // Sections of nested components.
        let deep =
            format!("(component (component {}))", &inner["(component ".len()..inner.len() - 1]);
        check(&component(&deep, &[]), None);
        check(&component(&deep, &[own]), Some(Ok("own")));
        // A module is not a component.
        check(&wat::parse_str("(module (@custom \"kitbag:describe\" \"{}\"))").unwrap(), None);
    }

    #[test]
    fn versions_are_read_from_the_component_itself() {
        let of = |data: &[u8]| version(&component("(component)", &[section("version", data)]));
        assert_eq!(of(b"1.2.0").as_deref(), Some("1.2.0"));
        for data in [&b""[..], b"1 2", b"\x1b[2J", b"\xff", &[b'1'; 65]] {
            assert_eq!(of(data), None);
        }
        let inner = r#"(component (core module (@custom "version" "9")))"#;
        assert_eq!(version(&component(inner, &[])), None);
    }

    #[test]
    fn the_first_act_skill_is_read() {
        let sections = [section("act:skill", b"one"), section("act:skill", b"two")];
        assert_eq!(act_skill(&component("(component)", &sections)), Some(&b"one"[..]));
        assert_eq!(act_skill(&component("(component)", &[])), None);
        let nested = r#"(component (component (core module (@custom "act:skill" "in"))))"#;
        assert_eq!(act_skill(&component(nested, &[])), None);
    }

    #[test]
    fn unusable_sections_are_named() {
        let check = |data: &[u8], expected: &str| {
            let expected = format!("its section `kitbag:describe`: {expected}");
            check(&component("(component)", &[section(NAME, data)]), Some(Err(&expected)));
        };
        check(b"", "EOF while parsing a value at line 1 column 0");
        check(b"{\"name\":\n1", "EOF while parsing an object at line 2 column 1");
        check(b"{\"name\":\"\xff\"}", "invalid UTF-8 at line 1 column 10");
        check(b"[]", "it is not a JSON object");
        check(&vec![b' '; (256 << 10) + 1], "it has 262145 bytes, more than the limit of 256 KiB");
        let grants = br#"{"name":"a","grants":{"env":1}}"#;
        check(grants, "invalid type: integer `1`, expected a sequence");
        let many = format!("[{}1]", "1,".repeat(40_000));
        check(many.as_bytes(), "there are more than 40000 values at line 1 column 79999");
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(
            data in prop::collection::vec(any::<u8>(), 0..64),
            end in 0_usize..100,
            modules in 0_usize..3,
        ) {
            let text = format!("(component {})", "(core module)".repeat(modules));
            let whole = component(&text, &[section(NAME, &data)]);
            prop_assert!(matches!(described(&whole, &SUPPORT), Some(DescribeResult::Unusable(_) | DescribeResult::Description(_))));
            // A truncated component is malformed or has no section.
            let cut = &whole[..whole.len().saturating_sub(end + 1)];
            prop_assert_eq!(described(cut, &SUPPORT), None);
            let _ = described(&data, &SUPPORT);
        }
    }
}
