//! The first message of `auth_chain_*`: 36 bytes, and the initial state of both directions.

use std::sync::Arc;

use adit_crypto::{ct_eq, hmac_md5};
use adit_wire::{Broken, Entropy, Step};

use super::{FORGED, Found};
use crate::chain::Sizes;
use crate::field::{get, put, view};
use crate::frame::Chained;
use crate::hello::{HELLO, Hello};
use crate::user::UserKey;

/// Length of `c(4) ‖ MAC(8)`.
const CHECK: usize = 12;

const UID: usize = 12;
const BLOCK: usize = 16;
const SECOND: usize = 32;

/// Length of the whole message.
pub(crate) const HEAD: usize = 36;

/// The initial hashes of both directions.
pub(crate) struct Start {
    client: [u8; 16],
    server: [u8; 16],
}

impl Start {
    /// Creates the codec of the client-to-server direction.
    pub(crate) fn requests(&self, sizes: Arc<Sizes>, user: &UserKey) -> Chained {
        Chained::new(sizes, user.key(), user.rc4(&self.client), self.client)
    }

    /// Creates the codec of the server-to-client direction: the same RC4 key, another hash.
    pub(crate) fn answers(&self, sizes: Arc<Sizes>, user: &UserKey) -> Chained {
        Chained::new(sizes, user.key(), user.rc4(&self.client), self.server)
    }
}

/// Writes the message. `iv_key` is the request's IV and the port's key.
pub(crate) fn pack(
    iv_key: &[u8],
    user: &UserKey,
    uid: [u8; 4],
    hello: &Hello,
    overhead: u16,
    chance: &mut dyn Entropy,
) -> Result<([u8; HEAD], Start), Broken> {
    let mut message = [0; HEAD];
    let mut c = [0; 4];
    chance.fill(&mut c);
    let client = hmac_md5(iv_key, &[&c]);
    put(&mut message, 0, &c)?;
    put(&mut message, 4, view(&client, 0..8)?)?;
    let mut block = [0; 16];
    put(&mut block, 0, &hello.bytes())?;
    put(&mut block, HELLO, &overhead.to_le_bytes())?;
    user.block()?.encrypt(&mut block);
    put(&mut message, UID, &masked(uid, &client)?)?;
    put(&mut message, BLOCK, &block)?;
    let server = hmac_md5(user.key(), &[view(&message, UID..SECOND)?]);
    put(&mut message, SECOND, view(&server, 0..4)?)?;
    Ok((message, Start { client, server }))
}

/// Reads a message; `find` returns the key of a user id, if it is allowed.
pub(crate) fn read<'u>(
    iv_key: &[u8],
    plain: &[u8],
    find: impl Fn(u32) -> Option<&'u UserKey>,
) -> Result<Step<(Found, u32, Start)>, Broken> {
    let need = |total| Ok(Step::NeedMore { total });
    if plain.len() < CHECK {
        return need(CHECK);
    }
    let client = hmac_md5(iv_key, &[view(plain, 0..4)?]);
    if !ct_eq(view(&client, 0..8)?, view(plain, 4..CHECK)?) {
        return Err(FORGED);
    }
    if plain.len() < HEAD {
        return need(HEAD);
    }
    let uid = u32::from_le_bytes(masked(get(plain, UID)?, &client)?);
    let user = find(uid).ok_or(FORGED)?;
    let server = hmac_md5(user.key(), &[view(plain, UID..SECOND)?]);
    if !ct_eq(view(&server, 0..4)?, view(plain, SECOND..HEAD)?) {
        return Err(FORGED);
    }
    let mut block: [u8; 16] = get(plain, BLOCK)?;
    user.block()?.decrypt(&mut block);
    let found = Found {
        hello: Hello::read(&block)?,
        consumed: HEAD,
        payload: HEAD..HEAD,
        proof: 0..HEAD,
    };
    Ok(Step::Done((found, uid, Start { client, server })))
}

fn masked(uid: [u8; 4], hash: &[u8; 16]) -> Result<[u8; 4], Broken> {
    let mask = u32::from_ne_bytes(get(hash, 8)?);
    Ok((u32::from_ne_bytes(uid) ^ mask).to_ne_bytes())
}
