//! The users of the process, whatever listeners they use: their limits, usage and credentials.

use std::collections::BTreeSet;

use adit_engine::{UserLimits, UserReport};
use adit_wire::Host;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::Api;
use super::account_client::{AccountInfo, IssuedCredentials, NewAccount};
use super::account_limits::merge_limits;
use super::reply::{ApiResult, Refusal, Reply};
use super::route::{RequestHead, query_flag, query_value};
use super::user_listener::{NewSecrets, UserListener, UserOrigin, UserSecret};
use super::users_file::UserChange;
use crate::untrusted_text::is_user_name;

/// The subject of a request about users of the process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AccountResource {
    All,
    One(String),
    Limits(String),
    /// Starts to count the period from zero.
    Reset(String),
    /// Creates new keys and passwords.
    Rotate(String),
}

impl AccountResource {
    /// Returns the subject of the parts of a path after `/accounts`.
    pub(crate) fn of_path(parts: &[&str]) -> Option<Self> {
        Some(match parts {
            [] => Self::All,
            [name] => Self::One((*name).to_owned()),
            [name, "limits"] => Self::Limits((*name).to_owned()),
            [name, "reset"] => Self::Reset((*name).to_owned()),
            [name, "rotate"] => Self::Rotate((*name).to_owned()),
            _ => return None,
        })
    }

    /// Returns the name of the user.
    fn name(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::One(name) | Self::Limits(name) | Self::Reset(name) | Self::Rotate(name) => {
                Some(name)
            }
        }
    }

    /// Returns the methods that are allowed.
    pub(crate) const fn allowed_methods(&self) -> &'static str {
        match self {
            Self::All => "GET, POST",
            Self::One(_) => "GET, DELETE",
            Self::Limits(_) => "PUT, DELETE",
            Self::Reset(_) | Self::Rotate(_) => "POST",
        }
    }
}

/// The body of `POST /accounts/:name/rotate`.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateRequest {
    #[serde(default)]
    listeners: Vec<String>,
    #[serde(default)]
    host: Option<String>,
}

#[derive(Serialize)]
struct AccountList {
    accounts: Vec<AccountInfo>,
}

/// The change of a user at one listener.
pub(super) struct UserStep<'a> {
    pub(super) listener: &'a UserListener,
    /// The new secret; `None` removes the user.
    pub(super) put: Option<UserSecret>,
    pub(super) before: UserBefore,
}

/// The state of a user at a listener before a change.
pub(super) enum UserBefore {
    Absent,
    Secret(UserSecret),
    /// Only what is derived from the secret is known.
    Unknown,
}

impl From<Option<UserSecret>> for UserBefore {
    fn from(secret: Option<UserSecret>) -> Self {
        secret.map_or(Self::Unknown, Self::Secret)
    }
}

impl Api {
    /// Answers requests about users of the process.
    pub(super) async fn answer_accounts(
        &self,
        about: AccountResource,
        ask: &RequestHead<'_>,
        body: &[u8],
    ) -> ApiResult {
        let listener = query_value(ask.query, "listener");
        if ask.method != Method::GET
            && let Some(name) = about.name()
        {
            self.check_is_ours(name)?;
        }
        match (about, ask.method) {
            (AccountResource::All, &Method::POST) => self.add_account(body).await,
            (AccountResource::All, _) => Ok(self.list_accounts()),
            (AccountResource::One(name), &Method::DELETE) => {
                self.remove_account(&name, listener.as_slice()).await
            }
            (AccountResource::One(name), _) => {
                let reveal = query_flag(ask.query, "reveal");
                let host = query_value(ask.query, "host");
                self.get_account(&name, reveal, host.as_deref()).await
            }
            (AccountResource::Limits(name), &Method::DELETE) => {
                self.find_account(&name)?;
                let registry = self.engine.user_registry();
                registry.set_limits(&name, UserLimits::default());
                Ok(Reply::no_content())
            }
            (AccountResource::Limits(name), _) => self.set_account_limits(&name, body),
            (AccountResource::Reset(name), _) => {
                self.find_account(&name)?;
                self.engine.user_registry().reset_usage(&name);
                Ok(Reply::no_content())
            }
            (AccountResource::Rotate(name), _) => self.rotate_account(&name, body).await,
        }
    }

    /// Refuses changes of a user of the fleet.
    fn check_is_ours(&self, name: &str) -> Result<(), Refusal> {
        if !self.engine.user_registry().is_fleet_user(name) {
            return Ok(());
        }
        let why = format!("`{name}` is a user of the fleet: `adit fleet user` changes them");
        Err(Refusal::new(StatusCode::CONFLICT, why))
    }

    /// Answers `GET /accounts`: all users, by name.
    fn list_accounts(&self) -> Reply {
        let mut accounts: Vec<AccountInfo> = {
            let reports = self.engine.user_registry().reports();
            reports.iter().map(AccountInfo::from).collect()
        };
        let mut others = BTreeSet::new();
        {
            let known: std::collections::HashSet<&str> = accounts
                .iter()
                .map(|account| account.name.as_str())
                .collect();
            for listener in self.user_listeners() {
                listener.for_each_name(|name| {
                    if !known.contains(name) {
                        others.insert(name.to_owned());
                    }
                });
            }
        }
        accounts.extend(others.into_iter().map(AccountInfo::without_usage));
        accounts.sort_by(|a, b| a.name.cmp(&b.name));
        Reply::ok(&AccountList { accounts })
    }

    /// Returns a user, and the listeners that have the user.
    fn find_account(&self, name: &str) -> Result<(AccountInfo, Vec<UserListener>), Refusal> {
        let report = self.engine.user_registry().report(name);
        let listeners = self.user_listeners().into_iter();
        let listeners: Vec<_> = listeners.filter(|l| l.origin_of(name).is_some()).collect();
        if report.is_none() && listeners.is_empty() {
            return Err(Refusal::not_found("no such user"));
        }
        let info = match &report {
            Some(report) => AccountInfo::from(report),
            None => AccountInfo::without_usage(name.to_owned()),
        };
        let names = listeners
            .iter()
            .map(|listener| listener.name.clone())
            .collect();
        let info = AccountInfo {
            listeners: Some(names),
            limits_last: Some(self.keeps_limits),
            ..info
        };
        Ok((info, listeners))
    }

    /// Answers `GET /accounts/:name`: with `reveal`, the credentials too.
    async fn get_account(&self, name: &str, reveal: bool, host: Option<&str>) -> ApiResult {
        let host = parse_host(host)?;
        let (mut info, listeners) = self.find_account(name)?;
        if reveal {
            let mut credentials = Vec::new();
            for listener in &listeners {
                if let Some(secret) = listener.secret_of(name).await {
                    let issued = self.issued_credential(listener, name, &secret, host.as_ref());
                    credentials.push(issued);
                }
            }
            info.credentials = Some(credentials);
        }
        Ok(Reply::ok(&info))
    }

    /// Answers `PUT /accounts/:name/limits`.
    fn set_account_limits(&self, name: &str, body: &[u8]) -> ApiResult {
        self.find_account(name)?;
        let changes: Value = serde_json::from_slice(body)
            .map_err(|why| Refusal::bad_request(format!("the body is not JSON: {why}")))?;
        let registry = self.engine.user_registry();
        let before = registry.limits(name).unwrap_or_default();
        registry.set_limits(name, merge_limits(before, &changes)?);
        let (info, _) = self.find_account(name)?;
        Ok(Reply::ok(&info))
    }

    /// Returns the listeners of these names; without names, those whose users can be changed.
    pub(super) fn chosen_listeners(&self, names: &[String]) -> Result<Vec<UserListener>, Refusal> {
        let all = self.user_listeners();
        let known: Vec<&str> = all.iter().map(|listener| listener.name.as_str()).collect();
        for name in names {
            let Some(listener) = all.iter().find(|listener| listener.is_named(name)) else {
                let known = match known.is_empty() {
                    true => "no listener has users".to_owned(),
                    false => format!("the listeners with users are {}", known.join(", ")),
                };
                return Err(Refusal::not_found(format!("no listener `{name}`: {known}")));
            };
            if let Some(why) = listener.reason_fixed() {
                let why = format!("the users of listener `{name}` cannot be changed: {why}");
                return Err(Refusal::new(StatusCode::CONFLICT, why));
            }
        }
        let reasons = all.iter().filter_map(|listener| {
            let why = listener.reason_fixed()?;
            Some(format!("listener `{}`: {why}", listener.name))
        });
        let reasons: Vec<String> = reasons.collect();
        let is_chosen = |listener: &UserListener| match names.is_empty() {
            true => listener.reason_fixed().is_none(),
            false => names.iter().any(|name| listener.is_named(name)),
        };
        let chosen: Vec<UserListener> = all.into_iter().filter(is_chosen).collect();
        if chosen.is_empty() {
            let why = match reasons.is_empty() {
                true => "no listener has users: add `users=@FILE` to the URL of a `ss`, `mixed`, \
                         `socks5` or `http` listener"
                    .to_owned(),
                false => reasons.join("; "),
            };
            return Err(Refusal::new(StatusCode::CONFLICT, why));
        }
        Ok(chosen)
    }

    /// Answers `POST /accounts`: adds a user to listeners, with new keys and passwords unless the request has some.
    async fn add_account(&self, body: &[u8]) -> ApiResult {
        let new: NewAccount = serde_json::from_slice(body)
            .map_err(|why| Refusal::bad_request(format!("the body: {why}")))?;
        let name = new.name.as_str();
        check_name(name)?;
        self.check_is_ours(name)?;
        new.secrets.check().map_err(Refusal::bad_request)?;
        let host = parse_host(new.host.as_deref())?;
        let _alone = self.change_lock.lock().await;
        let registry = self.engine.user_registry();
        let before = registry.limits(name);
        let limits = match &new.limits {
            Some(changes) => Some(merge_limits(before.unwrap_or_default(), changes)?),
            None => None,
        };
        let listeners = self.chosen_listeners(&new.listeners)?;
        for listener in &listeners {
            listener.check_name(name).map_err(Refusal::bad_request)?;
            if listener.origin_of(name).is_some() {
                let why = format!(
                    "listener `{}` has a user `{name}` already: `rotate` creates new keys",
                    listener.name
                );
                return Err(Refusal::new(StatusCode::CONFLICT, why));
            }
        }
        // Before the first session, which must not exceed them.
        if let Some(limits) = limits {
            registry.set_limits(name, limits);
        }
        let mut secrets = NewSecrets::with_given(&new.secrets);
        let put = listeners
            .iter()
            .map(|listener| (listener, secrets.get(listener)));
        let put: Vec<_> = put.collect();
        let changes = put.iter().map(|(listener, secret)| UserStep {
            listener,
            put: Some(secret.clone()),
            before: UserBefore::Absent,
        });
        if let Err(why) = self.change_everywhere(name, changes.collect()).await {
            match before {
                Some(before) => registry.set_limits(name, before),
                None => {
                    registry.remove(name);
                }
            }
            return Err(why);
        }
        self.announce_added(name);
        let issued = self.issue(name, &put, host.as_ref());
        Ok(Reply::json(StatusCode::CREATED, &issued))
    }

    /// Answers `POST /accounts/:name/rotate`: new keys and passwords, and the end of all sessions.
    async fn rotate_account(&self, name: &str, body: &[u8]) -> ApiResult {
        let request: RotateRequest = match body {
            [] => RotateRequest::default(),
            body => serde_json::from_slice(body)
                .map_err(|why| Refusal::bad_request(format!("the body: {why}")))?,
        };
        let host = parse_host(request.host.as_deref())?;
        let _alone = self.change_lock.lock().await;
        let listeners = self.listeners_of(name, &request.listeners)?;
        let mut secrets = NewSecrets::default();
        let put = listeners
            .iter()
            .map(|listener| (listener, secrets.get(listener)));
        let put: Vec<_> = put.collect();
        let mut changes = Vec::with_capacity(put.len());
        for (listener, secret) in &put {
            changes.push(UserStep {
                listener,
                put: Some(secret.clone()),
                before: listener.secret_of(name).await.into(),
            });
        }
        self.change_everywhere(name, changes).await?;
        Ok(Reply::ok(&self.issue(name, &put, host.as_ref())))
    }

    /// Answers `DELETE /accounts/:name`: removes the user from listeners. Without a user in any of them, the limits and
    /// the usage are forgotten.
    async fn remove_account(&self, name: &str, names: &[String]) -> ApiResult {
        let _alone = self.change_lock.lock().await;
        let (_, having) = self.find_account(name)?;
        if !having.is_empty() {
            let listeners = self.listeners_of(name, names)?;
            let mut changes = Vec::with_capacity(listeners.len());
            for listener in &listeners {
                changes.push(UserStep {
                    listener,
                    put: None,
                    before: listener.secret_of(name).await.into(),
                });
            }
            self.change_everywhere(name, changes).await?;
        }
        let mut rest = self.user_listeners().into_iter();
        if !rest.any(|listener| listener.origin_of(name).is_some()) {
            self.engine.user_registry().remove(name);
            self.announce_removed(name);
        }
        Ok(Reply::no_content())
    }

    /// Returns the listeners that have a user who can be changed, limited to these names.
    fn listeners_of(&self, name: &str, names: &[String]) -> Result<Vec<UserListener>, Refusal> {
        let chosen = match names {
            [] => self.user_listeners(),
            names => self.chosen_listeners(names)?,
        };
        let mut found = Vec::new();
        for listener in chosen {
            match listener.origin_of(name) {
                Some(UserOrigin::List) => found.push(listener),
                Some(UserOrigin::Url) => {
                    let why = format!(
                        "user `{name}` is in the URL of listener `{}`: change it there, and reload",
                        listener.name
                    );
                    return Err(Refusal::new(StatusCode::CONFLICT, why));
                }
                None => {}
            }
        }
        if found.is_empty() {
            let why = match names {
                [] => "no such user".to_owned(),
                names => format!("listener `{}` has no user `{name}`", names.join("`, `")),
            };
            return Err(Refusal::not_found(why));
        }
        Ok(found)
    }

    /// Changes a user at several listeners. If one fails, the others get back what they had.
    pub(super) async fn change_everywhere(
        &self,
        name: &str,
        steps: Vec<UserStep<'_>>,
    ) -> Result<(), Refusal> {
        let change = |secret: Option<&UserSecret>| match secret {
            Some(secret) => UserChange::Put(name.to_owned(), secret.clone()),
            None => UserChange::Remove(name.to_owned()),
        };
        for (at, step) in steps.iter().enumerate() {
            let changed = self.change_listener_user(step.listener, change(step.put.as_ref()));
            let Err(why) = changed.await else {
                continue;
            };
            let mut error = why.error;
            for done in steps.iter().take(at) {
                let old = match &done.before {
                    UserBefore::Absent => None,
                    UserBefore::Secret(secret) => Some(secret),
                    UserBefore::Unknown => {
                        error += &format!(
                            "; listener `{}` has changed already, and its old key is not known",
                            done.listener.name
                        );
                        continue;
                    }
                };
                let undone = self.change_listener_user(done.listener, change(old)).await;
                if let Err(undone) = undone {
                    error += &format!("; and it was not undone: {}", undone.error);
                }
            }
            return Err(Refusal::new(why.status, error));
        }
        Ok(())
    }

    fn issue(
        &self,
        name: &str,
        put: &[(&UserListener, UserSecret)],
        host: Option<&Host>,
    ) -> IssuedCredentials {
        let each = put.iter();
        let each =
            each.map(|(listener, secret)| self.issued_credential(listener, name, secret, host));
        IssuedCredentials {
            name: name.to_owned(),
            credentials: each.collect(),
        }
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    if is_user_name(name) && name.trim() == name {
        return Ok(());
    }
    Err(Refusal::bad_request(
        "a user name has 1 to 255 bytes, no control characters, and no space at its ends",
    ))
}

fn parse_host(text: Option<&str>) -> Result<Option<Host>, Refusal> {
    let host = text.map(Host::parse).transpose();
    host.map_err(|why| Refusal::bad_request(format!("`host`: {why}")))
}

impl From<&UserReport> for AccountInfo {
    fn from(report: &UserReport) -> Self {
        let limits = report.limits;
        Self {
            name: report.name.clone(),
            state: report.state.name().to_owned(),
            quota: limits.quota,
            period: limits.period.name().to_owned(),
            expires: limits.expires.map(|at| at.0),
            rate: limits.rate,
            sessions: limits.sessions,
            devices: limits.devices,
            used_up: report.used_in_period.up,
            used_down: report.used_in_period.down,
            total_up: report.total.up,
            total_down: report.total.down,
            sessions_open: report.sessions,
            devices_open: report.devices,
            listeners: None,
            limits_last: None,
            credentials: None,
        }
    }
}

impl AccountInfo {
    /// A user without limits, who has not connected.
    fn without_usage(name: String) -> Self {
        Self {
            name,
            state: adit_engine::UserState::Active.name().to_owned(),
            quota: None,
            period: adit_wire::QuotaPeriod::default().name().to_owned(),
            expires: None,
            rate: None,
            sessions: None,
            devices: None,
            used_up: 0,
            used_down: 0,
            total_up: 0,
            total_down: 0,
            sessions_open: 0,
            devices_open: 0,
            listeners: None,
            limits_last: None,
            credentials: None,
        }
    }
}
