//! `adit upgrade`: requests the upgrade from the running process.

use std::path::Path;

use adit_admin::api::{ApiRequestError, request_upgrade};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::AdminSettings;

use crate::args;
use crate::command::{convert, running_process};
use crate::json;

/// Requests the upgrade, and prints its result.
pub(crate) fn run_upgrade(typed: &args::UpgradeArgs) -> CommandResult {
    if !cfg!(target_os = "linux") {
        let what = "`adit upgrade` is available on Linux only";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("replace the file, and start adit again"));
    }
    let hint = "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`; without an API: \
                kill -USR2 PID";
    let api = running_process::client_or_hint(&typed.process, hint)?;
    let program = typed.program.as_deref().map(absolute_path).transpose()?;
    let is_json = typed.json.json;
    adit_cli::block_on(|mut signals| async move {
        let requested = async {
            let request = request_upgrade(api.address(), api.token(), program.as_deref());
            request.await.map_err(to_failure)
        };
        let upgraded = signals.run_until_ended(requested).await?;
        match is_json {
            true => json::print_result("upgrade", &upgraded),
            false => println!(
                "upgraded: process {}, adit {}",
                upgraded.pid, upgraded.version
            ),
        }
        Ok(())
    })
}

/// Returns the `[admin]` of a configuration file.
pub(crate) fn admin_of_file(path: Option<&Path>) -> Result<Option<AdminSettings>, Failure> {
    match path {
        Some(path) => Ok(convert::plan_from_file(path)?.admin),
        None => Ok(None),
    }
}

/// Returns the address of the API of a running process: the typed one, or that of the file.
pub(crate) fn api_address<'a>(
    typed: Option<&'a str>,
    file: Option<&Path>,
    admin: Option<&'a AdminSettings>,
    hint: &str,
) -> Result<&'a str, Failure> {
    if let Some(at) = typed.or_else(|| admin.map(|admin| admin.listen.as_str())) {
        return Ok(at);
    }
    let what = match file {
        Some(path) => format!("{} has no `[admin]`", path.display()),
        None => "the running process is reached through its management API".to_owned(),
    };
    Err(Failure::new(FailureCode::Usage, what).with_hint(hint))
}

/// Returns the path for a process with another working directory.
fn absolute_path(path: &Path) -> Result<std::path::PathBuf, Failure> {
    path.canonicalize().map_err(|why| {
        let what = format!("cannot start `{}`: {why}", path.display());
        Failure::new(FailureCode::Usage, what)
    })
}

fn to_failure(why: ApiRequestError) -> Failure {
    let code = match &why {
        ApiRequestError::Connect { .. } | ApiRequestError::Exchange { .. } => FailureCode::Network,
        ApiRequestError::Refused { .. } => FailureCode::Failure,
    };
    match &why {
        ApiRequestError::Refused { status: 401, .. } => Failure::new(code, why.to_string())
            .with_hint("--admin-token @FILE, with the tokens of the running process"),
        ApiRequestError::Refused { .. } => Failure::new(
            code,
            format!("not upgraded, the running process continues: {why}"),
        ),
        _ => Failure::new(code, why.to_string()),
    }
}
