//! Policies written by hand in WAT. Each behaves in the run at load and does its harm once it serves: it knows by the size of its
//! group, or of a block, that this is no test.

use reprise_components_build::{Metadata, make};

/// Blocks of the caches of these tests are smaller than those of the run at load, and their groups are of another size.
const SERVING_BLOCK_TOKENS: u32 = 16;
const TRIAL_RECORDS: u32 = 32;

/// A cache policy that names nobody, and where it does harm: bodies of functions, run once it serves.
#[derive(Clone, Copy, Default)]
pub struct Cache {
    /// Before `describe` answers, wherever it runs.
    pub describe: &'static str,
    /// The byte of the description at this address, in place of the right one.
    pub lie: Option<(u32, u8)>,
    /// In `configure`, wherever it runs.
    pub configure: &'static str,
    /// In the core `start` function, wherever it runs.
    pub start: &'static str,
    pub attach: &'static str,
    /// Parameters `$events`, `$words`, `$want`; may leave by `(return ADDRESS)` of a list of ids.
    pub step: &'static str,
    /// Parameters `$keys`, `$count`, `$first`; may leave by `(return ADDRESS)` of a list of bytes.
    pub admit: &'static str,
    pub save: &'static str,
    pub load: &'static str,
}

/// What both kinds have: memory, an allocator that forgets, a description, an answer that is an empty list (at 64).
fn common(kind: u8, start: &str, configure: &str, describe: &str) -> String {
    format!(
        r#"
        (memory (export "memory") 64)
        (global $top (mut i32) (i32.const 65536))
        (global $serving (mut i32) (i32.const 0))
        (func (export "cabi_realloc") (param i32 i32 i32) (param $bytes i32) (result i32)
            (local $address i32)
            (if (i32.gt_u (i32.add (global.get $top) (local.get $bytes)) (i32.const 4000000))
                (then (global.set $top (i32.const 65536))))
            (local.set $address (global.get $top))
            (global.set $top
                (i32.and (i32.add (i32.add (global.get $top) (local.get $bytes)) (i32.const 15)) (i32.const -8)))
            (local.get $address))
        (func $start {start})
        (start $start)
        ;; Recursion without an end that no optimiser removes.
        (func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
        (data (i32.const 0) "\20\00\00\00\06\00\00\00\26\00\00\00\05\00\00\00\{kind:02x}\00\00\00\00\00\00\00")
        (data (i32.const 32) "animal0.1.0")
        (func (export "reprise:policy/setup@0.1.0#describe") (result i32) {describe} (i32.const 0))
        (func (export "reprise:policy/setup@0.1.0#configure") (param i32 i32) (result i32) {configure} (i32.const 64))
        "#
    )
}

impl Cache {
    /// The component, of world `cache-policy-complete`. It says that it wants to be asked for admission, and that it keeps state.
    pub fn component(&self) -> Vec<u8> {
        let Self { describe, lie, configure, start, attach, step, admit, save, load } = self;
        let asks =
            format!("(i32.store8 (i32.const 17) (i32.const 1)) (i32.store8 (i32.const 20) (i32.const 1)) {start}");
        let lie = lie.map(|(address, byte)| format!("(i32.store8 (i32.const {address}) (i32.const {byte}))"));
        let common = common(1, &asks, configure, &format!("{} {describe}", lie.unwrap_or_default()));
        let harm = |body: &str| format!("(if (global.get $serving) (then {body}))");
        let (attach, step, admit, save, load) = (harm(attach), harm(step), harm(admit), harm(save), harm(load));
        let text = format!(
            r#"(module {common}
                (global $inner (mut i32) (i32.const -1))
                (global $leased (mut i32) (i32.const -1))
                (func (export "reprise:policy/cache@0.1.0#attach") (param $groups i32) (param i32)
                    (global.set $serving (i32.ne (i32.load offset=24 (local.get $groups)) (i32.const {TRIAL_RECORDS})))
                    {attach})
                ;; Remembers a block that has a child and one that is leased, of those it hears of.
                (func $listen (param $event i32) (param $words i32)
                    (local $kind i32)
                    (if (i32.eqz (local.get $words)) (then (return)))
                    (loop $next
                        (local.set $kind (i32.load8_u (local.get $event)))
                        (if (i32.and (i32.eq (local.get $kind) (i32.const 1))
                                     (i32.ne (i32.load offset=8 (local.get $event)) (i32.const -1)))
                            (then (global.set $inner (i32.load offset=8 (local.get $event)))))
                        (if (i32.eq (local.get $kind) (i32.const 5))
                            (then (global.set $leased (i32.load offset=4 (local.get $event)))))
                        (if (i32.and (i32.eq (local.get $kind) (i32.const 6))
                                     (i32.eq (global.get $leased) (i32.load offset=4 (local.get $event))))
                            (then (global.set $leased (i32.const -1))))
                        (local.set $event (i32.add (local.get $event) (i32.const 24)))
                        (local.set $words (i32.sub (local.get $words) (i32.const 3)))
                        (br_if $next (i32.gt_s (local.get $words) (i32.const 0)))))
                ;; A list of `$want` times the same id, at 128.
                (func $all (param $id i32) (param $want i32) (result i32)
                    (local $at i32)
                    (i32.store (i32.const 128) (i32.const 1024))
                    (i32.store (i32.const 132) (local.get $want))
                    (block $done
                        (loop $next
                            (br_if $done (i32.ge_u (local.get $at) (local.get $want)))
                            (i32.store (i32.add (i32.const 1024) (i32.shl (local.get $at) (i32.const 2))) (local.get $id))
                            (local.set $at (i32.add (local.get $at) (i32.const 1)))
                            (br $next)))
                    (i32.const 128))
                (func (export "reprise:policy/cache@0.1.0#step")
                    (param $events i32) (param $words i32) (param $want i32) (result i32)
                    (call $listen (local.get $events) (local.get $words))
                    {step} (i32.const 64))
                ;; Admits everything: as many ones as are asked for.
                (func (export "reprise:policy/admission@0.1.0#admit")
                    (param i64 i32) (param $keys i32) (param $count i32) (param $first i32) (param i32) (result i32)
                    {admit}
                    (i32.store (i32.const 160) (i32.const 1024))
                    (i32.store (i32.const 164) (i32.sub (local.get $count) (local.get $first)))
                    (memory.fill (i32.const 1024) (i32.const 1) (i32.sub (local.get $count) (local.get $first)))
                    (i32.const 160))
                (func (export "reprise:policy/state@0.1.0#save") (result i32) {save} (i32.const 64))
                (func (export "reprise:policy/state@0.1.0#load") (param i32 i32 i32) (result i32) {load} (i32.const 1)))"#
        );
        made(&text, "cache-policy-complete")
    }
}

/// A checkpoint policy that names no position, and what `choose` does in its place once it serves: parameters `$start`, `$end` and
/// `$block` of the span; may leave by `(return ADDRESS)` of a list of words. The function `$one` makes a list of one word.
pub fn checkpoints(choose: &str) -> Vec<u8> {
    let common = common(0, "", "", "");
    let text = format!(
        r#"(module {common}
            (func $one (param $word i64) (result i32)
                (i32.store (i32.const 128) (i32.const 1024))
                (i32.store (i32.const 132) (i32.const 1))
                (i64.store (i32.const 1024) (local.get $word))
                (i32.const 128))
            (func (export "reprise:policy/checkpoints@0.1.0#choose")
                (param i64) (param $start i32) (param $end i32) (param i32 i32 i32) (param $block i32) (result i32)
                (if (i32.eq (local.get $block) (i32.const {SERVING_BLOCK_TOKENS})) (then {choose}))
                (i32.const 64)))"#
    );
    made(&text, "checkpoint-policy")
}

/// A checkpoint policy that keeps the window at the end of each span and chooses among plans: parameters `$plans` and `$count`.
pub fn planner(choose_plan: &str) -> Vec<u8> {
    let common = common(0, "", "", "");
    let text = format!(
        r#"(module {common}
            (func (export "reprise:policy/checkpoints@0.1.0#choose")
                (param i64) (param $start i32) (param $end i32) (param i32 i32 i32 i32) (result i32)
                (if (i32.le_u (local.get $end) (local.get $start)) (then (return (i32.const 64))))
                (i32.store (i32.const 128) (i32.const 1024))
                (i32.store (i32.const 132) (i32.const 1))
                (i64.store (i32.const 1024) (i64.extend_i32_u (local.get $end)))
                (i32.const 128))
            (func (export "reprise:policy/plan-choice@0.1.0#choose-plan")
                (param $plans i32) (param $count i32) (result i32)
                {choose_plan}))"#
    );
    made(&text, "checkpoint-policy-complete")
}

fn made(text: &str, world: &str) -> Vec<u8> {
    let module = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    make(&module, Some(world), &Metadata::default()).unwrap_or_else(|error| panic!("{error}"))
}
