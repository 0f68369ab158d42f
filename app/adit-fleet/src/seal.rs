//! Seals and opens the records of a realm.

use std::fmt;

use adit_crypto::{AeadKey, AeadKind, KdfContext};
use adit_wire::Entropy;
use zeroize::Zeroizing;

use crate::change::{ChangeId, ChangeOp, ChangeRequest};
use crate::node_op::{NodeOp, NodeOrder};
use crate::packed_user::PackedUser;
use crate::realm_key::RealmKey;
use crate::record::FleetUser;
use crate::sealed_record::{
    HEADER, MAX_SEALED, NONCE, NameDigest, RecordError, SealedRecord, TAG, VERSION,
};

/// The kinds of sealed records, each of which has other keys.
#[derive(Clone, Copy)]
enum Kind {
    User = 1,
    Delete = 2,
    Kick = 3,
    Node = 4,
    Policy = 5,
}

/// Seals and opens the records of a realm.
pub struct RecordCipher {
    realm: String,
    key: RealmKey,
    // Hashed once: nodes open the records of all users when they start, and digest the salt of each session.
    record_keys: KdfContext,
    names: KdfContext,
    salts: KdfContext,
    devices: KdfContext,
}

impl fmt::Debug for RecordCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordCipher({:?})", self.realm)
    }
}

impl RecordCipher {
    /// Creates the cipher of a realm.
    #[must_use]
    pub fn new(realm: &str, key: &RealmKey) -> Self {
        Self {
            realm: realm.to_owned(),
            key: key.clone(),
            record_keys: KdfContext::new("adit fleet record key v1"),
            names: KdfContext::new("adit fleet name v1"),
            salts: KdfContext::new("adit fleet salt v1"),
            devices: KdfContext::new("adit fleet device v1"),
        }
    }

    /// Returns the name of the realm.
    #[must_use]
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// Seals a user as the content of change `number`.
    ///
    /// # Errors
    ///
    /// A text of the user is too long or empty.
    pub fn seal(
        &self,
        user: &FleetUser,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<SealedRecord, RecordError> {
        let digest = self.name_digest(&user.name);
        self.seal_bytes(Kind::User, user.id, digest, number, &user.to_bytes()?, rng)
    }

    /// Seals a user who is packed, as [`Self::seal`] does.
    pub(crate) fn seal_packed(
        &self,
        id: u32,
        user: &PackedUser,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<SealedRecord, RecordError> {
        let digest = self.name_digest(user.name());
        self.seal_bytes(Kind::User, id, digest, number, user.as_bytes(), rng)
    }

    /// Opens the record of user `id`.
    ///
    /// # Errors
    ///
    /// The record is another user's or another realm's, or was changed.
    pub fn open(&self, id: u32, record: &SealedRecord) -> Result<FleetUser, RecordError> {
        let user = self.open_packed(id, record)?;
        user.unpack(id).ok_or(RecordError::Content)
    }

    /// Opens the record of user `id`, as [`Self::open`] does.
    pub(crate) fn open_packed(
        &self,
        id: u32,
        record: &SealedRecord,
    ) -> Result<PackedUser, RecordError> {
        let plain = self.open_bytes(Kind::User, id, record)?;
        let user = PackedUser::from_bytes(&plain).ok_or(RecordError::Content)?;
        match record.name_digest() == Some(self.name_digest(user.name())) {
            true => Ok(user),
            false => Err(RecordError::Content),
        }
    }

    /// Returns the request to add or replace a user as change `number`.
    ///
    /// # Errors
    ///
    /// See [`Self::seal`].
    pub fn put(
        &self,
        user: &FleetUser,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        Ok(ChangeRequest {
            op: ChangeOp::Put,
            target: user.id,
            sealed: self.seal(user, number, rng)?,
        })
    }

    /// Returns the request to delete a user as change `number`.
    ///
    /// # Errors
    ///
    /// None that occurs.
    pub fn delete(
        &self,
        id: u32,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        self.order(ChangeOp::Delete, id, &[], number, rng)
    }

    /// Returns the request to end the sessions of a user as change `number`.
    ///
    /// # Errors
    ///
    /// None that occurs.
    pub fn kick(
        &self,
        id: u32,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        self.order(ChangeOp::Kick, id, &[], number, rng)
    }

    /// Returns the request to send an operation to a node as change `number`, at a time in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The operation is too long.
    pub fn node_op(
        &self,
        node: u32,
        op: &NodeOp,
        issued_unix: u64,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        let order = NodeOrder {
            issued_unix,
            op: op.clone(),
        };
        let text = serde_json::to_vec(&order).map_err(|_| RecordError::Content)?;
        self.order(ChangeOp::Node, node, &text, number, rng)
    }

    /// Returns the request to replace the policy of the realm, as change `number`: a JSON text that nodes interpret.
    ///
    /// # Errors
    ///
    /// The text is too long.
    pub fn policy(
        &self,
        text: &str,
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        self.order(ChangeOp::Policy, 0, text.as_bytes(), number, rng)
    }

    fn order(
        &self,
        op: ChangeOp,
        target: u32,
        payload: &[u8],
        number: ChangeId,
        rng: &mut dyn Entropy,
    ) -> Result<ChangeRequest, RecordError> {
        let kind = order_kind(op).ok_or(RecordError::Content)?;
        let sealed = self.seal_bytes(kind, target, NameDigest([0; 16]), number, payload, rng)?;
        Ok(ChangeRequest { op, target, sealed })
    }

    /// Opens the order of a change, and returns its payload.
    pub(crate) fn open_order(
        &self,
        op: ChangeOp,
        target: u32,
        sealed: &SealedRecord,
    ) -> Result<Zeroizing<Vec<u8>>, RecordError> {
        let kind = order_kind(op).ok_or(RecordError::Content)?;
        self.open_bytes(kind, target, sealed)
    }

    /// Returns the digest of a user's name.
    #[must_use]
    pub fn name_digest(&self, name: &str) -> NameDigest {
        NameDigest(self.digest(&self.names, name.as_bytes()))
    }

    /// Returns the digest of a salt for the filter that nodes share.
    #[must_use]
    pub fn salt_digest(&self, salt: &[u8]) -> [u8; 8] {
        self.digest(&self.salts, salt)
    }

    /// Returns the digest of a client's address or network, by which nodes count the devices of a user.
    #[must_use]
    pub fn device_digest(&self, network: &[u8]) -> [u8; 8] {
        self.digest(&self.devices, network)
    }

    /// Returns a value from which the store server learns nothing, and which differs for any other realm or key.
    #[must_use]
    pub fn key_check(&self) -> [u8; 16] {
        let context = KdfContext::new("adit fleet key check v1");
        self.digest(&context, self.realm.as_bytes())
    }

    pub(crate) fn digest<const N: usize>(&self, context: &KdfContext, content: &[u8]) -> [u8; N] {
        let mut digest = [0; N];
        context.derive_key(&[self.key.expose(), content], &mut digest);
        digest
    }

    fn record_key(
        &self,
        kind: Kind,
        id: u32,
        digest: NameDigest,
        number: ChangeId,
    ) -> Result<AeadKey, RecordError> {
        let mut key = Zeroizing::new([0; 32]);
        // The realm is the only part of variable length, and the last one.
        let parts: [&[u8]; 6] = [
            self.key.expose(),
            &[kind as u8],
            &id.to_be_bytes(),
            &number.0.to_be_bytes(),
            &digest.0,
            self.realm.as_bytes(),
        ];
        self.record_keys.derive_key(&parts, &mut *key);
        AeadKey::new(AeadKind::Aes256Gcm, &*key).map_err(|_| RecordError::Forged)
    }

    fn seal_bytes(
        &self,
        kind: Kind,
        id: u32,
        digest: NameDigest,
        number: ChangeId,
        plain: &[u8],
        rng: &mut dyn Entropy,
    ) -> Result<SealedRecord, RecordError> {
        if plain.len() > MAX_SEALED - HEADER - TAG {
            return Err(RecordError::TooLong);
        }
        let mut nonce = [0; NONCE];
        rng.fill(&mut nonce);
        let mut cipher_text = Zeroizing::new(plain.to_vec());
        let key = self.record_key(kind, id, digest, number)?;
        let tag = key
            .seal_in_place(&nonce, &mut cipher_text)
            .map_err(|_| RecordError::TooLong)?;
        let parts: [&[u8]; 6] = [
            &[VERSION],
            &digest.0,
            &number.0.to_be_bytes(),
            &nonce,
            &cipher_text,
            &tag,
        ];
        Ok(SealedRecord::from_bytes(parts.concat()))
    }

    fn open_bytes(
        &self,
        kind: Kind,
        id: u32,
        record: &SealedRecord,
    ) -> Result<Zeroizing<Vec<u8>>, RecordError> {
        let header = record.header()?;
        let sealed = record.as_bytes().get(HEADER..).ok_or(RecordError::Length)?;
        let (cipher_text, tag) = sealed
            .split_last_chunk::<TAG>()
            .ok_or(RecordError::Length)?;
        let mut plain = Zeroizing::new(cipher_text.to_vec());
        let key = self.record_key(kind, id, header.digest, header.number)?;
        key.open_in_place(&header.nonce, &mut plain, tag)
            .map_err(|_| RecordError::Forged)?;
        Ok(plain)
    }
}

/// Returns the kind of an operation's order. Users are no orders, and a restoration has none.
const fn order_kind(op: ChangeOp) -> Option<Kind> {
    match op {
        ChangeOp::Delete => Some(Kind::Delete),
        ChangeOp::Kick => Some(Kind::Kick),
        ChangeOp::Node => Some(Kind::Node),
        ChangeOp::Policy => Some(Kind::Policy),
        ChangeOp::Put | ChangeOp::Restored => None,
    }
}

#[cfg(test)]
mod tests {
    use adit_net::system::SystemRng;

    use super::*;

    fn cipher(realm: &str, key: u8) -> RecordCipher {
        RecordCipher::new(realm, &RealmKey::new([key; 32]))
    }

    fn sealed() -> SealedRecord {
        let user = FleetUser::new(7, "alice", [3; 32]);
        cipher("main", 1)
            .seal(&user, ChangeId(5), &mut SystemRng)
            .unwrap()
    }

    #[test]
    fn a_record_opens_in_its_place_alone() {
        let record = sealed();
        let user = cipher("main", 1).open(7, &record).unwrap();
        assert_eq!(user, FleetUser::new(7, "alice", [3; 32]));
        assert_eq!(record.number(), Some(ChangeId(5)));
        let forged = Err(RecordError::Forged);
        assert_eq!(cipher("main", 1).open(8, &record), forged);
        assert_eq!(cipher("main", 2).open(7, &record), forged);
        assert_eq!(cipher("other", 1).open(7, &record), forged);
        let order = cipher("main", 1).open_order(ChangeOp::Delete, 7, &record);
        assert_eq!(order.unwrap_err(), RecordError::Forged);
    }

    #[test]
    fn any_changed_bit_is_noticed() {
        let record = sealed();
        for index in 0..record.as_bytes().len() {
            for bit in 0..8 {
                let mut bytes = record.as_bytes().to_vec();
                bytes[index] ^= 1 << bit;
                cipher("main", 1)
                    .open(7, &SealedRecord::from_bytes(bytes))
                    .unwrap_err();
            }
            let cut = SealedRecord::from_bytes(record.as_bytes()[..index].to_vec());
            cipher("main", 1).open(7, &cut).unwrap_err();
        }
    }

    #[test]
    fn an_order_is_for_one_target_and_operation() {
        let cipher = cipher("main", 1);
        let request = cipher.kick(7, ChangeId(9), &mut SystemRng).unwrap();
        let open = |op, target| cipher.open_order(op, target, &request.sealed);
        assert_eq!(&**open(ChangeOp::Kick, 7).unwrap(), b"");
        for (op, target) in [
            (ChangeOp::Kick, 8),
            (ChangeOp::Delete, 7),
            (ChangeOp::Node, 7),
        ] {
            assert_eq!(open(op, target).unwrap_err(), RecordError::Forged);
        }
    }

    #[test]
    fn the_record_shows_nothing_of_the_user() {
        let record = sealed();
        let shows = |part: &[u8]| {
            record
                .as_bytes()
                .windows(part.len())
                .any(|found| found == part)
        };
        assert!(!shows(b"alice") && !shows(&[3; 8]));
    }

    #[test]
    fn digests_differ_by_purpose() {
        let cipher = cipher("main", 1);
        assert_ne!(cipher.salt_digest(b"x"), cipher.device_digest(b"x"));
        assert_ne!(cipher.name_digest("a"), cipher.name_digest("b"));
    }
}
