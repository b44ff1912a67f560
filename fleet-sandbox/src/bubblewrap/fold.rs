//! Which mounts of a policy need no bind of their own: `bwrap` reads the whole mount table for each
//! bind, so that their cost grows with the square of their number.

use std::collections::HashMap;

use fleet_core::isolation::{Mount, MountMode, MountOrigin};

/// The mounts so far, ancestors first.
#[derive(Debug, Default)]
pub(super) struct Folded<'p> {
    seen: HashMap<&'p str, Seen>,
    /// Depth of the topmost mount.
    top: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    in_place: bool,
    mode: MountMode,
}

impl<'p> Folded<'p> {
    /// Whether the mount around this one shows the same object at the same place in the same mode.
    /// Remembers it in any case.
    ///
    /// # Security
    /// Only for what the role asked for. A bind that guards something must stay one: it cannot be
    /// renamed or replaced from inside.
    pub(super) fn is_shown_by_another(&mut self, mount: &'p Mount) -> bool {
        let own = Seen { in_place: mount.source == mount.destination, mode: mount.mode };
        let depth = mount.destination.depth();
        let above = depth.saturating_sub(self.top.unwrap_or(depth));
        let around = mount
            .destination
            .self_and_ancestors()
            .take(above + 1)
            .find_map(|path| self.seen.get(path).copied());
        self.seen.insert(mount.destination.as_str(), own);
        self.top = Some(self.top.map_or(depth, |top| top.min(depth)));
        matches!(
            mount.origin,
            MountOrigin::AddDir { .. } | MountOrigin::FsWrite { .. } | MountOrigin::FsRead { .. }
        ) && own.in_place
            && around.is_some_and(|it| it.in_place && it.mode == own.mode)
    }
}
