//! Variables of the environment.

use std::collections::BTreeMap;

use super::{DecidedBy, ExplainRequest, Explanation, Rule, Verdict, answer, rule};
use crate::config::is_reserved_variable;
use crate::diagnostic::Place;
use crate::environment::{
    EnvironmentInputs, VariableOrigin, is_passed, is_passed_unisolated_only, variable_origins,
};
use crate::isolation::Backend;
use crate::isolation::network::NetworkLayout;
use crate::redact::is_secret_key;

impl ExplainRequest<'_> {
    /// Every variable that the agent gets, and who gives it its value.
    pub fn variables(&self) -> BTreeMap<String, VariableOrigin> {
        let dirs = &self.assessment.dirs;
        let home = self.assessment.home_variable;
        let by_rules =
            self.assessment.policy.as_ref().is_some_and(|it| it.backend == Backend::Landlock);
        let mut origins = variable_origins(&EnvironmentInputs {
            own: &self.world.env,
            home: self.world.homes.os.as_str(),
            path: "",
            term: "",
            harness: &self.assessment.harness_env,
            harness_home: home.map(|variable| (variable, dirs.harness_home.as_str())),
            role: self.role,
            isolated: self.outer.is_on(),
        });
        if by_rules && self.outer.is_on() {
            // `/tmp` is closed there, so a directory of the role's own stands for it.
            origins.entry("TMPDIR".to_owned()).or_insert(VariableOrigin::Fleet);
        }
        origins
    }

    /// Whether the network of the sandbox needs this variable, and not the harness itself.
    fn is_for_the_network(&self, name: &str) -> bool {
        let policy = self.assessment.policy.as_ref();
        policy.is_some_and(|policy| {
            NetworkLayout::of(&policy.reachable).environment().any(|(it, _)| it == name)
        })
    }

    /// Who gives a variable its value, in words, and the line that says so.
    pub fn variable_words(&self, name: &str, origin: VariableOrigin) -> (String, Option<Place>) {
        let exact = |key: &str| self.written(key).map(|(_, place)| place);
        match origin {
            VariableOrigin::Fleet => ("fleet sets it for every agent".to_owned(), None),
            VariableOrigin::PassedByList => {
                ("it is on the short list of variables that every agent gets".to_owned(), None)
            }
            VariableOrigin::PassedByRole => {
                let index = self.role.env_pass.iter().position(|it| it == name);
                let key = index.map(|index| format!("env_pass[{index}]"));
                let place = key.and_then(|key| self.around(&key));
                (
                    "`env_pass` names it: its value is that of fleet's own environment".to_owned(),
                    place,
                )
            }
            VariableOrigin::Harness if self.is_for_the_network(name) => (
                "it leads programs to what `isolation.network` lets through".to_owned(),
                self.around("isolation.network"),
            ),
            VariableOrigin::Harness => {
                (format!("the harness `{}` sets it", self.role.harness), None)
            }
            VariableOrigin::Role => ("`env` sets it".to_owned(), exact(&format!("env.{name}"))),
            VariableOrigin::Forced => {
                ("fleet sets it last, whatever else is written".to_owned(), None)
            }
        }
    }
}

pub(super) fn explain(request: &ExplainRequest<'_>, name: &str) -> Explanation {
    match request.variables().get(name) {
        Some(origin) => set(request, name, *origin),
        None => withheld(request, name),
    }
}

fn set(request: &ExplainRequest<'_>, name: &str, origin: VariableOrigin) -> Explanation {
    let id = match origin {
        VariableOrigin::Fleet => "env.fleet",
        VariableOrigin::PassedByList => "env.allowlist",
        VariableOrigin::PassedByRole => "env.env-pass",
        VariableOrigin::Harness => "env.harness",
        VariableOrigin::Role => "env.role",
        VariableOrigin::Forced => "env.forced",
    };
    let (words, place) = request.variable_words(name, origin);
    let mut it = answer("env", name, Verdict::Set, DecidedBy::Fleet, rule(id, words));
    "the agent gets it; its value is not shown here".clone_into(&mut it.says);
    it.place = place;
    if origin == VariableOrigin::Forced && request.role.env.contains_key(name) {
        it.facts.push("what `env` says for it is not used".to_owned());
    }
    it.change = match origin {
        VariableOrigin::PassedByRole => {
            Some("leave it out of `env_pass` to withhold it".to_owned())
        }
        VariableOrigin::Role => Some("leave it out of `env`".to_owned()),
        VariableOrigin::PassedByList => Some(format!("write another value as `env.{name}`")),
        _ => None,
    };
    it
}

fn withheld(request: &ExplainRequest<'_>, name: &str) -> Explanation {
    let here = request.world.env.0.contains_key(name);
    let named = request.role.env_pass.iter().position(|it| it == name);
    let (because, place): (Rule, _) = if is_reserved_variable(name) {
        (rule("env.reserved", "fleet keeps this name for itself, and no role may set it"), None)
    } else if let Some(index) = named {
        (
            rule("env.absent", "`env_pass` names it, and fleet's own environment does not hold it"),
            request.around(&format!("env_pass[{index}]")),
        )
    } else if is_passed_unisolated_only(name) {
        (rule("env.isolated", "it names a place that a sandbox does not show"), None)
    } else if is_passed(name, true) {
        (rule("env.absent", "fleet's own environment does not hold it"), None)
    } else {
        let words = "only a short list passes from fleet's own environment, and it is not on it";
        (rule("env.not-listed", words), None)
    };
    let reserved = because.id == "env.reserved";
    let mut it = answer("env", name, Verdict::Withheld, DecidedBy::Fleet, because);
    "the agent does not get it".clone_into(&mut it.says);
    it.place = place;
    if is_secret_key(name) {
        it.facts.push(
            "its name is that of a credential: such variables never pass by themselves".into(),
        );
    }
    it.change = match (reserved, here, named) {
        (true, ..) => None,
        (_, true, None) => Some(format!(
            "add it to `env_pass` of the role to pass its value on, or write `env.{name}`"
        )),
        (_, false, Some(_)) => Some("set it where fleet is started".to_owned()),
        _ => Some(format!(
            "write `env.{name}`, or set it where fleet is started and add it to `env_pass`"
        )),
    };
    it
}
