//! One compiled component as a file: a head that says what it is, a code of authentication over all of it, machine code.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `REPRISEC` |
//! | 4 | version of this format, little endian |
//! | 4 | zero |
//! | 32 | BLAKE3 of the component |
//! | 32 | digest of what the engine's code must be compatible with |
//! | 8 | bytes of machine code, little endian |
//! | 32 | keyed BLAKE3 of all above and the machine code |

use std::hash::{Hash, Hasher};

use reprise_core::Digest;

const MAGIC: &[u8; 8] = b"REPRISEC";
const VERSION: u32 = 1;
const HEAD: usize = 88;
const SEALED: usize = HEAD + blake3::OUT_LEN;

/// What machine code is for: it runs nowhere else.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    component: Digest,
    engine: Digest,
}

/// Machine code with the head before it.
pub(crate) struct Code(Vec<u8>);

impl Code {
    pub fn bytes(&self) -> &[u8] {
        &self.0[SEALED..]
    }
}

impl Name {
    pub fn new(component: Digest, engine: Digest) -> Self {
        Self { component, engine }
    }

    /// The file that holds it. The digest of the engine is cut: the head has all of it.
    pub(super) fn file(&self) -> String {
        let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{}-{}", hexadecimal(&self.component.0), hexadecimal(&self.engine.0[..8]))
    }

    fn head(&self, code_bytes: usize) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..48].copy_from_slice(&self.component.0);
        head[48..80].copy_from_slice(&self.engine.0);
        head[80..].copy_from_slice(&(code_bytes as u64).to_le_bytes());
        head
    }
}

/// What goes before `code` in its file.
pub(super) fn seal(code: &[u8], name: &Name, key: &[u8; 32]) -> [u8; SEALED] {
    let head = name.head(code.len());
    let mut sealed = [0; SEALED];
    sealed[..HEAD].copy_from_slice(&head);
    sealed[HEAD..].copy_from_slice(authentication(&head, code, key).as_bytes());
    sealed
}

/// The code in `file`, if it was sealed for `name` with `key`.
pub(super) fn open(file: Vec<u8>, name: &Name, key: &[u8; 32]) -> Option<Code> {
    let (head, rest) = file.split_first_chunk::<HEAD>()?;
    let (seal, code) = rest.split_first_chunk::<{ blake3::OUT_LEN }>()?;
    let meant = *head == name.head(code.len());
    // The comparison takes the same time wherever the two differ.
    (meant && authentication(head, code, key) == *seal).then_some(Code(file))
}

fn authentication(head: &[u8; HEAD], code: &[u8], key: &[u8; 32]) -> blake3::Hash {
    blake3::Hasher::new_keyed(key).update(head).update(code).finalize()
}

/// The digest of everything that machine code of this engine depends on: version, compiler, features, processor.
pub(crate) fn engine_digest(engine: &wasmtime::Engine) -> Digest {
    /// Passes on what would be hashed to 64 bits.
    struct Feed(blake3::Hasher);

    impl Hasher for Feed {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            let digest = self.0.finalize();
            u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("a digest has 32 bytes"))
        }
    }

    let mut feed = Feed(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    Digest(feed.0.finalize().into())
}
