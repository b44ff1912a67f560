use serde::Serialize;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every value, as written in a fleet file.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The value as written in a fleet file.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value that a word stands for.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// How tool actions are approved, narrowest first.
    Approval {
        /// Each write and command asks.
        Ask = "ask",
        /// Silent inside the bound, outside asks or is refused.
        Auto = "auto",
        /// Silent inside, refused outside, nothing ever asks.
        Allow = "allow",
    }
}
words! {
    /// What tool actions may write, narrowest first.
    Filesystem {
        /// Nothing but the role's own directory.
        ReadOnly = "read-only",
        /// The working directory.
        Workspace = "workspace",
        /// All that the isolation shows.
        Unrestricted = "unrestricted",
    }
}
words! {
    /// What happens to a question when nobody can answer.
    Unattended {
        /// It is denied.
        Deny = "deny",
        /// It waits.
        Wait = "wait",
    }
}

/// Neutral permissions of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// How tool actions are approved.
    pub approval: Approval,
    /// What they may write.
    pub filesystem: Filesystem,
    /// What happens to a question when nobody can answer.
    pub unattended: Unattended,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            approval: Approval::Ask,
            filesystem: Filesystem::Workspace,
            unattended: Unattended::Deny,
        }
    }
}
