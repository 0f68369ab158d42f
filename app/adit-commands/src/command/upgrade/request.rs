//! `adit upgrade`: requests the upgrade from the running process.

use std::path::Path;

use adit_admin::api::{UpgradeError, request_upgrade};
use adit_cli::{CommandResult, Failure, FailureCode};

use crate::args;
use crate::command::{admin, convert};

/// Requests the upgrade, and prints its result.
pub(crate) fn run_upgrade(typed: &args::UpgradeArgs) -> CommandResult {
    if !cfg!(target_os = "linux") {
        let what = "`adit upgrade` is available on Linux only";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("replace the file, and start adit again"));
    }
    let admin = match &typed.config {
        Some(path) => convert::plan_from_file(path)?.admin,
        None => None,
    };
    let Some(at) = typed
        .admin
        .as_deref()
        .or_else(|| admin.as_ref().map(|admin| admin.listen.as_str()))
    else {
        let what = match &typed.config {
            Some(path) => format!("{} has no `[admin]`", path.display()),
            None => "the running process is reached through its management API".to_owned(),
        };
        return Err(Failure::new(FailureCode::Usage, what).with_hint(
            "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`; without an API: \
             kill -USR2 PID",
        ));
    };
    let tokens = admin.as_ref().and_then(|admin| admin.tokens.as_deref());
    let token = admin::first_token(typed.admin_token.as_deref(), tokens)?;
    let program = typed.program.as_deref().map(absolute_path).transpose()?;
    adit_cli::block_on(|mut signals| async move {
        let requested = async {
            let token = token.as_deref().map(String::as_str);
            let request = request_upgrade(at, token, program.as_deref());
            request.await.map_err(to_failure)
        };
        let upgraded = signals.run_until_ended(requested).await?;
        println!(
            "upgraded: process {}, adit {}",
            upgraded.pid, upgraded.version
        );
        Ok(())
    })
}

/// Returns the path for a process with another working directory.
fn absolute_path(path: &Path) -> Result<std::path::PathBuf, Failure> {
    path.canonicalize().map_err(|why| {
        let what = format!("cannot start `{}`: {why}", path.display());
        Failure::new(FailureCode::Usage, what)
    })
}

fn to_failure(why: UpgradeError) -> Failure {
    let code = match &why {
        UpgradeError::Connect { .. } | UpgradeError::Exchange { .. } => FailureCode::Network,
        UpgradeError::Refused { .. } => FailureCode::Failure,
    };
    match &why {
        UpgradeError::Refused { status: 401, .. } => Failure::new(code, why.to_string())
            .with_hint("--admin-token @FILE, with the tokens of the running process"),
        UpgradeError::Refused { .. } => Failure::new(
            code,
            format!("not upgraded, the running process continues: {why}"),
        ),
        _ => Failure::new(code, why.to_string()),
    }
}
