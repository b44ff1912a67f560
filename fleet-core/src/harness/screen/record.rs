//! The session record that Claude Code keeps of a live session.

use serde_json::Value;

/// A session record as its program wrote it. Undocumented and agent-writable: every field but the
/// pid may be missing, and none is proof.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRecord {
    /// Process id as seen inside the process's own pid namespace.
    pub pid: u32,
    /// Field 22 of the process's `stat` file.
    pub proc_start: Option<String>,
    /// The conversation.
    pub session_id: Option<String>,
    /// `idle`, `busy`, `waiting`, or `shell` (idle, a background command runs).
    pub status: Option<String>,
    /// What it waits for, with status `waiting`.
    pub waiting_for: Option<String>,
    /// When the status changed, in milliseconds since the epoch.
    pub status_updated_at: Option<u64>,
    /// Version of the program.
    pub version: Option<String>,
    /// System and pid namespace of the process: `linux:MACHINE:pid:[INODE]`.
    pub pid_domain: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// `interactive` for a session on a terminal.
    pub kind: Option<String>,
}

impl SessionRecord {
    /// No record is longer, in bytes.
    pub const LIMIT: usize = 64 * 1024;

    /// Reads a record. `None` for anything that is no JSON object with a pid, or is longer than
    /// [`Self::LIMIT`]; a field of the wrong type counts as missing.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > Self::LIMIT {
            return None;
        }
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let object = value.as_object()?;
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            pid: u32::try_from(object.get("pid")?.as_u64()?).ok().filter(|pid| *pid > 0)?,
            proc_start: text("procStart"),
            session_id: text("sessionId"),
            status: text("status"),
            waiting_for: text("waitingFor"),
            status_updated_at: object.get("statusUpdatedAt").and_then(Value::as_u64),
            version: text("version"),
            pid_domain: text("pidDomain"),
            cwd: text("cwd"),
            kind: text("kind"),
        })
    }

    /// Inode of the pid namespace that the record names.
    pub fn pid_namespace(&self) -> Option<u64> {
        let (_, inode) = self.pid_domain.as_deref()?.rsplit_once(":pid:[")?;
        inode.strip_suffix(']')?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_record_is_read() {
        let text = br#"{"pid":2,"sessionId":"s","cwd":"/tmp/ws-a/app","procStart":"1200798",
            "version":"2.1.332","kind":"interactive","status":"waiting","waitingFor":"permission prompt",
            "statusUpdatedAt":1795985327527,"asksForConvertedSkills":null,
            "pidDomain":"linux:00000000000000000000000000000000:pid:[4026532249]"}"#;
        let record = SessionRecord::parse(text).unwrap();
        assert_eq!((record.pid, record.pid_namespace()), (2, Some(4_026_532_249)));
        assert_eq!(record.proc_start.as_deref(), Some("1200798"));
        assert_eq!(record.waiting_for.as_deref(), Some("permission prompt"));
        assert_eq!(record.status_updated_at, Some(1_795_985_327_527));
    }

    #[test]
    fn what_is_no_record_is_none() {
        for text in ["", "{", "[]", "{}", r#"{"pid":"2"}"#, r#"{"pid":0}"#, r#"{"pid":4294967296}"#]
        {
            assert_eq!(SessionRecord::parse(text.as_bytes()), None, "{text}");
        }
        let mut long = br#"{"pid":2,"x":""#.to_vec();
        long.resize(SessionRecord::LIMIT, b'x');
        long.extend(b"\"}");
        assert_eq!(SessionRecord::parse(&long), None);
        let odd = SessionRecord::parse(br#"{"pid":2,"status":5,"pidDomain":"pid:[x]"}"#).unwrap();
        assert_eq!((odd.status.as_deref(), odd.pid_namespace()), (None, None));
    }
}
