//! The server's side of each key exchange method.

use adit_crypto::{
    AgreementCurve, DhGroup, DhKey, ML_KEM_PUBLIC_LEN, ModpSize, SNTRUP_PUBLIC_LEN, Sha2,
    ml_kem_encapsulate, sntrup_encapsulate,
};
use adit_wire::Entropy;

use super::Agreed;
use super::client::{ecdh_key, halves};
use super::secret::{curve_of, fault, hybrid, number};
use crate::algorithm::Kex;
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

/// A running key exchange method.
#[derive(Debug)]
pub struct ServerKex(State);

#[derive(Debug)]
enum State {
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
pub struct Answer {
    /// Message to send.
    pub reply: AnswerValue,
    /// Shared secret, and the values to be hashed.
    pub agreed: Agreed,
}

/// The last message without the host key and its signature, which require the exchange hash.
#[derive(Debug)]
pub struct AnswerValue {
    number: u8,
    /// Local public value in its encoding, `string` or `mpint`.
    value: Vec<u8>,
}

impl AnswerValue {
    /// Appends the payload to `out`.
    pub fn write(&self, host_key: &[u8], signature: &[u8], out: &mut Vec<u8>) {
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
        Self(State::Await(kex))
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
    ) -> Result<Option<Answer>, SshError> {
        let mut r = Reader::new(payload, "key exchange");
        let message = r.u8()?;
        let expected = match self.0 {
            State::Await(Kex::GroupExchange) => Some(msg::KEX_GEX_REQUEST),
            State::Await(_) => Some(msg::KEX_INIT),
            State::Exchange { .. } => Some(msg::KEX_GEX_INIT),
            State::Done => None,
        };
        if Some(message) != expected {
            return Err(SshError::Unexpected(message));
        }
        match core::mem::replace(&mut self.0, State::Done) {
            State::Await(Kex::GroupExchange) => {
                let sizes = [r.u32()?, r.u32()?, r.u32()?];
                r.end()?;
                let group = DhGroup::rfc3526(choose(sizes)?).map_err(fault)?;
                out.put_u8(msg::KEX_REPLY);
                out.put_mpint(group.prime());
                out.put_mpint(&group.generator());
                let key = DhKey::generate(group, entropy).map_err(fault)?;
                self.0 = State::Exchange { sizes, key };
                Ok(None)
            }
            State::Exchange { sizes, key } => {
                let theirs = r.mpint()?;
                r.end()?;
                let mut transcript = Vec::new();
                sizes.iter().for_each(|size| transcript.put_u32(*size));
                transcript.put_mpint(key.group().prime());
                transcript.put_mpint(&key.group().generator());
                dh_answer(msg::KEX_GEX_REPLY, &key, transcript, theirs).map(Some)
            }
            State::Await(kex) => answer(kex, r, entropy).map(Some),
            State::Done => Err(SshError::Unexpected(message)),
        }
    }
}

fn answer(kex: Kex, mut r: Reader<'_>, entropy: &mut dyn Entropy) -> Result<Answer, SshError> {
    let modp = match kex {
        Kex::Group14 => Some(ModpSize::Bits2048),
        Kex::Group16 => Some(ModpSize::Bits4096),
        Kex::Group18 => Some(ModpSize::Bits8192),
        _ => None,
    };
    if let Some(which) = modp {
        let theirs = r.mpint()?;
        r.end()?;
        let group = DhGroup::rfc3526(which).map_err(fault)?;
        let key = DhKey::generate(group, entropy).map_err(fault)?;
        return dh_answer(msg::KEX_REPLY, &key, Vec::new(), theirs);
    }
    let theirs = r.string()?;
    r.end()?;
    let (ours, secret) = if let Some(curve) = curve_of(kex) {
        let key = ecdh_key(curve, entropy)?;
        let secret = number(&key.derive_secret(theirs).map_err(fault)?);
        (key.public_key().to_vec(), secret)
    } else {
        let sntrup = kex != Kex::MlKem768X25519;
        let len = if sntrup {
            SNTRUP_PUBLIC_LEN
        } else {
            ML_KEM_PUBLIC_LEN
        };
        let (lattice, point) = halves(theirs, len)?;
        let key = ecdh_key(AgreementCurve::X25519, entropy)?;
        let classical = key.derive_secret(point).map_err(fault)?;
        let (mut ours, secret) = if sntrup {
            let (ours, inner) = sntrup_encapsulate(lattice, entropy).map_err(fault)?;
            (ours, hybrid(Sha2::Sha512, inner.expose(), &classical))
        } else {
            let (ours, inner) = ml_kem_encapsulate(lattice).map_err(fault)?;
            (ours, hybrid(Sha2::Sha256, inner.expose(), &classical))
        };
        ours.extend_from_slice(key.public_key());
        (ours, secret)
    };
    let mut value = Vec::with_capacity(ours.len() + 4);
    value.put_string(&ours);
    Ok(Answer {
        reply: AnswerValue {
            number: msg::KEX_REPLY,
            value,
        },
        agreed: Agreed::of_strings(theirs, &ours, secret),
    })
}

fn dh_answer(
    number_of_message: u8,
    key: &DhKey,
    mut transcript: Vec<u8>,
    theirs: &[u8],
) -> Result<Answer, SshError> {
    let secret = number(&key.derive_secret(theirs).map_err(fault)?);
    transcript.put_mpint(theirs);
    transcript.put_mpint(key.public_value());
    let mut value = Vec::new();
    value.put_mpint(key.public_value());
    Ok(Answer {
        reply: AnswerValue {
            number: number_of_message,
            value,
        },
        agreed: Agreed { transcript, secret },
    })
}

/// Chooses the group for the sizes that a client requests (RFC 4419 section 3): the smallest one of
/// RFC 3526 that is at least the preferred size, otherwise the largest that the client accepts.
fn choose([least, wanted, most]: [u32; 3]) -> Result<ModpSize, SshError> {
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
            assert_eq!(choose(sizes), Ok(group), "{sizes:?}");
        }
        for bad in [
            [1024, 1024, 2047],
            [8193, 9000, 9000],
            [0; 3],
            [3000, 2048, 8192],
            [2048, 9000, 8192],
        ] {
            assert!(choose(bad).is_err(), "{bad:?}");
        }
    }
}
