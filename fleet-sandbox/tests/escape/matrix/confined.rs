//! The expected column of Landlock: what gets through, and why.

pub(super) const LEAKS: &[(&str, &str)] = &[
    // What is read-only in the working directory.
    ("10", "below"),
    ("10b", "below"),
    ("10c", "below"),
    // Of files that can be read, and of every other of the user's own.
    ("o10", "metadata"),
    ("o11", "metadata"),
    ("o12", "metadata"),
    ("o13", "metadata"),
    // What happens in a directory, not what is in it.
    ("o16", "names"),
    // The kernel, the host and its processes, as every user of the machine sees them.
    ("21", "no namespaces"),
    ("28b", "no namespaces"),
    ("29", "no namespaces"),
    ("33c", "no namespaces"),
    ("42", "no namespaces"),
    ("55", "no namespaces"),
    ("55b", "no namespaces"),
    ("o23", "no namespaces"),
    ("o53", "no namespaces"),
    ("46b", "bounding"),
];
