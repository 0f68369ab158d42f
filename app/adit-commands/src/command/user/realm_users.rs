//! The records of a realm's users, as `adit user` reads and changes them at the store server.

use adit_cli::{Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{
    FleetUser, RealmWriter, RecordLimits, SealedRecord, StoreError, StoreErrorKind, WriteError,
};
use adit_net::system::SystemRng;
use adit_wire::UnixTime;
use serde_json::json;

use crate::args::user::UserLimitOptions;
use crate::command::fleet::{Realm, kind_of};

/// Number of attempts to change a user while others write too.
pub(super) const ATTEMPTS: usize = 50;

/// Applies the options to the limits.
pub(super) fn apply(limits: &mut RecordLimits, typed: &UserLimitOptions) {
    if let Some(quota) = typed.quota {
        let quota = quota.into_limit();
        limits.quota = quota.map(|quota| quota.bytes);
        limits.period = quota.map(|quota| quota.period).unwrap_or_default();
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

/// Adds a user with new keys.
pub(super) async fn add(
    realm: &Realm,
    name: &str,
    typed: &UserLimitOptions,
) -> Result<FleetUser, Failure> {
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
pub(super) async fn change(
    realm: &Realm,
    action: &str,
    name: &str,
    make: impl Fn(&mut FleetUser),
) -> Result<FleetUser, Failure> {
    let failed = |why: WriteError| to_failure(&why, realm, name);
    for _ in 0..ATTEMPTS {
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
    Err(contention_failure())
}

/// Returns the failure of a change that others have prevented with theirs, several times.
pub(super) fn contention_failure() -> Failure {
    let what = "others change the realm all the time";
    Failure::new(FailureCode::Failure, what).with_hint("try again")
}

/// Returns the user of a name; fails if there is none.
pub(super) async fn find(realm: &Realm, name: &str) -> Result<FleetUser, Failure> {
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

/// Returns the failure of a change of a user.
pub(super) fn to_failure(why: &WriteError, realm: &Realm, name: &str) -> Failure {
    match kind_of(why) {
        Some(StoreErrorKind::NameTaken) => taken(realm, name),
        Some(StoreErrorKind::Gone) => unknown(realm, name),
        _ => realm.to_failure(why, &format!("user `{}`", sanitize_for_terminal(name))),
    }
}

/// Returns the time of the store server.
pub(super) async fn store_time(realm: &Realm) -> Result<UnixTime, Failure> {
    let time = realm.ask(realm.store.time()).await?;
    Ok(UnixTime(time / 1000))
}

/// Returns the records of all users.
pub(super) async fn all_users(realm: &Realm) -> Result<Vec<FleetUser>, Failure> {
    let snapshot = realm.ask(realm.store.snapshot()).await?;
    let open = |(id, sealed): &(u32, SealedRecord)| {
        let user = realm.cipher().open(*id, sealed);
        user.map_err(|why| realm.to_failure(&why.into(), &format!("number {id}")))
    };
    snapshot.users.iter().map(open).collect()
}

#[cfg(test)]
mod tests {
    use adit_wire::QuotaPeriod;

    use super::*;
    use crate::command::user_values::{Change, Quota};

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
            period: QuotaPeriod::Month,
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
}
