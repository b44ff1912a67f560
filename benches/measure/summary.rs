//! Median, minimum and maximum of a list of values.

/// One line of output. An empty list is no result and gives none.
pub(crate) fn line(name: &str, mut values: Vec<f64>) -> Option<String> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values.first()?, values.last()?);
    let middle = values.len() / 2;
    let median = if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    };
    Some(format!("{name}\t{median:.4}\t{first:.4}\t{last:.4}\t{}", values.len()))
}
