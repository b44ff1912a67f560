/// How the briefing speaks to a harness (01 §4.6).
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary {
    /// What the program was launched as, one or two sentences. Gets the name of the role.
    pub launch_note: fn(role: &str) -> String,
}
