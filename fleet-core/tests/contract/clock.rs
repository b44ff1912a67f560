use std::time::Duration;

use fleet_core::contract_tests;
use fleet_core::id::Timestamp;
use fleet_core::port::Clock;
use fleet_core::test_support::fakes::ManualClock;

fn hurried() -> ManualClock {
    ManualClock::hurried(Timestamp::from_millis(1_795_973_400_000))
}

contract_tests!(hurried => clock: sleeps_long_enough, never_goes_back, wall_clock_is_plausible);

#[tokio::test]
async fn a_standing_clock_wakes_nobody_until_it_is_moved() {
    let clock = ManualClock::new(Timestamp::from_millis(0));
    let sleep = clock.sleep(Duration::from_secs(3));
    let drive = async {
        assert_eq!(clock.next_wake(), Some(Duration::from_secs(3)));
        // The wall clock may jump without any effect on a sleep.
        clock.set_wall(Timestamp::from_millis(u64::MAX / 2));
        clock.advance(Duration::from_secs(2));
        assert_eq!((clock.sleepers(), clock.next_wake()), (1, Some(Duration::from_secs(1))));
        clock.advance(Duration::from_secs(1));
    };
    tokio::join!(sleep, drive);
    assert_eq!((clock.sleepers(), clock.next_wake()), (0, None));
}

#[tokio::test]
async fn a_dropped_sleep_is_forgotten() {
    let clock = ManualClock::new(Timestamp::from_millis(0));
    let sleep = clock.sleep(Duration::from_secs(3));
    tokio::select! {
        biased;
        () = sleep => panic!("nobody moved the clock"),
        () = async {} => {}
    }
    assert_eq!(clock.sleepers(), 0);
}
