//! `adit user` for the users of a realm, at the store server that its nodes share.

use std::path::{Path, PathBuf};

use adit_admin::api::AccountInfo;
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_fleet::{PeriodLabel, RealmWriter};
use adit_wire::QuotaPeriod;
use serde_json::json;

use super::output::{self, OpenSessions};
use super::realm_account::{Described, RealmUserJson, describe, list};
use super::realm_users::{add, apply, change, find, store_time, to_failure};
use crate::args::user::{UserApiArgs, UserCommand, UserLimitOptions, UserUrlArgs};
use crate::command::fleet::{Realm, operator_file, run};
use crate::json;

/// The target of a command of `adit user`.
pub(super) enum Subject {
    /// A running process.
    Process,
    /// The realm of a membership.
    Realm(PathBuf),
}

/// Returns what the options name: a running process if they name one, a realm if they name one, and otherwise the
/// realm of this account's operator, if there is one.
pub(super) fn subject_of(typed: &UserApiArgs) -> Result<Subject, Failure> {
    if let Some(path) = &typed.fleet {
        return Ok(Subject::Realm(operator_file(path.as_deref())?));
    }
    let process = &typed.process;
    if process.config.is_some() || process.admin.is_some() || process.admin_token.is_some() {
        return Ok(Subject::Process);
    }
    match operator_file(None) {
        Ok(path) if path.is_file() => Ok(Subject::Realm(path)),
        _ => Ok(Subject::Process),
    }
}

/// Runs a command of `adit user` on the realm of a membership.
pub(super) fn run_realm_user(command: &UserCommand, membership: &Path) -> CommandResult {
    let is_json = command.json().json;
    match command {
        UserCommand::Add(typed) => {
            refuse_process_options(&typed.listener, &typed.url)?;
            check_name(&typed.name)?;
            let (realm, user) = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = add(&realm, &typed.name, &typed.limits).await?;
                let user = describe(&realm, &user, true).await?;
                Ok((realm, user))
            })?;
            if is_json {
                json::print_result("user add", &user.json());
                return Ok(());
            }
            println!(
                "{}  added to realm {}",
                output::shown(&user.info.name),
                realm.shown()
            );
            print_issued(&user, typed.url.no_qr)?;
            output::print_limits(&user.info);
            Ok(())
        }
        UserCommand::List(_) => {
            let users = run(async {
                let realm = Realm::open(Some(membership)).await?;
                list(&realm).await
            })?;
            if is_json {
                let users: Vec<RealmUserJson<'_>> = users
                    .iter()
                    .map(|(id, info)| RealmUserJson::new(*id, info))
                    .collect();
                json::print_result("user list", &json!({ "accounts": users }));
                return Ok(());
            }
            let infos: Vec<AccountInfo> = users.into_iter().map(|(_, info)| info).collect();
            output::print_list(&infos, OpenSessions::Unknown);
            Ok(())
        }
        UserCommand::Show(typed) => {
            refuse_process_options(&[], &typed.url)?;
            let user = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = find(&realm, &typed.name).await?;
                let described = describe(&realm, &user, typed.reveal).await?;
                if typed.reveal {
                    realm.audit("user show", json!({ "user": user.name })).await;
                }
                Ok(described)
            })?;
            print_account("user show", is_json, &user, typed.url.no_qr)?;
            if let (false, Some(Err(why))) = (is_json, &user.subscriptions) {
                println!("subscription  none: {why}");
            }
            Ok(())
        }
        UserCommand::Rotate(typed) => {
            refuse_process_options(&typed.listener, &typed.url)?;
            let user = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = change(&realm, "user rotate", &typed.name, |user| {
                    user.secret = RealmWriter::new_secret();
                    (user.password, user.psk) = (None, None);
                })
                .await?;
                describe(&realm, &user, true).await
            })?;
            if is_json {
                json::print_result("user rotate", &user.json());
                return Ok(());
            }
            println!("{}  new keys at every node", output::shown(&user.info.name));
            print_issued(&user, typed.url.no_qr)
        }
        UserCommand::Remove(typed) => {
            if typed.listener.is_some() {
                return Err(listener_failure());
            }
            run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = find(&realm, &typed.name).await?;
                let deleted = realm.writer.delete(&[user.id]).await;
                deleted.map_err(|why| to_failure(&why, &realm, &typed.name))?;
                realm
                    .audit("user remove", json!({ "user": user.name }))
                    .await;
                Ok(())
            })?;
            print_done("user remove", is_json, &typed.name, "removed");
            Ok(())
        }
        UserCommand::Limit(typed) => {
            if !has_changes(&typed.limits) {
                return Err(super::no_limit_failure());
            }
            let user = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = change(&realm, "user limit", &typed.name, |user| {
                    apply(&mut user.limits, &typed.limits);
                })
                .await?;
                describe(&realm, &user, false).await
            })?;
            print_account("user limit", is_json, &user, true)
        }
        UserCommand::Import(typed) => super::import::run_realm_import(typed, membership),
        UserCommand::Reset(typed) => {
            run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = find(&realm, &typed.name).await?;
                let now = store_time(&realm).await?;
                let labels = QuotaPeriod::ALL.map(|period| PeriodLabel::new(period, now));
                realm.ask(realm.store.reset_usage(user.id, &labels)).await?;
                realm
                    .audit("user reset", json!({ "user": user.name }))
                    .await;
                Ok(())
            })?;
            print_done("user reset", is_json, &typed.name, "counts from zero");
            Ok(())
        }
    }
}

fn print_done(command: &str, is_json: bool, name: &str, what: &str) {
    match is_json {
        true => json::print_result(command, &json!({ "name": name })),
        false => println!("{}  {what}", output::shown(name)),
    }
}

fn print_account(command: &str, is_json: bool, user: &Described, no_qr: bool) -> CommandResult {
    if is_json {
        json::print_result(command, &user.json());
        return Ok(());
    }
    output::print_account(&user.info, user.addresses(), no_qr, OpenSessions::Unknown)
}

/// Prints new credentials, or what they wait for.
fn print_issued(user: &Described, no_qr: bool) -> CommandResult {
    let info = &user.info;
    let credentials = info.credentials.as_deref().unwrap_or_default();
    if credentials.is_empty() {
        println!(
            "note          no node is in service: `adit user show {} --reveal` prints the URLs when one is",
            output::shown(&info.name)
        );
    }
    output::print_credentials(credentials, user.addresses(), no_qr)
}

/// Options that only a running process has.
fn refuse_process_options(listeners: &[String], url: &UserUrlArgs) -> Result<(), Failure> {
    if !listeners.is_empty() {
        return Err(listener_failure());
    }
    if url.host.is_some() {
        let what = "--host is for a running process: each node of a realm reports its own address";
        return Err(Failure::new(FailureCode::Usage, what)
            .with_hint("`public_host` in the node's `[admin]`, or --admin ADDRESS for a process"));
    }
    Ok(())
}

pub(super) fn listener_failure() -> Failure {
    let what = "--listener is for a running process: users of a realm are at every listener with `users=fleet`";
    Failure::new(FailureCode::Usage, what).with_hint("--admin ADDRESS or -c FILE names a process")
}

/// Checks the name of a user: it is part of URLs, of logins and of lines.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain =
        !name.chars().any(char::is_control) && !name.contains(':') && !name.starts_with('#');
    if is_plain && (1..=adit_fleet::MAX_NAME).contains(&name.len()) {
        return Ok(());
    }
    let what = format!("`{}` is no name for a user", output::shown(name));
    Err(Failure::new(FailureCode::Usage, what).with_hint(format!(
        "a name has 1 to {} bytes, no `:` and no control characters, and does not begin with `#`",
        adit_fleet::MAX_NAME
    )))
}

fn has_changes(typed: &UserLimitOptions) -> bool {
    typed.quota.is_some()
        || typed.expires.is_some()
        || typed.rate.is_some()
        || typed.sessions.is_some()
        || typed.devices.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_logins() {
        for name in ["anna", "ö b", "a#"] {
            check_name(name).unwrap();
        }
        for name in ["", "#a", "a:b", "a\nb", &"x".repeat(256)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
