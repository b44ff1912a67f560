//! A role on a machine in memory, judged, so that questions about it can be asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_core::config::{ConfigSources, Fleet, LoadOptions, SourceText, YamlMode, load};
use fleet_core::harness::{Harness, Harnesses, StartMode};
use fleet_core::isolation::forbidden::ForbiddenList;
use fleet_core::launch::Environment;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::Outer;
use fleet_core::plan::{AssessRequest, Assessment, assess};
use fleet_core::policy::explain::{ExplainRequest, Explanation, Subject, explain};
use fleet_core::programs::ProgramTrust;
use fleet_core::test_support::scene::{HOME, Scene, path};
use fleet_core::world::World;

/// The file that every line is in.
pub(crate) const FILE: &str = "/home/u/fleet.yaml";

/// A judged role.
pub(crate) struct Judged {
    pub(crate) scene: Scene,
    pub(crate) fleet: Fleet,
    pub(crate) text: String,
    pub(crate) world: World,
    pub(crate) forbidden: ForbiddenList,
    pub(crate) assessment: Assessment,
    harness: Arc<dyn Harness>,
    outer: Outer,
}

/// The first role of this fleet on that machine.
pub(crate) fn judged(scene: Scene, text: &str) -> Judged {
    judged_in(scene, text, &[])
}

/// The same, in this environment.
pub(crate) fn judged_in(scene: Scene, text: &str, env: &[(&str, &str)]) -> Judged {
    let sources = ConfigSources {
        base_path: FILE.into(),
        base: Some(SourceText { path: FILE.into(), bytes: text.as_bytes().to_vec() }),
        drop_ins: Vec::new(),
    };
    let home = path(HOME);
    let harnesses = Harnesses::built_in();
    let options = LoadOptions { yaml_mode: YamlMode::Compat, home: &home, harnesses: &harnesses };
    let loaded = load(&sources, &options);
    let Some(fleet) = loaded.fleet else { panic!("refused: {:?}", loaded.diagnostics) };
    let own = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let world = World {
        homes: scene.homes.clone(),
        layout: scene.layout(),
        uid: scene.uid,
        user: "u".to_owned(),
        env: Environment(own.collect()),
        path_dirs: scene.path_dirs.clone(),
        relocated: scene.relocated.clone(),
        sockets: scene.sockets.clone(),
        binary: "/usr/bin/ours-fleet".into(),
        version: "0".to_owned(),
        passed_over: Vec::new(),
        trust: ProgramTrust::default(),
    };
    let forbidden = ForbiddenList::build(&world.forbidden_inputs(&fleet), &scene.tree);
    let role = fleet.roles.values().next().expect("a role");
    let harness = harnesses.get(role.harness.as_str()).expect("registered").clone();
    let outer = if Assessment::wants_isolation(role) { Outer::On } else { Outer::Off };
    let session = "11111111-2222-4333-8444-555555555555".parse().expect("an id");
    let assessment = assess(
        &AssessRequest {
            fleet: &fleet,
            role,
            harness: &*harness,
            world: &world,
            forbidden: &forbidden,
            mode: StartMode::Fresh,
            session: harness.session_ids().are_chosen().then_some(&session),
            harness_home: &world.layout.role(&role.name).harness_home(harness.id()),
            outer,
            version: None,
            operator_files: &BTreeMap::new(),
        },
        &scene.tree,
    );
    Judged { fleet, text: text.to_owned(), world, forbidden, assessment, harness, outer, scene }
}

impl Judged {
    pub(crate) fn request(&self) -> ExplainRequest<'_> {
        ExplainRequest {
            fleet: &self.fleet,
            role: self.fleet.roles.values().next().expect("a role"),
            harness: &*self.harness,
            world: &self.world,
            forbidden: &self.forbidden,
            assessment: &self.assessment,
            outer: self.outer,
        }
    }

    pub(crate) fn ask(&self, subject: &Subject) -> Explanation {
        explain(&self.request(), subject, &self.scene.tree)
    }

    pub(crate) fn path(&self, at: &LexicalPath) -> Explanation {
        self.ask(&Subject::Path(at.clone()))
    }

    pub(crate) fn at(&self, text: &str) -> Explanation {
        self.path(&path(text))
    }

    pub(crate) fn host(&self, text: &str) -> Explanation {
        self.ask(&Subject::Endpoint(text.parse().expect("an endpoint")))
    }

    pub(crate) fn env(&self, name: &str) -> Explanation {
        self.ask(&Subject::Variable(name.to_owned()))
    }

    pub(crate) fn tool(&self, name: &str) -> Explanation {
        self.ask(&Subject::Tool(name.to_owned()))
    }

    /// The line of the fleet file that an answer names.
    pub(crate) fn line(&self, answer: &Explanation) -> &str {
        let place = answer.place.as_ref().unwrap_or_else(|| panic!("no place: {answer:?}"));
        assert_eq!(place.file, FILE);
        let number = usize::try_from(place.line).expect("small");
        self.text.lines().nth(number - 1).expect("a line of the file").trim()
    }
}
