//! Glob matching on sequences.

/// Returns true if a pattern matches a whole sequence. `is_star` marks the elements of the pattern
/// that match any number of elements; `matches` compares the others with one element. Takes at most
/// as many steps as the product of the lengths.
pub(crate) fn glob<P, T>(
    pattern: &[P],
    text: &[T],
    is_star: impl Fn(&P) -> bool,
    matches: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut next) = (0, 0);
    // The state to resume with one more element for the last star if the rest of the pattern fails.
    let mut again = None;
    while next < text.len() {
        match pattern.get(at) {
            Some(element) if is_star(element) => {
                again = Some((at + 1, next));
                at += 1;
            }
            Some(element) if matches(element, &text[next]) => {
                at += 1;
                next += 1;
            }
            _ => {
                let Some((after, start)) = &mut again else { return false };
                *start += 1;
                (at, next) = (*after, *start);
            }
        }
    }
    pattern[at..].iter().all(is_star)
}
