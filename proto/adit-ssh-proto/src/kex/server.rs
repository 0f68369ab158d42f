//! The server's side of each key exchange method.

use adit_crypto::{
    AgreementCurve, DhGroup, DhKey, ML_KEM_PUBLIC_LEN, ModpSize, SNTRUP_PUBLIC_LEN, Sha2,
    ml_kem_encapsulate, sntrup_encapsulate,
};
use adit_wire::Entropy;

use super::KexSecret;
use super::client::{generate_ecdh_key, split_hybrid_value};
use super::secret::{combine_hybrid_secret, curve_of, encode_mpint, to_ssh_error};
use crate::algorithm::Kex;
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// A running key exchange method.
#[derive(Debug)]
pub struct ServerKex(ServerKexState);

#[derive(Debug)]
enum ServerKexState {
    Await(Kex),
    /// The group was sent.
    Exchange {
        sizes: [u32; 3],
        key: DhKey,
    },
    Done,
}

/// Result of the server's side.
#[derive(Debug)]
pub struct ServerKexAnswer {
    /// Message to send.
    pub reply: ServerKexReplyValue,
    /// Shared secret, and the values to be hashed.
    pub agreed: KexSecret,
}

/// The last message without the host key and its signature, which require the exchange hash.
#[derive(Debug)]
pub struct ServerKexReplyValue {
    number: u8,
    /// Local public value in its encoding, `string` or `mpint`.
    value: Vec<u8>,
}

impl ServerKexReplyValue {
    /// Appends the payload to `out`.
    pub fn write_payload(&self, host_key: &[u8], signature: &[u8], out: &mut Vec<u8>) {
        out.put_u8(self.number);
        out.put_string(host_key);
        out.put_raw(&self.value);
        out.put_string(signature);
    }
}

impl ServerKex {
    /// Creates the state that waits for the client's first message.
    #[must_use]
    pub const fn new(kex: Kex) -> Self {
        Self(ServerKexState::Await(kex))
    }

    /// Handles the client's next message. Returns `None` if another one has to follow; a payload
    /// was appended to `out` then.
    ///
    /// # Errors
    /// The same as for [`ClientKex::handle_input`](super::ClientKex::handle_input).
    pub fn handle_input(
        &mut self,
        payload: &[u8],
        entropy: &mut dyn Entropy,
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerKexAnswer>, SshError> {
        let mut r = MessageReader::new(payload, "key exchange");
        let message = r.read_u8()?;
        let expected = match self.0 {
            ServerKexState::Await(Kex::GroupExchange) => Some(msg::KEX_GEX_REQUEST),
            ServerKexState::Await(_) => Some(msg::KEX_INIT),
            ServerKexState::Exchange { .. } => Some(msg::KEX_GEX_INIT),
            ServerKexState::Done => None,
        };
        if Some(message) != expected {
            return Err(SshError::Unexpected(message));
        }
        match core::mem::replace(&mut self.0, ServerKexState::Done) {
            ServerKexState::Await(Kex::GroupExchange) => {
                let sizes = [r.read_u32()?, r.read_u32()?, r.read_u32()?];
                r.expect_end()?;
                let group = DhGroup::rfc3526(choose_group(sizes)?).map_err(to_ssh_error)?;
                out.put_u8(msg::KEX_REPLY);
                out.put_mpint(group.prime());
                out.put_mpint(&group.generator());
                let key = DhKey::generate(group, entropy).map_err(to_ssh_error)?;
                self.0 = ServerKexState::Exchange { sizes, key };
                Ok(None)
            }
            ServerKexState::Exchange { sizes, key } => {
                let theirs = r.read_mpint()?;
                r.expect_end()?;
                let mut transcript = Vec::new();
                sizes.iter().for_each(|size| transcript.put_u32(*size));
                transcript.put_mpint(key.group().prime());
                transcript.put_mpint(&key.group().generator());
                compute_dh_answer(msg::KEX_GEX_REPLY, &key, transcript, theirs).map(Some)
            }
            ServerKexState::Await(kex) => compute_answer(kex, r, entropy).map(Some),
            ServerKexState::Done => Err(SshError::Unexpected(message)),
        }
    }
}

fn compute_answer(
    kex: Kex,
    mut r: MessageReader<'_>,
    entropy: &mut dyn Entropy,
) -> Result<ServerKexAnswer, SshError> {
    let modp = match kex {
        Kex::Group14 => Some(ModpSize::Bits2048),
        Kex::Group16 => Some(ModpSize::Bits4096),
        Kex::Group18 => Some(ModpSize::Bits8192),
        _ => None,
    };
    if let Some(which) = modp {
        let theirs = r.read_mpint()?;
        r.expect_end()?;
        let group = DhGroup::rfc3526(which).map_err(to_ssh_error)?;
        let key = DhKey::generate(group, entropy).map_err(to_ssh_error)?;
        return compute_dh_answer(msg::KEX_REPLY, &key, Vec::new(), theirs);
    }
    let theirs = r.read_string()?;
    r.expect_end()?;
    let (ours, secret) = if let Some(curve) = curve_of(kex) {
        let key = generate_ecdh_key(curve, entropy)?;
        let secret = encode_mpint(&key.derive_secret(theirs).map_err(to_ssh_error)?);
        (key.public_key().to_vec(), secret)
    } else {
        let sntrup = kex != Kex::MlKem768X25519;
        let len = if sntrup {
            SNTRUP_PUBLIC_LEN
        } else {
            ML_KEM_PUBLIC_LEN
        };
        let (lattice, point) = split_hybrid_value(theirs, len)?;
        let key = generate_ecdh_key(AgreementCurve::X25519, entropy)?;
        let classical = key.derive_secret(point).map_err(to_ssh_error)?;
        let (mut ours, secret) = if sntrup {
            let (ours, inner) = sntrup_encapsulate(lattice, entropy).map_err(to_ssh_error)?;
            (
                ours,
                combine_hybrid_secret(Sha2::Sha512, inner.expose(), &classical),
            )
        } else {
            let (ours, inner) = ml_kem_encapsulate(lattice).map_err(to_ssh_error)?;
            (
                ours,
                combine_hybrid_secret(Sha2::Sha256, inner.expose(), &classical),
            )
        };
        ours.extend_from_slice(key.public_key());
        (ours, secret)
    };
    let mut value = Vec::with_capacity(ours.len() + 4);
    value.put_string(&ours);
    Ok(ServerKexAnswer {
        reply: ServerKexReplyValue {
            number: msg::KEX_REPLY,
            value,
        },
        agreed: KexSecret::from_public_strings(theirs, &ours, secret),
    })
}

fn compute_dh_answer(
    number_of_message: u8,
    key: &DhKey,
    mut transcript: Vec<u8>,
    theirs: &[u8],
) -> Result<ServerKexAnswer, SshError> {
    let secret = encode_mpint(&key.derive_secret(theirs).map_err(to_ssh_error)?);
    transcript.put_mpint(theirs);
    transcript.put_mpint(key.public_value());
    let mut value = Vec::new();
    value.put_mpint(key.public_value());
    Ok(ServerKexAnswer {
        reply: ServerKexReplyValue {
            number: number_of_message,
            value,
        },
        agreed: KexSecret { transcript, secret },
    })
}

/// Chooses the group for the sizes that a client requests (RFC 4419 section 3): the smallest one of
/// RFC 3526 that is at least the preferred size, otherwise the largest that the client accepts.
fn choose_group([least, wanted, most]: [u32; 3]) -> Result<ModpSize, SshError> {
    if least > wanted || wanted > most {
        return Err(SshError::Malformed("sizes of a group exchange"));
    }
    let groups = [
        (2048, ModpSize::Bits2048),
        (4096, ModpSize::Bits4096),
        (8192, ModpSize::Bits8192),
    ];
    let fits = |(bits, _): &&(u32, ModpSize)| (least..=most).contains(bits);
    let enough = groups.iter().filter(fits).find(|(bits, _)| *bits >= wanted);
    let chosen = enough.or_else(|| groups.iter().rev().find(fits));
    let (_, group) = chosen.ok_or(SshError::Kex("no group has a size that the client accepts"))?;
    Ok(*group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_for_sizes() {
        for (sizes, group) in [
            ([2048, 3072, 8192], ModpSize::Bits4096),
            ([1024, 1024, 8192], ModpSize::Bits2048),
            ([2048, 7680, 8192], ModpSize::Bits8192),
            ([2048, 3072, 4000], ModpSize::Bits2048),
            ([8192, 8192, u32::MAX], ModpSize::Bits8192),
            ([2048, 16384, 16384], ModpSize::Bits8192),
        ] {
            assert_eq!(choose_group(sizes), Ok(group), "{sizes:?}");
        }
        for bad in [
            [1024, 1024, 2047],
            [8193, 9000, 9000],
            [0; 3],
            [3000, 2048, 8192],
            [2048, 9000, 8192],
        ] {
            assert!(choose_group(bad).is_err(), "{bad:?}");
        }
    }
}
