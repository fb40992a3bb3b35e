//! Patterns in which one element stands for any number of others.

/// Whether a pattern matches a whole text. `is_star` says which of its elements stand for any
/// number of the text's, `matches` which of the others stand for one. Takes at most as many
/// steps as the two lengths multiplied.
pub(crate) fn glob<P, T>(
    pattern: &[P],
    text: &[T],
    is_star: impl Fn(&P) -> bool,
    matches: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut next) = (0, 0);
    // Where to go on with one more element for the last star, if what follows it fails.
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
