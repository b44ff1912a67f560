//! From a block to a policy (01 §2.3): mounts with modes, order and reasons.

use camino::Utf8Path;

use super::forbidden::ForbiddenList;
use super::policy::{IsolationBlock, IsolationPolicy};
use crate::diagnostic::Diagnostic;
use crate::layout::{Homes, RoleTrees};
use crate::path::LexicalPath;
use crate::port::PathProbe;

/// What a resolution needs beside the block.
#[derive(Debug, Clone, Copy)]
pub struct ResolveContext<'a> {
    /// The role's four trees.
    pub trees: &'a RoleTrees,
    /// The harness's config home inside the harness tree.
    pub harness_home: &'a Utf8Path,
    /// The declared working directory; STATE if absent.
    pub cwd: Option<&'a LexicalPath>,
    /// The homes of the account.
    pub homes: &'a Homes,
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// Files needed to run the harness program; empty when not known yet.
    pub launch_closure: &'a [LexicalPath],
    /// The uid that fleet runs as.
    pub uid: u32,
}

/// Resolves a block. Every problem is reported, each with the dotted path of the key below the role
/// (`isolation.fs.read[0]`, `cwd`) and without a place: the caller knows the file.
pub fn resolve(
    _block: &IsolationBlock,
    _context: &ResolveContext<'_>,
    _probe: &dyn PathProbe,
) -> Result<IsolationPolicy, Vec<Diagnostic>> {
    Err(Vec::new())
}
