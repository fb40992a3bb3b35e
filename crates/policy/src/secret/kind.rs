//! The kind of the grants of secrets.

use serde_json::{Value, json};

use super::{SecretGrant, SecretName, SecretRequest, decide};
use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::decision::Decision;
use crate::kind::{Effects, GrantForm, Kind, KindInfo, KindRequest, TypedRequest};
use crate::{Grants, Request, UrlPattern};

/// The kind of these grants. A secret is useless without a grant of the network.
pub(crate) const KIND: KindInfo = KindInfo {
    typed: Some(TypedRequest::new("secret", 1..=1, |words| {
        let name = SecretName::new(&*words[0]).map_err(|error| error.to_string())?;
        Ok(Request::Secret(SecretRequest { name }))
    })),
    ..KindInfo::new(SecretGrant::KEY, "secrets", GrantForm::Table)
};

impl Kind for Vec<SecretGrant> {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn lines(&self) -> Vec<String> {
        self.iter().map(SecretGrant::to_string).collect()
    }

    fn brief(&self) -> Vec<String> {
        self.iter().map(|grant| format!("secret {}", grant.name)).collect()
    }

    fn to_json(&self) -> Value {
        let secret = |grant: &SecretGrant| {
            let to = grant.within.iter().flatten().map(UrlPattern::to_string);
            let to = grant.within.is_some().then(|| to.collect::<Value>());
            let value = to.map_or(json!({}), |to| json!({ "to": to }));
            (grant.name.to_string(), value)
        };
        // Secrets that are only in a variable are not typed here.
        self.iter().filter(|grant| grant.added.is_some()).map(secret).collect()
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        let is_held = |grant: &SecretGrant| own.secrets.iter().any(|own| own.holds(grant));
        self.iter().find(|grant| !is_held(grant)).map(SecretGrant::to_string)
    }

    fn singles(&self) -> Vec<Grants> {
        let single =
            |grant: &SecretGrant| Grants { secrets: vec![grant.clone()], ..Grants::default() };
        self.iter().map(single).collect()
    }

    fn as_ceiling(&self) -> Option<String> {
        let names: Vec<_> = self.iter().map(|grant| format!("\"{}\"", grant.name)).collect();
        Some(format!("{} = [{}]", SecretGrant::KEY, names.join(", ")))
    }

    fn texts(&self, _: &Surroundings<'_>) -> Vec<GrantText> {
        let text = |grant: &SecretGrant| {
            GrantText::new(format!("uses your {grant}"), Some(Ability::Secrets), vec![Risk::Secret])
        };
        self.iter().map(text).collect()
    }
}

impl KindRequest for SecretRequest {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide(&grants.secrets, self)
    }

    fn brief(&self) -> String {
        self.to_string()
    }

    fn consent(&self, _: bool) -> (Option<Ability>, Vec<Risk>) {
        (Some(Ability::Secrets), vec![Risk::Secret])
    }
}
