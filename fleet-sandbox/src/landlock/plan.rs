//! The line of the first program, from a policy. Pure: opens nothing, asks nothing.

use fleet_core::isolation::{
    BackendName, EnforcementRow, IsolationPolicy, Mount, MountMode, MountOrigin,
};
use fleet_core::launch::{DescriptorRequest, LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::port::PlanError;

use super::confine::{COMMAND, READ, WRITE};
use super::rules::Rules;
use super::{refuse, since};
use crate::attest;
use crate::bubblewrap::HostView;

pub(super) fn plan(
    host: &HostView,
    abi: u32,
    policy: &IsolationPolicy,
    command: &LaunchCommand,
    promise: Vec<EnforcementRow>,
) -> Result<LaunchPlan, PlanError> {
    if let Some(what) = refuse::refusal(policy) {
        return Err(PlanError::Unsupported { backend: BackendName::Landlock, what });
    }
    let mut rules = Rules::of(host, abi, policy);
    command.cwd.as_str().clone_into(&mut rules.cwd);
    let content = serde_json::to_string(&rules).map_err(|error| PlanError::Unsupported {
        backend: BackendName::Landlock,
        what: format!("a path of the policy ({error})"),
    })?;
    let secrets: Vec<&str> = host.etc_secrets.iter().map(|(path, _)| *path).collect();
    let request = attest::request::landlock(policy, abi >= since::SCOPES, &secrets);
    let mut descriptors = vec![
        DescriptorRequest::OwnProgram,
        DescriptorRequest::Data { label: "rules".to_owned(), content },
        DescriptorRequest::AttestRequest { request },
        DescriptorRequest::AttestPipe,
        DescriptorRequest::LifeLine,
    ];
    let mut argv = vec![PlanWord::DescriptorPath(0), PlanWord::literal(COMMAND)];
    argv.extend((1..descriptors.len()).map(PlanWord::Descriptor));
    for mount in &policy.mounts {
        let Some(source) = source(policy, mount)? else { continue };
        argv.push(PlanWord::literal(match mount.mode {
            MountMode::ReadOnly => READ,
            MountMode::ReadWrite => WRITE,
        }));
        argv.push(PlanWord::Descriptor(descriptors.len()));
        descriptors.push(source);
    }
    argv.push(PlanWord::literal("--"));
    argv.extend(command.argv.iter().map(PlanWord::text));
    Ok(LaunchPlan {
        backend: BackendName::Landlock,
        argv,
        descriptors,
        checks: Vec::new(),
        // A directory that would be made to be protected is not: it could not be.
        prepare: Vec::new(),
        cleanup: Vec::new(),
        network: None,
        promise,
    })
}

fn source(policy: &IsolationPolicy, mount: &Mount) -> Result<Option<DescriptorRequest>, PlanError> {
    let path = mount.source.as_path().to_owned();
    if let Some((identity, file)) = mount.identity.zip(mount.kind) {
        return Ok(Some(DescriptorRequest::Source { path, identity, file }));
    }
    let optional = matches!(mount.origin, MountOrigin::SharedItem { .. })
        || policy.ephemeral_dirs.contains(&path);
    if optional {
        return Ok(None);
    }
    Err(PlanError::MissingSource {
        source_path: mount.source.to_string(),
        origin: mount.origin.key(),
    })
}
