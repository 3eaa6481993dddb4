//! The host of a cache policy.

use reprise_core::policy::{Admission, CachePolicy, Event, EventBuffer, GroupInfo, Policy, Settings};

use crate::{
    books::{Books, GROUP},
    guest::{Guest, Native},
};

/// How many records fit.
pub const CAPACITY: u32 = 256;

/// A host with one group of [`CAPACITY`] records that form a tree. It tells the policy what a test lets happen, asks it, and panics
/// when an answer breaks the contract.
///
/// Ids are given out from 0, the lowest free one first. Each thing that happens advances the clock by one.
pub struct CacheHarness {
    guest: Box<dyn Guest>,
    books: Books,
    /// Not handed over yet.
    events: EventBuffer,
    now: u64,
}

fn groups() -> Vec<GroupInfo> {
    vec![GroupInfo {
        group: GROUP,
        name: "history".into(),
        record_bytes: 4096,
        capacity_records: CAPACITY.into(),
        recompute_tokens: 128,
        tree: true,
    }]
}

impl CacheHarness {
    /// A host of a policy in this process, with its default settings.
    pub fn native<P: Policy + CachePolicy + 'static>() -> Self {
        Self::native_with::<P>(&[])
    }

    /// The same with settings as an operator writes them.
    ///
    /// # Panics
    /// When they are refused.
    #[track_caller]
    pub fn native_with<P: Policy + CachePolicy + 'static>(settings: &[(&str, &str)]) -> Self {
        let settings = Settings::parse(P::DESCRIPTION.settings, settings.iter().copied());
        let settings = settings.unwrap_or_else(|error| panic!("{error}"));
        Self::of(Box::new(Native::<P>::new(settings, groups())))
    }

    /// A host of a component, compiled here under the default limits, with its default settings.
    ///
    /// # Panics
    /// When the component is not eligible; the message says why.
    #[cfg(feature = "wasm")]
    #[track_caller]
    pub fn from_component(bytes: &[u8]) -> Self {
        let engine = reprise_wasm::Engine::new(&reprise_wasm::Limits::default()).expect("a thread for the clock");
        let component = engine.load(bytes, "the component", reprise_core::policy::Kind::Cache);
        Self::from_loaded(&component.unwrap_or_else(|error| panic!("{error}")), &[])
    }

    /// A host of a component that an engine of the test's own has loaded, with settings as an operator writes them.
    ///
    /// # Panics
    /// When they are refused.
    #[cfg(feature = "wasm")]
    #[track_caller]
    pub fn from_loaded(component: &reprise_wasm::Component, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let guest = crate::guest::Wasm::new(component.clone(), settings, groups());
        Self::of(Box::new(guest.unwrap_or_else(|error| panic!("{error}"))))
    }

    fn of(guest: Box<dyn Guest>) -> Self {
        Self { guest, books: Books::new(CAPACITY), events: EventBuffer::default(), now: 0 }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A record comes in behind `parent`, or as a root. Returns its id.
    #[track_caller]
    pub fn insert(&mut self, parent: impl Into<Option<u32>>) -> u32 {
        let now = self.tick();
        let inserted = self.books.insert(parent.into(), now);
        self.events.push(Event::Inserted(inserted));
        inserted.id
    }

    /// A path of so many records comes in behind `parent`, or as a root. Returns their ids, the deepest last.
    #[track_caller]
    pub fn insert_path(&mut self, parent: impl Into<Option<u32>>, records: u32) -> Vec<u32> {
        let mut parent = parent.into();
        let mut next = |_| {
            let id = self.insert(parent);
            parent = Some(id);
            id
        };
        (0..records).map(&mut next).collect()
    }

    /// The path from the root to this record is used.
    #[track_caller]
    pub fn touch(&mut self, id: u32) {
        let now = self.tick();
        let depth = self.books.touch(id, now);
        self.events.push(Event::Used { id, group: GROUP, depth, now });
    }

    /// The path to this record is leased.
    #[track_caller]
    pub fn pin(&mut self, id: u32) {
        let now = self.tick();
        self.books.pin(id);
        self.events.push(Event::Pinned { id, group: GROUP, now });
    }

    /// Such a lease ends.
    #[track_caller]
    pub fn unpin(&mut self, id: u32) {
        let now = self.tick();
        self.books.unpin(id);
        self.events.push(Event::Unpinned { id, group: GROUP, now });
    }

    /// The host takes a record out by itself.
    #[track_caller]
    pub fn evict(&mut self, id: u32) {
        let now = self.tick();
        if let Err(why) = self.books.evict(id) {
            panic!("the test evicts record {id}, but {why}");
        }
        self.events.push(Event::Evicted { id, group: GROUP, now });
    }

    /// Hands over what happened and asks for up to `want` victims, which go. Returns them.
    #[track_caller]
    pub fn victims(&mut self, want: u32) -> Vec<u32> {
        self.victims_while(want, |_| {})
    }

    /// The same, while other requests do something before the answer is acted upon: a victim may be leased, gone or no leaf any more by
    /// then. The host declines it and tells the policy that it is kept. Returns those that went.
    #[track_caller]
    pub fn victims_while(&mut self, want: u32, meanwhile: impl FnOnce(&mut Self)) -> Vec<u32> {
        let mut victims = self.ask(want);
        let mut books = self.books.clone();
        for &id in &victims {
            if let Err(why) = books.evict(id) {
                panic!("the policy names {victims:?}, and of these {id} may not go: {why}");
            }
        }
        meanwhile(self);
        let now = self.tick();
        let mut declined = Vec::new();
        victims.retain(|&id| {
            let goes = self.books.evict(id).is_ok();
            if !goes && self.books.is_resident(id) {
                declined.push(id);
            }
            goes
        });
        for &id in declined.iter().rev() {
            self.events.push(Event::Kept { id, group: GROUP, now });
        }
        victims
    }

    #[track_caller]
    fn ask(&mut self, want: u32) -> Vec<u32> {
        let mut victims = Vec::new();
        if let Err(error) = self.guest.step(self.events.words(), want, &mut victims) {
            panic!("the policy fails: {error}");
        }
        self.events.clear();
        assert!(victims.len() <= want as usize, "the policy names {} victims where {want} are wanted", victims.len());
        victims
    }

    /// Asks which blocks of a prompt may be written: `keys` are the short keys of all its blocks, of which those before `first` are
    /// resident. Returns one verdict for each of the others.
    #[track_caller]
    pub fn admit(&mut self, keys: &[u64], first: u32) -> Vec<bool> {
        self.ask(0);
        let free = CAPACITY - self.books.resident();
        let question = Admission { now: self.tick(), group: GROUP, keys, first, free };
        let mut verdicts = Vec::new();
        if let Err(error) = self.guest.admit(&question, &mut verdicts) {
            panic!("the policy fails: {error}");
        }
        let asked = keys.len().saturating_sub(first as usize);
        assert_eq!(verdicts.len(), asked, "the policy must give one verdict for each block asked for");
        verdicts
    }

    /// Exchanges the policy for a fresh instance of it, which is given what the old one saves and told all that is resident.
    #[track_caller]
    pub fn hand_over(&mut self) {
        self.ask(0);
        self.guest = self.guest.successor().unwrap_or_else(|error| panic!("the policy hands nothing over: {error}"));
        for event in self.books.introduction(self.now) {
            self.events.push(event);
        }
        self.ask(0);
    }

    /// Ids of the resident records, ascending.
    pub fn resident(&self) -> Vec<u32> {
        self.books.ids().collect()
    }

    /// Whether a record is leased.
    pub fn is_pinned(&self, id: u32) -> bool {
        self.books.is_pinned(id)
    }

    /// Whether a policy may name a record: a leaf, not leased.
    pub fn may_go(&self, id: u32) -> bool {
        self.books.check(id).is_ok()
    }
}
