//! Which hosts a role may reach: what `allow_hosts` means, and what is decided for one connection.
//!
//! A decision is made on the name that was asked for, before anything is resolved; the answer of the
//! resolver is judged again, so that a listed name cannot lead into a private network or to the host.

mod address;
mod host;
mod hosts_file;
mod layout;
mod own;
mod rule;
mod url;

pub use self::address::{AddressClass, classify};
pub use self::host::{Host, HostError, HostName};
pub use self::hosts_file::hosts_file_addresses;
pub use self::layout::{Listener, NetworkLayout, PROXY, Serve};
pub use self::own::OwnAddresses;
pub use self::rule::{DEFAULT_PORTS, HostPattern, HostRule, Target, decide, judge_answer};
pub use self::url::rule_of_url;
