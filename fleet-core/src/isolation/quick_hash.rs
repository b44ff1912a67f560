//! A hash for tables whose keys nobody can choose against us.
//!
//! A few operations a word instead of `SipHash`. Colliding keys would make a table slow, so it is for
//! tables that hold only what the operator wrote (fleet files are trusted and bounded in size), what
//! this program lists, and identities that the file system gave. Anybody may *ask* for anything.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with [`QuickHasher`].
pub(super) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// 2^64 divided by the golden ratio, made odd.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the module.
#[derive(Debug, Default, Clone)]
pub(super) struct QuickHasher(u64);

impl QuickHasher {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last) ^ bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn finish(&self) -> u64 {
        // The table picks its bucket by the low bits; a product is mixed best in the high ones.
        self.0.rotate_left(26)
    }
}
