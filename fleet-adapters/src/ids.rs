use fleet_core::port::IdSource;
use uuid::Uuid;

/// Values from the random source of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

/// Random bytes of a version 4 UUID: all but the two that hold its version and variant.
fn random_bytes(uuid: &Uuid) -> impl Iterator<Item = u8> {
    uuid.as_bytes().iter().enumerate().filter(|(at, _)| ![6, 8].contains(at)).map(|(_, byte)| *byte)
}

impl IdSource for RandomIds {
    fn uuid(&self) -> String {
        Uuid::new_v4().to_string()
    }

    fn token(&self) -> String {
        // Three UUIDs hold 42 random bytes: enough, portable, and without a second random source.
        let pool = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
        let digits = pool.iter().flat_map(random_bytes).flat_map(|byte| [byte >> 4, byte & 15]);
        digits.take(64).filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
    }
}
