//! The program between the launcher and the sandbox program: it puts itself under the caps.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use camino::Utf8PathBuf;
use fleet_core::isolation::{EnforcementRow, Resources};
use fleet_core::limits::Cap;
use serde::{Deserialize, Serialize};

use super::{read, rlimits};
use crate::launch::REFUSED;
use crate::sys;

/// No order is larger.
const LIMIT: u64 = 8 * 1024 * 1024;

/// What to do, in sealed memory: the environment is in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) resources: Resources,
    /// Files to write our pid into.
    pub(super) join: Vec<Utf8PathBuf>,
    /// Whether we are put somewhere by others, and wait for a byte that says so.
    pub(super) wait: bool,
    pub(super) rlimits: Vec<Cap>,
    /// Descriptors that end with us.
    pub(super) close: Vec<i32>,
    pub(super) program: String,
    pub(super) arg0: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
}

/// What is said to the launcher. The pipe ends when the sandbox program runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
    /// What was read back, in the group that the program will run in.
    Held(Vec<EnforcementRow>),
    /// It could not get there.
    Failed(String),
    /// The program could not be executed.
    NotExecuted(String),
}

/// `_enter ORDER REPORT GO`, with the numbers of three descriptors: joins the groups of the order, or
/// waits for a byte that says that it was put where it belongs; reports what holds there, waits for a
/// byte, and becomes the program. Returns, with the status to exit with, only if it does not.
///
/// Must be called before anything else is opened or started.
pub fn inside(arguments: &[OsString]) -> i32 {
    let [order, report, go] = arguments else { return REFUSED };
    let number = |text: &OsString| text.to_str()?.parse::<i32>().ok().filter(|number| *number > 2);
    let (Some(order), Some(report), Some(go)) = (number(order), number(report), number(go)) else {
        return REFUSED;
    };
    if order == report || order == go || report == go {
        return REFUSED;
    }
    let taken = (sys::take(order), sys::take(report), sys::take(go));
    let (Some(order_file), Some(report_pipe), Some(go_pipe)) = taken else { return REFUSED };
    for number in [order, report, go] {
        sys::close_on_exec(number);
    }
    let (mut report, mut go) = (File::from(report_pipe), File::from(go_pipe));
    let Some(order) = read_order(File::from(order_file)) else { return REFUSED };
    for number in &order.close {
        sys::close_on_exec(*number);
    }
    let mut word = [0];
    if order.wait && go.read_exact(&mut word).is_err() {
        return REFUSED;
    }
    let held = match held(&order) {
        Ok(rows) => Report::Held(rows),
        Err(why) => Report::Failed(why),
    };
    let failed = matches!(held, Report::Failed(_));
    if say(&mut report, &held).is_err() || failed || go.read_exact(&mut word).is_err() {
        return REFUSED;
    }
    let error = Command::new(&order.program)
        .arg0(&order.arg0)
        .args(&order.args)
        .env_clear()
        .envs(&order.env)
        .exec();
    let _ = say(&mut report, &Report::NotExecuted(error.to_string()));
    REFUSED
}

fn read_order(file: File) -> Option<Order> {
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn held(order: &Order) -> Result<Vec<EnforcementRow>, String> {
    for path in &order.join {
        std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(b"0"))
            .map_err(|error| format!("{path}: {error}"))?;
    }
    let mut rows = read::rows(order.resources);
    rlimits::apply(&order.rlimits, order.resources, &mut rows);
    Ok(rows)
}

fn say(pipe: &mut File, report: &Report) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    pipe.write_all(&line)
}
