//! Naming a block takes less time than allocating for it could cost: what is allocated does not grow with the blocks.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use reprise_core::prefix::{Chain, Namespace, NamespaceKey};

/// Counts what each thread allocates, so that tests that run side by side do not disturb each other.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go on to `System` unchanged. The counter is a plain cell of the thread, without destructor, and
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

fn key(block_tokens: u32) -> NamespaceKey {
    Namespace::new("model", "revision").block_tokens(block_tokens).key().unwrap()
}

#[test]
fn no_path_allocates_for_each_block() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1, "the allocator counts");
    // 128 tokens take the lanes, 100 do not, 512 are more than one chunk.
    for block_tokens in [128, 100, 512] {
        let key = key(block_tokens);
        let tokens = vec![7; 1000 * block_tokens as usize];
        let mut out = Vec::with_capacity(1000);

        let at_once = allocations(|| reprise_core::prefix::digests(&key, &tokens, &mut out));
        assert_eq!(out.len(), 1000);
        assert_eq!(at_once, 1, "the tail of the chain, for blocks of {block_tokens}");

        out.clear();
        let mut chain = Chain::new(&key);
        let one_by_one = allocations(|| out.extend(tokens.iter().filter_map(|&token| chain.push(token))));
        assert_eq!(out.len(), 1000);
        assert_eq!(one_by_one, 0, "blocks of {block_tokens}");

        let engine_keys = vec![[9; 32]; 1000];
        out.clear();
        assert_eq!(allocations(|| out.extend(engine_keys.iter().map(|engine| key.engine_digest(engine)))), 0);
    }
}
