//! The port of caps: the real one and its stand-in.

use fleet_core::contract_tests;

mod fixed {
    use fleet_core::limits::{Cap, Means};
    use fleet_core::test_support::fakes::FixedLimits;

    fn subject() -> FixedLimits {
        FixedLimits::new([(Means::Group, Cap::Pids)])
    }

    super::contract_tests!(subject => limits:
        every_means_and_cap_is_told, a_trial_can_be_repeated, nothing_left_is_no_error);
}

mod host {
    use fleet_sandbox::HostLimits;

    fn subject() -> HostLimits {
        HostLimits::default()
    }

    super::contract_tests!(subject => limits:
        every_means_and_cap_is_told, a_trial_can_be_repeated, nothing_left_is_no_error);
}
