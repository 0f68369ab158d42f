//! Events that all nodes see, and one announces.
//!
//! A node claims an event in the store, where claims are kept for some minutes. One that learns of an event later than
//! [`CLAIM_TIME`] says nothing: others have announced it.

use std::time::Duration;

use crate::store::{SaltClaim, Store, StoreError};

/// Time after an event in which nodes may claim it.
pub const CLAIM_TIME: Duration = Duration::from_secs(90);
/// Minutes for which a second announcement of the same event is suppressed; more than [`CLAIM_TIME`].
const CLAIMED_MINUTES: u64 = 3;

/// A user who was added to the realm or removed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserChange {
    /// The number of the user, which no other one ever has.
    pub id: u32,
    /// The name.
    pub name: String,
    /// True if the user was added.
    pub is_added: bool,
}

impl UserChange {
    /// Returns those of the changes that the caller announces: each is returned to exactly one of the nodes that claim it
    /// within [`CLAIM_TIME`]. `unix` is the store's clock, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The errors of the store. Some of the changes may be claimed then, and no node announces them.
    pub async fn claim(
        changes: Vec<Self>,
        store: &dyn Store,
        unix: u64,
    ) -> Result<Vec<Self>, StoreError> {
        let name = |change: &Self| {
            let kind = if change.is_added { "added" } else { "removed" };
            format!("user.{kind} {}", change.id)
        };
        let names: Vec<String> = changes.iter().map(name).collect();
        let ours = claim_events(store, unix, &names).await?;
        let ours = changes.into_iter().zip(ours);
        Ok(ours
            .filter_map(|(change, is_ours)| is_ours.then_some(change))
            .collect())
    }
}

/// Claims events by their names, and returns for each whether it is the caller's.
pub(crate) async fn claim_events(
    store: &dyn Store,
    unix: u64,
    names: &[String],
) -> Result<Vec<bool>, StoreError> {
    let minute = unix / 60;
    let claims_of = |name: &String| {
        let digest = digest(name);
        // Others may ask in the next minutes, and look back.
        (0..CLAIMED_MINUTES).map(move |back| SaltClaim {
            bucket: minute.saturating_sub(back),
            digest,
        })
    };
    let claims: Vec<SaltClaim> = names.iter().flat_map(claims_of).collect();
    let new = store.claim_salts(&claims).await?;
    let each = usize::try_from(CLAIMED_MINUTES).unwrap_or(1);
    let mut ours: Vec<bool> = new
        .chunks(each)
        .map(|new| new.len() == each && new.iter().all(|is_new| *is_new))
        .collect();
    // Whatever the store answers.
    ours.resize(names.len(), false);
    Ok(ours)
}

fn digest(name: &str) -> [u8; 8] {
    let hash = adit_crypto::sha256(name.as_bytes());
    let mut digest = [0; 8];
    digest
        .iter_mut()
        .zip(hash)
        .for_each(|(to, from)| *to = from);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    fn change(id: u32, is_added: bool) -> UserChange {
        UserChange {
            id,
            name: format!("user-{id}"),
            is_added,
        }
    }

    #[tokio::test]
    async fn one_of_the_nodes_announces_each_change() {
        let (store, now) = (MemoryStore::new(), adit_net::system::unix_now().0);
        let claim = async |changes: &[UserChange], at: u64| {
            let claimed = UserChange::claim(changes.to_vec(), &store, at).await;
            claimed.unwrap()
        };
        let all = [change(1, true), change(2, true), change(1, false)];
        assert_eq!(claim(&all[..2], now).await, all[..2]);
        // Another node has read further.
        assert_eq!(claim(&all, now).await, all[2..]);
        // A late one, as late as it may be, and in another minute.
        let late = now + CLAIM_TIME.as_secs();
        assert_eq!(claim(&all, late).await, []);
        assert_eq!(claim(&[], now).await, []);
    }
}
