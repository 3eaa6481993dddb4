//! The replay without types against the programs it follows, installed and run: kvcache-simulator, and flat caches of libCacheSim.
//!
//! The traces are the bundled parts and a made-up one. With `REPRISE_TRACES=DIR` the full traces `mooncake-conversation.jsonl.gz` and
//! `coding-agent-180.jsonl.gz` in that directory are replayed, too.

mod flat;
mod peers;
mod public;
