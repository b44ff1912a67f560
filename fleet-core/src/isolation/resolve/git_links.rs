//! How a working directory leads to a repository that lies elsewhere: the small files of git, read as
//! what they are, writings that an agent may have made.

use camino::Utf8PathBuf;

use crate::path::LexicalPath;
use crate::port::{FileKind, PathProbe};

/// Enough for a `.git`, `gitdir` or `commondir` file.
const POINTER_LIMIT: usize = 4096;

/// What git writes outside a linked worktree when it commits there: what belongs to this worktree alone,
/// then the repository. Empty where `cwd` is no linked worktree.
///
/// The agent can write the `.git` file of its worktree, so it names nothing by itself: the repository
/// must name this very worktree, in a place of its own that the pointer leads to.
pub fn worktree_repository(cwd: &LexicalPath, probe: &dyn PathProbe) -> Vec<Utf8PathBuf> {
    let found = || {
        let cwd = existing_directory(probe, cwd)?;
        let (admin, common) = linked_directories(probe, &cwd)?;
        (named_worktree(probe, &admin, &common)? == cwd).then_some([admin, common])
    };
    found().into_iter().flatten().map(|path| path.as_path().to_owned()).collect()
}

/// The working directory that a linked worktree's administrative directory names, if that directory
/// lies where git puts it. Its `commondir` alone proves nothing: an agent that makes up the directory
/// would name any other one as common.
pub(super) fn named_worktree(
    probe: &dyn PathProbe,
    admin: &LexicalPath,
    common: &LexicalPath,
) -> Option<LexicalPath> {
    let worktrees = admin.parent()?;
    if worktrees.file_name() != Some("worktrees") || worktrees.parent().as_ref() != Some(common) {
        return None;
    }
    let back = pointer(probe, &admin.child("gitdir").ok()?, "")?;
    let file = probe.resolve(&follow(admin, &back)?).ok()?.path;
    (file.file_name() == Some(".git")).then(|| file.parent()).flatten()
}

/// Where the repository of a cwd with a `.git` file keeps what belongs to this cwd alone, and where
/// its objects, refs, hooks and configuration.
pub(super) fn linked_directories(
    probe: &dyn PathProbe,
    cwd: &LexicalPath,
) -> Option<(LexicalPath, LexicalPath)> {
    let gitdir = pointer(probe, &cwd.child(".git").ok()?, "gitdir:")?;
    let admin = existing_directory(probe, &follow(cwd, &gitdir)?)?;
    match pointer(probe, &admin.child("commondir").ok()?, "") {
        Some(common) => {
            let common = existing_directory(probe, &follow(&admin, &common)?)?;
            Some((admin, common))
        }
        None => Some((admin.clone(), admin)),
    }
}

/// The path in the first line of a small regular file, after `prefix`.
pub(super) fn pointer(probe: &dyn PathProbe, file: &LexicalPath, prefix: &str) -> Option<String> {
    let text = text(probe, file, POINTER_LIMIT)?;
    Some(text.lines().next()?.strip_prefix(prefix)?.trim().to_owned())
}

/// A regular file of fewer than `limit` bytes.
pub(super) fn text(probe: &dyn PathProbe, file: &LexicalPath, limit: usize) -> Option<String> {
    let seen = probe.resolve(file).ok()?;
    seen.object.filter(|object| object.kind == FileKind::File)?;
    let head = probe.head(&seen.path, limit).ok()?;
    String::from_utf8(head).ok().filter(|text| text.len() < limit)
}

pub(super) fn existing_directory(probe: &dyn PathProbe, path: &LexicalPath) -> Option<LexicalPath> {
    let seen = probe.resolve(path).ok()?;
    let directory = seen.object.is_some_and(|object| object.kind == FileKind::Directory);
    directory.then_some(seen.path)
}

/// `pointer`, absolute or relative to `base`, which is free of links.
pub(super) fn follow(base: &LexicalPath, pointer: &str) -> Option<LexicalPath> {
    if pointer.starts_with('/') {
        return LexicalPath::absolute(pointer).ok();
    }
    pointer.split('/').try_fold(base.clone(), |path, component| match component {
        "" | "." => Some(path),
        ".." => path.parent(),
        name => path.child(name).ok(),
    })
}

#[cfg(all(test, feature = "test-support"))]
mod tests {
    use super::*;
    use crate::test_support::fakes::MemoryTree;
    use crate::test_support::scene::path;

    /// A repository `/r` with a linked worktree `/w`, whose `.git` and back pointer say this.
    fn written(git: &str, back: &str, common: &str) -> Vec<Utf8PathBuf> {
        let mut tree = MemoryTree::new();
        tree.dir("/r/.git/worktrees/w").dir("/w/fake/worktrees/w").dir("/home/u/.ssh");
        tree.file("/r/.git/worktrees/w/gitdir", back).file("/w/.git", git);
        tree.file("/r/.git/worktrees/w/commondir", common);
        // What the agent can make of its own.
        tree.file("/w/fake/worktrees/w/gitdir", "/w/.git\n");
        tree.file("/w/fake/worktrees/w/commondir", "/home/u/.ssh\n");
        tree.link("/link", "/w");
        let direct = worktree_repository(&path("/w"), &tree);
        assert_eq!(direct, worktree_repository(&path("/link"), &tree));
        direct
    }

    #[test]
    fn a_repository_is_written_only_if_it_names_the_worktree() {
        let good = "gitdir: /r/.git/worktrees/w\n";
        let both = ["/r/.git/worktrees/w", "/r/.git"];
        assert_eq!(written(good, "/w/.git\n", "../..\n"), both);
        let relative = "gitdir: ../r/.git/worktrees/w\n";
        assert_eq!(written(relative, "../../../../w/.git\n", "../..\n"), both);
        for (git, back, common) in [
            (good, "/other/.git\n", "../..\n"),
            (good, "", "../..\n"),
            (good, "/w/.git\n", "/home/u/.ssh\n"),
            ("gitdir: /w/fake/worktrees/w\n", "/w/.git\n", "../..\n"),
            ("gitdir: /home/u/.ssh\n", "/w/.git\n", "../..\n"),
            ("/r/.git/worktrees/w\n", "/w/.git\n", "../..\n"),
        ] {
            assert_eq!(written(git, back, common), [""; 0], "{git} {back} {common}");
        }
    }
}
