//! Saving: who comes in, who goes for it, and the payloads on their way.

use std::sync::Arc;

use reprise_core::{Digest, policy::NO_PARENT, tree::Placement};
use reprise_disk::Key;

use crate::{
    cache::{Inner, lock},
    error::RequestError,
    group::Group,
    ledger::NewBlock,
    policies::{Message, Question},
    record::{BlockSource, Record},
    sequence::{Saved, Sequence, Staged, record},
    writer::{Write, Writer},
};

pub(crate) fn save(sequence: &mut Sequence, source: &mut dyn BlockSource) -> Result<Saved, RequestError> {
    let Some(planned) = &sequence.planned else { return Err(RequestError::NoPlan) };
    let now = planned.now;
    let inner = Arc::clone(&sequence.namespace.inner);
    let floor_blocks = planned.write_floor.tokens() / sequence.block_tokens();
    let writer = inner.threads.as_ref().map(|threads| &threads.writer);
    let blocks = sequence.complete_blocks();

    if let Some(division) = &inner.division {
        division.settle(&inner, now);
    }
    let entrance = enter(&inner, sequence, blocks, floor_blocks, now);
    // What was evicted below the floor since it was loaded could only be written from what a replay computed: the path stays cut there.
    let writable = entrance.resident_blocks >= floor_blocks;
    let missing = if writable { blocks - entrance.resident_blocks } else { 0 };
    let store_refuses = writer.is_some_and(|writer| !writer.is_admitting());
    let question = || Question {
        now,
        keys: sequence.digests[..blocks as usize].iter().map(|digest| digest.short()).collect(),
        first: entrance.resident_blocks,
        free: entrance.vacant,
    };
    let admitted = inner.eviction.admit(&question, missing);
    let admitted_blocks = admitted.blocks;
    let coming = if store_refuses { 0 } else { admitted_blocks };
    let want = coming.saturating_sub(entrance.vacant);
    inner.eviction.make_room(admitted, want, now);
    let new = insert(&inner, sequence, &entrance, coming, now);

    let mut saved = Saved {
        new_blocks: new.len() as u32,
        resident_blocks: entrance.resident_blocks + new.len() as u32,
        checkpoints: 0,
    };
    {
        let mut ledger = lock(&inner.ledger);
        // A store that takes nothing is not the policy's doing.
        ledger.counters.unsaved_blocks += u64::from(admitted_blocks) - u64::from(saved.new_blocks);
        ledger.counters.refused_blocks += u64::from(missing - admitted_blocks);
    }
    match writer {
        Some(writer) => {
            let mut records = entrance.unreadable;
            let last = new.len().saturating_sub(1);
            records.extend(
                new.iter().zip(entrance.resident_blocks..).enumerate().map(|(index, (&id, block))| Unwritten {
                    id,
                    block,
                    pinned: index == last,
                }),
            );
            Payloads { inner: &inner, sequence, now, pinned: entrance.pinned, unwritten: &records }
                .write(writer, source);
        }
        None => {
            let mut ledger = lock(&inner.ledger);
            let record_bytes = inner.shape.history.record_bytes;
            let counters = ledger.counters.group_mut(Group::History);
            counters.written_records += new.len() as u64;
            counters.written_bytes += new.len() as u64 * record_bytes;
            if let Some(id) = entrance.pinned {
                ledger.unpin(id, now);
            }
        }
    }
    saved.checkpoints = place_staged(&inner, sequence, now);
    if let Some(request) = sequence.shadowed {
        let (digests, tokens) = (Arc::clone(&sequence.digests), sequence.tokens);
        let Saved { new_blocks: blocks, checkpoints, .. } = saved;
        inner.shadow.tell(Message::Saved { request, digests, tokens, blocks, checkpoints });
    }
    Ok(saved)
}

/// How a save finds the tree.
struct Entrance {
    /// Blocks of the path that are resident already.
    resident_blocks: u32,
    /// The deepest of them.
    parent: u32,
    /// The same, if there is one: pinned so that the path stays. What is inserted behind it is pinned by its own last block.
    pinned: Option<u32>,
    vacant: u32,
    /// Resident blocks whose record is unreadable, to be written again; each is pinned.
    unreadable: Vec<Unwritten>,
}

/// A block whose record is to be written.
#[derive(Clone, Copy)]
struct Unwritten {
    id: u32,
    block: u32,
    /// Whether the end of the write takes back a pin.
    pinned: bool,
}

fn enter(inner: &Inner, sequence: &Sequence, blocks: u32, floor_blocks: u32, now: u64) -> Entrance {
    let mut ledger = lock(&inner.ledger);
    let digests = &sequence.digests[..blocks as usize];
    let found = ledger.tree.look_up(digests);
    let pinned = (found.depth > 0).then_some(found.id);
    if let Some(id) = pinned {
        ledger.touch(found, now);
        ledger.pin(id, now);
    }
    let mut unreadable = Vec::new();
    if inner.store.is_some() && ledger.readable(digests, found) != found {
        let mut at = found;
        while at.depth > floor_blocks {
            if ledger.is_unreadable(at.id) {
                ledger.pin(at.id, now);
                unreadable.push(Unwritten { id: at.id, block: at.depth - 1, pinned: true });
            }
            at = ledger.tree.ancestor(at, at.depth - 1);
        }
        unreadable.reverse();
    }
    Entrance { resident_blocks: found.depth, parent: found.id, pinned, vacant: ledger.tree.vacant(), unreadable }
}

/// Puts up to `coming` blocks in behind the path, as far as there are slots. Hands the pin of the path over to its new end.
fn insert(inner: &Inner, sequence: &Sequence, entrance: &Entrance, coming: u32, now: u64) -> Vec<u32> {
    let pending = inner.store.is_some();
    let mut ledger = lock(&inner.ledger);
    let mut new = Vec::with_capacity(coming as usize);
    let first = entrance.resident_blocks as usize;
    ledger.tree.warm_names(&sequence.digests[first..first + coming as usize]);
    let mut parent = if entrance.resident_blocks == 0 { NO_PARENT } else { entrance.parent };
    for block in entrance.resident_blocks..entrance.resident_blocks + coming {
        let digest = sequence.digests[block as usize];
        let namespace = sequence.namespace.index;
        // `None` also where another request saved it meanwhile: the path goes on from there at the next plan.
        let Some(id) = ledger.insert(&NewBlock { parent, digest, namespace, pending }, now) else { break };
        new.push(id);
        parent = id;
    }
    if pending && let Some(&last) = new.last() {
        ledger.pin(last, now);
    }
    new
}

/// Payloads of history records on their way to the writer. If the source panics, what was not handed over is marked unreadable and
/// unpinned, so that nothing waits for it.
struct Payloads<'a> {
    inner: &'a Inner,
    sequence: &'a Sequence,
    now: u64,
    /// The pin taken on entering.
    pinned: Option<u32>,
    unwritten: &'a [Unwritten],
}

impl Payloads<'_> {
    fn write(mut self, writer: &Writer, source: &mut dyn BlockSource) {
        while let Some((&Unwritten { id, block, pinned }, rest)) = self.unwritten.split_first() {
            let record = self.sequence.record(Group::History, block);
            let [mut buffer] = writer.buffers([self.inner.shape.history.record_bytes]);
            source.fill(&record, buffer.bytes_mut());
            self.unwritten = rest;
            let unpin = pinned.then_some(id);
            writer.submit(Write { unpin, block: id, slot: id, ..write(self.sequence, &record, buffer, self.now) });
        }
    }
}

impl Drop for Payloads<'_> {
    fn drop(&mut self) {
        let mut ledger = lock(&self.inner.ledger);
        for &Unwritten { id, pinned, .. } in self.unwritten {
            ledger.set_unreadable(id);
            if pinned {
                ledger.unpin(id, self.now);
            }
        }
        if let Some(id) = self.pinned {
            ledger.unpin(id, self.now);
        }
    }
}

fn write(sequence: &Sequence, record: &Record, buffer: reprise_disk::Buffer, now: u64) -> Write {
    let block = record.block as usize;
    Write {
        group: record.group,
        slot: 0,
        key: Key {
            namespace: sequence.namespace.index,
            digest: record.digest,
            position: u64::from(record.position_tokens),
        },
        // The root of a namespace is as secret as its salt, so the first block of a path names no parent.
        parent: if block == 0 { Digest::default() } else { sequence.digests[block - 1] },
        block: 0,
        now,
        unpin: None,
        completes_checkpoint: false,
        payload_bytes: buffer.len() as u64,
        buffer,
    }
}

/// Captures one planned position, or all that are left.
pub(crate) fn capture(
    sequence: &mut Sequence,
    position_tokens: Option<u32>,
    source: &mut dyn BlockSource,
) -> Result<Saved, RequestError> {
    let Some(planned) = &mut sequence.planned else { return Err(RequestError::NoPlan) };
    let now = planned.now;
    let positions = match position_tokens {
        None => std::mem::take(&mut planned.captures),
        Some(position) => match planned.captures.iter().position(|&planned| planned == position) {
            Some(index) => vec![planned.captures.remove(index)],
            None => {
                let planned = planned.captures.clone();
                return Err(RequestError::NotPlanned { position_tokens: position, planned });
            }
        },
    };
    let inner = Arc::clone(&sequence.namespace.inner);
    let block_tokens = sequence.block_tokens();
    let blocks: Vec<u32> = positions.into_iter().map(|position| position / block_tokens - 1).collect();
    let mut saved = Saved::default();
    match inner.threads.as_ref().map(|threads| &threads.writer) {
        None => saved.checkpoints = place_on_paper(&inner, sequence, &blocks, now),
        Some(writer) => {
            for block in blocks {
                saved.checkpoints += u32::from(capture_block(&inner, sequence, writer, block, source, now));
            }
        }
    }
    if let Some(request) = sequence.shadowed {
        inner.shadow.tell(Message::Captured { request, checkpoints: saved.checkpoints });
    }
    Ok(saved)
}

/// Without a store there is no payload: the books are kept in one go.
fn place_on_paper(inner: &Inner, sequence: &mut Sequence, blocks: &[u32], now: u64) -> u32 {
    let mut ledger = lock(&inner.ledger);
    let mut placed = 0;
    for &block in blocks {
        match ledger.tree.find(&sequence.digests[block as usize]) {
            Some(id) => placed += u32::from(place(inner, &mut ledger, id, now, false).is_some()),
            None => sequence.staged.push(Staged { block, payloads: Vec::new(), staged_bytes: 0 }),
        }
    }
    placed
}

/// Gives the checkpoint at the end of block `id` a slot and enters it into the books. `None` if there is one already or no room.
fn place(inner: &Inner, ledger: &mut crate::ledger::Ledger, id: u32, now: u64, pending: bool) -> Option<u32> {
    let Placement::Placed { slot, evicted } = ledger.tree.place_checkpoint(id, now, pending) else { return None };
    for (group, shape) in inner.shape.checkpoint_groups() {
        let counters = ledger.counters.group_mut(group);
        counters.evicted_records += u64::from(evicted.is_some());
        if !pending {
            counters.written_records += 1;
            counters.written_bytes += shape.record_bytes;
        }
    }
    if pending {
        // Until it is written, neither the checkpoint nor its block may go: the end of the write finds what it began with.
        ledger.tree.pin_checkpoint(slot);
        ledger.pin(id, now);
    }
    Some(slot)
}

fn capture_block(
    inner: &Inner,
    sequence: &mut Sequence,
    writer: &Writer,
    block: u32,
    source: &mut dyn BlockSource,
    now: u64,
) -> bool {
    let (id, present) = {
        let ledger = lock(&inner.ledger);
        let id = ledger.tree.find(&sequence.digests[block as usize]);
        (id, id.is_some_and(|id| ledger.tree.checkpoint_of(id).is_some()))
    };
    if present || !writer.is_admitting() {
        return false;
    }
    let bytes: u64 = inner.shape.checkpoint_groups().map(|(_, shape)| shape.record_bytes).sum();
    if id.is_none() && !writer.stage(bytes) {
        lock(&inner.ledger).counters.captures_skipped += 1;
        return false;
    }
    let [window, draft] = writer.buffers([Group::Window, Group::Draft].map(|group| inner.shape.record_bytes(group)));
    let mut payloads = Vec::new();
    for (group, mut buffer) in [(Group::Window, window), (Group::Draft, draft)] {
        if inner.shape.group(group).is_some() {
            source.fill(&sequence.record(group, block), buffer.bytes_mut());
            payloads.push((group, buffer));
        } else {
            writer.give_back(buffer);
        }
    }
    let staged = Staged { block, payloads, staged_bytes: if id.is_none() { bytes } else { 0 } };
    match id {
        Some(_) => submit(inner, sequence, writer, staged, now),
        None => {
            sequence.staged.push(staged);
            false
        }
    }
}

/// Places the windows that were captured before their block was saved.
fn place_staged(inner: &Inner, sequence: &mut Sequence, now: u64) -> u32 {
    let mut staged = std::mem::take(&mut sequence.staged);
    staged.sort_by_key(|window| window.block);
    match inner.threads.as_ref().map(|threads| &threads.writer) {
        None => {
            let blocks: Vec<u32> = staged.iter().map(|window| window.block).collect();
            place_on_paper(inner, sequence, &blocks, now)
        }
        Some(writer) => staged.into_iter().map(|window| u32::from(submit(inner, sequence, writer, window, now))).sum(),
    }
}

/// Sends a captured window to the store, if its block is resident and there is room; counts it as skipped otherwise.
fn submit(inner: &Inner, sequence: &Sequence, writer: &Writer, window: Staged, now: u64) -> bool {
    let digest = sequence.digests[window.block as usize];
    let placed = loop {
        let mut ledger = lock(&inner.ledger);
        let Some(id) = ledger.tree.find(&digest) else { break None };
        if let Some(slot) = place(inner, &mut ledger, id, now, true) {
            break Some((id, slot));
        }
        let waits = ledger.tree.checkpoint_of(id).is_none() && ledger.tree.checkpoints().capacity() > 0;
        drop(ledger);
        // Every slot is held, by windows on their way to the store among others: the oldest of those may go once written.
        if !waits || !writer.wait_for_progress() {
            break None;
        }
    };
    writer.unstage(window.staged_bytes);
    let last = window.payloads.len();
    let submitted = placed.is_some();
    for (index, (group, buffer)) in window.payloads.into_iter().enumerate() {
        match placed {
            Some((id, slot)) => {
                let record = record(&sequence.digests, sequence.block_tokens(), group, window.block);
                let completes_checkpoint = index + 1 == last;
                let request = write(sequence, &record, buffer, now);
                let unpin = completes_checkpoint.then_some(id);
                writer.submit(Write { slot, block: id, unpin, completes_checkpoint, ..request });
            }
            None => writer.give_back(buffer),
        }
    }
    if !submitted {
        lock(&inner.ledger).counters.captures_skipped += 1;
    }
    submitted
}
