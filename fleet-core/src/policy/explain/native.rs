//! What the agent's own program says: a question to the harness, and its answers.

use serde::Serialize;

use super::{ExplainRequest, Source};
use crate::harness::{LaunchDirs, Options};
use crate::path::LexicalPath;
use crate::permissions::{Outer, Supported, Translation, Unattended};

/// What a harness is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NativeQuestion<'a> {
    /// May it read and write here? The path as asked, and where it leads.
    Path {
        /// As asked.
        asked: &'a LexicalPath,
        /// Links followed.
        target: &'a LexicalPath,
    },
    /// May it use the network?
    Network,
    /// May it use this tool?
    Tool(&'a str),
}

/// A question with what the answer depends on.
#[derive(Debug, Clone, Copy)]
pub struct NativeRequest<'a> {
    /// The native settings in force.
    pub effective: &'a Supported,
    /// The directories of the launch.
    pub dirs: &'a LaunchDirs,
    /// Options of the role.
    pub options: &'a Options,
    /// The boundary.
    pub outer: Outer,
    /// The question.
    pub question: NativeQuestion<'a>,
}

/// The answer of a rule of the agent's own program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NativeVerdict {
    /// Refused.
    Refused,
    /// A person is asked first.
    Asks,
    /// Not fleet's to say.
    Unknown,
    /// Done without a question.
    Silent,
}

impl NativeVerdict {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Asks => "asks",
            Self::Unknown => "unknown",
            Self::Silent => "silent",
        }
    }
}

/// One answer: about whom, what, and through which setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NativeAnswer {
    /// Which use, for example `file tools, writing`.
    pub action: String,
    /// The answer.
    pub verdict: NativeVerdict,
    /// The native setting that says so, or why there is none.
    pub setting: String,
}

impl NativeAnswer {
    /// An answer.
    pub fn new(
        action: impl Into<String>,
        verdict: NativeVerdict,
        setting: impl Into<String>,
    ) -> Self {
        Self { action: action.into(), verdict, setting: setting.into() }
    }
}

/// Asks the harness of a role. Empty where it has no permissions, or nothing to say.
pub(super) fn ask(request: &ExplainRequest<'_>, question: NativeQuestion<'_>) -> Vec<NativeAnswer> {
    let Translation::Supported(effective) = &request.assessment.effective else {
        return Vec::new();
    };
    request.harness.explain(&NativeRequest {
        effective,
        dirs: &request.assessment.dirs,
        options: request.role.harness_options.expose(),
        outer: request.outer,
        question,
    })
}

impl ExplainRequest<'_> {
    /// The neutral words of the role, each with its line.
    pub fn neutral_words(&self) -> Vec<Source> {
        let words = self.role.permissions;
        let source = |(key, value): (&str, &str)| Source {
            key: key.to_owned(),
            value: value.to_owned(),
            place: self.written(key).map(|(_, place)| place),
        };
        [
            ("permissions.approval", words.approval.as_str()),
            ("permissions.filesystem", words.filesystem.as_str()),
            ("permissions.unattended", words.unattended.as_str()),
        ]
        .map(source)
        .into()
    }
}

/// The keys that the native settings come from: the neutral words, and options in their place.
pub(super) fn sources(request: &ExplainRequest<'_>) -> Vec<Source> {
    if !matches!(request.assessment.effective, Translation::Supported(_)) {
        return Vec::new();
    }
    let mut sources = request.neutral_words();
    for (key, value) in request.harness.native_overrides(request.role.harness_options.expose()) {
        let own = format!("harness_options.{key}");
        // Of settings with a name of their own in the program only the option block is known.
        let place = request.around(&own);
        sources.push(Source { key: own, value, place });
    }
    sources
}

/// What becomes of a question that nobody is there to answer.
pub(super) fn question_fate(request: &ExplainRequest<'_>) -> &'static str {
    match (request.role.permissions.unattended, request.assessment.hooked) {
        (Unattended::Deny, true) => "a question that nobody answers is denied (`unattended: deny`)",
        (Unattended::Deny, false) => {
            "a question waits for a person: `unattended: deny` is not enforced on this harness"
        }
        (Unattended::Wait, _) => "a question waits for a person (`unattended: wait`)",
    }
}
