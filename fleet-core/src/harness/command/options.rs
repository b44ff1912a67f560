use crate::config::keys::{Key, TEXTS, key, names};
use crate::harness::{OptionProblem, Options};

/// Every option.
pub(super) const TABLE: &[Key] = &[
    key("argv", TEXTS, "required", "The program and its arguments."),
    key("busy", TEXTS, "[]", "Texts on the screen that mean busy."),
    key("modal", TEXTS, "[]", "Texts on the screen that mean that a dialog is open."),
    key("ready", TEXTS, "[]", "Texts on the screen that mean ready."),
    key("resume_argv", TEXTS, "", "The same as argv, for a start that goes on."),
];

/// `harness_options` of a `command` role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandOptions {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The same for a start that continues.
    pub resume_argv: Option<Vec<String>>,
    /// Texts that mean ready.
    pub ready: Vec<String>,
    /// Texts that mean busy.
    pub busy: Vec<String>,
    /// Texts that mean that a dialog is open.
    pub modal: Vec<String>,
}

impl CommandOptions {
    /// Reads the options; every problem is reported.
    pub fn parse(options: &Options) -> Result<Self, Vec<OptionProblem>> {
        let mut problems = Vec::new();
        for key in options.keys().filter(|key| names(TABLE).all(|name| name != key.as_str())) {
            problems.push(OptionProblem {
                path: key.clone(),
                message: "unknown key".to_owned(),
                allowed: names(TABLE).map(ToOwned::to_owned).collect(),
                unknown_key: true,
            });
        }
        let mut list = |key: &str| texts(options, key, &mut problems);
        let argv = list("argv");
        let parsed = Self {
            resume_argv: list("resume_argv"),
            ready: list("ready").unwrap_or_default(),
            busy: list("busy").unwrap_or_default(),
            modal: list("modal").unwrap_or_default(),
            argv: argv.clone().unwrap_or_default(),
        };
        if argv.is_none() && !options.contains_key("argv") {
            problems.push(problem("argv", "is required: the program and its arguments"));
        }
        for key in ["argv", "resume_argv"] {
            let first =
                options.get(key).and_then(|value| value.get(0)).and_then(|value| value.as_str());
            if first.is_some_and(|program| program.trim().is_empty() || program.starts_with('-')) {
                problems.push(problem(&format!("{key}[0]"), "must name a program"));
            }
        }
        if problems.is_empty() { Ok(parsed) } else { Err(problems) }
    }
}

fn problem(path: &str, message: &str) -> OptionProblem {
    OptionProblem {
        path: path.to_owned(),
        message: message.to_owned(),
        allowed: Vec::new(),
        unknown_key: false,
    }
}

/// A non-empty list of texts without NUL; `None` if absent or wrong.
fn texts(options: &Options, key: &str, problems: &mut Vec<OptionProblem>) -> Option<Vec<String>> {
    let value = options.get(key)?;
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        let example = if key.ends_with("argv") { "[sh, -c, 'exec sleep 5']" } else { "['text']" };
        let message = if value.is_array() {
            "must be a non-empty list of texts".to_owned()
        } else {
            format!("must be a list of texts, for example `{key}: {example}`")
        };
        problems.push(problem(key, &message));
        return None;
    };
    let mut list = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_str() {
            Some(text) if !text.contains('\0') => list.push(text.to_owned()),
            Some(_) => problems.push(problem(&format!("{key}[{index}]"), "holds a NUL character")),
            None => problems.push(problem(&format!("{key}[{index}]"), "must be a text: quote it")),
        }
    }
    (list.len() == items.len()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: &str) -> Options {
        serde_json::from_str(json).expect("an object")
    }

    #[test]
    fn all_problems_are_reported() {
        let problems = CommandOptions::parse(&options(
            r#"{"argv": [], "resume_argv": ["a", 1], "foo": 1, "ready": "x"}"#,
        ))
        .expect_err("four problems");
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["foo", "argv", "resume_argv[1]", "ready"]);
    }

    #[test]
    fn argv_is_required_and_names_a_program() {
        assert!(CommandOptions::parse(&Options::new()).is_err());
        assert!(CommandOptions::parse(&options(r#"{"argv": ["-x"]}"#)).is_err());
        let parsed =
            CommandOptions::parse(&options(r#"{"argv": ["sh", "-c", ";"]}"#)).expect("good");
        assert_eq!(parsed.argv, ["sh", "-c", ";"]);
    }
}
