//! Outages of the provider: set by `POST /_outage`, over after a number of requests or seconds.
//!
//! ```json
//! {"kind": "status", "status": 429, "retryAfter": 2, "count": 3, "seconds": null}
//! {"kind": "cut"}        the stream breaks off in the middle
//! {"kind": "refuse"}     the connection is closed before an answer
//! {}                     all is well again
//! ```

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::script;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Kind {
    Status { status: u16, retry_after: Option<u64> },
    Cut,
    Refuse,
}

/// An outage and how long it lasts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outage {
    kind: Kind,
    left: Option<u64>,
    until: Option<Instant>,
}

impl Outage {
    /// Reads the body of `POST /_outage`; `None` ends an outage.
    pub(crate) fn parse(body: &Value, now: Instant) -> Result<Option<Self>, String> {
        let object = body.as_object().ok_or_else(|| "an outage is an object".to_owned())?;
        if object.is_empty() {
            return Ok(None);
        }
        let known = ["kind", "status", "retryAfter", "count", "seconds"];
        if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("unknown key {key}"));
        }
        let number = |key: &str| match &body[key] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| format!("{key} is no whole number")),
        };
        let kind = match body["kind"].as_str() {
            Some("status") => Kind::Status {
                status: script::status(&body["status"])
                    .ok_or_else(|| "status is no HTTP error status".to_owned())?,
                retry_after: number("retryAfter")?,
            },
            Some("cut") => Kind::Cut,
            Some("refuse") => Kind::Refuse,
            _ => return Err("kind is none of status, cut, refuse".to_owned()),
        };
        let until = number("seconds")?.map(|seconds| now + Duration::from_secs(seconds));
        Ok(Some(Self { kind, left: number("count")?, until }))
    }

    /// What happens to a request that comes now. Side calls suffer as well, but are not counted: a
    /// test counts turns.
    pub(crate) fn strike(slot: &mut Option<Self>, now: Instant, side: bool) -> Option<Kind> {
        let over = |outage: &Self| {
            outage.left == Some(0) || outage.until.is_some_and(|until| now >= until)
        };
        if slot.as_ref().is_some_and(over) {
            *slot = None;
        }
        let outage = slot.as_mut()?;
        if !side && let Some(left) = &mut outage.left {
            *left -= 1;
        }
        Some(outage.kind)
    }
}
