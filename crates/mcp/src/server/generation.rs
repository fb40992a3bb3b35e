//! One state of the files, and the changes from one state to the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kitbag_config::{Person, PersonName};
use kitbag_toolbox::{ServedItems, Toolbox};
use tokio_util::sync::CancellationToken;

use crate::methods::catalog::Catalog;
use crate::server::background::Precompile;
use crate::server::{Server, WeakServer};

/// The number of changes of each list and each readable document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: u64,
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
    /// Changes of the documents of a topic, by the topic's id.
    pub(crate) topics: BTreeMap<String, u64>,
    pub(crate) components: u64,
    /// The last change of each resource of a server with a subscription, by its URI.
    pub(crate) server_resources: BTreeMap<String, u64>,
    pub(crate) trust: u64,
    /// Changes of the people who have a token.
    pub(crate) people: u64,
}

/// One state of the files. Running calls keep their generation until they end.
pub(crate) struct Generation {
    pub(crate) toolbox: Toolbox,
    pub(crate) served: ServedCache,
    catalog: Mutex<Option<Arc<Catalog>>>,
    /// The people who have a token. Empty in the generation of a person.
    people: BTreeMap<PersonName, KnownPerson>,
}

/// A person who has a token in this generation.
struct KnownPerson {
    token: [u8; 32],
    /// Cancelled when the token is removed or replaced.
    revoked: CancellationToken,
    /// The tools of the person. `None`: the tools of the server.
    own: Option<Arc<Generation>>,
}

/// A person whose token was shown, and who may use the server until the token is revoked.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedPerson {
    pub(crate) name: PersonName,
    pub(crate) revoked: CancellationToken,
}

/// A generation whose components are compiled before their calls.
pub(super) struct GenerationPrecompile {
    pub(super) server: WeakServer,
    pub(super) generation: Arc<Generation>,
}

impl Precompile for GenerationPrecompile {
    fn toolbox(&self) -> &Toolbox {
        &self.generation.toolbox
    }

    fn learned(&self, name: &str) {
        if let Some(server) = self.server.upgrade() {
            self.generation.learned(&server, name);
        }
    }

    fn is_over(&self) -> bool {
        self.server.upgrade().is_none_or(|server| server.closing().is_cancelled())
    }
}

impl Generation {
    /// `before` is the generation that this one replaces: people whose token is unchanged stay
    /// authenticated.
    pub(crate) fn new(toolbox: Toolbox, before: Option<&Self>) -> Self {
        let people = toolbox.config().people.iter().map(|(name, person)| {
            let Person { sha256, tools, .. } = person;
            let known = before.and_then(|before| before.people.get(name));
            let known = known.filter(|known| known.token == *sha256);
            let revoked = known.map(|known| known.revoked.clone()).unwrap_or_default();
            let own = tools.is_some().then(|| toolbox.for_person(Some((name, person))));
            let own = own.map(|toolbox| Arc::new(Self::without_people(toolbox)));
            (name.clone(), KnownPerson { token: *sha256, revoked, own })
        });
        let people = people.collect();
        Self { people, ..Self::without_people(toolbox) }
    }

    fn without_people(toolbox: Toolbox) -> Self {
        let (served, catalog, people) = Default::default();
        Self { toolbox, served, catalog, people }
    }

    /// Returns what a person may use. A person without a token may use no tool.
    pub(crate) fn for_person(self: &Arc<Self>, name: &PersonName) -> Arc<Self> {
        match self.people.get(name) {
            Some(KnownPerson { own: None, .. }) => Arc::clone(self),
            Some(KnownPerson { own: Some(own), .. }) => Arc::clone(own),
            None => Arc::new(Self::without_people(self.toolbox.for_person(None))),
        }
    }

    /// Finds the person with a token. `is_token` compares in constant time, and is called for each
    /// person: the time does not depend on who the person is.
    pub(crate) fn person(
        &self,
        is_token: impl Fn(&[u8; 32]) -> bool,
    ) -> Option<AuthenticatedPerson> {
        let mut found = None;
        for (name, KnownPerson { token, revoked, .. }) in &self.people {
            if is_token(token) {
                found = Some(AuthenticatedPerson { name: name.clone(), revoked: revoked.clone() });
            }
        }
        found
    }

    /// Revokes the tokens that the next generation does not have. Returns whether there are any.
    pub(crate) fn revoke_missing_from(&self, next: &Self) -> bool {
        let is_kept = |(name, known): &(&PersonName, &KnownPerson)| {
            next.people.get(*name).is_some_and(|next| next.token == known.token)
        };
        let mut revoked = self.people.iter().filter(|person| !is_kept(person)).peekable();
        let is_any = revoked.peek().is_some();
        for (name, known) in revoked {
            tracing::info!("the token of `{name}` was removed or replaced");
            known.revoked.cancel();
        }
        is_any
    }

    /// Returns this generation, and those of people with their own tools, each with the name of its
    /// person.
    pub(crate) fn views(&self) -> impl Iterator<Item = (Option<&PersonName>, &Self)> {
        let own = self.people.iter().filter_map(|(name, person)| {
            person.own.as_deref().map(|generation| (Some(name), generation))
        });
        std::iter::once((None, self)).chain(own)
    }

    /// Returns this generation (`None`), or the generation of a person with their own tools.
    pub(crate) fn view(&self, name: Option<&PersonName>) -> Option<&Self> {
        match name {
            None => Some(self),
            Some(name) => self.people.get(name)?.own.as_deref(),
        }
    }

    /// Returns the tools, which are read on first use.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let catalog = catalog.get_or_insert_with(|| Arc::new(Catalog::of(&self.toolbox)));
        Arc::clone(catalog)
    }

    pub(crate) fn known_catalog(&self) -> Option<Arc<Catalog>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether a name may be that of one of the server's own tools: no configured tool has
    /// it.
    pub(crate) fn may_be_own_tool(&self, name: &str) -> bool {
        !self.toolbox.config().tools.contains_key(name)
    }

    /// Records that a tool was loaded, also for people with their own tools, and in the generation
    /// that has since replaced this one.
    pub(crate) fn learned(&self, server: &Server, name: &str) {
        self.note_loaded(server, name);
        for (_, current) in server.generation().views() {
            if !std::ptr::eq(current, self) {
                current.note_loaded(server, name);
            }
        }
    }

    /// Reads the list again if the tool had no description when the tools were listed.
    fn note_loaded(&self, server: &Server, name: &str) {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = catalog
            .as_ref()
            .is_some_and(|c| c.undescribed.iter().any(|undescribed| undescribed == name));
        if is_news {
            *catalog = None;
            server.tell(|changes| changes.tools += 1);
        }
        drop(catalog);
        if self.served.learned(&self.toolbox, name) {
            server.tell(|changes| {
                changes.prompts += 1;
                changes.resources += 1;
            });
        }
    }
}

/// The prompts and resources of one generation, read on first use.
#[derive(Default)]
pub(crate) struct ServedCache(Mutex<Option<Arc<ServedItems>>>);

impl ServedCache {
    pub(crate) fn get(&self, toolbox: &Toolbox) -> Arc<ServedItems> {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let served = served.get_or_insert_with(|| {
            let served = toolbox.known_served();
            for problem in &served.problems {
                tracing::warn!("{problem}");
            }
            Arc::new(served)
        });
        Arc::clone(served)
    }

    pub(crate) fn known(&self) -> Option<Arc<ServedItems>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a tool was loaded. Reads its prompts and resources again if they were unknown.
    /// Returns whether the tool serves more than was known.
    pub(crate) fn learned(&self, toolbox: &Toolbox, name: &str) -> bool {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = served.as_ref().is_some_and(|served| {
            served.undescribed.iter().any(|undescribed| undescribed.as_str() == name)
        });
        if !is_news {
            return false;
        }
        *served = None;
        drop(served);
        toolbox.serves_more(name)
    }
}
