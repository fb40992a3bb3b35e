//! Filters that change values at paths, with the results of jq.

use std::mem;

use jaq_core::{Exn, ValR};
use jaq_json::{Rc, Val};

type Error = jaq_core::Error<Val>;

/// Maximum number of items that an array may reach by setting an item.
const MOST_ITEMS: usize = 1 << 24;

/// Implements `delpaths`: all paths refer to the original value.
pub(super) fn delete(value: Val, paths: Val) -> ValR<Val> {
    let Val::Arr(paths) = paths else { return Err(Error::str("paths must be an array")) };
    let mut all = Vec::with_capacity(paths.len());
    for path in paths.iter() {
        match path {
            Val::Arr(path) => all.push(path.as_slice()),
            path => return Err(Error::str(format_args!("a path must be an array, not {path}"))),
        }
    }
    all.sort();
    all.dedup();
    delete_sorted(value, &all, 0)
}

/// Implements `setpath`.
pub(super) fn set(mut value: Val, path: &Val, new: Val) -> ValR<Val> {
    let Val::Arr(path) = path else { return Err(Error::str("a path must be an array")) };
    set_in(&mut value, path, new)?;
    Ok(value)
}

/// Updates the value at each path. Deletes the path if an update has no result.
pub(super) fn modify<'a>(
    mut value: Val,
    found: Vec<Vec<Val>>,
    update: impl Fn(Val) -> Result<Option<Val>, Exn<'a, Val>>,
) -> Result<Val, Exn<'a, Val>> {
    let mut deleted = Vec::new();
    for path in found {
        // Taken out of the value, so that it can be changed in place.
        let old = take_from(&mut value, &path)?;
        match update(old)? {
            Some(new) => set_in(&mut value, &path, new)?,
            None => deleted.push(path.into_iter().collect()),
        }
    }
    match deleted.is_empty() {
        true => Ok(value),
        false => Ok(delete(value, deleted.into_iter().collect())?),
    }
}

/// Takes out the value at a path. Returns null if it does not exist.
fn take_from(value: &mut Val, path: &[Val]) -> Result<Val, Error> {
    let Some((key, path)) = path.split_first() else { return Ok(mem::take(value)) };
    if path.is_empty() {
        return take(value, key);
    }
    let mut inner = take(value, key)?;
    if let Val::Null = inner {
        return Ok(Val::Null);
    }
    let taken = take_from(&mut inner, path)?;
    put(value, key, inner)?;
    Ok(taken)
}

/// Sets the value at a path, and creates missing parents.
fn set_in(value: &mut Val, path: &[Val], new: Val) -> Result<(), Error> {
    let Some((key, path)) = path.split_first() else {
        *value = new;
        return Ok(());
    };
    if let (Val::Arr(items), Val::Num(_)) = (&*value, key) {
        let at = number(key).unwrap_or_default();
        if at < -(items.len() as f64) {
            return Err(Error::str("out of bounds negative array index"));
        }
    }
    let mut inner = take(value, key)?;
    set_in(&mut inner, path, new)?;
    match (&*value, key) {
        (Val::Null, Val::TStr(_)) => *value = Val::obj(Default::default()),
        (Val::Null, Val::Num(_) | Val::Obj(_)) => *value = Val::Arr(Default::default()),
        _ => {}
    }
    if let (Val::Arr(items), Some(at)) = (&mut *value, number(key)) {
        if at >= MOST_ITEMS as f64 {
            return Err(Error::str(format_args!("the array index {key} is too large")));
        }
        if at < 0.0 && at < -(items.len() as f64) {
            return Err(Error::str("out of bounds negative array index"));
        }
        if at >= items.len() as f64 {
            Rc::make_mut(items).resize(at as usize + 1, Val::Null);
        }
    }
    put(value, key, inner)
}

/// Deletes sorted paths that share the first `depth` keys, which lead to the value.
fn delete_sorted(mut value: Val, paths: &[&[Val]], depth: usize) -> ValR<Val> {
    if paths.first().is_some_and(|path| path.len() == depth) {
        return Ok(Val::Null);
    }
    let mut keys = Vec::new();
    for group in paths.chunk_by(|one, other| one[depth] == other[depth]) {
        let key = &group[0][depth];
        if group[0].len() == depth + 1 {
            keys.push(key);
            continue;
        }
        // Only existing items.
        match take(&mut value, key)? {
            Val::Null => {}
            inner => put(&mut value, key, delete_sorted(inner, group, depth + 1)?)?,
        }
    }
    delete_keys(value, &keys)
}

/// Returns the range of a slice in an array of this length.
fn slice(key: &Val, length: usize) -> Option<std::ops::Range<usize>> {
    let Val::Obj(key) = key else { return None };
    let bound = |name: &str, default: usize| {
        let found = key.get(&Val::utf8_str(name.to_owned())).unwrap_or(&Val::Null);
        match (found, number(found)) {
            (Val::Null, _) => Some(default),
            (_, Some(at)) if at < 0.0 => Some((length as f64 + at).max(0.0) as usize),
            (_, Some(at)) => Some((at as usize).min(length)),
            _ => None,
        }
    };
    let (start, end) = (bound("start", 0)?, bound("end", length)?);
    Some(start..end.max(start))
}

fn number(value: &Val) -> Option<f64> {
    jaq_std::ValT::as_f64(value)
}

/// Returns the index of an existing item.
fn index(key: &Val, length: usize) -> Option<usize> {
    let at = number(key)?.floor();
    let at = if at < 0.0 { at + length as f64 } else { at };
    (0.0..length as f64).contains(&at).then_some(at as usize)
}

/// Takes out the value at a key. Returns null if it does not exist.
fn take(value: &mut Val, key: &Val) -> Result<Val, Error> {
    let fail = |value: &Val| Error::str(format_args!("cannot index {value} with {key}"));
    match value {
        Val::Null => Ok(Val::Null),
        Val::Obj(map) if matches!(key, Val::TStr(_)) => {
            Ok(Rc::make_mut(map).get_mut(key).map(mem::take).unwrap_or_default())
        }
        Val::Arr(items) if matches!(key, Val::Num(_)) => Ok(index(key, items.len())
            .map(|at| mem::take(&mut Rc::make_mut(items)[at]))
            .unwrap_or_default()),
        Val::Arr(items) => match slice(key, items.len()) {
            Some(range) => Ok(items[range].iter().cloned().collect()),
            None => Err(fail(value)),
        },
        value => Err(fail(value)),
    }
}

/// Puts back the value that [`take`] took, or its remainder.
fn put(value: &mut Val, key: &Val, inner: Val) -> Result<(), Error> {
    match (value, inner) {
        (Val::Obj(map), inner) => {
            Rc::make_mut(map).insert(key.clone(), inner);
        }
        (Val::Arr(items), inner) => {
            let length = items.len();
            match (index(key, length), slice(key, length), inner) {
                (Some(at), _, inner) => Rc::make_mut(items)[at] = inner,
                (None, Some(range), Val::Arr(inner)) => {
                    Rc::make_mut(items).splice(range, inner.iter().cloned());
                }
                _ => return Err(Error::str("a slice of an array must be an array")),
            }
        }
        _ => {}
    }
    Ok(())
}

fn delete_keys(mut value: Val, keys: &[&Val]) -> ValR<Val> {
    let fail = |value: &Val, key: &Val| {
        Err(Error::str(format_args!("cannot delete the key {key} of {value}")))
    };
    match &mut value {
        Val::Null => {}
        _ if keys.is_empty() => {}
        Val::Obj(map) => {
            for key in keys {
                if !matches!(key, Val::TStr(_)) {
                    return fail(&value, key);
                }
                Rc::make_mut(map).shift_remove(*key);
            }
        }
        Val::Arr(items) => {
            let mut is_deleted = vec![false; items.len()];
            for key in keys {
                match (key, index(key, items.len()), slice(key, items.len())) {
                    (_, Some(at), _) => is_deleted[at] = true,
                    (_, None, Some(range)) => is_deleted[range].fill(true),
                    (Val::Num(_), None, None) => {}
                    _ => return fail(&value, key),
                }
            }
            let mut deleted = is_deleted.into_iter();
            Rc::make_mut(items).retain(|_| deleted.next() != Some(true));
        }
        value => return fail(value, keys[0]),
    }
    Ok(value)
}
