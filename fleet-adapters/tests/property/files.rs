use std::sync::atomic::{AtomicBool, Ordering};

use fleet_adapters::{FileStore, RandomIds};
use fleet_core::port::{IdSource, StateStore};

use crate::support::{temp, utf8};

/// A reader that runs beside a writer sees whole versions only, and they never go back.
#[test]
fn p39_readers_see_the_old_content_or_the_new() {
    let dir = temp();
    let file = utf8(&dir).join("status.json");
    let version = |n: u32| n.to_string().repeat(4000).into_bytes();
    FileStore.publish(&file, &version(100), 0o600).expect("it is written");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut last, mut seen) = (100, 0);
            while !done.load(Ordering::Relaxed) {
                let content = FileStore.read(&file, 100_000).expect("an answer").expect("there");
                let text = std::str::from_utf8(&content).expect("text");
                let found: u32 = text.get(..3).expect("not cut").parse().expect("a number");
                assert_eq!(content, version(found), "a mixture");
                assert!(found >= last, "{found} after {last}");
                if found != last {
                    seen += 1;
                }
                last = found;
            }
            seen
        });
        for n in 101..600 {
            FileStore.publish(&file, &version(n), 0o600).expect("it is written");
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("no panic") > 0, "the reader met the writer");
    });
}

/// Of many that want a lock at once, exactly one has it, whoever looks meanwhile.
#[test]
fn p46_a_lock_never_has_two_holders() {
    let dir = temp();
    let file = utf8(&dir).join("runner.lock");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                FileStore.is_locked(&file).expect("an answer");
            }
        });
        for _ in 0..50 {
            let contenders: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| FileStore.try_lock(&file).expect("an answer")))
                .collect();
            let held: Vec<_> =
                contenders.into_iter().filter_map(|one| one.join().expect("no panic")).collect();
            assert_eq!(held.len(), 1);
        }
        done.store(true, Ordering::Relaxed);
        looking.join().expect("no panic");
    });
}

/// Tokens and ids have their form and do not repeat.
#[test]
fn ids_are_random() {
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..1000 {
        let (token, uuid) = (RandomIds.token(), RandomIds.uuid());
        assert_eq!(token.len(), 64);
        assert!(token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{token}");
        assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'), "{uuid}");
        assert!(seen.insert(token) && seen.insert(uuid));
    }
    // Every digit of a token varies, also those that a UUID fixes.
    let tokens: Vec<String> = (0..200).map(|_| RandomIds.token()).collect();
    for at in 0..64 {
        let digits: std::collections::BTreeSet<u8> =
            tokens.iter().map(|token| token.as_bytes()[at]).collect();
        assert!(digits.len() > 8, "digit {at} takes {} values", digits.len());
    }
}
