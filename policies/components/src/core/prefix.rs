//! `prefix` on top of `reprise_core::prefix`.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use reprise_core::{Digest, prefix};

use crate::{
    bindings::exports::reprise::policy::prefix::{Extra, Guest, Mark, Namespace, PrefixError},
    export::Core,
};

impl Guest for Core {
    fn root(namespace: Namespace) -> Result<Vec<u8>, PrefixError> {
        Ok(key(namespace)?.root().0.to_vec())
    }

    fn digests(
        namespace: Namespace,
        after: Option<Mark>,
        tokens: Vec<u32>,
        extras: Vec<Extra>,
    ) -> Result<Vec<u8>, PrefixError> {
        let key = key(namespace)?;
        let mut chain = match after {
            Some(Mark { digest, blocks }) => prefix::Chain::resume(&key, Digest(exactly_32(&digest)?), blocks),
            None => prefix::Chain::new(&key),
        };
        for Extra { position, bytes } in extras {
            chain.attach(position, &bytes).map_err(|late| PrefixError::LateExtra(late.position))?;
        }
        let mut digests = Vec::new();
        chain.extend(&tokens, &mut digests);
        Ok(digests.iter().flat_map(|digest| digest.0).collect())
    }

    fn engine_digests(namespace: Namespace, keys: Vec<u8>) -> Result<Vec<u8>, PrefixError> {
        let key = key(namespace)?;
        let (keys, rest) = keys.as_chunks::<32>();
        if !rest.is_empty() {
            return Err(PrefixError::Length(rest.len() as u32));
        }
        Ok(keys.iter().flat_map(|own| key.engine_digest(own).0).collect())
    }
}

fn key(namespace: Namespace) -> Result<prefix::NamespaceKey, PrefixError> {
    let Namespace { model, revision, block_tokens, tenant, adapter, rank, ranks, extensions } = namespace;
    let extend = |namespace: prefix::Namespace, (key, value): (String, String)| namespace.extension(key, value);
    let namespace = prefix::Namespace::new(model, revision)
        .block_tokens(block_tokens)
        .tenant(tenant)
        .adapter(adapter)
        .rank(rank, ranks);
    let namespace = extensions.into_iter().fold(namespace, extend);
    namespace.key().map_err(|error| PrefixError::Namespace(error.to_string()))
}

fn exactly_32(bytes: &[u8]) -> Result<[u8; 32], PrefixError> {
    bytes.try_into().map_err(|_| PrefixError::Length(bytes.len() as u32))
}
