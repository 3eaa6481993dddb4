//! The digests of 1,048,576 tokens in blocks of 128, against one BLAKE3 pass over the same 4 MiB, on one core.
//!
//! `cargo bench -p reprise-core --bench prefix` measures each contender with criterion, then all of them in turns, and prints
//! the fastest turn of each as a multiple of the pass's: turns, so that another load on the machine meets all alike; the
//! fastest, because such a load only ever adds time.

use std::{hint::black_box, time::Instant};

use criterion::{Criterion, Throughput};
use reprise_core::{
    Digest,
    prefix::{Chain, Namespace, NamespaceKey, digests},
};

const TOKENS: u32 = 1 << 20;
const TURNS: usize = 101;

/// What is measured: a name, and a run that returns its last digest.
type Contender<'a> = (&'static str, Box<dyn Fn() -> Digest + 'a>);

/// The definition with blake3's public interface and a buffer for a block.
fn public_interface(key: &NamespaceKey, tokens: &[u32], out: &mut Vec<Digest>) {
    let block_tokens = key.block_tokens() as usize;
    let mut bytes = vec![0; block_tokens * 4];
    let mut pair = [0; 64];
    pair[..32].copy_from_slice(&key.root().0);
    for block in tokens.chunks_exact(block_tokens) {
        for (word, token) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(block) {
            *word = token.to_le_bytes();
        }
        pair[32..].copy_from_slice(blake3::keyed_hash(&key.root().0, &bytes).as_bytes());
        let digest = blake3::hash(&pair);
        pair[..32].copy_from_slice(digest.as_bytes());
        out.push(Digest(digest.into()));
    }
}

fn last(run: impl FnOnce(&mut Vec<Digest>)) -> Digest {
    let mut out = Vec::new();
    run(&mut out);
    *out.last().expect("there are whole blocks")
}

fn ratios(contenders: &[Contender]) {
    let mut fastest = vec![f64::INFINITY; contenders.len()];
    for _ in 0..TURNS {
        for (fastest, (_, run)) in fastest.iter_mut().zip(contenders) {
            let start = Instant::now();
            black_box(run());
            *fastest = fastest.min(start.elapsed().as_secs_f64());
        }
    }
    println!("fastest of {TURNS} turns over {TOKENS} tokens");
    for (seconds, (name, _)) in fastest.iter().zip(contenders) {
        println!("{name:32} {:7.3} ms {:6.2} x", seconds * 1e3, seconds / fastest[0]);
    }
}

fn main() {
    let key = Namespace::new("deepseek-v4-flash", "9b1f00d").block_tokens(128).key().expect("a valid namespace");
    let tokens: Vec<u32> = (0..TOKENS).map(|j| j.wrapping_mul(2_654_435_761) >> 12).collect();
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    let contenders: [Contender; 4] = [
        ("one BLAKE3 pass", Box::new(|| Digest(blake3::Hasher::new().update(&bytes).finalize().into()))),
        ("digests, blake3's public calls", Box::new(|| last(|out| public_interface(&key, &tokens, out)))),
        ("digests, in lanes", Box::new(|| last(|out| digests(&key, &tokens, out)))),
        (
            "digests, token by token",
            Box::new(|| {
                let mut chain = Chain::new(&key);
                last(|out| out.extend(tokens.iter().filter_map(|&token| chain.push(token))))
            }),
        ),
    ];
    let [.., (_, public), (_, lanes), (_, pushed)] = &contenders;
    assert!(public() == lanes() && lanes() == pushed(), "the contenders must agree");

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("prefix");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    for (name, run) in &contenders {
        group.bench_function(*name, |bencher| bencher.iter(run));
    }
    group.finish();
    criterion.final_summary();

    // Cargo passes `--bench` when it is asked for measurements, not when it only tests that benches run.
    if std::env::args().any(|argument| argument == "--bench") {
        ratios(&contenders);
    }
}
