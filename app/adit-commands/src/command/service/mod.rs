//! `adit service`: adit as a service of systemd, OpenRC or launchd.
//!
//! [`definition`] derives the service from the arguments. Each service manager has a module with pure functions from
//! the definition to the text of its file and to the steps of an installation; [`steps`] performs them.

mod definition;
mod folders;
mod launchd;
mod openrc;
mod status;
mod steps;
mod systemd;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use adit_cli::{CommandResult, Failure, FailureCode};

use self::definition::{ServiceDefinition, ServiceScope};
use super::upgrade::program_of_this_process;
use crate::args::service::{
    ServiceCommand, ServiceInstallArgs, ServiceManager, ServiceNameArgs, ServiceStatusArgs,
};

pub(super) fn run_service(typed: &ServiceCommand) -> CommandResult {
    match typed {
        ServiceCommand::Install(typed) => install(typed),
        ServiceCommand::Status(typed) => print_status(typed),
        ServiceCommand::Uninstall(typed) => uninstall(typed),
    }
}

fn install(typed: &ServiceInstallArgs) -> CommandResult {
    let program =
        program_of_this_process().map_err(|why| Failure::new(FailureCode::Failure, why))?;
    let definition = ServiceDefinition::from_args(typed, &program)?;
    if !typed.words.is_empty() {
        definition::check_in_other_folder(&definition.arguments)?;
    }
    let manager = chosen_manager(&typed.service, typed.print)?;
    let (scope, name) = (definition.scope, definition.name.as_str());
    let path = path(manager, scope, name)?;
    let user = match manager {
        ServiceManager::Launchd => launchd::run_user(scope)?,
        _ => None,
    };
    if typed.print {
        print!("{}", text(manager, &definition, user.as_deref()));
        return Ok(());
    }
    if let Err(why) = steps::is_own_file(&path)
        && !typed.force
    {
        return Err(why.with_hint("--force replaces it; --name NAME installs another service"));
    }
    let planned = match manager {
        ServiceManager::Systemd => systemd::install_steps(&definition, path.clone()),
        ServiceManager::OpenRc => openrc::install_steps(&definition, path.clone()),
        ServiceManager::Launchd => {
            launchd::install_steps(&definition, user.as_deref(), path.clone())?
        }
    };
    steps::perform(&planned).map_err(|why| match manager {
        // The hint of a missing privilege is more useful.
        ServiceManager::Systemd if path.exists() => why.with_hint(format!(
            "{}\na system service needs to read its files: chgrp adit FILE && chmod 640 FILE",
            systemd::log_hint(scope, name)
        )),
        _ => why,
    })?;
    println!("installed and started: {}", path.display());
    if (manager, scope) == (ServiceManager::Systemd, ServiceScope::User) {
        println!("it ends when you log out, unless you run: loginctl enable-linger");
    }
    Ok(())
}

fn print_status(typed: &ServiceStatusArgs) -> CommandResult {
    let service = &typed.service;
    let manager = chosen_manager(service, false)?;
    let (scope, name) = (scope_of(service), &service.name);
    let path = path(manager, scope, name)?;
    let status = match manager {
        ServiceManager::Systemd => systemd::status(scope, name),
        ServiceManager::OpenRc => openrc::status(name, &path),
        ServiceManager::Launchd => launchd::status(scope, name, &path),
    };
    let hint = match manager {
        ServiceManager::Systemd => Some(systemd::log_hint(scope, name)),
        ServiceManager::OpenRc | ServiceManager::Launchd => None,
    };
    status?.print(typed.json.json, hint)
}

fn uninstall(typed: &ServiceNameArgs) -> CommandResult {
    let manager = chosen_manager(typed, false)?;
    let (scope, name) = (scope_of(typed), &typed.name);
    let path = path(manager, scope, name)?;
    let is_own = steps::is_own_file(&path)
        .map_err(|why| why.with_hint("remove it by hand, or the package that it belongs to"))?;
    if !is_own {
        return Err(status::not_installed(name));
    }
    let planned = match manager {
        ServiceManager::Systemd => systemd::uninstall_steps(scope, name, path.clone()),
        ServiceManager::OpenRc => openrc::uninstall_steps(name, path.clone()),
        ServiceManager::Launchd => launchd::uninstall_steps(scope, name, path.clone())?,
    };
    steps::perform(&planned)?;
    println!("stopped and removed: {}", path.display());
    Ok(())
}

/// Returns the text of the service's file.
fn text(manager: ServiceManager, definition: &ServiceDefinition, user: Option<&str>) -> String {
    match manager {
        ServiceManager::Systemd => {
            let unit = systemd::UnitText {
                definition,
                is_own: true,
                folder: &definition.name,
            };
            unit.build()
        }
        ServiceManager::OpenRc => openrc::script(definition),
        ServiceManager::Launchd => launchd::property_list(definition, user),
    }
}

fn path(manager: ServiceManager, scope: ServiceScope, name: &str) -> Result<PathBuf, Failure> {
    match manager {
        ServiceManager::Systemd => systemd::path(scope, name),
        ServiceManager::OpenRc => openrc::path(scope, name),
        ServiceManager::Launchd => launchd::path(scope, name),
    }
}

const fn scope_of(typed: &ServiceNameArgs) -> ServiceScope {
    match typed.user {
        true => ServiceScope::User,
        false => ServiceScope::System,
    }
}

/// Returns the service manager to use. One that does not run here can only print a file.
fn chosen_manager(typed: &ServiceNameArgs, only_print: bool) -> Result<ServiceManager, Failure> {
    let running = running_manager();
    match (typed.manager, running) {
        (Some(typed), _) if only_print || running == Some(typed) => Ok(typed),
        (None, Some(running)) => Ok(running),
        _ => {
            let what =
                "the service manager does not run here: systemd, OpenRC and launchd are supported";
            Err(Failure::new(FailureCode::Failure, what)
                .with_hint("`adit service install --manager NAME --print` prints the file for one"))
        }
    }
}

fn running_manager() -> Option<ServiceManager> {
    if cfg!(target_os = "macos") {
        return Some(ServiceManager::Launchd);
    }
    // The folders that `sd_booted(3)` and the scripts of OpenRC check.
    if Path::new("/run/systemd/system").is_dir() {
        return Some(ServiceManager::Systemd);
    }
    Path::new("/run/openrc")
        .is_dir()
        .then_some(ServiceManager::OpenRc)
}
