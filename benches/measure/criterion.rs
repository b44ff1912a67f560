//! Reads the result of one benchmark.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Failure, summary};

/// Median, minimum and maximum of the samples in `directory`, which is criterion's `new` of one
/// benchmark. Each sample is the mean of its iterations.
pub(crate) fn result(directory: &Path) -> Result<Vec<String>, Failure> {
    let sample: Value = serde_json::from_slice(&fs::read(directory.join("sample.json"))?)?;
    let list = |key: &str| -> Option<Vec<f64>> {
        sample.get(key)?.as_array()?.iter().map(Value::as_f64).collect()
    };
    let iterations = list("iters").ok_or("no `iters` in sample.json")?;
    let times = list("times").ok_or("no `times` in sample.json")?;
    let microseconds =
        times.iter().zip(&iterations).map(|(time, count)| time / count / 1000.0).collect();
    Ok(summary::line("time", microseconds).into_iter().collect())
}
