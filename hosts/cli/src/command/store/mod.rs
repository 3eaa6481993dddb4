//! `reprise store`.

mod archive;
mod info;
mod list;
mod remove;
mod verify;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use reprise::{
    Namespace, StoreError, StoreReader,
    disk::{
        GroupClass,
        tools::{Filter, Maintenance},
    },
};

use super::{Failure, print};
use crate::args::{FilterOptions, StoreCommand};

pub(super) fn run(command: StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Info { directory, json } => info::run(&directory, json),
        StoreCommand::Ls { directory, filter, limit, json } => list::run(&directory, &filter, limit, json),
        StoreCommand::Verify { directory, repair: false, json } => verify::run(&directory, json),
        StoreCommand::Verify { directory, repair: true, json } => verify::repair(&directory, json),
        StoreCommand::Evict { directory, group, room, json } => remove::evict(&directory, &group, room, json),
        StoreCommand::Purge { directory, filter, unused_since, dry_run, json } => {
            remove::purge(&directory, &filter, unused_since, dry_run, json)
        }
        StoreCommand::Export { directory, file, filter, json } => archive::export(&directory, &file, &filter, json),
        StoreCommand::Import { directory, file, json } => archive::import(&directory, &file, json),
    }
}

/// Opens a store for reading.
fn read(directory: &Path) -> Result<StoreReader, Failure> {
    StoreReader::open(directory).map_err(|error| opening(directory, error))
}

/// Locks a store.
fn lock(directory: &Path) -> Result<Maintenance, Failure> {
    Maintenance::open(directory).map_err(|error| opening(directory, error))
}

fn opening(directory: &Path, error: StoreError) -> Failure {
    Failure::input(anyhow!(error).context(format!("opening the store in {}", directory.display())))
}

/// Tells a store that refuses from work that did not succeed.
fn failure(error: StoreError) -> Failure {
    match error {
        StoreError::Full { .. } | StoreError::Io { .. } | StoreError::Poisoned => Failure::work(error),
        error => Failure::input(error),
    }
}

/// Shows how much is done, of how much.
fn follow(bar: &ProgressBar) -> impl FnMut(u64, u64) + '_ {
    |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    }
}

/// What the options mean in a store.
fn filter(store: &StoreReader, directory: &Path, options: &FilterOptions) -> Result<Filter, Failure> {
    let group =
        options.group.as_deref().map(|name| Ok::<u8, Failure>(class(store, directory, name)?.group)).transpose()?;
    Ok(Filter {
        namespaces: namespaces(store, directory, options)?,
        group,
        positions: options.position.clone().unwrap_or(0..u64::MAX),
        digest_prefix: options.digest.clone().unwrap_or_default(),
    })
}

/// The group called `name`.
fn class<'a>(store: &'a StoreReader, directory: &Path, name: &str) -> Result<&'a GroupClass, Failure> {
    store.classes().find(|class| class.name == name).ok_or_else(|| {
        let known: Vec<&str> = store.classes().map(|class| class.name.as_str()).collect();
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        Failure::input(anyhow!("the store in {} has no group {name}; its groups are: {known}", directory.display()))
    })
}

/// The namespaces that fit; `None` if no option asks for any.
fn namespaces(
    store: &StoreReader,
    directory: &Path,
    options: &FilterOptions,
) -> Result<Option<BTreeSet<u16>>, Failure> {
    let FilterOptions { namespace, model, revision, adapter, tenant_file, .. } = options;
    let salt_hash = tenant_file.as_deref().map(salt_hash).transpose()?;
    if namespace.is_empty() && salt_hash.is_none() && [model, revision, adapter].into_iter().all(Option::is_none) {
        return Ok(None);
    }
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let found: BTreeSet<u16> = (0..)
        .zip(store.namespaces())
        .filter(|(index, known)| {
            (namespace.is_empty() || namespace.contains(index))
                && is(model, &known.model)
                && is(revision, &known.revision)
                && is(adapter, &known.adapter)
                && salt_hash.is_none_or(|hash| hash == known.salt_hash)
        })
        .map(|(index, _)| index)
        .collect();
    let missing = namespace.iter().find(|&&index| usize::from(index) >= store.namespaces().len());
    match missing {
        None if !found.is_empty() => Ok(Some(found)),
        None => Err(Failure::input(anyhow!(
            "no namespace of the store in {} fits; `reprise store info` lists them",
            directory.display()
        ))),
        Some(index) => Err(Failure::input(anyhow!(
            "the store in {} has no namespace {index}; `reprise store info` lists them",
            directory.display()
        ))),
    }
}

fn salt_hash(file: &Path) -> Result<reprise::Digest, Failure> {
    let salt = fs::read(file)
        .with_context(|| format!("reading the tenant's salt in {}", file.display()))
        .map_err(Failure::Input)?;
    Ok(Namespace::new("", "").tenant(salt).tenant_digest())
}
