//! `adit user` for the users of a realm, at the store server that its nodes share.

use std::path::{Path, PathBuf};

use adit_admin::api::{AccountInfo, IssuedCredential};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    FleetUser, NodeEntry, PeriodLabel, QuotaPeriod, RealmWriter, RecordLimits, StoreError,
    StoreErrorKind, UserTotal, WriteError,
};
use adit_net::system::SystemRng;
use adit_wire::UnixTime;
use serde::Serialize;
use serde_json::json;

use super::output::{self, OpenSessions};
use crate::args::user::{UserApiArgs, UserCommand, UserLimitOptions, UserUrlArgs};
use crate::command::fleet::{Realm, credentials, kind_of, operator_file, run};
use crate::command::user_values::Change;
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

/// A user of a realm, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RealmUserJson<'a> {
    id: u32,
    name: &'a str,
    state: &'a str,
    quota: Option<u64>,
    period: &'a str,
    expires: Option<u64>,
    rate: Option<u64>,
    sessions: Option<u32>,
    devices: Option<u32>,
    used_up: u64,
    used_down: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a [IssuedCredential]>,
}

impl<'a> RealmUserJson<'a> {
    fn new(id: u32, info: &'a AccountInfo) -> Self {
        Self {
            id,
            name: &info.name,
            state: &info.state,
            quota: info.quota,
            period: &info.period,
            expires: info.expires,
            rate: info.rate,
            sessions: info.sessions,
            devices: info.devices,
            used_up: info.used_up,
            used_down: info.used_down,
            credentials: info.credentials.as_deref(),
        }
    }
}

/// Runs a command of `adit user` on the realm of a membership.
pub(super) fn run_realm_user(command: &UserCommand, membership: &Path) -> CommandResult {
    let is_json = command.json().json;
    match command {
        UserCommand::Add(typed) => {
            refuse_process_options(&typed.listener, &typed.url)?;
            check_name(&typed.name)?;
            let (realm, user, info) = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = add(&realm, &typed.name, &typed.limits).await?;
                let info = describe(&realm, &user, true).await?;
                Ok((realm, user, info))
            })?;
            if is_json {
                json::print_result("user add", &RealmUserJson::new(user.id, &info));
                return Ok(());
            }
            println!(
                "{}  added to realm {}",
                output::shown(&user.name),
                realm.shown()
            );
            print_issued(&info, typed.url.no_qr)?;
            output::print_limits(&info);
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
            let (id, info) = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = find(&realm, &typed.name).await?;
                let info = describe(&realm, &user, typed.reveal).await?;
                if typed.reveal {
                    realm.audit("user show", json!({ "user": user.name })).await;
                }
                Ok((user.id, info))
            })?;
            print_account("user show", is_json, id, &info, typed.url.no_qr)
        }
        UserCommand::Rotate(typed) => {
            refuse_process_options(&typed.listener, &typed.url)?;
            let (id, info) = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = change(&realm, "user rotate", &typed.name, |user| {
                    user.secret = RealmWriter::new_secret();
                    (user.password, user.psk) = (None, None);
                })
                .await?;
                Ok((user.id, describe(&realm, &user, true).await?))
            })?;
            if is_json {
                json::print_result("user rotate", &RealmUserJson::new(id, &info));
                return Ok(());
            }
            println!("{}  new keys at every node", output::shown(&info.name));
            print_issued(&info, typed.url.no_qr)
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
            let (id, info) = run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = change(&realm, "user limit", &typed.name, |user| {
                    apply(&mut user.limits, &typed.limits);
                })
                .await?;
                Ok((user.id, describe(&realm, &user, false).await?))
            })?;
            print_account("user limit", is_json, id, &info, true)
        }
        UserCommand::Import(typed) => super::import::run_realm_import(typed, membership),
        UserCommand::Reset(typed) => {
            run(async {
                let realm = Realm::open(Some(membership)).await?;
                let user = find(&realm, &typed.name).await?;
                let now = store_time(&realm).await?;
                let labels = QuotaPeriod::ALL.map(|period| period.label(now));
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

fn print_account(
    command: &str,
    is_json: bool,
    id: u32,
    info: &AccountInfo,
    no_qr: bool,
) -> CommandResult {
    if is_json {
        json::print_result(command, &RealmUserJson::new(id, info));
        return Ok(());
    }
    output::print_account(info, no_qr, OpenSessions::Unknown)
}

/// Prints new credentials, or what they wait for.
fn print_issued(info: &AccountInfo, no_qr: bool) -> CommandResult {
    let credentials = info.credentials.as_deref().unwrap_or_default();
    if credentials.is_empty() {
        println!(
            "note          no node is in service: `adit user show {} --reveal` prints the URLs when one is",
            output::shown(&info.name)
        );
    }
    output::print_credentials(credentials, no_qr)
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

/// Applies the options to the limits.
fn apply(limits: &mut RecordLimits, typed: &UserLimitOptions) {
    if let Some(quota) = typed.quota {
        limits.quota = quota.into_limit().map(|quota| quota.bytes);
        limits.period = match quota {
            Change::To(quota) => QuotaPeriod::from_name(quota.period.name()).unwrap_or_default(),
            Change::Removed => QuotaPeriod::Total,
        };
    }
    if let Some(expires) = typed.expires {
        limits.expires = expires.into_limit();
    }
    if let Some(rate) = typed.rate {
        limits.rate = rate.into_limit();
    }
    if let Some(sessions) = typed.sessions {
        limits.sessions = sessions.into_limit();
    }
    if let Some(devices) = typed.devices {
        limits.devices = devices.into_limit();
    }
}

async fn add(realm: &Realm, name: &str, typed: &UserLimitOptions) -> Result<FleetUser, Failure> {
    let failed = |why: WriteError| to_failure(&why, realm, name);
    // Otherwise each attempt would use up a number.
    if realm.writer.find(name).await.map_err(failed)?.is_some() {
        return Err(taken(realm, name));
    }
    let mut user = FleetUser::new(0, name, [0; 32]);
    user.secret = RealmWriter::new_secret();
    apply(&mut user.limits, typed);
    let added = realm.writer.add(std::slice::from_mut(&mut user)).await;
    added.map_err(failed)?;
    realm.audit("user add", json!({ "user": name })).await;
    Ok(user)
}

/// Changes a user. The change is made again if others write at the same time, so that none of theirs is lost.
async fn change(
    realm: &Realm,
    action: &str,
    name: &str,
    make: impl Fn(&mut FleetUser),
) -> Result<FleetUser, Failure> {
    let failed = |why: WriteError| to_failure(&why, realm, name);
    for _ in 0..super::ATTEMPTS {
        let head = realm.ask(realm.store.head()).await?;
        let mut user = find(realm, name).await?;
        make(&mut user);
        let request = realm.cipher().put(&user, head.next(), &mut SystemRng);
        let request = request.map_err(|why| failed(why.into()))?;
        match realm.store.write(head, &[request]).await {
            Ok(_) => {
                realm.audit(action, json!({ "user": name })).await;
                return Ok(user);
            }
            Err(StoreError {
                kind: StoreErrorKind::Conflict { .. },
                ..
            }) => {}
            Err(why) => return Err(failed(why.into())),
        }
    }
    let what = "others change the realm all the time";
    Err(Failure::new(FailureCode::Failure, what).with_hint("try again"))
}

async fn find(realm: &Realm, name: &str) -> Result<FleetUser, Failure> {
    let found = realm.writer.find(name).await;
    let found = found.map_err(|why| to_failure(&why, realm, name))?;
    found.ok_or_else(|| unknown(realm, name))
}

fn unknown(realm: &Realm, name: &str) -> Failure {
    let what = format!(
        "no user `{}` in realm {}",
        sanitize_for_terminal(name),
        realm.shown()
    );
    Failure::new(FailureCode::Failure, what).with_hint("`adit user list` shows all users")
}

fn taken(realm: &Realm, name: &str) -> Failure {
    let name = sanitize_for_terminal(name);
    let what = format!("realm {} has a user `{name}` already", realm.shown());
    Failure::new(FailureCode::Failure, what).with_hint(
        "`adit user limit` changes limits, `adit user rotate` makes new keys; or choose another name",
    )
}

fn to_failure(why: &WriteError, realm: &Realm, name: &str) -> Failure {
    match kind_of(why) {
        Some(StoreErrorKind::NameTaken) => taken(realm, name),
        Some(StoreErrorKind::Gone) => unknown(realm, name),
        _ => realm.to_failure(why, &format!("user `{}`", sanitize_for_terminal(name))),
    }
}

async fn store_time(realm: &Realm) -> Result<UnixTime, Failure> {
    let time = realm.ask(realm.store.time()).await?;
    Ok(UnixTime(time / 1000))
}

/// Returns what is known of a user, with credentials if `reveal` is set.
async fn describe(realm: &Realm, user: &FleetUser, reveal: bool) -> Result<AccountInfo, Failure> {
    let now = store_time(realm).await?;
    let label = user.limits.period.label(now);
    let totals = realm
        .ask(realm.store.usage(&label, Some(&[user.id])))
        .await?;
    let nodes: Vec<NodeEntry> = match reveal {
        true => realm.ask(realm.store.nodes()).await?,
        false => Vec::new(),
    };
    let mut info = info_of(user, totals.first(), now);
    if reveal {
        info.credentials = Some(credentials(realm.key(), user, &nodes));
    }
    Ok(info)
}

/// Returns all users, by name.
async fn list(realm: &Realm) -> Result<Vec<(u32, AccountInfo)>, Failure> {
    let snapshot = realm.ask(realm.store.snapshot()).await?;
    let now = store_time(realm).await?;
    let mut totals = std::collections::HashMap::new();
    for period in QuotaPeriod::ALL {
        let label: PeriodLabel = period.label(now);
        for total in realm.ask(realm.store.usage(&label, None)).await? {
            totals.insert((total.user, period), total);
        }
    }
    let mut users = Vec::with_capacity(snapshot.users.len());
    for (id, sealed) in &snapshot.users {
        let user = realm.cipher().open(*id, sealed);
        let user = user.map_err(|why| to_failure(&why.into(), realm, &format!("number {id}")))?;
        let total = totals.get(&(*id, user.limits.period));
        users.push((*id, info_of(&user, total, now)));
    }
    users.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    Ok(users)
}

fn info_of(user: &FleetUser, total: Option<&UserTotal>, now: UnixTime) -> AccountInfo {
    let limits = &user.limits;
    let (up, down) = total.map_or((0, 0), |total| (total.up, total.down));
    let is_used_up = limits
        .quota
        .is_some_and(|quota| up.saturating_add(down) >= quota);
    let state = match user.disabled {
        true => "disabled",
        false if limits.expires.is_some_and(|at| at <= now.0) => "expired",
        false if is_used_up => "over-quota",
        false => "active",
    };
    AccountInfo {
        name: user.name.clone(),
        state: state.to_owned(),
        quota: limits.quota,
        period: limits.period.name().to_owned(),
        expires: limits.expires,
        rate: limits.rate,
        sessions: limits.sessions,
        devices: limits.devices,
        used_up: up,
        used_down: down,
        total_up: up,
        total_down: down,
        sessions_open: 0,
        devices_open: 0,
        listeners: None,
        limits_last: None,
        credentials: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::user_values::Quota;

    #[test]
    fn limits_are_changed_one_by_one() {
        let mut limits = RecordLimits::default();
        let typed = |quota, rate| UserLimitOptions {
            quota,
            expires: None,
            rate,
            sessions: None,
            devices: None,
        };
        let quota = Quota {
            bytes: 50,
            period: adit_engine::QuotaPeriod::Month,
        };
        apply(&mut limits, &typed(Some(Change::To(quota)), None));
        assert_eq!(
            (limits.quota, limits.period),
            (Some(50), QuotaPeriod::Month)
        );
        apply(&mut limits, &typed(None, Some(Change::To(9))));
        assert_eq!((limits.quota, limits.rate), (Some(50), Some(9)));
        apply(&mut limits, &typed(Some(Change::Removed), None));
        assert_eq!((limits.quota, limits.period), (None, QuotaPeriod::Total));
        assert_eq!(limits.rate, Some(9));
    }

    #[test]
    fn the_state_of_a_user() {
        let mut user = FleetUser::new(1, "anna", [1; 32]);
        let total = UserTotal {
            user: 1,
            period: QuotaPeriod::Total.label(UnixTime(0)),
            up: 30,
            down: 30,
        };
        let state = |user: &FleetUser| info_of(user, Some(&total), UnixTime(1000)).state;
        assert_eq!(state(&user), "active");
        user.limits.quota = Some(60);
        assert_eq!(state(&user), "over-quota");
        user.limits.expires = Some(1000);
        assert_eq!(state(&user), "expired");
        user.disabled = true;
        assert_eq!(state(&user), "disabled");
    }

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
