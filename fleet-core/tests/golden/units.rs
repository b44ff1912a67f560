//! The text of the systemd template.

use fleet_core::units::systemd::{UnitFacts, template};

#[test]
fn the_systemd_template() {
    insta::assert_snapshot!(template(&UnitFacts {
        binary: "/home/ada/.cargo/bin/ours-fleet".into(),
        home: "/home/ada".into(),
        path: ["/home/ada/.local/bin", "/usr/bin", "/bin", "/usr/bin"].map(Into::into).into(),
    }));
}
