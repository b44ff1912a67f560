//! Judges whole fleets for programs that embed this crate: the same verdict as `config`, `doctor` and
//! the launch, with fewer things to hand over.

use std::collections::BTreeMap;

use crate::config::{Fleet, Role};
use crate::harness::{Harness, Harnesses, StartMode};
use crate::id::SessionId;
use crate::isolation::forbidden::ForbiddenList;
use crate::permissions::Outer;
use crate::plan::{AssessRequest, Assessment, assess};
use crate::port::PathProbe;
use crate::world::World;

/// A fleet in front of one file system and one account. Builds the list of forbidden paths once.
///
/// It knows no more of harnesses than what is registered: a role is judged as if its program had a
/// version without a table of its own, and as if the operator had no settings for it. A launch knows
/// both, and calls [`assess`] with them.
///
/// ```
/// # #[cfg(feature = "test-support")] {
/// use fleet_core::test_support::fakes::MemoryTree;
/// use fleet_core::{ConfigSources, Harnesses, Judge, LoadOptions, World, load};
///
/// let text = "
/// roles:
///   builder:
///     harness: command
///     cwd: /srv/project
///     harness_options: { argv: [make, watch] }
///     isolation: { network: deny, fs: { read: [/home/op/.ssh] } }
/// ";
/// let world = World::of_account("op", 1000, "/home/op")?;
/// let harnesses = Harnesses::built_in();
/// let sources = ConfigSources::base_only("/home/op/fleet.yaml", text);
/// let loaded = load(&sources, &LoadOptions::new(&world.home()?, &harnesses));
/// let fleet = loaded.fleet.expect("the text has no mistake");
///
/// // A program that embeds this asks the real file system: `OpenatProbe` of `fleet-sandbox`.
/// let mut machine = MemoryTree::new();
/// machine.dir("/srv/project").dir("/home/op/.ssh");
/// let judge = Judge::new(&fleet, &world, &harnesses, &machine);
/// let verdict = judge.role(&fleet.roles["builder"]).expect("the harness is registered");
/// assert!(verdict.problems[0].to_string().contains("is the forbidden path `/home/op/.ssh`"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Judge<'a> {
    fleet: &'a Fleet,
    world: &'a World,
    harnesses: &'a Harnesses,
    probe: &'a dyn PathProbe,
    forbidden: ForbiddenList,
}

impl<'a> Judge<'a> {
    /// Looks the forbidden paths up.
    pub fn new(
        fleet: &'a Fleet,
        world: &'a World,
        harnesses: &'a Harnesses,
        probe: &'a dyn PathProbe,
    ) -> Self {
        let forbidden = ForbiddenList::build(&world.forbidden_inputs(fleet), probe);
        Self { fleet, world, harnesses, probe, forbidden }
    }

    /// The verdict on one role as its next fresh start would meet it; `None` if its harness is not
    /// registered.
    ///
    /// Isolation that the role asks for counts as in force. Where that can fail, ask again with
    /// [`Judge::role_within`].
    pub fn role(&self, role: &Role) -> Option<Assessment> {
        let boundary = Assessment::boundary(role, self.world.uid);
        self.role_within(role, boundary.unwrap_or(Outer::Off))
    }

    /// The same inside a boundary that is known.
    pub fn role_within(&self, role: &Role, outer: Outer) -> Option<Assessment> {
        let harness = self.harnesses.get(role.harness.as_str())?;
        let account = (self.world, &self.forbidden);
        Some(fresh_start(self.fleet, role, &**harness, account, outer, self.probe))
    }

    /// Every role with its verdict, in file order; roles of harnesses that are not registered are
    /// left out.
    pub fn all(&self) -> impl Iterator<Item = (&'a Role, Assessment)> {
        self.fleet.roles.values().filter_map(|role| Some((role, self.role(role)?)))
    }
}

/// The verdict on a fresh start of a harness of which no more is known than what is built in.
pub(crate) fn fresh_start(
    fleet: &Fleet,
    role: &Role,
    harness: &dyn Harness,
    (world, forbidden): (&World, &ForbiddenList),
    outer: Outer,
    probe: &dyn PathProbe,
) -> Assessment {
    let session: Option<SessionId> = "00000000-0000-4000-8000-000000000000".parse().ok();
    let request = AssessRequest {
        fleet,
        role,
        harness,
        world,
        forbidden,
        mode: StartMode::Fresh,
        session: session.as_ref().filter(|_| harness.session_ids().are_chosen()),
        harness_home: &world.layout.role(&role.name).harness_home(harness.id()),
        outer,
        version: None,
        operator_files: &BTreeMap::new(),
    };
    assess(&request, probe)
}
