//! `POST /v1/import`: users of other programs, with the secrets and limits that they had.
//!
//! The request says what the users should be, so that it can be repeated: a user who is like that already is left
//! alone. `dryRun` returns the same result without a change.

use std::collections::HashMap;

use adit_engine::{ByteCounts, StoredUser, Usage, UserLimits};
use adit_net::system;
use adit_wire::UnixTime;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Api;
use super::account_limits::{changed_limits, merge_limits};
use super::accounts::{UserBefore, UserStep, check_name};
use super::given_secrets::GivenSecrets;
use super::reply::{ApiResult, Refusal, Reply};
use super::user_listener::{NewSecrets, UserListener, UserOrigin, UserSecret};
use super::users_file::UserChange;

/// Users of one request at most.
pub const MAX_IMPORT: usize = 500;

/// The body of `POST /v1/import`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportRequest {
    /// The users; at most [`MAX_IMPORT`].
    pub users: Vec<ImportedAccount>,
    /// The listeners; empty for all that have users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// True if nothing is to be changed.
    #[serde(default)]
    pub dry_run: bool,
    /// True if users who have another key get the one of the request.
    #[serde(default)]
    pub replace_keys: bool,
}

/// A user to import.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportedAccount {
    /// The name.
    pub name: String,
    /// The secrets that the user had. Listeners that none of them fits get new ones.
    #[serde(default)]
    pub secrets: GivenSecrets,
    /// The limits, as in `PUT /accounts/:name/limits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// Seconds until the user expires, unless the user has an expiry already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<u64>,
    /// Bytes of the quota that the user has used up; for a user who is new here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// The answer to `POST /v1/import`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ImportReply {
    /// The results, in the order of the request.
    pub users: Vec<ImportResult>,
}

/// The result for one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportResult {
    /// The name.
    pub name: String,
    /// The outcome; that of a dry run is the expected one.
    pub outcome: ImportOutcome,
    /// The changes, and the differences from the request that remain, one phrase each.
    pub details: Vec<String>,
}

/// The outcome of the import of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportOutcome {
    /// The user is new.
    Added,
    /// Limits, keys or listeners of the user are different now.
    Changed,
    /// The user was like this already.
    Unchanged,
    /// The user could not be imported; the details say why.
    Refused,
}

/// A user of a request, and what is to be done.
struct PlannedUser<'r> {
    user: &'r ImportedAccount,
    limits_before: Option<UserLimits>,
    limits: UserLimits,
    /// The new secrets, by the position of the listener, each with the one before.
    puts: Vec<(usize, UserSecret, UserBefore)>,
    result: ImportResult,
}

/// The secrets of the users of a request at one listener.
type SecretsByName = HashMap<String, UserSecret>;

impl Api {
    /// Answers `POST /v1/import`.
    pub(super) async fn import_accounts(&self, body: &[u8]) -> ApiResult {
        let request: ImportRequest = serde_json::from_slice(body)
            .map_err(|why| Refusal::bad_request(format!("the body: {why}")))?;
        if request.users.len() > MAX_IMPORT {
            let why = format!("a request has at most {MAX_IMPORT} users");
            return Err(Refusal::bad_request(why));
        }
        let _alone = self.change_lock.lock().await;
        let listeners = self.chosen_listeners(&request.listeners)?;
        let names: Vec<&str> = request
            .users
            .iter()
            .map(|user| user.name.as_str())
            .collect();
        let mut secrets = Vec::with_capacity(listeners.len());
        for listener in &listeners {
            secrets.push(listener.secrets_of(&names).await);
        }
        let mut planned: Vec<PlannedUser<'_>> = Vec::with_capacity(request.users.len());
        for user in &request.users {
            let is_repeated = planned.iter().any(|known| known.user.name == user.name);
            let plan = match is_repeated {
                true => Err("the request has two users of this name".to_owned()),
                false => self.plan_import(user, &listeners, &secrets, request.replace_keys),
            };
            planned.push(plan.unwrap_or_else(|why| PlannedUser::refused(user, why)));
        }
        if reason_unacceptable(&planned, &listeners).is_none() {
            if !request.dry_run {
                self.apply_together(&mut planned, &listeners).await;
            }
        } else {
            self.apply_one_by_one(&mut planned, &listeners, request.dry_run)
                .await;
        }
        let users = planned.into_iter().map(|planned| planned.result).collect();
        Ok(Reply::ok(&ImportReply { users }))
    }

    /// Compares a user of a request with what is there.
    fn plan_import<'r>(
        &self,
        user: &'r ImportedAccount,
        listeners: &[UserListener],
        secrets: &[SecretsByName],
        replace_keys: bool,
    ) -> Result<PlannedUser<'r>, String> {
        let name = user.name.as_str();
        check_name(name).map_err(|why| why.error)?;
        user.secrets.check()?;
        let limits_before = self.engine.user_registry().limits(name);
        let before = limits_before.unwrap_or_default();
        let mut limits = match &user.limits {
            Some(changes) => merge_limits(before, changes).map_err(|why| why.error)?,
            None => before,
        };
        if let (Some(seconds), None) = (user.expires_after, before.expires) {
            let at = system::unix_now().0.saturating_add(seconds);
            limits.expires = Some(UnixTime(at.min(i64::MAX.unsigned_abs())));
        }
        let mut details = changed_limits(before, limits);
        let mut is_known = limits_before.is_some();
        let mut puts = Vec::new();
        let mut new_secrets = NewSecrets::with_given(&user.secrets);
        for (at, (listener, known)) in listeners.iter().zip(secrets).enumerate() {
            let shown = &listener.name;
            let given = user.secrets.secret_for(listener.method());
            match listener.origin_of(name) {
                None => {
                    listener.check_name(name)?;
                    if given.is_none() {
                        details.push(format!(
                            "a new key at {shown}, which no secret of the export fits"
                        ));
                    }
                    puts.push((at, new_secrets.get(listener), UserBefore::Absent));
                }
                Some(UserOrigin::Url) => {
                    is_known = true;
                    details.push(format!("unchanged at {shown}: the user is in its URL"));
                }
                Some(UserOrigin::List) => {
                    is_known = true;
                    let Some(given) = given else { continue };
                    let known = known.get(name);
                    if known.is_some_and(|known| known.as_str() == given) {
                        continue;
                    }
                    if replace_keys {
                        details.push(format!("the key of the export at {shown}"));
                        let given = UserSecret::new(given.to_owned());
                        puts.push((at, given, known.cloned().into()));
                    } else {
                        details.push(format!("keeps another key at {shown}"));
                    }
                }
            }
        }
        let is_changed = !puts.is_empty() || limits != before;
        let outcome = match (is_known, is_changed) {
            (false, _) => ImportOutcome::Added,
            (true, true) => ImportOutcome::Changed,
            (true, false) => ImportOutcome::Unchanged,
        };
        Ok(PlannedUser {
            user,
            limits_before,
            limits,
            puts,
            result: ImportResult {
                name: name.to_owned(),
                outcome,
                details,
            },
        })
    }

    /// Applies all changes, with one write of each file.
    async fn apply_together(&self, planned: &mut [PlannedUser<'_>], listeners: &[UserListener]) {
        for user in &*planned {
            self.apply_limits(user);
        }
        for (at, listener) in listeners.iter().enumerate() {
            let put: Vec<(String, UserSecret)> = all_puts(planned, at)
                .map(|(name, secret)| (name.to_owned(), secret.clone()))
                .collect();
            if put.is_empty() {
                continue;
            }
            let changed = self.change_listener_user(listener, UserChange::PutAll(put));
            let Err(why) = changed.await else { continue };
            for user in planned.iter_mut() {
                if user.puts.iter().any(|(listener, ..)| *listener == at) {
                    user.refuse(why.error.clone());
                }
            }
        }
        for user in &*planned {
            self.announce_import(user);
        }
    }

    /// Applies the changes of each user for itself, since some of them are not possible.
    async fn apply_one_by_one(
        &self,
        planned: &mut [PlannedUser<'_>],
        listeners: &[UserListener],
        dry_run: bool,
    ) {
        for i in 0..planned.len() {
            // Those before are in the listeners, unless nothing is to be changed.
            let (done, rest) = planned.split_at_mut(i);
            let Some(user) = rest.first_mut() else { return };
            let tested = listeners.iter().enumerate().find_map(|(at, listener)| {
                let mut put: Vec<(&str, &str)> = Vec::new();
                if dry_run {
                    put.extend(all_puts(done, at).map(|(name, secret)| (name, secret.as_str())));
                }
                let before = put.len();
                put.extend(user.puts_at(at));
                (put.len() > before).then(|| listener.check_changes(&put).err())?
            });
            if let Some(why) = tested {
                user.refuse(why);
                continue;
            }
            if dry_run {
                continue;
            }
            self.apply_limits(user);
            let puts = std::mem::take(&mut user.puts);
            let steps = puts.into_iter().filter_map(|(at, secret, before)| {
                Some(UserStep {
                    listener: listeners.get(at)?,
                    put: Some(secret),
                    before,
                })
            });
            let changed = self
                .change_everywhere(&user.user.name, steps.collect())
                .await;
            if let Err(why) = changed {
                let registry = self.engine.user_registry();
                match user.limits_before {
                    Some(before) => registry.set_limits(&user.user.name, before),
                    None => {
                        registry.remove(&user.user.name);
                    }
                }
                user.refuse(why.error);
            }
            self.announce_import(user);
        }
    }

    /// Sets limits and usage, before the first session, which must not exceed them.
    fn apply_limits(&self, planned: &PlannedUser<'_>) {
        let registry = self.engine.user_registry();
        let name = &planned.user.name;
        match (planned.result.outcome, planned.user.used) {
            (ImportOutcome::Added, Some(used)) => {
                let now = system::unix_now();
                let total = Usage {
                    down: used,
                    ..Usage::default()
                };
                registry.restore(&[StoredUser {
                    name: name.clone(),
                    limits: planned.limits,
                    period_start: planned.limits.period.start(now),
                    before_period: ByteCounts::default(),
                    total,
                }]);
                // Restored users are stored with the next traffic, and these at once.
                registry.set_limits(name, planned.limits);
            }
            (ImportOutcome::Added | ImportOutcome::Changed, _) => {
                registry.set_limits(name, planned.limits);
            }
            (ImportOutcome::Unchanged | ImportOutcome::Refused, _) => {}
        }
    }

    fn announce_import(&self, planned: &PlannedUser<'_>) {
        if planned.result.outcome == ImportOutcome::Added {
            self.announce_added(&planned.user.name);
        }
    }
}

impl<'r> PlannedUser<'r> {
    fn refused(user: &'r ImportedAccount, why: String) -> Self {
        let mut planned = Self {
            user,
            limits_before: None,
            limits: UserLimits::default(),
            puts: Vec::new(),
            result: ImportResult {
                name: user.name.clone(),
                outcome: ImportOutcome::Refused,
                details: Vec::new(),
            },
        };
        planned.refuse(why);
        planned
    }

    /// Notes that the user cannot be imported.
    fn refuse(&mut self, why: String) {
        self.puts.clear();
        self.result.outcome = ImportOutcome::Refused;
        self.result.details = vec![why];
    }

    fn puts_at(&self, at: usize) -> impl Iterator<Item = (&str, &str)> {
        let own = self
            .puts
            .iter()
            .filter(move |(listener, ..)| *listener == at);
        own.map(|(_, secret, _)| (self.user.name.as_str(), secret.as_str()))
    }
}

/// Returns the new secrets of all users at one listener.
fn all_puts<'p>(
    planned: &'p [PlannedUser<'_>],
    at: usize,
) -> impl Iterator<Item = (&'p str, &'p UserSecret)> {
    planned.iter().flat_map(move |user| {
        let own = user
            .puts
            .iter()
            .filter(move |(listener, ..)| *listener == at);
        own.map(|(_, secret, _)| (user.user.name.as_str(), secret))
    })
}

/// Returns the reason why the changes of all users are not possible together.
fn reason_unacceptable(planned: &[PlannedUser<'_>], listeners: &[UserListener]) -> Option<String> {
    listeners.iter().enumerate().find_map(|(at, listener)| {
        let put: Vec<(&str, &str)> = all_puts(planned, at)
            .map(|(name, secret)| (name, secret.as_str()))
            .collect();
        (!put.is_empty()).then(|| listener.check_changes(&put).err())?
    })
}
