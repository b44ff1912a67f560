//! Wrong ways to show a plan.

use fleet_cli::resolved::redacted;
use serde_json::Value;

use crate::property::plan::{Fleet, as_written, p40, real};
use crate::support::TestEnvironment;

/// The plan, and the file as it is.
fn shows_the_file(fleet: &Fleet, env: &TestEnvironment) -> String {
    real(fleet, env) + &as_written(fleet).to_string()
}

/// Hides values whose name says that they are secret, as the predecessor did, and no place.
fn goes_by_names_alone(fleet: &Fleet, env: &TestEnvironment) -> String {
    let mut file = as_written(fleet);
    for role in ["Claude", "Codex", "Command"] {
        let options = &mut file["roles"][role]["harness_options"];
        // What stands in a map without a telling name is shown as it is.
        let shown: Value = options.get("mcp_servers").cloned().unwrap_or_default();
        *options = options.as_object().map(redacted).unwrap_or_default();
        options["shown"] = shown["local"]["env"].clone();
        file["roles"][role]["env"] = Value::Null;
    }
    file["defaults"] = Value::Null;
    file["roles"]["Command"]["isolation"] = Value::Null;
    real(fleet, env) + &file.to_string()
}

/// Says where secrets come from.
fn names_sources(fleet: &Fleet, env: &TestEnvironment) -> String {
    let file = as_written(fleet);
    let secrets = &file["roles"]["Command"]["isolation"]["secrets"];
    real(fleet, env) + &secrets.to_string()
}

#[test]
fn p40_finds_every_mistake() {
    for (name, show) in [
        ("shows the file", shows_the_file as crate::property::plan::Show),
        ("goes by names alone", goes_by_names_alone),
        ("names sources", names_sources),
    ] {
        assert!(p40(show).is_err(), "{name}");
    }
}
