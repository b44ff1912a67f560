//! The table of `seccomp` in the words of podman's `--security-opt seccomp=FILE`.
//!
//! The outer of two layers, which holds for every process of the container. The library behind it knows
//! the calls of its own time only, and skips a name that it does not know; the exact filters are
//! installed by `enter`. Pure.

use serde_json::{Value, json};

use crate::seccomp::{
    AF_NETLINK, CLONE, CLONE3, Call, DENIED, DENIED_UNLESS_NESTED, DEVICE_TYPES, ENOSYS, EPERM,
    FAMILIES, IOCTL, MAKES_FILE, MKNOD, MKNODAT, NAMESPACE_FLAGS, OPEN, OPENAT, OPENAT2, S_IFMT,
    S_ISUID, SETS_MODE, SOCKET, TERMINAL_REQUESTS,
};

/// The kernel looks at no more of these arguments.
const LOW: u64 = 0xffff_ffff;

/// The argument with this number, masked, has this value.
fn masked(index: u8, mask: u64, value: u64) -> Value {
    json!({ "index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" })
}

fn rule(calls: &[Call], errno: u32, arguments: &[Value]) -> Value {
    let names: Vec<&str> = calls.iter().map(|call| call.0).collect();
    json!({ "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": arguments })
}

/// The text of the profile.
pub(super) fn text() -> String {
    let deny = |call: Call, arguments: &[Value]| rule(&[call], EPERM, arguments);
    let always: Vec<Call> = DENIED.iter().chain(DENIED_UNLESS_NESTED).copied().collect();
    let mut rules = vec![rule(&always, EPERM, &[]), rule(&[CLONE3, OPENAT2], ENOSYS, &[])];
    rules.extend(NAMESPACE_FLAGS.iter().map(|flag| deny(CLONE, &[masked(0, *flag, *flag)])));
    rules.extend(TERMINAL_REQUESTS.iter().map(|it| deny(IOCTL, &[masked(1, LOW, *it)])));
    // There is no "differs in the low half": every small number but the allowed ones, and every bit
    // of a larger one.
    let small = (0..32).filter(|family| !FAMILIES.contains(family));
    rules.extend(small.map(|family| deny(SOCKET, &[masked(0, LOW, family)])));
    rules.extend((5..32).map(|bit| deny(SOCKET, &[masked(0, 1 << bit, 1 << bit)])));
    rules.extend(
        (0..32)
            .map(|bit| deny(SOCKET, &[masked(0, LOW, AF_NETLINK), masked(2, 1 << bit, 1 << bit)])),
    );
    for (call, argument) in [(MKNOD, 1), (MKNODAT, 2)] {
        rules
            .extend(DEVICE_TYPES.iter().map(|kind| deny(call, &[masked(argument, S_IFMT, *kind)])));
        rules.push(deny(call, &[masked(argument, S_ISUID, S_ISUID)]));
    }
    for (call, argument) in SETS_MODE {
        rules.push(deny(*call, &[masked(*argument, S_ISUID, S_ISUID)]));
    }
    for (call, flags) in [(OPEN, 1), (OPENAT, 2)] {
        rules.extend(MAKES_FILE.iter().map(|flag| {
            deny(call, &[masked(flags, *flag, *flag), masked(flags + 1, S_ISUID, S_ISUID)])
        }));
    }
    let arch = match std::env::consts::ARCH {
        "aarch64" => "SCMP_ARCH_AARCH64",
        _ => "SCMP_ARCH_X86_64",
    };
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        // A foreign one kills.
        "architectures": [arch],
        "syscalls": rules,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_table_is_in_it() {
        let profile: Value = serde_json::from_str(&text()).expect("JSON");
        let named = |name: &str| {
            profile["syscalls"].as_array().expect("a list").iter().any(|rule| {
                rule["names"].as_array().expect("a list").iter().any(|found| found == name)
            })
        };
        let other = [IOCTL, SOCKET, CLONE, CLONE3, MKNOD, MKNODAT, OPEN, OPENAT, OPENAT2];
        for call in DENIED.iter().chain(DENIED_UNLESS_NESTED).chain(&other) {
            assert!(named(call.0), "{}", call.0);
        }
        assert!(!named("execve"));
    }

    #[test]
    fn every_socket_family_but_four_is_denied() {
        let profile: Value = serde_json::from_str(&text()).expect("JSON");
        let denied = |family: u64| {
            profile["syscalls"].as_array().expect("a list").iter().any(|rule| {
                rule["names"] == json!(["socket"])
                    && rule["args"].as_array().is_some_and(|arguments| {
                        arguments.len() == 1
                            && arguments.iter().all(|it| {
                                let number = |key: &str| it[key].as_u64().expect("a number");
                                family & number("value") == number("valueTwo")
                            })
                    })
            })
        };
        for family in 0..1000 {
            assert_eq!(denied(family), !FAMILIES.contains(&family), "{family}");
        }
    }
}
