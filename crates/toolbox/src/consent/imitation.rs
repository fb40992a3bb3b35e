//! Names that are easily mistaken for the name of another tool.

/// The length of the shortest name that a name with one letter more, less or changed imitates.
const SHORTEST: usize = 4;

/// Returns the name that `name` imitates: the two differ only in case, in separators, in characters
/// that look alike, or in one letter.
pub fn imitated<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let skeleton = skeleton(name);
    let folded = name.to_lowercase();
    known.into_iter().filter(|known| *known != name).find(|known| {
        let is_near = || {
            known.len() >= SHORTEST
                && strsim::damerau_levenshtein(&folded, &known.to_lowercase()) == 1
        };
        skeleton == self::skeleton(known) || is_near()
    })
}

/// Returns a name without the differences that readers overlook.
fn skeleton(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| match c {
        '0' => 'o',
        '1' | 'i' | 'I' => 'l',
        '5' => 's',
        c => c.to_ascii_lowercase(),
    });
    letters.collect::<String>().replace("rn", "m").replace("vv", "w")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imitations_of_names_are_found() {
        let known = ["read_file", "learn", "now", "todo", "fetch", "remember"];
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(imitated(name, known), expected, "{name}");
        };
        check("read_flle", Some("read_file"));
        check("read_fi1e", Some("read_file"));
        check("readfile", Some("read_file"));
        check("read-file", Some("read_file"));
        check("read_files", Some("read_file"));
        check("raed_file", Some("read_file"));
        check("LEARN", Some("learn"));
        check("leam", Some("learn"));
        check("t0do", Some("todo"));
        check("fetch2", Some("fetch"));
        check("NOW", Some("now"));
        // The name itself, short names, and clearly different names.
        check("read_file", None);
        check("not", None);
        check("weather", None);
        check("forget", None);
    }
}
