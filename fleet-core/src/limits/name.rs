use std::fmt;
use std::str::FromStr;

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

use crate::id::{LaunchId, RoleName};

/// Begins every name, so that nothing else is ever taken for ours.
const OURS: &str = "ours-fleet-";
/// Ends the name of a scope.
const SCOPE: &str = ".scope";
/// Characters of a launch id in a name.
const LAUNCH: usize = 8;

/// What the names of all groups of one role of one fleet begin with: two fleets of one account, and
/// two roles of which one is named like the beginning of the other, never share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPrefix(String);

impl GroupPrefix {
    /// The prefix of a role of the fleet with this state root.
    pub fn new(role: &RoleName, root: &Utf8Path) -> Self {
        Self(format!("{OURS}{role}-{:08x}-", hash(root.as_str())))
    }

    /// The name for one launch.
    pub fn launch(&self, launch: &LaunchId) -> GroupName {
        let id = launch.as_str().chars().filter(char::is_ascii_alphanumeric).take(LAUNCH);
        GroupName(self.0.chars().chain(id).collect())
    }

    /// Whether a name is that of the group or the scope of a launch of this role.
    pub fn is_of(&self, name: &str) -> bool {
        let name = name.strip_suffix(SCOPE).unwrap_or(name);
        name.strip_prefix(&self.0).is_some_and(|rest| {
            (1..=LAUNCH).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        })
    }
}

/// The name of the group or scope of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupName(String);

impl GroupName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the scope. Nothing in it needs the escapes of systemd.
    pub fn scope(&self) -> String {
        format!("{}{SCOPE}", self.0)
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name of a group of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a group of ours-fleet")]
pub struct NotAGroup;

impl FromStr for GroupName {
    type Err = NotAGroup;

    fn from_str(text: &str) -> Result<Self, NotAGroup> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for GroupName {
    type Error = NotAGroup;

    /// One path component, that systemd takes for a unit too: nothing in it leads elsewhere.
    fn try_from(text: String) -> Result<Self, NotAGroup> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let ours = text.strip_prefix(OURS).is_some_and(|rest| !rest.is_empty());
        (ours && text.len() < 200 && text.bytes().all(plain)).then_some(Self(text)).ok_or(NotAGroup)
    }
}

impl From<GroupName> for String {
    fn from(name: GroupName) -> Self {
        name.0
    }
}

/// FNV-1a: the same in every build, which the hashes of the standard library are not.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(role: &str, root: &str) -> GroupPrefix {
        GroupPrefix::new(&role.parse().unwrap(), root.into())
    }

    #[test]
    fn a_name_belongs_to_one_role_of_one_fleet() {
        let launch: LaunchId = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".parse().unwrap();
        let own = prefix("A", "/home/op/.ours-fleet");
        let name = own.launch(&launch);
        assert!(name.as_str().ends_with("-0a1b2c3d") && own.is_of(name.as_str()), "{name}");
        assert!(own.is_of(&name.scope()) && !own.is_of(&format!("{}.scope", name.scope())));
        assert_eq!(name.as_str().parse(), Ok(name.clone()));
        let middle = name.as_str().strip_prefix("ours-fleet-A-").unwrap();
        let (hash, _) = middle.split_once('-').unwrap();
        for (role, root) in [
            ("B", "/home/op/.ours-fleet"),
            ("A", "/srv/.ours-fleet"),
            ("A-b", "/home/op/.ours-fleet"),
        ] {
            let other = prefix(role, root);
            assert!(!other.is_of(name.as_str()) && !own.is_of(other.launch(&launch).as_str()));
            assert!(!other.is_of(&name.scope()) && !own.is_of(&other.launch(&launch).scope()));
        }
        // A role whose name is the beginning of another role's groups.
        let nested = prefix(&format!("A-{hash}"), "/home/op/.ours-fleet");
        assert!(!own.is_of(nested.launch(&launch).as_str()));
        for no in ["", "ours-fleet-A", name.as_str().trim_end_matches("-0a1b2c3d"), "init.scope"] {
            assert!(!own.is_of(no), "{no}");
        }
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for no in ["", "ours-fleet-", "ours-fleet-a/b", "../ours-fleet-a", "ours-fleet-a b", "x"] {
            assert_eq!(no.parse::<GroupName>(), Err(NotAGroup), "{no}");
        }
    }
}
