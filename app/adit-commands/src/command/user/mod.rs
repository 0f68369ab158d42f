//! `adit user`: the users of a running process, through its management API.

mod output;

use adit_admin::api::{ApiClient, ApiRequestError, LimitsPatch, NewAccount};
use adit_cli::{CommandResult, Failure, FailureCode};
use serde::Serialize;
use zeroize::Zeroizing;

use super::user_values::Change;
use super::{admin, upgrade};
use crate::args::user::{UserApiArgs, UserCommand, UserLimitOptions};

/// The address of the API, and the token.
struct RunningProcess {
    at: String,
    token: Option<Zeroizing<String>>,
}

/// Runs a command of `adit user`.
pub(super) fn run_user(command: &UserCommand) -> CommandResult {
    match command {
        UserCommand::Add(typed) => {
            let limits = to_patch(&typed.limits);
            let new = NewAccount {
                name: typed.name.clone(),
                listeners: typed.listener.clone(),
                host: typed.url.host.clone(),
                limits: (!limits.is_empty()).then(|| limits.to_json()),
            };
            let (issued, info) = send(&typed.api, false, async |api| {
                let issued = api.add_account(&new).await?;
                let info = api.account(&typed.name, false, None).await?;
                Ok((issued, info))
            })?;
            if typed.api.json {
                return print_json(&output::IssuedJson::new(&issued, &info));
            }
            output::print_issued("added", &issued, typed.url.no_qr)?;
            output::print_limits(&info);
            Ok(())
        }
        UserCommand::List(typed) => {
            let list = send(&typed.api, false, async |api| api.accounts().await)?;
            if typed.api.json {
                return print_json(&list);
            }
            output::print_list(&list.accounts);
            Ok(())
        }
        UserCommand::Show(typed) => {
            let host = typed.url.host.as_deref();
            let info = send(&typed.api, typed.reveal, async |api| {
                api.account(&typed.name, typed.reveal, host).await
            })?;
            if typed.api.json {
                return print_json(&info);
            }
            output::print_account(&info, typed.url.no_qr)
        }
        UserCommand::Rotate(typed) => {
            let host = typed.url.host.as_deref();
            let issued = send(&typed.api, false, async |api| {
                api.rotate_account(&typed.name, &typed.listener, host).await
            })?;
            if typed.api.json {
                return print_json(&issued);
            }
            output::print_issued("new keys", &issued, typed.url.no_qr)
        }
        UserCommand::Remove(typed) => {
            let listener = typed.listener.as_deref();
            send(&typed.api, false, async |api| {
                api.remove_account(&typed.name, listener).await
            })?;
            print_done(&typed.api, &typed.name, "removed", listener)
        }
        UserCommand::Limit(typed) => {
            let changes = to_patch(&typed.limits);
            if changes.is_empty() {
                let what = "no limit to change";
                return Err(Failure::new(FailureCode::Usage, what).with_hint(
                    "--quota 50GB/month, --expires 30d, --rate 10MB/s, --sessions 3, --devices 2; \
                     `none` removes a limit",
                ));
            }
            let info = send(&typed.api, false, async |api| {
                api.set_account_limits(&typed.name, &changes).await
            })?;
            if typed.api.json {
                return print_json(&info);
            }
            output::print_account(&info, true)
        }
        UserCommand::Reset(typed) => {
            send(&typed.api, false, async |api| {
                api.reset_account(&typed.name).await
            })?;
            print_done(&typed.api, &typed.name, "counts from zero", None)
        }
    }
}

fn print_done(
    typed: &UserApiArgs,
    name: &str,
    what: &'static str,
    listener: Option<&str>,
) -> CommandResult {
    if typed.json {
        #[derive(Serialize)]
        struct Done<'a> {
            name: &'a str,
        }
        return print_json(&Done { name });
    }
    let from = listener.map_or_else(String::new, |listener| format!(" from {listener}"));
    println!("{}  {what}{from}", output::shown(name));
    Ok(())
}

fn print_json(value: &impl Serialize) -> CommandResult {
    let text = serde_json::to_string(value)
        .map_err(|why| Failure::new(FailureCode::Failure, why.to_string()))?;
    println!("{text}");
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

impl RunningProcess {
    /// Finds the running process of the options. With `reveal`, the token has to be one that may read keys.
    fn find(typed: &UserApiArgs, reveal: bool) -> Result<Self, Failure> {
        let file = typed.config.as_deref();
        let settings = upgrade::admin_of_file(file)?;
        let hint = "--admin ADDRESS as in `adit run --admin ADDRESS`, or -c FILE with `[admin]`";
        let at = upgrade::api_address(typed.admin.as_deref(), file, settings.as_ref(), hint)?;
        let tokens = settings.as_ref().and_then(|admin| admin.tokens.as_deref());
        let typed_tokens = typed.admin_token.as_deref();
        let token = match reveal {
            true => admin::revealing_token(typed_tokens, tokens)?,
            false => admin::first_token(typed_tokens, tokens)?,
        };
        Ok(Self {
            at: at.to_owned(),
            token,
        })
    }
}

/// Sends requests to the running process of the options.
fn send<T>(
    typed: &UserApiArgs,
    reveal: bool,
    work: impl AsyncFnOnce(ApiClient<'_>) -> Result<T, ApiRequestError>,
) -> Result<T, Failure> {
    let process = RunningProcess::find(typed, reveal)?;
    let api = ApiClient {
        at: &process.at,
        token: process.token.as_deref().map(String::as_str),
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
    let text = why.to_string();
    match why {
        ApiRequestError::Connect { .. } | ApiRequestError::Exchange { .. } => {
            Failure::new(FailureCode::Network, text)
        }
        ApiRequestError::Refused { status: 401, .. } => Failure::new(FailureCode::Failure, text)
            .with_hint("--admin-token @FILE, with a token of the running process"),
        ApiRequestError::Refused { status: 404, .. } => {
            Failure::new(FailureCode::Failure, text).with_hint("`adit user list` shows all users")
        }
        ApiRequestError::Refused { .. } => Failure::new(FailureCode::Failure, text),
    }
}
