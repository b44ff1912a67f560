//! Tools of the agent, and the capabilities of the unattended floor.

use super::native::{self, NativeQuestion, NativeVerdict};
use super::{DecidedBy, ExplainRequest, Explanation, Verdict, answer, rule};
use crate::permissions::{Capability, Translation, Unattended};

pub(super) fn explain(request: &ExplainRequest<'_>, name: &str) -> Explanation {
    if let Translation::Unsupported { reason } = &request.assessment.effective {
        return without_permissions(request, name, reason);
    }
    let mut it = match Capability::ALL.into_iter().find(|it| it.as_str() == name) {
        Some(capability) => of_the_floor(request, capability),
        None => of_the_program(request, name),
    };
    if let Translation::Supported(effective) = &request.assessment.effective {
        it.facts.extend(effective.warnings.iter().cloned());
    }
    it.sources = native::sources(request);
    it.place = it.sources.iter().find_map(|source| source.place.clone());
    if request.outer.is_on() {
        it.facts.push(
            "the sandbox bounds what any tool reaches: ask about a path or a host as well"
                .to_owned(),
        );
    }
    it
}

fn without_permissions(request: &ExplainRequest<'_>, name: &str, reason: &str) -> Explanation {
    let because = rule("native.none", reason);
    let mut it = answer("tool", name, Verdict::Unknown, DecidedBy::Nothing, because);
    it.says = format!(
        "`{}` has no rules of fleet's for its tools: whatever it does, {}",
        request.role.harness,
        if request.outer.is_on() { "only the sandbox bounds it" } else { "your account bounds it" }
    );
    it.place = request.around("harness");
    it.facts.push("ask about a path, a host or a variable".to_owned());
    it
}

fn of_the_floor(request: &ExplainRequest<'_>, capability: Capability) -> Explanation {
    let name = capability.as_str();
    let assessment = request.assessment;
    let granted = match &assessment.effective {
        Translation::Supported(effective) => effective.granted.contains(&capability),
        Translation::Unsupported { .. } => false,
    };
    let (verdict, id, says) = if granted {
        (Verdict::Silent, "floor.granted", "works without a person")
    } else {
        (Verdict::Asks, "floor.missing", "needs a person")
    };
    let words = format!("{}: {}", name, what(capability));
    let mut it = answer("tool", name, verdict, DecidedBy::NativeRule, rule(id, words));
    it.says = format!("{} {says}", what(capability));
    if !granted {
        it.facts.push(native::question_fate(request).to_owned());
        it.change = Some(
            if request.role.permissions.unattended == Unattended::Deny {
                "write a wider `permissions.approval` (`auto`), or a wider `permissions.filesystem`"
            } else {
                "answer the question in the console (`ours-fleet attach`), or write a wider \
                 `permissions.approval`"
            }
            .to_owned(),
        );
    }
    if matches!(capability, Capability::Messaging | Capability::Monitor) {
        it.facts.push("mail is not available in this build".to_owned());
    }
    it
}

fn what(capability: Capability) -> &'static str {
    match capability {
        Capability::ReadState => "reading its briefing and its own files",
        Capability::WriteState => "writing its work log and its own files",
        Capability::Messaging => "sending and receiving mail",
        Capability::Monitor => "watching its own mail",
        Capability::WorkspaceEdit => "editing and testing in the working directory",
        Capability::StatusCommands => "running the inspection commands of the briefing",
    }
}

fn of_the_program(request: &ExplainRequest<'_>, name: &str) -> Explanation {
    let answers = native::ask(request, NativeQuestion::Tool(name));
    let first = answers.first().map(|it| it.verdict);
    let alike = answers.iter().all(|it| Some(it.verdict) == first);
    let verdict = match first {
        None | Some(NativeVerdict::Unknown) if alike => Verdict::Unknown,
        Some(NativeVerdict::Silent) if alike => Verdict::Silent,
        Some(NativeVerdict::Asks) if alike => Verdict::Asks,
        Some(NativeVerdict::Refused) if alike => Verdict::Refused,
        _ => Verdict::Depends,
    };
    let (by, because) = match (answers.first(), alike) {
        (None, _) => (
            DecidedBy::Nothing,
            rule("native.unknown", format!("`{}` does not say", request.role.harness)),
        ),
        (Some(first), true) => (DecidedBy::NativeRule, rule("native.rule", first.setting.clone())),
        (Some(_), false) => {
            (DecidedBy::NativeRule, rule("native.rules", "several rules, each for its part"))
        }
    };
    let mut it = answer("tool", name, verdict, by, because);
    it.says = match verdict {
        Verdict::Silent => "used without a question".to_owned(),
        Verdict::Asks => "a person is asked before each use".to_owned(),
        Verdict::Refused => "refused".to_owned(),
        Verdict::Depends => "it depends on what it is used on".to_owned(),
        _ => "no rule of fleet's is about it, so its own program decides".to_owned(),
    };
    if answers.iter().any(|it| it.verdict == NativeVerdict::Asks) {
        it.facts.push(native::question_fate(request).to_owned());
    }
    it.native = answers;
    it
}
