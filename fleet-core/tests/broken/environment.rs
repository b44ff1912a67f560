//! Wrong environments.

use fleet_core::environment::{EnvironmentInputs, child_environment};
use fleet_core::launch::Environment;

use crate::property::environment::p37;

fn inherits_everything(inputs: &EnvironmentInputs<'_>) -> Environment {
    let mut env = inputs.own.clone();
    env.0.extend(child_environment(inputs).0);
    env
}

fn lets_the_role_win(inputs: &EnvironmentInputs<'_>) -> Environment {
    let mut env = child_environment(inputs);
    for (name, value) in &inputs.role.env {
        env.0.insert(name.clone(), value.expose().clone());
    }
    env
}

fn lets_fleet_win(inputs: &EnvironmentInputs<'_>) -> Environment {
    let mut env = child_environment(inputs);
    for name in &inputs.role.env_pass {
        if let Some(value) = inputs.own.0.get(name) {
            env.0.insert(name.clone(), value.clone());
        }
    }
    env
}

fn forgets_what_is_passed_on(inputs: &EnvironmentInputs<'_>) -> Environment {
    let mut role = inputs.role.clone();
    role.env_pass.clear();
    child_environment(&EnvironmentInputs { role: &role, ..*inputs })
}

#[test]
fn p37_finds_every_mistake() {
    for (name, build) in [
        ("inherits", inherits_everything as crate::property::environment::Build),
        ("role wins", lets_the_role_win),
        ("fleet wins", lets_fleet_win),
        ("forgets", forgets_what_is_passed_on),
    ] {
        assert!(p37(build).is_err(), "{name}");
    }
}
