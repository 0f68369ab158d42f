//! The users of a realm as `adit user` shows them: with their usage over all nodes, and their credentials.

use adit_admin::api::{AccountInfo, IssuedCredential};
use adit_cli::Failure;
use adit_fleet::{FleetUser, PeriodLabel, UserTotal};
use adit_wire::{QuotaPeriod, UnixTime};
use serde::Serialize;

use super::realm_users::{all_users, store_time};
use crate::command::fleet::{Realm, UserAccess};

/// A user of a realm, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RealmUserJson<'a> {
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
    /// The addresses of the subscription, with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscriptions: Option<&'a [String]>,
}

/// A user, with what is known of them.
pub(super) struct Described {
    pub(super) id: u32,
    pub(super) info: AccountInfo,
    /// The addresses of the subscription, or the reason why there is none, if the credentials are shown.
    pub(super) subscriptions: Option<Result<Vec<String>, &'static str>>,
}

impl Described {
    pub(super) fn json(&self) -> RealmUserJson<'_> {
        let subscriptions = self.subscriptions.as_ref();
        RealmUserJson {
            subscriptions: subscriptions.map(|found| found.as_deref().unwrap_or_default()),
            ..RealmUserJson::new(self.id, &self.info)
        }
    }

    /// Returns the addresses of the subscription, if there are any.
    pub(super) fn addresses(&self) -> &[String] {
        let found = self
            .subscriptions
            .as_ref()
            .and_then(|found| found.as_ref().ok());
        found.map_or(&[], Vec::as_slice)
    }
}

impl<'a> RealmUserJson<'a> {
    pub(super) fn new(id: u32, info: &'a AccountInfo) -> Self {
        Self {
            subscriptions: None,
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

/// Returns what is known of a user, with credentials if `reveal` is set.
pub(super) async fn describe(
    realm: &Realm,
    user: &FleetUser,
    reveal: bool,
) -> Result<Described, Failure> {
    let now = store_time(realm).await?;
    let label = PeriodLabel::new(user.limits.period, now);
    let totals = realm
        .ask(realm.store.usage(&label, Some(&[user.id])))
        .await?;
    let mut described = Described {
        id: user.id,
        info: info_of(user, totals.first(), now),
        subscriptions: None,
    };
    if reveal {
        let nodes = realm.ask(realm.store.nodes()).await?;
        let access = UserAccess::find(realm, user, &nodes).await?;
        described.info.credentials = Some(access.credentials);
        described.subscriptions = Some(access.subscriptions);
    }
    Ok(described)
}

/// Returns all users, by name.
pub(super) async fn list(realm: &Realm) -> Result<Vec<(u32, AccountInfo)>, Failure> {
    let all = all_users(realm).await?;
    let now = store_time(realm).await?;
    let mut totals = std::collections::HashMap::new();
    for period in QuotaPeriod::ALL {
        let label = PeriodLabel::new(period, now);
        for total in realm.ask(realm.store.usage(&label, None)).await? {
            totals.insert((total.user, period), total);
        }
    }
    let to_info = |user: &FleetUser| {
        let total = totals.get(&(user.id, user.limits.period));
        (user.id, info_of(user, total, now))
    };
    let mut users: Vec<_> = all.iter().map(to_info).collect();
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

    #[test]
    fn the_state_of_a_user() {
        let mut user = FleetUser::new(1, "anna", [1; 32]);
        let total = UserTotal {
            user: 1,
            period: PeriodLabel::new(QuotaPeriod::Total, UnixTime(0)),
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
}
