//! Pages of long lists.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

pub(crate) const PAGE: usize = 500;

/// Returns the requested page of a list and the cursor of the next page.
///
/// The cursor is the key of the last entry, so that a list that changes in between neither repeats
/// nor omits entries. `items` are in the order of their keys.
///
/// # Errors
///
/// If the server did not issue the cursor.
pub(crate) fn page<T: Clone>(
    items: &[T],
    key: impl Fn(&T) -> &str,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => match cursor.strip_prefix(PREFIX) {
            Some(last) => items.partition_point(|item| key(item) <= last),
            None => {
                let message = format!(
                    "`{cursor}` is not a cursor of this list; omit it to start at the \
                             beginning"
                );
                return Err(ErrorData::invalid_params(message, None));
            }
        },
    };
    let end = items.len().min(start + PAGE);
    let page = items[start..end].to_vec();
    let next = page.last().filter(|_| end < items.len());
    let next = next.map(|last| format!("{PREFIX}{}", key(last)));
    Ok((page, next))
}

/// Distinguishes a cursor from text that the client invented.
const PREFIX: &str = "after:";

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cursor: Option<String>) -> Option<PaginatedRequestParams> {
        let mut request = PaginatedRequestParams::default();
        request.cursor = cursor;
        Some(request)
    }

    #[test]
    fn pages_cover_the_list_in_order() {
        let items: Vec<_> = (0..2 * PAGE + 7).map(|number| format!("{number:05}")).collect();
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let (page, next) = page(&items, |item| item, request(cursor)).unwrap();
            seen.extend(page);
            pages += 1;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((seen, pages), (items, 3));
    }

    #[test]
    fn removed_entry_does_not_end_the_list() {
        let items = ["a", "c"].map(String::from);
        let (rest, next) = page(&items, |item| item, request(Some("after:b".into()))).unwrap();
        assert_eq!((rest, next), (vec!["c".to_owned()], None));
    }

    #[test]
    fn foreign_cursor_is_refused_by_name() {
        let error = page(&["a".to_owned()], |item| item, request(Some("7".into()))).unwrap_err();
        assert_eq!(
            error.message,
            "`7` is not a cursor of this list; omit it to start at the beginning"
        );
    }
}
