//! Another key for a realm: all users are sealed anew.
//!
//! The new key is not sent through the store. Someone who has the old one, and the store, could read it there under any
//! seal that the old key opens; members receive it in a [`JoinToken`](crate::JoinToken), as when they joined.

use adit_wire::Entropy;

use crate::change::Snapshot;
use crate::record::FleetUser;
use crate::seal::RecordCipher;
use crate::sealed_record::RecordError;

/// Seals the users of a snapshot for [`Store::replace_key`](crate::Store::replace_key) after `change` has changed each
/// of them. The result has the number of the snapshot, which is the expected one.
///
/// # Errors
///
/// A record cannot be opened with the old key, or a user not be sealed; with the number of the user.
pub fn reseal(
    snapshot: &Snapshot,
    old: &RecordCipher,
    new: &RecordCipher,
    mut change: impl FnMut(&mut FleetUser),
    rng: &mut dyn Entropy,
) -> Result<Snapshot, (u32, RecordError)> {
    // Higher than what nodes have applied: they would take the records for old ones.
    let number = snapshot.version.next();
    let mut users = Vec::with_capacity(snapshot.users.len());
    for (id, sealed) in &snapshot.users {
        let failed = |why| (*id, why);
        let mut user = old.open(*id, sealed).map_err(failed)?;
        change(&mut user);
        users.push((*id, new.seal(&user, number, rng).map_err(failed)?));
    }
    Ok(Snapshot {
        version: snapshot.version,
        users,
    })
}

#[cfg(test)]
mod tests {
    use adit_net::system::SystemRng;

    use super::*;
    use crate::change::ChangeId;
    use crate::realm_key::RealmKey;
    use crate::sealed_record::SealedRecord;

    #[test]
    fn the_old_key_opens_nothing_of_the_new_one() {
        let cipher = |key| RecordCipher::new("main", &RealmKey::new([key; 32]));
        let (old, new) = (cipher(1), cipher(2));
        let user = FleetUser::new(7, "anna", [3; 32]);
        let before = Snapshot {
            version: ChangeId(5),
            users: vec![(7, old.seal(&user, ChangeId(2), &mut SystemRng).unwrap())],
        };
        let disable = |user: &mut FleetUser| user.disabled = true;
        let after = reseal(&before, &old, &new, disable, &mut SystemRng).unwrap();
        assert_eq!(after.version, ChangeId(5));
        let (id, sealed) = &after.users[0];
        let opened = new.open(*id, sealed).unwrap();
        assert_eq!((opened.name.as_str(), opened.disabled), ("anna", true));
        assert_eq!(sealed.number(), Some(ChangeId(6)));
        assert_eq!(old.open(*id, sealed), Err(RecordError::Forged));
        assert_ne!(sealed.name_digest(), before.users[0].1.name_digest());

        let mut broken = before;
        broken.users.push((8, SealedRecord::from_bytes(vec![1])));
        let failed = reseal(&broken, &old, &new, |_| {}, &mut SystemRng);
        assert_eq!(failed.unwrap_err().0, 8);
    }
}
