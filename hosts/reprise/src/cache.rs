//! The cache itself: opened from a configuration, shared by all that use it.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use reprise_core::{
    Digest,
    policy::{GroupInfo, Kind},
    prefix::Namespace,
    tree::{Restored as Block, Tree},
};
use reprise_disk::{GroupClass, IoMode, OpenReport, Options, Store, Usage};

use crate::{
    config::{Budget, Config, Durability},
    division::Division,
    error::{OpenError, RequestError},
    group::{Group, Shape},
    ledger::Ledger,
    policies::{CheckpointSeat, EvictionSeat, Loader, Origin, Policies, PolicyError, Script, ShadowSeat},
    restore::Reader,
    sequence::NamespaceHandle,
    stats::Stats,
    writer::Writer,
};

/// What is shared with the threads that read and write.
pub(crate) struct Vault {
    pub shape: Shape,
    pub ledger: Mutex<Ledger>,
    /// `None`: books only.
    pub store: Option<Store>,
}

/// All of a cache.
pub(crate) struct Inner {
    pub vault: Arc<Vault>,
    pub config: Config,
    /// Declared before what its thread uses: that ends first.
    pub shadow: ShadowSeat,
    /// How one budget is divided, if there is one for both groups.
    pub division: Option<Division>,
    pub loader: Loader,
    pub eviction: Arc<EvictionSeat>,
    pub checkpoints: Arc<CheckpointSeat>,
    /// Reads and writes records; `None` without a store. Declared after the seats and dropped with the cache: both threads end first.
    pub threads: Option<Threads>,
    namespaces: Mutex<Vec<Digest>>,
}

/// The threads that do I/O.
pub(crate) struct Threads {
    pub writer: Writer,
    pub reader: Reader,
}

impl Inner {
    /// A cache without a store that has these books and these policies.
    pub fn on_paper(like: &Self, tree: Tree, eviction: Script, checkpoints: Origin) -> Result<Self, PolicyError> {
        let config = Config { store: None, ..like.config.clone() };
        let conduct = (config.strikes, config.deterministic);
        let shape = like.shape.clone();
        let (groups, info) = (group_infos(&shape), shape.checkpoint_info(config.replay));
        let ledger = Mutex::new(Ledger::new(tree, shape.draft.is_some()));
        let vault = Arc::new(Vault { shape, ledger, store: None });
        let name = checkpoints.name.clone();
        let checkpoints = Arc::new(CheckpointSeat::new(Ok(checkpoints), &name, info, conduct)?);
        let (name, fresh) = (eviction.origin.name.clone(), eviction.origin.cache(&groups)?);
        let eviction = Arc::new(EvictionSeat::new(Ok((eviction, fresh)), &name, groups, &vault, conduct)?);
        let (shadow, loader, namespaces) = (ShadowSeat::default(), like.loader.clone(), Mutex::default());
        let division = None;
        Ok(Self { vault, config, shadow, division, loader, eviction, checkpoints, threads: None, namespaces })
    }
}

impl std::ops::Deref for Inner {
    type Target = Vault;

    fn deref(&self) -> &Vault {
        &self.vault
    }
}

/// What was found in the store when the cache was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Blocks that are resident again.
    pub blocks: u64,
    /// Checkpoints that are resident again.
    pub checkpoints: u64,
    /// Records that no path leads to any more; their slots are free.
    pub unreachable: u64,
    /// Records of the store's tables that were dropped, by the store's own account.
    pub dropped: u64,
    /// The latest logical time a record was used at: a clock that goes on should start behind it.
    pub last_use: u64,
    /// What an operator should know, a line each; empty when all is well.
    pub remarks: Vec<String>,
    /// How reads and writes reach the disk.
    pub io: String,
    /// Whether reads bypass the page cache.
    pub direct: bool,
}

/// A KV prefix cache. Cloning gives another handle to the same cache.
#[derive(Clone)]
pub struct Cache {
    pub(crate) inner: Arc<Inner>,
    recovery: Arc<Recovery>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("shape", &self.inner.shape).finish_non_exhaustive()
    }
}

impl Cache {
    /// Opens a cache. With a store, what it holds is resident again; nothing is read but its tables.
    ///
    /// # Errors
    /// When the model, a quota, a policy or the store refuses. A crash leaves nothing behind that would.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let (history_bytes, window_bytes) = match config.budget {
            // Either group may come to have all of it.
            Some(Budget { bytes }) => (bytes, bytes),
            None => (config.history_bytes, config.window_bytes),
        };
        if let (Some(_), Some(directory)) = (config.budget, &config.store) {
            return Err(OpenError::BudgetOfStore { directory: directory.clone() });
        }
        let shape = Shape::new(&config.model, config.block_tokens, history_bytes, window_bytes)?;
        let division = config.budget.and_then(|budget| Division::new(budget.bytes, &shape));
        let loader = Loader::new(config.terms(shape.history.slots.into()));
        // Before the store: a policy that does not load leaves no trace on disk.
        let conduct = (config.strikes, config.deterministic);
        let checkpoints = loader.load(&config.checkpoints, Kind::Checkpoint);
        let info = shape.checkpoint_info(config.replay);
        let checkpoints = CheckpointSeat::new(checkpoints, &config.checkpoints.to_string(), info, conduct)?;
        let groups = group_infos(&shape);
        let eviction = loader.load(&config.eviction, Kind::Cache).and_then(|origin| {
            let fresh = origin.cache(&groups)?;
            Ok((Script { origin, saved: None }, fresh))
        });
        let eviction = match eviction {
            Err(error) if !error.is_misbehaviour() => return Err(error.into()),
            loaded => loaded,
        };

        let checkpoint_slots = shape.window.as_ref().map_or(0, |window| window.slots);
        let mut tree = Tree::new(shape.history.slots, checkpoint_slots);
        if let Some(division) = &division {
            let limits = division.first_limits();
            tree.set_limits(limits.blocks, limits.checkpoints);
        }
        let mut recovery = Recovery::default();
        let store = match &config.store {
            None => None,
            Some(directory) => {
                let options = Options {
                    durability: match config.durability {
                        Durability::Relaxed => reprise_disk::Durability::Relaxed,
                        Durability::Strict => reprise_disk::Durability::Strict,
                    },
                    io: config.io.options(),
                    ..Options::default()
                };
                let (store, report) = Store::open(directory, &classes(&shape), &options)
                    .map_err(|source| OpenError::Store { directory: directory.clone(), source })?;
                recovery = recover(&store, &report, &mut tree, &shape);
                Some(store)
            }
        };
        recovery.remarks.extend(loader.trouble.clone());
        let ledger = Mutex::new(Ledger::new(tree, shape.draft.is_some()));
        let eviction_name = config.eviction.to_string();
        let vault = Arc::new(Vault { shape, ledger, store });
        let eviction = EvictionSeat::new(eviction, &eviction_name, groups, &vault, conduct)?;
        let threads = match vault.store {
            None => None,
            Some(_) => Some(Threads {
                writer: Writer::start(Arc::clone(&vault), config.write_buffer_bytes, config.io)
                    .map_err(|source| OpenError::Thread { thread: "writing", source })?,
                reader: Reader::start().map_err(|source| OpenError::Thread { thread: "reading", source })?,
            }),
        };
        let namespaces = Mutex::default();
        let (eviction, checkpoints) = (Arc::new(eviction), Arc::new(checkpoints));
        let shadow = ShadowSeat::default();
        let inner = Inner { vault, config, shadow, division, loader, eviction, checkpoints, threads, namespaces };
        if let Some(division) = &inner.division {
            match division.send_scouts(&inner) {
                // The fallback answers, and nobody can try what it would do elsewhere.
                Err(error) if error.is_misbehaviour() || matches!(error, PolicyError::NoPolicy { .. }) => {}
                sent => sent?,
            }
        }
        Ok(Self { inner: Arc::new(inner), recovery: Arc::new(recovery) })
    }

    /// A handle to one namespace; sequences are looked up and saved in it.
    ///
    /// # Errors
    /// When the namespace makes no sense, has another block size than the cache, or cannot be entered into the store's catalogue.
    pub fn namespace(&self, namespace: &Namespace) -> Result<NamespaceHandle, RequestError> {
        let key = namespace.key()?;
        let cache_tokens = self.inner.shape.block_tokens;
        if key.block_tokens() != cache_tokens {
            return Err(RequestError::BlockTokens { namespace_tokens: key.block_tokens(), cache_tokens });
        }
        let index = match &self.inner.store {
            Some(store) => store.namespace(&catalogue_entry(namespace, key.root())).map_err(RequestError::Catalogue)?,
            None => {
                let mut known = lock(&self.inner.namespaces);
                let index = known.iter().position(|&root| root == key.root()).unwrap_or_else(|| {
                    known.push(key.root());
                    known.len() - 1
                });
                u16::try_from(index).map_err(|_| RequestError::TooManyNamespaces)?
            }
        };
        Ok(NamespaceHandle { inner: Arc::clone(&self.inner), key, index })
    }

    /// The groups, with sizes and how many records fit.
    pub fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// How the cache was set up.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What was found in the store when the cache was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The running policies.
    pub fn policies(&self) -> Policies<'_> {
        Policies(&self.inner)
    }

    /// Waits until everything that was saved is in the store and readable, or has failed and is counted.
    pub fn drain(&self) {
        if let Some(threads) = &self.inner.threads {
            threads.writer.drain();
        }
    }

    /// Counts and sizes, as of now.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.inner)
    }

    /// What the store takes of the device, beside the quotas, too; `None` without a store.
    pub fn usage(&self) -> Option<Usage> {
        self.inner.store.as_ref().map(Store::usage)
    }

    /// Asks the system to put everything written on stable storage.
    ///
    /// # Errors
    /// When the device refuses. Reads go on; what was written since the last success may be lost in a crash.
    pub fn sync(&self) -> Result<(), reprise_disk::StoreError> {
        self.drain();
        self.inner.store.as_ref().map_or(Ok(()), Store::sync)
    }
}

/// Locks; a panic elsewhere does not take the cache down: every critical section leaves the books consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn classes(shape: &Shape) -> Vec<GroupClass> {
    Group::ALL
        .into_iter()
        .filter_map(|group| Some((group, shape.group(group)?)))
        .map(|(group, shape)| GroupClass {
            group: group.number(),
            name: shape.name.clone(),
            fingerprint: shape.fingerprint,
            payload_bytes: shape.record_bytes,
            sections: shape.sections.clone(),
            slots: shape.slots,
        })
        .collect()
}

fn group_infos(shape: &Shape) -> Vec<GroupInfo> {
    vec![GroupInfo {
        group: Group::History.number(),
        name: shape.history.name.clone(),
        record_bytes: shape.history.slot_bytes,
        capacity_records: u64::from(shape.history.slots),
        recompute_tokens: shape.block_tokens,
        tree: true,
    }]
}

fn catalogue_entry(namespace: &Namespace, root: Digest) -> reprise_disk::NamespaceRecord {
    let extensions: Vec<String> = namespace.extensions.iter().map(|(key, value)| format!("{key}={value}")).collect();
    reprise_disk::NamespaceRecord {
        check: root.short(),
        model: namespace.model.clone(),
        revision: namespace.revision.clone(),
        salt_hash: namespace.tenant_digest(),
        adapter: namespace.adapter.clone(),
        rank: namespace.rank,
        ranks: namespace.ranks,
        block_tokens: namespace.block_tokens,
        extensions: extensions.join("\n"),
    }
}

/// Builds the tree from what the store kept. Blocks come in order of their writing, so that a parent comes before its child;
/// what no path leads to is left out, and its slot is free.
fn recover(store: &Store, report: &OpenReport, tree: &mut Tree, shape: &Shape) -> Recovery {
    let block_tokens = shape.block_tokens;
    let depth = |position: u64| u32::try_from(position / u64::from(block_tokens)).unwrap_or(0);
    let mut blocks = store.take_records(Group::History.number());
    blocks.sort_unstable_by_key(|record| (depth(record.position), record.sequence));
    let mut last_use = blocks.iter().map(|record| record.last_use).max().unwrap_or(0);
    let unreachable = tree.restore(blocks.into_iter().map(|record| {
        let depth = depth(record.position);
        let block = Block {
            digest: record.digest,
            parent: (depth > 1).then_some(record.parent),
            depth,
            namespace: record.namespace,
            last_use: record.last_use,
            inserted: record.sequence,
        };
        (record.slot, block)
    }));
    let mut unreachable = unreachable.len() as u64;
    let drafts: HashSet<(u32, Digest)> =
        store.take_records(Group::Draft.number()).iter().map(|draft| (draft.slot, draft.digest)).collect();
    let mut checkpoints = 0;
    for window in store.take_records(Group::Window.number()) {
        last_use = last_use.max(window.last_use);
        let complete = shape.draft.is_none() || drafts.contains(&(window.slot, window.digest));
        let restored = tree
            .find(&window.digest)
            .filter(|&id| complete && tree.depth(id) == depth(window.position))
            .is_some_and(|id| tree.restore_checkpoint(window.slot, id, window.last_use));
        if restored {
            checkpoints += 1;
        } else {
            unreachable += 1;
        }
    }
    Recovery {
        blocks: u64::from(tree.len()),
        checkpoints,
        unreachable,
        dropped: report.dropped(),
        last_use,
        remarks: remarks(report),
        io: format!("{}; {}", store.mode(), store.engine()),
        direct: *store.mode() == IoMode::Direct,
    }
}

/// What an operator should know of an open: nothing, if nothing was lost or mended.
fn remarks(report: &OpenReport) -> Vec<String> {
    let quiet = report.dropped() == 0
        && report.removed.is_empty()
        && report.catalogue_cut_bytes == 0
        && !report.superblock_repaired
        && report.classes.iter().all(|class| class.slots_before.is_none() && !class.header_repaired)
        && report.notes.is_empty();
    if quiet { Vec::new() } else { vec![report.to_string()] }
}
