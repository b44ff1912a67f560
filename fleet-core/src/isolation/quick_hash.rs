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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::Hash;

    use super::*;

    fn hash(value: impl Hash) -> u64 {
        let mut hasher = QuickHasher::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    fn distinct(hashes: impl Iterator<Item = u64>) -> usize {
        hashes.collect::<BTreeSet<u64>>().len()
    }

    /// A wrong hash is only slow, which no test of an answer notices: tables must spread their keys.
    #[test]
    fn short_keys_never_collide() {
        assert_eq!(distinct((0..=u8::MAX).map(hash)), 256);
        assert_eq!(distinct((0..4096_u64).map(hash)), 4096);
        let pairs = (0..64_u64).flat_map(|dev| (0..64_u64).map(move |ino| (dev, ino)));
        assert_eq!(distinct(pairs.map(hash)), 4096);
        // What two words make must depend on every bit of the second, whatever the first left.
        let left = FACTOR.rotate_left(5);
        assert_ne!(hash((1_u64, 0_u64)), hash((1_u64, left)));
        let bytes = |bytes: &[u8]| {
            let mut hasher = QuickHasher::default();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_eq!(distinct((0..=u8::MAX).map(|byte| bytes(&[byte]))), 256);
        assert_eq!(distinct((0..8).map(|length| bytes(&[0; 8][..length]))), 8);
        let names = (0..4096).map(|number| format!("/home/u/d{number}/file"));
        assert_eq!(distinct(names.map(|name| bytes(name.as_bytes()))), 4096);
    }

    /// The table picks its bucket by the low bits.
    #[test]
    fn low_bits_are_spread() {
        let low = distinct((0..4096_u64).map(|ino| hash((1_u64, ino)) & 0xff));
        assert_eq!(low, 256);
    }
}
