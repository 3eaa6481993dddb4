//! A serving engine around the reference model: plans, restores, computes, captures, saves. It can be broken in the ways that engines
//! are.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use reprise::{
    BlockSink, BlockSource, Cache, Config, Group, Namespace, NamespaceHandle, Plan, PlanGuard, Record, Restored,
    Sequence,
};
use reprise_core::layout::Layout;
use reprise_model::{Model, Output, Shape, State};

use crate::kv;

/// A rule of an exact restore, broken.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken {
    /// The compressors' state of the last tokens is not restored.
    NoOverlap,
    /// Windows are read from a ring that another request has overwritten since: the rows of that request.
    StaleRing(Box<State>),
    /// A window that is not full yet is read from the front of its record, where rows lie that do not exist.
    WindowFromTheFront,
    /// A replay overwrites the entries it passes.
    NoWriteFloor,
    /// A replay is one window too short.
    ShortReplay,
    /// A replay does not happen at all: a hit is used without its windows.
    NoReplay,
    /// The indexer's entries end one block before the others.
    IndexerShort,
    /// The compressed entries end one block before the indexer's.
    EntriesShort,
    /// The whole prompt is a hit, and its last token is computed once more for its logits.
    FullPrompt,
    /// The draft layer's window is not restored.
    NoDraftWindow,
    /// The streams that the draft layer's next row is made of are not restored.
    NoDraftStreams,
    /// A restore that was shortened is used as it was planned.
    ShortenedIgnored,
}

/// What serving one prompt gave.
pub struct Served {
    pub plan: Plan,
    pub restored: Restored,
    /// Tokens of the prompt that went through the model.
    pub computed_tokens: u32,
    /// The token that the first output belongs to.
    pub first_output: usize,
    /// One for every token of the prompt that was neither adopted nor replayed, and for every token that followed.
    pub outputs: Vec<Output>,
    /// Whether the draft layer went on as in a cold run.
    pub drafts: bool,
    /// The caches in the end.
    pub state: State,
}

/// An engine with one model and one cache.
pub struct Engine<'a> {
    pub model: &'a Model,
    pub cache: Cache,
    pub namespace: NamespaceHandle,
    layout: Arc<Layout>,
    pub broken: Option<Broken>,
}

/// A configuration for the reference model with room for so many records; its store lies in `directory`.
pub fn config(shape: &Shape, blocks: u64, checkpoints: u64, directory: &Path) -> Config {
    let spec = kv::spec(shape);
    let block_tokens = spec.block_multiple();
    let layout = Layout::new(&spec, block_tokens).unwrap();
    let slot_bytes = |group| layout.group(group).unwrap().slot_bytes();
    Config {
        block_tokens,
        history_bytes: blocks * slot_bytes("history"),
        window_bytes: checkpoints * slot_bytes("window"),
        store: Some(directory.join("store")),
        // Toy records are dear to load for what they spare; what is planned is to be tested, not whether it pays.
        planner: reprise::Planner::MinCompute,
        native_policies: true,
        ..Config::for_model(spec)
    }
}

impl<'a> Engine<'a> {
    /// Opens the cache.
    pub fn open(model: &'a Model, config: Config) -> Self {
        Self::open_as(model, config, &Namespace::new("reference", "1"))
    }

    /// The same in a namespace of its own.
    pub fn open_as(model: &'a Model, config: Config, namespace: &Namespace) -> Self {
        let block_tokens = config.block_tokens;
        let layout = Arc::new(Layout::new(&config.model, block_tokens).unwrap());
        let cache = Cache::open(config).unwrap();
        let namespace = cache.namespace(&namespace.clone().block_tokens(block_tokens)).unwrap();
        Self { model, cache, namespace, layout, broken: None }
    }

    /// Serves `prompt`, and `following` as if it were generated.
    pub fn serve(&self, prompt: &[u32], following: &[u32], now: u64) -> Served {
        let mut request = self.plan(prompt, now);
        let restoring = self.restore(&request.plan);
        self.finish(&mut request, restoring, prompt, following)
    }

    /// Names and plans.
    pub fn plan(&self, prompt: &[u32], now: u64) -> Request {
        let mut sequence = match self.broken {
            Some(Broken::FullPrompt) => self.namespace.sequence(&[prompt, &[0]].concat()),
            _ => self.namespace.sequence(prompt),
        };
        let plan = sequence.plan(now).unwrap();
        Request { sequence, plan }
    }

    /// Loads what the plan adopts into a state.
    pub fn restore(&self, plan: &PlanGuard) -> (Restored, State) {
        let memory = Memory { layout: Arc::clone(&self.layout), records: Arc::default() };
        let (mut restored, memory) = plan.restore(memory).unwrap().wait();
        if self.broken == Some(Broken::ShortenedIgnored) {
            restored = Restored {
                adopted_tokens: plan.adopted_tokens,
                replayed_tokens: plan.replayed_tokens,
                computed_tokens: plan.computed_tokens,
                checkpoint: plan.loads_checkpoint,
                ..restored
            };
        }
        let mut state = memory.state(self.model.shape(), &restored);
        self.break_state(&mut state, &restored);
        (restored, state)
    }

    /// Computes what was not restored, saving and capturing on the way.
    pub fn finish(
        &self,
        request: &mut Request,
        restoring: (Restored, State),
        prompt: &[u32],
        following: &[u32],
    ) -> Served {
        let (restored, mut state) = restoring;
        let Request { sequence, plan } = request;
        let adopted = restored.adopted_tokens as usize;
        let mut computed_tokens = 0;
        let mut outputs = Vec::new();
        let mut compute = |state: &mut State, outputs: &mut Vec<Output>, tokens: &[u32]| {
            computed_tokens += tokens.len() as u32;
            outputs.extend(self.model.forward(state, tokens));
        };
        if self.broken == Some(Broken::FullPrompt) && adopted == prompt.len() {
            compute(&mut state, &mut outputs, &prompt[adopted - 1..]);
        }
        let replayed = &prompt[state.position.min(adopted)..adopted];
        compute(&mut state, &mut Vec::new(), replayed);
        for &position in &plan.captures {
            let passed = state.position;
            if position as usize >= passed {
                compute(&mut state, &mut outputs, &prompt[passed..position as usize]);
                sequence.capture_at(position, &mut Caches { layout: &self.layout, state: &state }).unwrap();
            }
        }
        let passed = state.position.min(prompt.len());
        compute(&mut state, &mut outputs, &prompt[passed..]);
        if self.broken != Some(Broken::ShortenedIgnored) {
            sequence.save(&mut Caches { layout: &self.layout, state: &state }).unwrap();
            self.cache.drain();
        }
        outputs.extend(self.model.forward(&mut state, following));
        let first_output = if self.broken == Some(Broken::FullPrompt) { adopted - 1 } else { adopted };
        state.write_floor = 0;
        Served { plan: (**plan).clone(), restored, computed_tokens, first_output, outputs, drafts: plan.drafts, state }
    }

    fn break_state(&self, state: &mut State, restored: &Restored) {
        let block_tokens = self.cache.config().block_tokens as usize;
        let shape = self.model.shape();
        match &self.broken {
            Some(Broken::NoOverlap) => {
                for layer in &mut state.layers {
                    for compressor in [&mut layer.compressor, &mut layer.indexer].into_iter().flatten() {
                        compressor.overlap.clear(0);
                    }
                }
            }
            Some(Broken::StaleRing(other)) => {
                for (layer, other) in state.layers.iter_mut().zip(&other.layers) {
                    let (first, len) = (layer.window.first, layer.window.values.len());
                    layer.window.values = other.window.values[..len].to_vec();
                    layer.window.first = first;
                }
            }
            Some(Broken::WindowFromTheFront) => {
                for layer in &mut state.layers {
                    let (missing, len) = (shape.window - layer.window.len(), layer.window.values.len());
                    layer.window.values.splice(0..0, vec![0.0; missing * layer.window.width]);
                    layer.window.values.truncate(len);
                }
            }
            Some(Broken::NoWriteFloor) => state.write_floor = 0,
            Some(Broken::ShortReplay) if restored.replayed_tokens > 0 => {
                *state = at_later(shape, state, shape.window);
            }
            Some(Broken::NoReplay) if restored.replayed_tokens > 0 => {
                *state = at_later(shape, state, restored.replayed_tokens as usize);
            }
            Some(Broken::IndexerShort) => {
                for layer in &mut state.layers {
                    if let Some(indexer) = &mut layer.indexer {
                        shorten(&mut indexer.entries, block_tokens / shape.csa_ratio);
                    }
                }
            }
            Some(Broken::EntriesShort) => {
                for layer in &mut state.layers {
                    if let (Some(compressor), Some(_)) = (&mut layer.compressor, &layer.indexer) {
                        shorten(&mut compressor.entries, block_tokens / shape.csa_ratio);
                    }
                }
            }
            Some(Broken::NoDraftWindow) => {
                let draft = state.draft.as_mut().unwrap();
                draft.window.clear(state.position);
            }
            Some(Broken::NoDraftStreams) => state.draft.as_mut().unwrap().hidden = None,
            _ => {}
        }
    }
}

/// A request that was planned.
pub struct Request {
    pub sequence: Sequence,
    pub plan: PlanGuard,
}

/// The same entries, the replay begun `tokens` later.
fn at_later(shape: &Shape, state: &State, tokens: usize) -> State {
    let mut later = State::at(shape, state.position + tokens);
    later.write_floor = state.write_floor;
    for (later, layer) in later.layers.iter_mut().zip(&state.layers) {
        for (later, compressor) in [(&mut later.compressor, &layer.compressor), (&mut later.indexer, &layer.indexer)] {
            if let (Some(later), Some(compressor)) = (later, compressor) {
                later.entries = compressor.entries.clone();
            }
        }
    }
    later
}

fn shorten(rows: &mut reprise_model::Rows, by: usize) {
    let len = rows.values.len().saturating_sub(by * rows.width);
    rows.values.truncate(len);
}

/// A record as it was given.
type Given = (Record, Vec<u8>);

/// Records on their way into the engine's memory.
#[derive(Clone)]
struct Memory {
    layout: Arc<Layout>,
    records: Arc<Mutex<Vec<Given>>>,
}

impl BlockSink for Memory {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        self.records.lock().unwrap().push((*record, bytes.to_vec()));
    }
}

impl Memory {
    /// The caches of an engine that goes on from what was restored.
    fn state(&self, shape: &Shape, restored: &Restored) -> State {
        let adopted = restored.adopted_tokens;
        let mut state = State::at(shape, (adopted - restored.replayed_tokens) as usize);
        if restored.replayed_tokens > 0 {
            state.write_floor = adopted as usize;
        }
        for (record, bytes) in self.records.lock().unwrap().iter() {
            let counts = match record.group {
                Group::History => record.position_tokens <= adopted,
                Group::Window | Group::Draft => restored.checkpoint && record.position_tokens == adopted,
            };
            if counts {
                kv::take(&self.layout, &mut state, record, bytes);
            }
        }
        state
    }
}

/// The engine's memory as a source of records.
pub struct Caches<'a> {
    pub layout: &'a Layout,
    pub state: &'a State,
}

impl BlockSource for Caches<'_> {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        kv::fill(self.layout, self.state, record, bytes);
    }
}
