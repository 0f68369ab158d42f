//! Changes of users by an operator: numbers are assigned, records sealed, and a write is repeated if another operator
//! was faster.

use std::sync::Arc;

use adit_net::system::{SystemRng, unix_now};
use zeroize::Zeroizing;

use crate::change::{ChangeId, ChangeRequest};
use crate::node_op::NodeOp;
use crate::record::FleetUser;
use crate::seal::RecordCipher;
use crate::sealed_record::RecordError;
use crate::store::{Store, StoreError, StoreErrorKind};

/// Maximum number of users that are written together.
const MAX_TOGETHER: usize = 500;
/// Number of times that a write is repeated because others were faster.
const MAX_ATTEMPTS: u32 = 100;

/// The error of a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The store has refused the change, or does not answer: the change may have been made then.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A user cannot be sealed.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Changes the users of a realm.
#[derive(Debug, Clone)]
pub struct RealmWriter {
    store: Arc<dyn Store>,
    cipher: Arc<RecordCipher>,
}

impl RealmWriter {
    /// Creates a writer.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, cipher: RecordCipher) -> Self {
        Self {
            store,
            cipher: Arc::new(cipher),
        }
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the cipher of the realm.
    #[must_use]
    pub fn cipher(&self) -> &RecordCipher {
        &self.cipher
    }

    /// Returns a random secret for a new user.
    #[must_use]
    pub fn new_secret() -> Zeroizing<[u8; 32]> {
        let mut secret = Zeroizing::new([0; 32]);
        adit_wire::Entropy::fill(&mut SystemRng, &mut *secret);
        secret
    }

    /// Returns the user with this name.
    ///
    /// # Errors
    ///
    /// The store does not answer, or has a record that was changed.
    pub async fn find(&self, name: &str) -> Result<Option<FleetUser>, WriteError> {
        let digest = self.cipher.name_digest(name);
        match self.store.user_by_name(digest).await? {
            Some((id, sealed)) => Ok(Some(self.cipher.open(id, &sealed)?)),
            None => Ok(None),
        }
    }

    /// Adds users, whose numbers it assigns. Each 500 are added together: after an error, those before are there.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NameTaken`], and the other errors of the store and of records.
    pub async fn add(&self, users: &mut [FleetUser]) -> Result<(), WriteError> {
        for users in users.chunks_mut(MAX_TOGETHER) {
            let count = u32::try_from(users.len()).unwrap_or(u32::MAX);
            let first = self.store.allocate_users(count).await?;
            for (id, user) in (first..).zip(users.iter_mut()) {
                user.id = id;
            }
            self.put(users).await?;
        }
        Ok(())
    }

    /// Replaces users. At most 500 are written together.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NameTaken`], and the other errors of the store and of records.
    pub async fn put(&self, users: &[FleetUser]) -> Result<(), WriteError> {
        for users in users.chunks(MAX_TOGETHER) {
            self.write(|cipher, first| {
                let numbered = (first.0..).map(ChangeId).zip(users);
                let puts = numbered.map(|(number, user)| cipher.put(user, number, &mut SystemRng));
                puts.collect()
            })
            .await?;
        }
        Ok(())
    }

    /// Deletes users.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Gone`] if there is no such user, and the other errors of the store.
    pub async fn delete(&self, ids: &[u32]) -> Result<(), WriteError> {
        for ids in ids.chunks(MAX_TOGETHER) {
            self.write(|cipher, first| {
                let numbered = (first.0..).map(ChangeId).zip(ids);
                let deletes =
                    numbered.map(|(number, id)| cipher.delete(*id, number, &mut SystemRng));
                deletes.collect()
            })
            .await?;
        }
        Ok(())
    }

    /// Ends the sessions of a user at all nodes.
    ///
    /// # Errors
    ///
    /// The errors of the store.
    pub async fn kick(&self, id: u32) -> Result<(), WriteError> {
        self.write(|cipher, number| Ok(vec![cipher.kick(id, number, &mut SystemRng)?]))
            .await?;
        Ok(())
    }

    /// Sends an operation to a node, and returns the number of its change.
    ///
    /// # Errors
    ///
    /// The errors of the store.
    pub async fn send_node_op(&self, node: u32, op: &NodeOp) -> Result<ChangeId, WriteError> {
        let issued = unix_now().0;
        self.write(|cipher, number| {
            Ok(vec![cipher.node_op(
                node,
                op,
                issued,
                number,
                &mut SystemRng,
            )?])
        })
        .await
    }

    /// Replaces the policy of the realm.
    ///
    /// # Errors
    ///
    /// The errors of the store.
    pub async fn set_policy(&self, text: &str) -> Result<(), WriteError> {
        self.write(|cipher, number| Ok(vec![cipher.policy(text, number, &mut SystemRng)?]))
            .await?;
        Ok(())
    }

    /// Writes what `make` returns for the number of the first change, again after a conflict.
    async fn write(
        &self,
        make: impl Fn(&RecordCipher, ChangeId) -> Result<Vec<ChangeRequest>, RecordError>,
    ) -> Result<ChangeId, WriteError> {
        let mut head = self.store.head().await?;
        for _ in 0..MAX_ATTEMPTS {
            let changes = make(&self.cipher, head.next())?;
            match self.store.write(head, &changes).await {
                Ok(last) => return Ok(last),
                Err(StoreError {
                    kind: StoreErrorKind::Conflict { head: last },
                    ..
                }) => head = last,
                Err(why) => return Err(why.into()),
            }
        }
        Err(StoreError::from(StoreErrorKind::Conflict { head }).into())
    }
}
