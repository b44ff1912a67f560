//! Which supervisor starts roles on this machine, and what that means for the operator.

use fleet_core::port::SupervisorKind;

use crate::error::{CliError, ErrorKind};
use crate::settings::SupervisorChoice;

/// The supervisor in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervision {
    /// Which one.
    pub kind: SupervisorKind,
    /// Why it cannot be used.
    pub unavailable: Option<String>,
    /// Why it is not the one that was to be preferred.
    pub instead: Option<String>,
}

impl Supervision {
    /// Decides by the environment and by whether a user manager can be had.
    pub fn decide(
        choice: SupervisorChoice,
        linux: bool,
        user_manager: impl FnOnce() -> Result<(), String>,
    ) -> Self {
        let of = |kind| Self { kind, unavailable: None, instead: None };
        match choice {
            SupervisorChoice::None => of(SupervisorKind::None),
            SupervisorChoice::Launchd => Self {
                unavailable: Some("it is not in this build".to_owned()),
                ..of(SupervisorKind::Launchd)
            },
            SupervisorChoice::Auto if !linux => Self {
                instead: Some("launchd is not in this build".to_owned()),
                ..of(SupervisorKind::None)
            },
            SupervisorChoice::Auto => match user_manager() {
                Ok(()) => of(SupervisorKind::Systemd),
                Err(why) => Self { instead: Some(why), ..of(SupervisorKind::None) },
            },
            SupervisorChoice::Systemd => {
                Self { unavailable: user_manager().err(), ..of(SupervisorKind::Systemd) }
            }
        }
    }

    /// What it means for the operator.
    pub fn means(&self) -> &'static str {
        match self.kind {
            SupervisorKind::Systemd => {
                "user units, one for each role: a killed runner is restarted, roles start again after a \
                 reboot"
            }
            SupervisorKind::Launchd => "agents, one for each role",
            SupervisorKind::None => {
                "no reboot survival, and nobody restarts a killed runner (the next `up` does)"
            }
        }
    }

    /// In one line.
    pub fn text(&self) -> String {
        match &self.instead {
            None => format!("`{}`: {}", self.kind, self.means()),
            Some(why) => format!("`{}`, since {why}: {}", self.kind, self.means()),
        }
    }

    /// Whether roles can be started.
    ///
    /// # Errors
    /// The one that was asked for cannot be used.
    pub fn check(&self) -> Result<(), CliError> {
        let Some(why) = &self.unavailable else { return Ok(()) };
        let message = format!("supervisor `{}` cannot be used: {why}", self.kind);
        Err(CliError::from(ErrorKind::Unavailable { message })
            .hint("unset OURS_FLEET_SUPERVISOR or set it to `none`: fleet's own detached runners"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_and_can_be_had_decides() {
        use SupervisorChoice::{Auto, Launchd, None, Systemd};
        let decide = |choice, linux, manager: bool| {
            let manager = || if manager { Ok(()) } else { Err("nobody answers".to_owned()) };
            let it = Supervision::decide(choice, linux, manager);
            (it.kind, it.unavailable.is_some(), it.instead.is_some())
        };
        assert_eq!(decide(Auto, true, true), (SupervisorKind::Systemd, false, false));
        assert_eq!(decide(Auto, true, false), (SupervisorKind::None, false, true));
        assert_eq!(decide(Auto, false, true), (SupervisorKind::None, false, true));
        assert_eq!(decide(None, true, true), (SupervisorKind::None, false, false));
        assert_eq!(decide(Systemd, true, true), (SupervisorKind::Systemd, false, false));
        assert_eq!(decide(Systemd, true, false), (SupervisorKind::Systemd, true, false));
        assert_eq!(decide(Launchd, false, true), (SupervisorKind::Launchd, true, false));
    }
}
