//! The client's side of each key exchange method.

use adit_crypto::{
    AgreementCurve, DhGroup, DhKey, EcdhKey, ML_KEM_CIPHERTEXT_LEN, MlKemKey, ModpSize,
    SNTRUP_CIPHERTEXT_LEN, Sha2, SntrupKey,
};
use adit_wire::Entropy;

use super::KexSecret;
use super::secret::{combine_hybrid_secret, curve_of, encode_mpint, to_ssh_error};
use crate::algorithm::Kex;
use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// Requested sizes of a group exchange, in bits: minimum, preferred, maximum.
const SIZES: [u32; 3] = [2048, 3072, 8192];

/// A running key exchange method.
#[derive(Debug)]
pub struct ClientKex(ClientKexState);

#[derive(Debug)]
enum ClientKexState {
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
pub struct ServerKexReply {
    /// Blob of the server's host key.
    pub host_key: Vec<u8>,
    /// Signature over the exchange hash, not yet verified.
    pub signature: Vec<u8>,
    /// Shared secret, and the values to be hashed.
    pub agreed: KexSecret,
}

impl ClientKex {
    /// Starts `kex` and appends the payload of the first message to `out`.
    ///
    /// # Errors
    /// [`SshError::Crypto`] if key generation fails.
    pub fn start(kex: Kex, entropy: &mut dyn Entropy, out: &mut Vec<u8>) -> Result<Self, SshError> {
        let group = |which| DhGroup::rfc3526(which).map_err(to_ssh_error);
        let state = match kex {
            Kex::MlKem768X25519 => {
                let key = MlKemKey::generate().map_err(to_ssh_error)?;
                ClientKexState::MlKem(key, generate_ecdh_key(AgreementCurve::X25519, entropy)?)
            }
            Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => {
                let key = SntrupKey::generate(entropy).map_err(to_ssh_error)?;
                ClientKexState::Sntrup(
                    Box::new(key),
                    generate_ecdh_key(AgreementCurve::X25519, entropy)?,
                )
            }
            Kex::GroupExchange => ClientKexState::AwaitGroup,
            Kex::Group14 => {
                ClientKexState::Group(generate_dh_key(group(ModpSize::Bits2048)?, entropy)?)
            }
            Kex::Group16 => {
                ClientKexState::Group(generate_dh_key(group(ModpSize::Bits4096)?, entropy)?)
            }
            Kex::Group18 => {
                ClientKexState::Group(generate_dh_key(group(ModpSize::Bits8192)?, entropy)?)
            }
            Kex::Curve25519
            | Kex::Curve25519LibSsh
            | Kex::EcdhP256
            | Kex::EcdhP384
            | Kex::EcdhP521 => {
                let curve = curve_of(kex).unwrap_or(AgreementCurve::X25519);
                ClientKexState::Curve(generate_ecdh_key(curve, entropy)?)
            }
        };
        out.put_u8(match state {
            ClientKexState::AwaitGroup => msg::KEX_GEX_REQUEST,
            _ => msg::KEX_INIT,
        });
        match &state {
            ClientKexState::Group(key) => out.put_mpint(key.public_value()),
            ClientKexState::AwaitGroup => SIZES.iter().for_each(|size| out.put_u32(*size)),
            other => out.put_string(&other.public_value()),
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
    ) -> Result<Option<ServerKexReply>, SshError> {
        let state = core::mem::replace(&mut self.0, ClientKexState::Done);
        let mut r = MessageReader::new(payload, "key exchange reply");
        let expected = match state {
            ClientKexState::Exchange(_) => Some(msg::KEX_GEX_REPLY),
            ClientKexState::Done => None,
            _ => Some(msg::KEX_REPLY),
        };
        let number = r.read_u8()?;
        if Some(number) != expected {
            return Err(SshError::Unexpected(number));
        }
        if let ClientKexState::AwaitGroup = state {
            let key = generate_key_in_group(r, entropy)?;
            out.put_u8(msg::KEX_GEX_INIT);
            out.put_mpint(key.public_value());
            self.0 = ClientKexState::Exchange(key);
            return Ok(None);
        }
        let host_key = r.read_string()?.to_vec();
        let agreed = state.agree_secret(&mut r)?;
        let signature = r.read_string()?.to_vec();
        r.expect_end()?;
        Ok(Some(ServerKexReply {
            host_key,
            signature,
            agreed,
        }))
    }
}

impl ClientKexState {
    /// Returns the public value of the methods that encode it as a string.
    fn public_value(&self) -> Vec<u8> {
        match self {
            Self::Curve(key) => key.public_key().to_vec(),
            Self::MlKem(key, x25519) => [key.public_key(), x25519.public_key()].concat(),
            Self::Sntrup(key, x25519) => [key.public_key(), x25519.public_key()].concat(),
            Self::Group(_) | Self::AwaitGroup | Self::Exchange(_) | Self::Done => Vec::new(),
        }
    }

    /// Reads the server's public value and computes the shared secret.
    fn agree_secret(&self, r: &mut MessageReader<'_>) -> Result<KexSecret, SshError> {
        let ours = self.public_value();
        match self {
            Self::Curve(key) => {
                let theirs = r.read_string()?;
                let secret = key.derive_secret(theirs).map_err(to_ssh_error)?;
                Ok(KexSecret::from_public_strings(
                    &ours,
                    theirs,
                    encode_mpint(&secret),
                ))
            }
            Self::MlKem(key, x25519) => {
                let theirs = r.read_string()?;
                let (ciphertext, point) = split_hybrid_value(theirs, ML_KEM_CIPHERTEXT_LEN)?;
                let classical = x25519.derive_secret(point).map_err(to_ssh_error)?;
                let inner = key.decapsulate(ciphertext).map_err(to_ssh_error)?;
                let secret = combine_hybrid_secret(Sha2::Sha256, inner.expose(), &classical);
                Ok(KexSecret::from_public_strings(&ours, theirs, secret))
            }
            Self::Sntrup(key, x25519) => {
                let theirs = r.read_string()?;
                let (ciphertext, point) = split_hybrid_value(theirs, SNTRUP_CIPHERTEXT_LEN)?;
                let classical = x25519.derive_secret(point).map_err(to_ssh_error)?;
                let inner = key.decapsulate(ciphertext).map_err(to_ssh_error)?;
                let secret = combine_hybrid_secret(Sha2::Sha512, inner.expose(), &classical);
                Ok(KexSecret::from_public_strings(&ours, theirs, secret))
            }
            Self::Group(key) => agree_dh(key, Vec::new(), r.read_mpint()?),
            Self::Exchange(key) => {
                let mut transcript = Vec::new();
                SIZES.iter().for_each(|size| transcript.put_u32(*size));
                transcript.put_mpint(key.group().prime());
                transcript.put_mpint(&key.group().generator());
                agree_dh(key, transcript, r.read_mpint()?)
            }
            Self::AwaitGroup | Self::Done => Err(r.malformed_error()),
        }
    }
}

pub(super) fn generate_ecdh_key(
    curve: AgreementCurve,
    entropy: &mut dyn Entropy,
) -> Result<EcdhKey, SshError> {
    EcdhKey::generate(curve, entropy).map_err(to_ssh_error)
}

fn generate_dh_key(group: DhGroup, entropy: &mut dyn Entropy) -> Result<DhKey, SshError> {
    DhKey::generate(group, entropy).map_err(to_ssh_error)
}

/// Generates a key in the group that the server chose.
fn generate_key_in_group(
    mut r: MessageReader<'_>,
    entropy: &mut dyn Entropy,
) -> Result<DhKey, SshError> {
    let (prime, generator) = (r.read_mpint()?, r.read_mpint()?);
    r.expect_end()?;
    let group = DhGroup::new(prime, generator).map_err(|_| {
        SshError::Kex("the server's group is not valid or not between 2048 and 8192 bits")
    })?;
    generate_dh_key(group, entropy)
}

fn agree_dh(key: &DhKey, mut transcript: Vec<u8>, theirs: &[u8]) -> Result<KexSecret, SshError> {
    let secret = encode_mpint(&key.derive_secret(theirs).map_err(to_ssh_error)?);
    transcript.put_mpint(key.public_value());
    transcript.put_mpint(theirs);
    Ok(KexSecret { transcript, secret })
}

/// Splits a hybrid method's value: the first `first` bytes are of the post-quantum part, the rest
/// is an X25519 point.
pub(super) fn split_hybrid_value(value: &[u8], first: usize) -> Result<(&[u8], &[u8]), SshError> {
    let wrong = SshError::Kex("the peer's public value has the wrong length");
    match value.split_at_checked(first) {
        Some((lattice, point)) if point.len() == AgreementCurve::X25519.public_len() => {
            Ok((lattice, point))
        }
        _ => Err(wrong),
    }
}
