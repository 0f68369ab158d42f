//! `adit user import` into a realm: its users become what the export says, unless they are already.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use adit_admin::api::{ImportOutcome, ImportResult, changed_limits};
use adit_cli::Failure;
use adit_convert::users::{ExportedUser, UserExport};
use adit_engine::UserLimits;
use adit_fleet::{ChangeRequest, FleetUser, RealmWriter, RecordLimits, StoreError, StoreErrorKind};
use adit_net::system::{self, SystemRng};
use adit_wire::{QuotaPeriod, UnixTime};
use serde_json::json;
use zeroize::Zeroizing;

use super::realm_users::{ATTEMPTS, all_users, contention_failure};
use crate::args::user::UserImportArgs;
use crate::command::fleet::{Realm, run};

/// Users that are written together.
const CHUNK: usize = 500;

/// The result for each user, by the position in the export.
type Results = BTreeMap<usize, ImportResult>;

/// A user of the export, and the record to write.
struct Planned {
    at: usize,
    record: FleetUser,
}

/// The digests of the imported secrets of users, by which nodes tell them apart.
type KeyDigests = HashSet<[u8; 32]>;

/// Imports users into the realm of a membership.
pub(super) fn import_into_realm(
    typed: &UserImportArgs,
    membership: &Path,
    export: &UserExport,
) -> Result<Vec<ImportResult>, Failure> {
    if !typed.listener.is_empty() {
        return Err(super::realm::listener_failure());
    }
    let results = run(async {
        let realm = Realm::open(Some(membership)).await?;
        let mut results = Results::new();
        // Another operator may write at the same time: what is right by then is not written again.
        for _ in 0..ATTEMPTS {
            if write_all(&realm, typed, export, &mut results).await? {
                return Ok(results);
            }
        }
        Err(contention_failure())
    })?;
    Ok(results.into_values().collect())
}

/// Writes all users that are not yet as they should be. Returns false if another operator was faster.
async fn write_all(
    realm: &Realm,
    typed: &UserImportArgs,
    export: &UserExport,
    results: &mut Results,
) -> Result<bool, Failure> {
    let mut head = realm.ask(realm.store.head()).await?;
    let known = all_users(realm).await?.into_iter();
    let known: HashMap<String, FleetUser> = known.map(|user| (user.name.clone(), user)).collect();
    let mut planned = Vec::new();
    let mut keys = keys_of(&known);
    for (at, user) in export.users.iter().enumerate() {
        let known = known.get(&user.name);
        let (record, result) = plan(user, known, typed.replace_keys, &mut keys);
        // A user who was written before a conflict is unchanged now.
        results.entry(at).or_insert(result);
        if let Some(record) = record {
            planned.push(Planned { at, record });
        }
    }
    if typed.dry_run {
        return Ok(true);
    }
    let is_new = |planned: &&mut Planned| planned.record.id == 0;
    let count = planned.iter_mut().filter(is_new).count();
    if count > 0 {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let first = realm.ask(realm.store.allocate_users(count)).await?;
        for (id, planned) in (first..).zip(planned.iter_mut().filter(is_new)) {
            planned.record.id = id;
        }
    }
    let total = planned.len();
    for chunk in planned.chunks(CHUNK) {
        let mut number = head;
        let mut requests: Vec<ChangeRequest> = Vec::with_capacity(chunk.len());
        for planned in chunk {
            number = number.next();
            let sealed = realm.cipher().put(&planned.record, number, &mut SystemRng);
            let sealed = sealed.map_err(|why| {
                let name = super::output::shown(&planned.record.name);
                realm.to_failure(&why.into(), &format!("user `{name}`"))
            })?;
            requests.push(sealed);
        }
        match realm.store.write(head, &requests).await {
            Ok(last) => head = last,
            Err(StoreError {
                kind: StoreErrorKind::Conflict { .. } | StoreErrorKind::NameTaken,
                ..
            }) => {
                // What this attempt has not written is decided anew.
                let from = chunk.first().map_or(0, |it| it.at);
                for undone in planned.iter().filter(|it| it.at >= from) {
                    results.remove(&undone.at);
                }
                return Ok(false);
            }
            Err(why) => return realm.ask(async { Err(why) }).await,
        }
    }
    if total > 0 {
        let about = json!({ "format": export.format.name(), "users": total });
        realm.audit("user import", about).await;
    }
    Ok(true)
}

fn keys_of(known: &HashMap<String, FleetUser>) -> KeyDigests {
    let each = known.values().flat_map(|user| [&user.password, &user.psk]);
    each.flatten().map(digest).collect()
}

fn digest(key: &Zeroizing<String>) -> [u8; 32] {
    adit_crypto::sha256(key.as_bytes())
}

fn refused(name: &str, why: &str) -> (Option<FleetUser>, ImportResult) {
    let result = ImportResult {
        name: name.to_owned(),
        outcome: ImportOutcome::Refused,
        details: vec![why.to_owned()],
    };
    (None, result)
}

/// Returns the record to write, if there is one, and the result.
fn plan(
    user: &ExportedUser,
    known: Option<&FleetUser>,
    replace_keys: bool,
    keys: &mut KeyDigests,
) -> (Option<FleetUser>, ImportResult) {
    let name = user.name.as_str();
    if name.contains(':') || name.starts_with('#') {
        let why = "a name in a realm has no `:` and does not begin with `#`";
        return refused(name, why);
    }
    let mut result = ImportResult {
        name: name.to_owned(),
        outcome: ImportOutcome::Unchanged,
        details: Vec::new(),
    };
    let text = |secret: Option<&adit_config::Secret>| {
        secret.map(|secret| Zeroizing::new(secret.expose().to_owned()))
    };
    let password = text(user.password.as_ref().or(user.login.as_ref()));
    let psk = text(user.psk.as_ref());
    let mut record = match known {
        Some(known) => known.clone(),
        None => {
            let mut record = FleetUser::new(0, name, [0; 32]);
            record.secret = RealmWriter::new_secret();
            record
        }
    };
    let pairs = [(&password, &record.password), (&psk, &record.psk)];
    let other = pairs.into_iter().filter(|(given, own)| given != own);
    let new = other.filter_map(|(given, _)| given.as_ref()).map(digest);
    let new: Vec<[u8; 32]> = new.collect();
    if !new.is_empty() && known.is_some() && !replace_keys {
        result.details.push("keeps another key".to_owned());
    } else if !new.is_empty() {
        if new.iter().any(|key| keys.contains(key)) {
            return refused(name, "another user has this key");
        }
        keys.extend(new);
        record.password = password.or(record.password);
        record.psk = psk.or(record.psk);
        if known.is_some() {
            result.details.push("the key of the export".to_owned());
        }
    }
    let before = to_user_limits(record.limits);
    apply(&mut record.limits, user);
    let after = to_user_limits(record.limits);
    result.details.extend(changed_limits(before, after));
    if record.disabled != user.is_disabled {
        let name = if user.is_disabled {
            "disabled"
        } else {
            "enabled"
        };
        result.details.push(name.to_owned());
        record.disabled = user.is_disabled;
    }
    match known {
        None => {
            result.outcome = ImportOutcome::Added;
            if user.used.is_some() {
                let why = "counts from zero: usage is not imported into a realm";
                result.details.push(why.to_owned());
            }
        }
        Some(known) if *known != record => result.outcome = ImportOutcome::Changed,
        Some(_) => return (None, result),
    }
    (Some(record), result)
}

/// Sets the limits that the export has.
fn apply(limits: &mut RecordLimits, user: &ExportedUser) {
    let new = &user.limits;
    if new.quota.is_some() {
        limits.quota = new.quota;
        let period = new.period.and_then(QuotaPeriod::from_name);
        limits.period = period.unwrap_or_default();
    }
    limits.expires = new.expires.or(limits.expires);
    if let (Some(seconds), None) = (new.expires_after, limits.expires) {
        limits.expires = Some(system::unix_now().0.saturating_add(seconds));
    }
    limits.rate = new.rate.or(limits.rate);
    limits.sessions = new.sessions.or(limits.sessions);
    limits.devices = new.devices.or(limits.devices);
}

/// Returns the limits as a process has them.
fn to_user_limits(limits: RecordLimits) -> UserLimits {
    UserLimits {
        quota: limits.quota,
        period: limits.period,
        expires: limits.expires.map(UnixTime),
        rate: limits.rate,
        sessions: limits.sessions,
        devices: limits.devices,
    }
}

#[cfg(test)]
mod tests {
    use adit_convert::users::read_user_export;

    use super::*;

    fn users(csv: &str) -> Vec<ExportedUser> {
        read_user_export(csv, "a.csv", None).unwrap().users
    }

    fn one(
        csv: &str,
        known: Option<&FleetUser>,
        replace: bool,
    ) -> (Option<FleetUser>, ImportResult) {
        plan(&users(csv)[0], known, replace, &mut KeyDigests::new())
    }

    #[test]
    fn a_user_is_written_once() {
        let csv = "name,password,quota,devices\nanna,pw,50GB/month,3\n";
        let (record, result) = one(csv, None, false);
        let record = record.unwrap();
        assert_eq!(result.outcome, ImportOutcome::Added);
        assert_eq!(result.details, ["quota 50.0 GB/month", "devices 3"]);
        assert_eq!(record.password().as_str(), "pw");
        assert_eq!(record.limits.period, QuotaPeriod::Month);
        let (again, result) = one(csv, Some(&record), true);
        assert_eq!((again, result.outcome), (None, ImportOutcome::Unchanged));
        // Limits that the export does not have stay.
        let (changed, result) = one("name,password,rate\nanna,pw,1MB/s\n", Some(&record), false);
        assert_eq!(result.outcome, ImportOutcome::Changed);
        assert_eq!(changed.unwrap().limits.quota, Some(50_000_000_000));
        // A change is shown as a process shows it.
        let more = "name,password,quota\nanna,pw,60GB/month\n";
        let (_, result) = one(more, Some(&record), false);
        assert_eq!(result.details, ["quota 50.0 GB/month to 60.0 GB/month"]);
    }

    #[test]
    fn keys_are_kept_unless_they_are_to_be_replaced() {
        let (record, _) = one("name,password\nanna,old\n", None, false);
        let record = record.unwrap();
        let other = "name,password\nanna,new\n";
        let (kept, result) = one(other, Some(&record), false);
        assert_eq!((kept, result.outcome), (None, ImportOutcome::Unchanged));
        assert_eq!(result.details, ["keeps another key"]);
        let (replaced, result) = one(other, Some(&record), true);
        assert_eq!(result.outcome, ImportOutcome::Changed);
        assert_eq!(replaced.unwrap().password().as_str(), "new");
    }

    #[test]
    fn two_users_have_two_keys() {
        let mut keys = KeyDigests::new();
        let both = users("name,password\nanna,same\nbob,same\n");
        let first = plan(&both[0], None, false, &mut keys);
        let second = plan(&both[1], None, false, &mut keys);
        assert_eq!(first.1.outcome, ImportOutcome::Added);
        assert_eq!(second.1.outcome, ImportOutcome::Refused);
        assert_eq!(
            one("name,password\na:b,pw\n", None, false).1.outcome,
            ImportOutcome::Refused
        );
    }
}
