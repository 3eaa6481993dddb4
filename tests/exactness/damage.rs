//! Any one record fails, in any way: the plan is cut for all types alike, and what is computed instead is exact.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use reprise::{Config, Group, Namespace, Record};
use reprise_core::{
    Digest,
    layout::Layout,
    plan::{Candidates, Lookup},
};
use reprise_model::{Model, Shape};

use crate::{
    comparison::Cold,
    engine::{Broken, Engine, config},
    kv,
    lengths::{FOLLOWING, tokens},
};

const BLOCK: u32 = 16;
const PROMPT: usize = 12 * BLOCK as usize + 5;
const CHECKPOINTS: [u32; 4] = [48, 96, 144, 192];
/// The length of a replay of the small model, drafts included.
const REPLAY: u32 = 128;

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// One bit is flipped.
    Corrupt,
    /// Its slot is full of zeros.
    Missing,
    /// Its file ends in its middle.
    Short,
    /// The record of another position lies in its slot.
    WrongPosition,
    /// A record of another group lies in its slot.
    WrongType,
    /// The record of the same tokens in another namespace lies in its slot.
    WrongNamespace,
}

const DAMAGES: [Damage; 6] =
    [Damage::Corrupt, Damage::Missing, Damage::Short, Damage::WrongPosition, Damage::WrongType, Damage::WrongNamespace];

/// A store with the same prompt of two revisions of a model.
struct Prepared<'a> {
    config: Config,
    layout: Layout,
    cold: Cold<'a>,
    other: Cold<'a>,
    directory: tempfile::TempDir,
}

/// Where a record lies.
struct Place {
    file: PathBuf,
    offset: u64,
    bytes: u64,
}

impl<'a> Prepared<'a> {
    fn new(model: &'a Model, other: &'a Model) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shape = model.shape();
        let config = Config { checkpoints: "periodic:48".parse().unwrap(), ..config(shape, 40, 16, directory.path()) };
        let prompt = tokens(shape, 80, PROMPT + FOLLOWING);
        let (cold, other) = (Cold::new(model, prompt.clone()), Cold::new(other, prompt));
        Engine::open(model, config.clone()).serve(&cold.tokens[..PROMPT], &[], 1);
        Engine::open_as(other.model(), config.clone(), &Namespace::new("reference", "2")).serve(
            &cold.tokens[..PROMPT],
            &[],
            2,
        );
        let layout = Layout::new(&config.model, BLOCK).unwrap();
        Self { config, layout, cold, other, directory }
    }

    /// A copy of the store, to be damaged.
    fn copy(&self) -> (tempfile::TempDir, Config) {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("store");
        fs::create_dir(&store).unwrap();
        for entry in fs::read_dir(self.directory.path().join("store")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, store.join(path.file_name().unwrap())).unwrap();
        }
        (directory, Config { store: Some(store), ..self.config.clone() })
    }

    /// What the record holds, in one of the two revisions.
    fn payload(&self, cold: &Cold<'_>, group: Group, position_tokens: u32) -> Vec<u8> {
        let record = Record { group, block: position_tokens / BLOCK - 1, position_tokens, digest: Digest::default() };
        let mut bytes = vec![0; self.layout.group(group.name()).unwrap().record_bytes() as usize];
        kv::fill(&self.layout, &cold.state_at(position_tokens as usize), &record, &mut bytes);
        bytes
    }

    /// Finds the record by its content, whatever the format of the store.
    fn place(&self, store: &Path, cold: &Cold<'_>, group: Group, position_tokens: u32) -> Place {
        let payload = self.payload(cold, group, position_tokens);
        let chunks = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path()).filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(group.name()) && name.ends_with(".chunk")
        });
        let found = chunks.filter_map(|file| {
            let content = fs::read(&file).unwrap();
            // Slots begin on pages.
            let offset = (0..content.len()).step_by(4096).find(|&at| content[at..].starts_with(&payload))?;
            Some(Place { file, offset: offset as u64, bytes: payload.len() as u64 })
        });
        found.last().unwrap_or_else(|| panic!("the {} record at {position_tokens} is in no chunk", group.name()))
    }

    fn damage(&self, store: &Path, group: Group, position_tokens: u32, damage: Damage) {
        let place = self.place(store, &self.cold, group, position_tokens);
        let file = fs::OpenOptions::new().read(true).write(true).open(&place.file).unwrap();
        let read = |place: &Place, bytes: u64| {
            let mut content = vec![0; bytes as usize];
            fs::File::open(&place.file).unwrap().read_exact_at(&mut content, place.offset).unwrap();
            content
        };
        // A slot is the payload and its trailer, in whole pages: what lies behind the payload in them is copied along.
        let slot_bytes = (place.bytes + 1).next_multiple_of(4096);
        let instead = match damage {
            Damage::Corrupt => {
                let mut content = read(&place, place.bytes);
                content[place.bytes as usize / 2] ^= 0x04;
                content
            }
            Damage::Missing => vec![0; slot_bytes as usize],
            Damage::Short => {
                file.set_len(place.offset + place.bytes / 2).unwrap();
                file.sync_all().unwrap();
                return;
            }
            Damage::WrongPosition => {
                let other = if position_tokens == 48 { 96 } else { 48 };
                read(&self.place(store, &self.cold, group, other), slot_bytes)
            }
            Damage::WrongType => {
                let other = if group == Group::History { Group::Window } else { Group::History };
                let mut content = read(&self.place(store, &self.cold, other, 48), 4096);
                content.resize(slot_bytes as usize, 0);
                content
            }
            Damage::WrongNamespace => read(&self.place(store, &self.other, group, position_tokens), slot_bytes),
        };
        file.write_all_at(&instead, place.offset).unwrap();
        file.sync_all().unwrap();
    }
}

/// All records of the prompt.
fn records() -> impl Iterator<Item = (Group, u32)> {
    let blocks = (1..=PROMPT as u32 / BLOCK).map(|block| (Group::History, block * BLOCK));
    let windows = CHECKPOINTS.into_iter().flat_map(|position| [(Group::Window, position), (Group::Draft, position)]);
    blocks.chain(windows)
}

/// Records that are gone with the one that was damaged: those behind it in a file that was cut, as far as this test lays them out.
fn expected_plan(group: Group, position: u32) -> (u32, u32) {
    let matched_tokens = if group == Group::History { position - BLOCK } else { 192 };
    let good = |&&at: &&u32| at <= matched_tokens && (group == Group::History || at != position);
    let checkpoint_tokens = CHECKPOINTS.iter().rfind(good).copied().unwrap_or(0);
    let lookup =
        Lookup { prompt_tokens: PROMPT as u32, matched_tokens, checkpoint_tokens, replay_tokens: Some(REPLAY) };
    let plan = Candidates::new(&lookup).min_compute();
    (plan.adopted_tokens, plan.replayed_tokens)
}

/// dynamo#15079, LMCache#3006, #4385, vllm#45474, sglang#33656.
#[test]
fn no_failure_of_one_record_changes_a_bit() {
    let shape = Shape::small(16, 16);
    let (model, other) = (Model::random(shape.clone(), 31), Model::random(shape, 32));
    let prepared = Prepared::new(&model, &other);
    let (prompt, following) = prepared.cold.tokens.split_at(PROMPT);
    for (group, position) in records() {
        for damage in DAMAGES {
            for while_planned in [false, true] {
                let case = format!("{damage:?} {} at {position}, while planned: {while_planned}", group.name());
                let (_directory, config) = prepared.copy();
                let store = config.store.clone().unwrap();
                if !while_planned {
                    prepared.damage(&store, group, position, damage);
                }
                let engine = Engine::open(&model, config);
                let mut request = engine.plan(prompt, 3);
                if while_planned {
                    prepared.damage(&store, group, position, damage);
                }
                let restoring = engine.restore(&request.plan);
                let served = engine.finish(&mut request, restoring, prompt, following);
                prepared.cold.compare(&served).unwrap_or_else(|difference| panic!("{case}: {difference}"));
                let taken = (served.restored.adopted_tokens, served.restored.replayed_tokens);
                let touched = group == Group::History || position == 192;
                if damage != Damage::Short {
                    let expected = if touched { expected_plan(group, position) } else { (192, 0) };
                    assert_eq!(taken, expected, "{case}");
                } else {
                    assert!(!touched || taken != (192, 0), "{case}");
                }
                drop(request);
                // What was lost is written again where its path is saved: the next hit is whole, or a replay where its window is lost.
                let again = engine.serve(prompt, following, 4);
                prepared.cold.compare(&again).unwrap_or_else(|difference| panic!("{case}, again: {difference}"));
                assert_eq!(again.plan.matched_tokens, 192, "{case}");
            }
        }
    }
}

/// What the checks prevent: the engine takes what was planned although the restore said that it was cut.
#[test]
fn a_failed_record_that_is_used_all_the_same_does_not_go_unnoticed() {
    let shape = Shape::small(16, 16);
    let (model, other) = (Model::random(shape.clone(), 31), Model::random(shape, 32));
    let prepared = Prepared::new(&model, &other);
    let (prompt, following) = prepared.cold.tokens.split_at(PROMPT);
    for (group, position) in [(Group::History, 16), (Group::History, 192), (Group::Window, 192)] {
        let (_directory, config) = prepared.copy();
        prepared.damage(config.store.as_ref().unwrap(), group, position, Damage::WrongNamespace);
        let mut engine = Engine::open(&model, config);
        engine.broken = Some(Broken::ShortenedIgnored);
        let served = engine.serve(prompt, following, 3);
        assert_eq!(served.restored.adopted_tokens, 192);
        assert!(prepared.cold.compare(&served).is_err(), "{} at {position}", group.name());
    }
}
