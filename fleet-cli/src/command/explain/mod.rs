//! `explain`: what a role can reach, why, and which line says so.

mod summary;

use camino::Utf8Path;
use fleet_adapters::runner::native_sandbox::NativeSandboxes;
use fleet_adapters::runner::observe::{self, RoleView};
use fleet_adapters::runner::version::HarnessVersions;
use fleet_core::diagnostic::Place;
use fleet_core::path::LexicalPath;
use fleet_core::policy::explain::{
    Endpoint, ExplainRequest, Explanation, NativeVerdict, Subject, Verdict, explain,
};
use fleet_core::port::PathProbe;
use fleet_core::status::RoleState;
use serde_json::json;

use crate::app::App;
use crate::args;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;
use crate::fleet::FleetFiles;
use crate::resolved::Resolver;
use crate::settings;
use crate::ui::{Table, Tone, document};

/// The longest name of a variable or a tool that is looked at.
const LONGEST_NAME: usize = 256;
/// What stands where a line is looked for and the rule is fleet's own.
const BUILT_IN: &str = "built into fleet";

/// Answers the question. Touches nothing; the only program that it runs is that of the role's harness,
/// once, for its version.
///
/// # Errors
/// The subject cannot be read, the fleet does not load, or it has no such role.
pub async fn run(app: &App, args: &args::Explain) -> Result<ExitStatus, CliError> {
    let subject = subject(app, &args.subject, &*app.probe())?;
    let files = FleetFiles::read(app, fleet_core::config::YamlMode::Compat)?;
    let fleet = files.good(app)?;
    let role = FleetFiles::find(fleet, &args.name)?;
    let versions = HarnessVersions::of_roles(&app.runtime, std::iter::once(role)).await;
    // As in `config`: the sandbox that a harness has of its own is taken to work, and `doctor` tries it.
    let resolver = Resolver::new(app, fleet, NativeSandboxes::assumed(), versions);
    let harness = app.runtime.harnesses.get(role.harness.as_str());
    let (Some(assessment), Some(harness)) = (resolver.assessment(role), harness) else {
        let message = format!("harness `{}` is not available in this build", role.harness);
        return Err(ErrorKind::Unavailable { message }.into());
    };
    let request = ExplainRequest {
        fleet,
        role,
        harness: &**harness,
        world: &app.runtime.world,
        forbidden: resolver.forbidden(),
        assessment: &assessment,
        outer: resolver.outer(role),
    };
    match subject {
        Some(subject) => {
            let mut answer = explain(&request, &subject, resolver.probe());
            if let Subject::Path(path) = &subject {
                let view = observe::role(&app.runtime, Some(fleet), &role.name).await;
                as_it_is(&mut answer, path, &view, resolver.probe());
            }
            if args.json {
                app.printer.json(&document(json!({ "role": role.name, "answer": answer })));
            } else {
                print(app, &answer);
            }
        }
        None => summary::show(app, &request, &resolver.role(role), args.json),
    }
    Ok(ExitStatus::Done)
}

/// What runs may lack a cover that its launch had: then the role can write there until it is started
/// again.
fn as_it_is(answer: &mut Explanation, path: &LexicalPath, view: &RoleView, probe: &dyn PathProbe) {
    let live = matches!(view.observed.state, RoleState::Running | RoleState::Starting);
    let isolation = view.status.as_ref().and_then(|status| status.isolation.as_ref());
    let Some(isolation) = isolation.filter(|_| live) else { return };
    let leads_to = probe.resolve(path).map_or_else(|_| path.clone(), |it| it.path);
    let hit = |lost: &&LexicalPath| path.is_within(lost) || leads_to.is_within(lost);
    let Some(lost) = isolation.uncovered.iter().find(hit) else { return };
    if answer.verdict != Verdict::ReadOnly {
        return;
    }
    let name = &view.name;
    answer.verdict = Verdict::ReadWrite;
    answer.says = format!(
        "the role can read and write it: `{lost}` was replaced outside of the sandbox, which took the \
         read-only mount over it away; from `ours-fleet restart {name}` on it can only read it"
    );
}

/// Reads what was typed.
fn subject(
    app: &App,
    words: &[String],
    probe: &dyn PathProbe,
) -> Result<Option<Subject>, CliError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(Some(match words.as_slice() {
        [] => return Ok(None),
        ["env", name] => Subject::Variable(variable(name)?),
        ["tool", name] => Subject::Tool(tool(name)?),
        ["env" | "tool"] => {
            let message = format!("name what is meant: `{} NAME`", words[0]);
            return Err(CliError::usage(message));
        }
        [text] if is_path(text) => Subject::Path(path(app, text, probe)?),
        [text] => Subject::Endpoint(text.parse::<Endpoint>().map_err(|error| {
            CliError::usage(format!("`{}` is no host: {error}", text.escape_debug()))
                .hint("a path begins with `/`, `~`, `./` or `../`")
                .hint("variables and tools: `env NAME`, `tool NAME`")
        })?),
        [first, ..] => {
            return Err(CliError::usage(format!(
                "`{}` takes no second word: only `env NAME` and `tool NAME` are two",
                first.escape_debug()
            )));
        }
    }))
}

fn is_path(text: &str) -> bool {
    matches!(text, "." | ".." | "~")
        || ["/", "~", "./", "../"].iter().any(|start| text.starts_with(start))
}

fn path(app: &App, text: &str, probe: &dyn PathProbe) -> Result<LexicalPath, CliError> {
    let home = &app.runtime.world.homes.os;
    let typed = match text.strip_prefix('~') {
        Some("") => home.clone(),
        Some(rest) if rest.starts_with('/') => Utf8Path::new(&format!("{home}{rest}")).to_owned(),
        Some(_) => {
            let message = format!("path `{}`: only `~` and `~/` are known", text.escape_debug());
            return Err(CliError::usage(message));
        }
        None => text.into(),
    };
    let absolute = settings::absolute("path", app.settings.cwd.as_deref(), &typed, probe)?;
    LexicalPath::absolute(absolute.as_str())
        .map_err(|error| CliError::usage(format!("path `{}`: {error}", text.escape_debug())))
}

fn variable(name: &str) -> Result<String, CliError> {
    let fits = name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty();
    if fits {
        return Ok(name.to_owned());
    }
    let message = format!("`{}` is not the name of a variable", name.escape_debug());
    Err(CliError::usage(message)
        .hint("letters, digits and `_`, the first not a digit; only the name, not the value"))
}

fn tool(name: &str) -> Result<String, CliError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(name.to_owned());
    }
    Err(CliError::usage(format!("`{}` is not the name of a tool", name.escape_debug()))
        .hint("for example Bash, Edit, apply_patch, mcp__SERVER__TOOL or workspace-edit"))
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Hidden | Verdict::Unreachable | Verdict::Withheld | Verdict::Refused => Tone::Good,
        Verdict::ReadOnly | Verdict::Private | Verdict::Set | Verdict::Asks => Tone::Plain,
        Verdict::ReadWrite | Verdict::Reachable | Verdict::Silent | Verdict::Depends => {
            Tone::Attention
        }
        Verdict::Account | Verdict::Unknown | Verdict::NotStarted => Tone::Bad,
    }
}

/// A place, or the words for a rule without one.
fn place(place: Option<&Place>) -> String {
    place.map_or_else(|| BUILT_IN.to_owned(), ToString::to_string)
}

fn print(app: &App, answer: &Explanation) {
    let out = &app.printer;
    let mut head = Table::plain();
    let leads = answer.leads_to.as_ref().map(|path| format!(" (leads to {path})"));
    head.toned([
        (format!("{}{}:", answer.subject, leads.unwrap_or_default()), Tone::Heading),
        (answer.verdict.as_str().to_owned(), tone(answer.verdict)),
    ]);
    head.print(out, "");
    let mut rows = Table::plain();
    let mut row = |key: &str, value: String| rows.row([key.to_owned(), value]);
    row("answer", answer.says.clone());
    row("decided by", answer.by.as_str().to_owned());
    row("rule", format!("{} ({})", answer.rule.words, answer.rule.id));
    row("written", place(answer.place.as_ref()));
    for fact in &answer.facts {
        row("note", fact.clone());
    }
    for native in &answer.native {
        row("program", format!("{}: {} ({})", native.action, word(native.verdict), native.setting));
    }
    for source in &answer.sources {
        let place = source.place.as_ref().map_or("default".to_owned(), ToString::to_string);
        row("from", format!("{}: {} ({place})", source.key, source.value));
    }
    if let Some(change) = &answer.change {
        row("to change", change.clone());
    }
    for line in &answer.refusals {
        row("refused", line.clone());
    }
    rows.print(out, "  ");
}

fn word(verdict: NativeVerdict) -> &'static str {
    match verdict {
        NativeVerdict::Silent => "without a question",
        NativeVerdict::Asks => "asks",
        NativeVerdict::Refused => "refused",
        NativeVerdict::Unknown => "not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_a_host_by_its_beginning() {
        for text in [".", "..", "~", "~/x", "/x", "./x", "../x", "~u"] {
            assert!(is_path(text), "{text}");
        }
        for text in ["x", "localhost", ".hidden", "example.com:1", "[::1]:1", "a/b", ""] {
            assert!(!is_path(text), "{text}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(variable("A_1").is_ok() && tool("mcp__a__b-c").is_ok());
        for name in ["", "1A", "A=secret", "A B", "A\u{1b}"] {
            assert!(variable(name).is_err(), "{name:?}");
        }
        for name in ["", "a b", "Bash(rm)", "\u{1b}[2J", "é"] {
            assert!(tool(name).is_err(), "{name:?}");
        }
    }
}
