//! The output of `adit service status`.

use std::path::PathBuf;

use adit_cli::{CommandResult, Failure, FailureCode};
use serde::Serialize;

use crate::json;

/// The state of a service that is installed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceStatus {
    pub(super) name: String,
    /// The service manager.
    pub(super) manager: &'static str,
    /// True if the service runs.
    pub(super) is_running: bool,
    /// The state in the words of the service manager.
    pub(super) state: String,
    /// The file of the service.
    pub(super) file: PathBuf,
    /// True if it starts with the system, or the session; `None` if the service manager does not say.
    pub(super) is_enabled: Option<bool>,
    /// The ID of its process.
    pub(super) process: Option<u32>,
}

impl ServiceStatus {
    /// Prints the state. A service that does not run is a failure, with a hint.
    pub(super) fn print(&self, is_json: bool, hint: Option<String>) -> CommandResult {
        if is_json {
            json::print_result("service status", self);
        } else {
            println!("{}: {}", self.name, self.state);
            let enabled = match self.is_enabled {
                Some(true) => ", enabled",
                Some(false) => ", disabled",
                None => "",
            };
            println!("file: {}{enabled}", self.file.display());
            if let Some(process) = self.process {
                println!("process: {process}");
            }
        }
        match (self.is_running, hint) {
            (true, _) => Ok(()),
            // The document says it.
            (false, _) if is_json => Err(Failure::Exit {
                status: 1,
                why: None,
            }),
            (false, Some(hint)) => Err(not_running(&self.name).with_hint(hint)),
            (false, None) => Err(not_running(&self.name)),
        }
    }
}

pub(super) fn not_installed(name: &str) -> Failure {
    Failure::new(
        FailureCode::Failure,
        format!("the service `{name}` is not installed"),
    )
    .with_hint("`adit service install` installs it; --user and --name select another one")
}

fn not_running(name: &str) -> Failure {
    Failure::new(
        FailureCode::Failure,
        format!("the service `{name}` does not run"),
    )
}
