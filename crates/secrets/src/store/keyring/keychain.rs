//! The macOS keychain, which asks the user itself.

use crate::{CallEnd, ReadError, SecretValue};
use kitbag_policy::SecretName;
use security_framework::base::Error;
use security_framework::item::{ItemClass, ItemSearchOptions, Limit, SearchResult};
use security_framework::passwords::{
    PasswordOptions, delete_generic_password, get_generic_password, set_generic_password_options,
};

use super::{APPLICATION, label};
use crate::store::error::StoreError;

/// The status of a missing entry: `errSecItemNotFound`.
const NOT_FOUND: i32 = -25300;

pub(super) fn names(end: &CallEnd) -> Result<Vec<SecretName>, StoreError> {
    begin(end)?;
    let mut search = ItemSearchOptions::new();
    search.class(ItemClass::generic_password()).service(APPLICATION);
    search.load_attributes(true).limit(Limit::All);
    let found = found(search.search())?.unwrap_or_default();
    let name = |result: SearchResult| {
        let account = result.simplify_dict()?.remove("acct")?;
        SecretName::new(&account).ok()
    };
    Ok(found.into_iter().filter_map(name).collect())
}

pub(super) fn get(name: &SecretName, end: &CallEnd) -> Result<Option<Vec<u8>>, StoreError> {
    begin(end)?;
    found(get_generic_password(APPLICATION, name.as_str()))
}

pub(super) fn set(
    name: &SecretName,
    value: &SecretValue,
    end: &CallEnd,
) -> Result<bool, StoreError> {
    begin(end)?;
    let was_there = names(end)?.contains(name);
    let mut options = PasswordOptions::new_generic_password(APPLICATION, name.as_str());
    options.set_label(&label(name));
    set_generic_password_options(value.reveal().as_bytes(), options).map_err(refused)?;
    Ok(was_there)
}

pub(super) fn delete(name: &SecretName, end: &CallEnd) -> Result<bool, StoreError> {
    begin(end)?;
    Ok(found(delete_generic_password(APPLICATION, name.as_str()))?.is_some())
}

/// Keychain requests cannot be cancelled, so none starts after the end.
fn begin(end: &CallEnd) -> Result<(), StoreError> {
    match end.has_ended() {
        true => Err(ReadError::CallEnded.into()),
        false => Ok(()),
    }
}

/// Maps a missing entry to `None`.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: Error) -> StoreError {
    StoreError::Keyring { reason: error.to_string() }
}
