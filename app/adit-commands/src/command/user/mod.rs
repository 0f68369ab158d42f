//! `adit user`: the users of a running process, through its management API, or those of a realm.

mod import;
mod output;
#[cfg(feature = "fleet")]
mod realm;
#[cfg(feature = "fleet")]
mod realm_account;
#[cfg(feature = "fleet")]
mod realm_import;
#[cfg(feature = "fleet")]
mod realm_users;

use adit_admin::api::{ApiClient, ApiRequestError, LimitsPatch, NewAccount};
use adit_cli::{CommandResult, Failure, FailureCode};
use serde::Serialize;

use self::output::OpenSessions;
use super::running_process;
use super::user_values::Change;
use crate::args::user::{UserApiArgs, UserCommand, UserLimitOptions};
use crate::json;

/// Runs a command of `adit user`.
pub(super) fn run_user(command: &UserCommand) -> CommandResult {
    #[cfg(feature = "fleet")]
    if let realm::Subject::Realm(membership) = realm::subject_of(command.api())? {
        return realm::run_realm_user(command, &membership);
    }
    match command {
        UserCommand::Add(typed) => {
            let limits = to_patch(&typed.limits);
            let new = NewAccount {
                name: typed.name.clone(),
                listeners: typed.listener.clone(),
                host: typed.url.host.clone(),
                limits: (!limits.is_empty()).then(|| limits.to_json()),
                ..NewAccount::default()
            };
            let (issued, info) = send(&typed.api, false, async |api| {
                let issued = api.add_account(&new).await?;
                let info = api.account(&typed.name, false, None).await?;
                Ok((issued, info))
            })?;
            if typed.api.json.json {
                json::print_result("user add", &output::IssuedJson::new(&issued, &info));
                return Ok(());
            }
            output::print_issued("added", &issued, typed.url.no_qr)?;
            output::print_limits(&info);
            Ok(())
        }
        UserCommand::List(typed) => {
            let list = send(&typed.api, false, async |api| api.accounts().await)?;
            if typed.api.json.json {
                json::print_result("user list", &list);
                return Ok(());
            }
            output::print_list(&list.accounts, OpenSessions::Known);
            Ok(())
        }
        UserCommand::Show(typed) => {
            let host = typed.url.host.as_deref();
            let info = send(&typed.api, typed.reveal, async |api| {
                api.account(&typed.name, typed.reveal, host).await
            })?;
            if typed.api.json.json {
                json::print_result("user show", &info);
                return Ok(());
            }
            output::print_account(&info, &[], typed.url.no_qr, OpenSessions::Known)
        }
        UserCommand::Rotate(typed) => {
            let host = typed.url.host.as_deref();
            let issued = send(&typed.api, false, async |api| {
                api.rotate_account(&typed.name, &typed.listener, host).await
            })?;
            if typed.api.json.json {
                json::print_result("user rotate", &issued);
                return Ok(());
            }
            output::print_issued("new keys", &issued, typed.url.no_qr)
        }
        UserCommand::Remove(typed) => {
            let listener = typed.listener.as_deref();
            send(&typed.api, false, async |api| {
                api.remove_account(&typed.name, listener).await
            })?;
            print_done("user remove", &typed.api, &typed.name, "removed", listener)
        }
        UserCommand::Limit(typed) => {
            let changes = to_patch(&typed.limits);
            if changes.is_empty() {
                return Err(no_limit_failure());
            }
            let info = send(&typed.api, false, async |api| {
                api.set_account_limits(&typed.name, &changes).await
            })?;
            if typed.api.json.json {
                json::print_result("user limit", &info);
                return Ok(());
            }
            output::print_account(&info, &[], true, OpenSessions::Known)
        }
        UserCommand::Import(typed) => import::run_import(typed),
        UserCommand::Reset(typed) => {
            send(&typed.api, false, async |api| {
                api.reset_account(&typed.name).await
            })?;
            print_done(
                "user reset",
                &typed.api,
                &typed.name,
                "counts from zero",
                None,
            )
        }
    }
}

fn no_limit_failure() -> Failure {
    Failure::new(FailureCode::Usage, "no limit to change").with_hint(
        "--quota 50GB/month, --expires 30d, --rate 10MB/s, --sessions 3, --devices 2; \
         `none` removes a limit",
    )
}

fn print_done(
    command: &str,
    typed: &UserApiArgs,
    name: &str,
    what: &'static str,
    listener: Option<&str>,
) -> CommandResult {
    if typed.json.json {
        #[derive(Serialize)]
        struct Done<'a> {
            name: &'a str,
        }
        json::print_result(command, &Done { name });
        return Ok(());
    }
    let from = listener.map_or_else(String::new, |listener| format!(" from {listener}"));
    println!("{}  {what}{from}", output::shown(name));
    Ok(())
}

/// Returns the changes that the options request.
fn to_patch(typed: &UserLimitOptions) -> LimitsPatch {
    LimitsPatch {
        quota: typed
            .quota
            .map(|change| change.into_limit().map(|quota| quota.bytes)),
        period: match typed.quota {
            Some(Change::To(quota)) => Some(quota.period.name()),
            _ => None,
        },
        expires: typed.expires.map(Change::into_limit),
        rate: typed.rate.map(Change::into_limit),
        sessions: typed.sessions.map(Change::into_limit),
        devices: typed.devices.map(Change::into_limit),
    }
}

/// Sends requests to the running process of the options.
fn send<T>(
    typed: &UserApiArgs,
    reveal: bool,
    work: impl AsyncFnOnce(ApiClient) -> Result<T, ApiRequestError>,
) -> Result<T, Failure> {
    let api = match reveal {
        true => running_process::revealing_client_of(&typed.process)?,
        false => running_process::client_of(&typed.process)?,
    };
    let mut done = None;
    let result = &mut done;
    adit_cli::block_on(|mut signals| async move {
        let work = async { work(api).await.map_err(to_failure) };
        *result = Some(signals.run_until_ended(work).await?);
        Ok(())
    })?;
    done.ok_or_else(|| Failure::new(FailureCode::Failure, "interrupted"))
}

fn to_failure(why: ApiRequestError) -> Failure {
    let is_unknown = matches!(why, ApiRequestError::Refused { status: 404, .. });
    let failure = running_process::to_failure(why);
    match is_unknown {
        true => failure.with_hint("`adit user list` shows all users"),
        false => failure,
    }
}
