//! The client's side of each key exchange method.

use adit_crypto::{
    AgreementCurve, DhGroup, DhKey, EcdhKey, ML_KEM_CIPHERTEXT_LEN, MlKemKey, ModpSize,
    SNTRUP_CIPHERTEXT_LEN, Sha2, SntrupKey,
};
use adit_wire::Entropy;

use super::Agreed;
use super::secret::{curve_of, fault, hybrid, number};
use crate::algorithm::Kex;
use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

/// Requested sizes of a group exchange, in bits: minimum, preferred, maximum.
const SIZES: [u32; 3] = [2048, 3072, 8192];

/// A running key exchange method.
#[derive(Debug)]
pub struct ClientKex(State);

#[derive(Debug)]
enum State {
    Curve(EcdhKey),
    MlKem(MlKemKey, EcdhKey),
    Sntrup(Box<SntrupKey>, EcdhKey),
    Group(DhKey),
    /// The group sizes were sent.
    AwaitGroup,
    Exchange(DhKey),
    Done,
}

/// The server's last message.
#[derive(Debug)]
pub struct Reply {
    /// Blob of the server's host key.
    pub host_key: Vec<u8>,
    /// Signature over the exchange hash, not yet verified.
    pub signature: Vec<u8>,
    /// Shared secret, and the values to be hashed.
    pub agreed: Agreed,
}

impl ClientKex {
    /// Starts `kex` and appends the payload of the first message to `out`.
    ///
    /// # Errors
    /// [`SshError::Crypto`] if key generation fails.
    pub fn start(kex: Kex, entropy: &mut dyn Entropy, out: &mut Vec<u8>) -> Result<Self, SshError> {
        let group = |which| DhGroup::rfc3526(which).map_err(fault);
        let state = match kex {
            Kex::MlKem768X25519 => {
                let key = MlKemKey::generate().map_err(fault)?;
                State::MlKem(key, ecdh_key(AgreementCurve::X25519, entropy)?)
            }
            Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => {
                let key = SntrupKey::generate(entropy).map_err(fault)?;
                State::Sntrup(Box::new(key), ecdh_key(AgreementCurve::X25519, entropy)?)
            }
            Kex::GroupExchange => State::AwaitGroup,
            Kex::Group14 => State::Group(dh_key(group(ModpSize::Bits2048)?, entropy)?),
            Kex::Group16 => State::Group(dh_key(group(ModpSize::Bits4096)?, entropy)?),
            Kex::Group18 => State::Group(dh_key(group(ModpSize::Bits8192)?, entropy)?),
            Kex::Curve25519
            | Kex::Curve25519LibSsh
            | Kex::EcdhP256
            | Kex::EcdhP384
            | Kex::EcdhP521 => {
                let curve = curve_of(kex).unwrap_or(AgreementCurve::X25519);
                State::Curve(ecdh_key(curve, entropy)?)
            }
        };
        out.put_u8(match state {
            State::AwaitGroup => msg::KEX_GEX_REQUEST,
            _ => msg::KEX_INIT,
        });
        match &state {
            State::Group(key) => out.put_mpint(key.public_value()),
            State::AwaitGroup => SIZES.iter().for_each(|size| out.put_u32(*size)),
            other => out.put_string(&other.public()),
        }
        Ok(Self(state))
    }

    /// Handles the server's next message. Returns `None` if another one has to follow; a payload
    /// may have been appended to `out`.
    ///
    /// # Errors
    /// [`SshError::Unexpected`] if it is not the next message of the method,
    /// [`SshError::Malformed`] if it cannot be parsed, [`SshError::Kex`] if a value is not valid.
    pub fn handle_input(
        &mut self,
        payload: &[u8],
        entropy: &mut dyn Entropy,
        out: &mut Vec<u8>,
    ) -> Result<Option<Reply>, SshError> {
        let state = core::mem::replace(&mut self.0, State::Done);
        let mut r = Reader::new(payload, "key exchange reply");
        let expected = match state {
            State::Exchange(_) => Some(msg::KEX_GEX_REPLY),
            State::Done => None,
            _ => Some(msg::KEX_REPLY),
        };
        let number = r.u8()?;
        if Some(number) != expected {
            return Err(SshError::Unexpected(number));
        }
        if let State::AwaitGroup = state {
            let key = group(r, entropy)?;
            out.put_u8(msg::KEX_GEX_INIT);
            out.put_mpint(key.public_value());
            self.0 = State::Exchange(key);
            return Ok(None);
        }
        let host_key = r.string()?.to_vec();
        let agreed = state.agree(&mut r)?;
        let signature = r.string()?.to_vec();
        r.end()?;
        Ok(Some(Reply {
            host_key,
            signature,
            agreed,
        }))
    }
}

impl State {
    /// Returns the public value of the methods that encode it as a string.
    fn public(&self) -> Vec<u8> {
        match self {
            Self::Curve(key) => key.public_key().to_vec(),
            Self::MlKem(key, x25519) => [key.public_key(), x25519.public_key()].concat(),
            Self::Sntrup(key, x25519) => [key.public_key(), x25519.public_key()].concat(),
            Self::Group(_) | Self::AwaitGroup | Self::Exchange(_) | Self::Done => Vec::new(),
        }
    }

    /// Reads the server's public value and computes the shared secret.
    fn agree(&self, r: &mut Reader<'_>) -> Result<Agreed, SshError> {
        let ours = self.public();
        match self {
            Self::Curve(key) => {
                let theirs = r.string()?;
                let secret = key.derive_secret(theirs).map_err(fault)?;
                Ok(Agreed::of_strings(&ours, theirs, number(&secret)))
            }
            Self::MlKem(key, x25519) => {
                let theirs = r.string()?;
                let (ciphertext, point) = halves(theirs, ML_KEM_CIPHERTEXT_LEN)?;
                let classical = x25519.derive_secret(point).map_err(fault)?;
                let inner = key.decapsulate(ciphertext).map_err(fault)?;
                let secret = hybrid(Sha2::Sha256, inner.expose(), &classical);
                Ok(Agreed::of_strings(&ours, theirs, secret))
            }
            Self::Sntrup(key, x25519) => {
                let theirs = r.string()?;
                let (ciphertext, point) = halves(theirs, SNTRUP_CIPHERTEXT_LEN)?;
                let classical = x25519.derive_secret(point).map_err(fault)?;
                let inner = key.decapsulate(ciphertext).map_err(fault)?;
                let secret = hybrid(Sha2::Sha512, inner.expose(), &classical);
                Ok(Agreed::of_strings(&ours, theirs, secret))
            }
            Self::Group(key) => dh_agreed(key, Vec::new(), r.mpint()?),
            Self::Exchange(key) => {
                let mut transcript = Vec::new();
                SIZES.iter().for_each(|size| transcript.put_u32(*size));
                transcript.put_mpint(key.group().prime());
                transcript.put_mpint(&key.group().generator());
                dh_agreed(key, transcript, r.mpint()?)
            }
            Self::AwaitGroup | Self::Done => Err(r.malformed()),
        }
    }
}

pub(super) fn ecdh_key(
    curve: AgreementCurve,
    entropy: &mut dyn Entropy,
) -> Result<EcdhKey, SshError> {
    EcdhKey::generate(curve, entropy).map_err(fault)
}

fn dh_key(group: DhGroup, entropy: &mut dyn Entropy) -> Result<DhKey, SshError> {
    DhKey::generate(group, entropy).map_err(fault)
}

/// Generates a key in the group that the server chose.
fn group(mut r: Reader<'_>, entropy: &mut dyn Entropy) -> Result<DhKey, SshError> {
    let (prime, generator) = (r.mpint()?, r.mpint()?);
    r.end()?;
    let group = DhGroup::new(prime, generator).map_err(|_| {
        SshError::Kex("the server's group is not valid or not between 2048 and 8192 bits")
    })?;
    dh_key(group, entropy)
}

fn dh_agreed(key: &DhKey, mut transcript: Vec<u8>, theirs: &[u8]) -> Result<Agreed, SshError> {
    let secret = number(&key.derive_secret(theirs).map_err(fault)?);
    transcript.put_mpint(key.public_value());
    transcript.put_mpint(theirs);
    Ok(Agreed { transcript, secret })
}

/// Splits a hybrid method's value: the first `first` bytes are of the post-quantum part, the rest
/// is an X25519 point.
pub(super) fn halves(value: &[u8], first: usize) -> Result<(&[u8], &[u8]), SshError> {
    let wrong = SshError::Kex("the peer's public value has the wrong length");
    match value.split_at_checked(first) {
        Some((lattice, point)) if point.len() == AgreementCurve::X25519.public_len() => {
            Ok((lattice, point))
        }
        _ => Err(wrong),
    }
}
