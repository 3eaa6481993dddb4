//! What a store holds at a moment, as a cache of its own: the store itself is only read, and may be in use.

use std::{
    io,
    path::{Path, PathBuf},
};

use reprise::{Cache, Config, Namespace, NamespaceHandle, OpenError, RequestError, StoreError, StoreReader};
use reprise_core::{
    layout::{GroupLayout, Layout, LayoutError},
    model::Role,
};
use tempfile::TempDir;
use thiserror::Error;

/// Most namespaces that an error names.
const NAMESPACES_NAMED: usize = 8;

/// A cache that knows what a store holds, and none of the bytes.
pub struct Snapshot {
    cache: Cache,
    namespace: NamespaceHandle,
    /// Goes when the cache has closed.
    _directory: TempDir,
}

/// Why a store cannot be looked at.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// It is no store.
    #[error("opening the store in {}", directory.display())]
    Store {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// It holds nothing of the namespace.
    #[error(
        "the store in {} knows {known}, and nothing of {model} at {revision} with the block size, rank, tenant, adapter and extensions given",
        directory.display()
    )]
    Namespace {
        /// Where.
        directory: PathBuf,
        /// The model looked for.
        model: String,
        /// The revision looked for.
        revision: String,
        /// What there is.
        known: String,
    },
    /// It was written with another model or block size.
    #[error(
        "the store in {} holds no {group} records of model {model} with blocks of {block_tokens} tokens, but {found}: give the --model and \
         --block-tokens that it was written with",
        directory.display()
    )]
    Layout {
        /// Where.
        directory: PathBuf,
        /// The group.
        group: String,
        /// The model.
        model: String,
        /// The block size.
        block_tokens: u32,
        /// What there is.
        found: String,
    },
    /// The block does not fit the model.
    #[error(transparent)]
    Block(#[from] LayoutError),
    /// The namespace makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its tables cannot be copied.
    #[error("copying the tables of the store in {} to a temporary directory", directory.display())]
    Copy {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The copy does not open.
    #[error("opening a copy of the store's tables")]
    Open(#[source] OpenError),
}

impl Snapshot {
    /// What the store in `directory` holds of `namespace`, for a cache of `config`, whose quotas are those of the store instead.
    ///
    /// The store's tables are copied to a temporary directory, its records stand there as holes. So nothing in `directory` changes, no lock
    /// is taken, and what is being written at the moment is left out.
    ///
    /// # Errors
    /// When there is no store, or it holds nothing of the namespace, or nothing that the model can use.
    pub fn take(directory: &Path, mut config: Config, namespace: &Namespace) -> Result<Self, SnapshotError> {
        let reader = StoreReader::open(directory)
            .map_err(|source| SnapshotError::Store { directory: directory.to_owned(), source })?;
        find_namespace(directory, &reader, namespace)?;
        fit_quotas(directory, &reader, &mut config)?;
        let copy = copy(&reader).map_err(|source| SnapshotError::Copy { directory: directory.to_owned(), source })?;
        config.store = Some(copy.path().to_owned());
        let cache = Cache::open(config).map_err(SnapshotError::Open)?;
        let namespace = cache.namespace(namespace)?;
        Ok(Self { cache, namespace, _directory: copy })
    }

    /// The cache: plans can be made, nothing can be restored.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The namespace looked for.
    pub fn namespace(&self) -> &NamespaceHandle {
        &self.namespace
    }
}

fn find_namespace(directory: &Path, reader: &StoreReader, namespace: &Namespace) -> Result<(), SnapshotError> {
    let check = namespace.key().map_err(RequestError::from)?.root().short();
    let known = reader.namespaces();
    if known.iter().any(|known| known.check == check) {
        return Ok(());
    }
    let shared = Namespace::new("", "").tenant_digest();
    let describe = known.iter().take(NAMESPACES_NAMED).map(|known| {
        let optional = [
            (known.salt_hash != shared).then(|| "a tenant's".to_owned()),
            (!known.adapter.is_empty()).then(|| format!("adapter {}", known.adapter)),
            (!known.extensions.is_empty()).then(|| known.extensions.replace('\n', ", ")),
        ];
        let optional: String = optional.into_iter().flatten().map(|text| format!(", {text}")).collect();
        let (model, revision, block_tokens) = (&known.model, &known.revision, known.block_tokens);
        format!("{model} at {revision} (blocks of {block_tokens}, rank {}/{}{optional})", known.rank, known.ranks)
    });
    let mut known_text: Vec<String> = describe.collect();
    match known.len() {
        0 => known_text.push("no namespace".to_owned()),
        all if all > NAMESPACES_NAMED => known_text.push(format!("{} more", all - NAMESPACES_NAMED)),
        _ => {}
    }
    Err(SnapshotError::Namespace {
        directory: directory.to_owned(),
        model: namespace.model.clone(),
        revision: namespace.revision.clone(),
        known: known_text.join("; "),
    })
}

/// The store's own quotas: with others, opening would drop records.
fn fit_quotas(directory: &Path, reader: &StoreReader, config: &mut Config) -> Result<(), SnapshotError> {
    let layout = Layout::new(&config.model, config.block_tokens)?;
    (config.history_bytes, config.window_bytes) = (0, 0);
    for group in layout.groups() {
        let class = reader.classes().find(|class| class.name == group.name());
        let Some(class) = class.filter(|class| class.fingerprint == group.fingerprint()) else {
            if class.is_none() && group.role() != Role::Block {
                continue;
            }
            return Err(misfit(directory, reader, config, group));
        };
        let quota_bytes = u64::from(class.slots) * group.slot_bytes();
        match group.role() {
            Role::Block => config.history_bytes = quota_bytes,
            Role::Checkpoint => config.window_bytes = quota_bytes,
            Role::Draft => {}
        }
    }
    Ok(())
}

fn misfit(directory: &Path, reader: &StoreReader, config: &Config, group: &GroupLayout) -> SnapshotError {
    let found: Vec<String> =
        reader.classes().map(|class| format!("{} records of {} bytes", class.name, class.payload_bytes)).collect();
    SnapshotError::Layout {
        directory: directory.to_owned(),
        group: group.name().to_owned(),
        model: config.model.name().to_owned(),
        block_tokens: config.block_tokens,
        found: if found.is_empty() { "none at all".to_owned() } else { found.join(", ") },
    }
}

fn copy(reader: &StoreReader) -> io::Result<TempDir> {
    let copy = tempfile::Builder::new().prefix("reprise-").tempdir()?;
    reader.mirror(copy.path())?;
    Ok(copy)
}
