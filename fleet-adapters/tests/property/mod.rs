//! Properties of files on the real disk.

mod files;
