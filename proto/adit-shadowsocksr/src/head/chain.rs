//! The first message of `auth_chain_*`: 36 bytes, and the initial state of both directions.

use core::ops::Deref;
use std::sync::Arc;

use adit_crypto::{ct_eq, hmac_md5};
use adit_wire::{Entropy, HandshakeProgress, ProtocolError};

use super::{FORGED, VerifiedHead};
use crate::chain_padding::PaddingSizes;
use crate::field::{get_field, put_field, range_ref};
use crate::frame::ChainCodec;
use crate::hello::{HELLO_LEN, Hello};
use crate::user_key::UserKey;

/// Length of `c(4) ‖ MAC(8)`.
const CHECK: usize = 12;

const UID: usize = 12;
const BLOCK: usize = 16;
const SECOND: usize = 32;

/// Length of the whole message.
pub(crate) const HEAD: usize = 36;

/// The initial hashes of both directions.
pub(crate) struct ChainStart {
    client: [u8; 16],
    server: [u8; 16],
}

impl ChainStart {
    /// Creates the codec of the client-to-server direction.
    pub(crate) fn request_codec(&self, sizes: Arc<PaddingSizes>, user: &UserKey) -> ChainCodec {
        ChainCodec::new(
            sizes,
            user.key(),
            user.rc4_from_hash(&self.client),
            self.client,
        )
    }

    /// Creates the codec of the server-to-client direction: the same RC4 key, another hash.
    pub(crate) fn answer_codec(&self, sizes: Arc<PaddingSizes>, user: &UserKey) -> ChainCodec {
        ChainCodec::new(
            sizes,
            user.key(),
            user.rc4_from_hash(&self.client),
            self.server,
        )
    }
}

/// Writes the message. `iv_key` is the request's IV and the port's key.
pub(crate) fn pack_message(
    iv_key: &[u8],
    user: &UserKey,
    uid: [u8; 4],
    hello: &Hello,
    overhead: u16,
    rng: &mut dyn Entropy,
) -> Result<([u8; HEAD], ChainStart), ProtocolError> {
    let mut message = [0; HEAD];
    let mut c = [0; 4];
    rng.fill(&mut c);
    let client = hmac_md5(iv_key, &[&c]);
    put_field(&mut message, 0, &c)?;
    put_field(&mut message, 4, range_ref(&client, 0..8)?)?;
    let mut block = [0; 16];
    put_field(&mut block, 0, &hello.to_bytes())?;
    put_field(&mut block, HELLO_LEN, &overhead.to_le_bytes())?;
    user.block_cipher()?.encrypt_block(&mut block);
    put_field(&mut message, UID, &mask_uid(uid, &client)?)?;
    put_field(&mut message, BLOCK, &block)?;
    let server = hmac_md5(user.key(), &[range_ref(&message, UID..SECOND)?]);
    put_field(&mut message, SECOND, range_ref(&server, 0..4)?)?;
    Ok((message, ChainStart { client, server }))
}

/// Reads a message; `find` returns the key of a user id, if it is allowed.
pub(crate) fn read_message<K: Deref<Target = UserKey>>(
    iv_key: &[u8],
    plain: &[u8],
    find: impl Fn(u32) -> Option<K>,
) -> Result<HandshakeProgress<(VerifiedHead, u32, ChainStart)>, ProtocolError> {
    let need = |total| Ok(HandshakeProgress::NeedMore { total });
    if plain.len() < CHECK {
        return need(CHECK);
    }
    let client = hmac_md5(iv_key, &[range_ref(plain, 0..4)?]);
    if !ct_eq(range_ref(&client, 0..8)?, range_ref(plain, 4..CHECK)?) {
        return Err(FORGED);
    }
    if plain.len() < HEAD {
        return need(HEAD);
    }
    let uid = u32::from_le_bytes(mask_uid(get_field(plain, UID)?, &client)?);
    let user = find(uid).ok_or(FORGED)?;
    let server = hmac_md5(user.key(), &[range_ref(plain, UID..SECOND)?]);
    if !ct_eq(range_ref(&server, 0..4)?, range_ref(plain, SECOND..HEAD)?) {
        return Err(FORGED);
    }
    let mut block: [u8; 16] = get_field(plain, BLOCK)?;
    user.block_cipher()?.decrypt_block(&mut block);
    let found = VerifiedHead {
        hello: Hello::from_bytes(&block)?,
        consumed: HEAD,
        payload: HEAD..HEAD,
        proof: 0..HEAD,
    };
    Ok(HandshakeProgress::Done((
        found,
        uid,
        ChainStart { client, server },
    )))
}

fn mask_uid(uid: [u8; 4], hash: &[u8; 16]) -> Result<[u8; 4], ProtocolError> {
    let mask = u32::from_ne_bytes(get_field(hash, 8)?);
    Ok((u32::from_ne_bytes(uid) ^ mask).to_ne_bytes())
}
