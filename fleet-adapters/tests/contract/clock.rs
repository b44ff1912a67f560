use fleet_adapters::SystemClock;
use fleet_core::contract_tests;

fn system() -> SystemClock {
    SystemClock::new()
}

contract_tests!(system => clock: sleeps_long_enough, never_goes_back, wall_clock_is_plausible);
