//! Events that all nodes see, and one announces.
//!
//! ```text
//! seen ─▶ claim_events ─┬─ ours: send the event, then claim_unannounced, which marks it
//!                       └─ another node's: after ANNOUNCEMENT_TIME, claim_unannounced; send the events that are ours now
//! ```
//!
//! A node claims an event in the store, where claims are kept for some minutes, and marks it when it is on its way. If it
//! fails in between, there is no mark, and one of the others sends the event. A node that learns of an event later than
//! [`CLAIM_TIME`] says nothing: others have announced it.

use std::time::Duration;

use crate::store::{SaltClaim, Store, StoreError};

/// Time after an event in which nodes may claim it.
pub const CLAIM_TIME: Duration = Duration::from_secs(90);
/// Time after which a node that has claimed an event has marked it.
pub const ANNOUNCEMENT_TIME: Duration = Duration::from_secs(30);
/// Minutes for which a second announcement of the same event is suppressed; more than [`CLAIM_TIME`] and
/// [`ANNOUNCEMENT_TIME`].
const CLAIMED_MINUTES: u64 = 4;
/// Maximum number of events that one call to the store claims.
const MAX_CLAIMED: usize = 256;

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
    /// Returns the name of the event, which is the same at all nodes.
    #[must_use]
    pub fn event_name(&self) -> String {
        let kind = if self.is_added { "added" } else { "removed" };
        format!("user.{kind} {}", self.id)
    }
}

/// Claims events by their names, and returns for each whether it is the caller's: each is that of exactly one of the nodes
/// that claim it within [`CLAIM_TIME`]. `unix` is the store's clock, in seconds since 1970.
///
/// # Errors
///
/// The errors of the store. Some of the events may be claimed then.
pub async fn claim_events(
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
    let each = usize::try_from(CLAIMED_MINUTES).unwrap_or(1);
    let mut ours = Vec::with_capacity(names.len());
    for names in names.chunks(MAX_CLAIMED) {
        let claims: Vec<SaltClaim> = names.iter().flat_map(claims_of).collect();
        let new = store.claim_salts(&claims).await?;
        let is_new = |new: &[bool]| new.len() == each && new.iter().all(|is_new| *is_new);
        let mut claimed: Vec<bool> = new.chunks(each).map(is_new).collect();
        // Whatever the store answers.
        claimed.resize(names.len(), false);
        ours.append(&mut claimed);
    }
    Ok(ours)
}

/// Marks events that were claimed before, and returns for each whether it had no mark. Call it for events of the caller
/// that are on their way; and, [`ANNOUNCEMENT_TIME`] later, for those that another node has claimed: the caller sends them
/// if they had no mark.
///
/// # Errors
///
/// The errors of the store. Some of the events may be marked then.
pub async fn claim_unannounced(
    store: &dyn Store,
    unix: u64,
    names: &[String],
) -> Result<Vec<bool>, StoreError> {
    let marks: Vec<String> = names.iter().map(|name| format!("{name} sent")).collect();
    claim_events(store, unix, &marks).await
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
        let claim = async |names: &[String], at: u64| {
            let claimed = claim_events(&store, at, names).await;
            claimed.unwrap()
        };
        let all = [change(1, true), change(2, true), change(1, false)];
        let all = all.map(|change| change.event_name());
        assert_eq!(claim(&all[..2], now).await, [true, true]);
        // Another node has read further.
        assert_eq!(claim(&all, now).await, [false, false, true]);
        // A late one, as late as it may be, and in another minute.
        let late = now + CLAIM_TIME.as_secs();
        assert_eq!(claim(&all, late).await, [false; 3]);
        assert_eq!(claim(&[], now).await, [false; 0]);
        // More than one call.
        let many: Vec<String> = (0..600).map(|n| format!("event {n}")).collect();
        assert_eq!(claim(&many, now).await, [true; 600]);
        assert_eq!(claim(&many, now).await, [false; 600]);
    }

    #[tokio::test]
    async fn what_its_claimant_has_not_sent_is_that_of_one_other() {
        let (store, now) = (MemoryStore::new(), adit_net::system::unix_now().0);
        let names = ["sent", "lost"].map(str::to_owned);
        assert_eq!(claim_events(&store, now, &names).await.unwrap(), [true; 2]);
        let mark = async |names: &[String], at: u64| {
            let marked = claim_unannounced(&store, at, names).await;
            marked.unwrap()
        };
        assert_eq!(mark(&names[..1], now + 2).await, [true]);
        // The latest of the others learned of it at the last moment.
        let late = now + (CLAIM_TIME + ANNOUNCEMENT_TIME).as_secs();
        assert_eq!(mark(&names, late).await, [false, true]);
        assert_eq!(mark(&names, late).await, [false, false]);
    }
}
