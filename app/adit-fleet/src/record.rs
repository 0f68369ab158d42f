//! A user of the realm, the limits, the credentials that are derived from the user's secret, and the encoding of all
//! of this before it is sealed.

use std::fmt;
use std::sync::LazyLock;

use adit_crypto::KdfContext;
use adit_wire::{EndOfInput, QuotaPeriod, Reader};
use zeroize::Zeroizing;

use crate::key_text::{decode_key, encode_key, to_hex};
use crate::period::{period_byte, period_from_byte};

/// Maximum length of a user's name, in bytes.
pub const MAX_NAME: usize = 255;
/// Maximum length of a password or a key of an imported user, in bytes.
pub const MAX_CREDENTIAL: usize = 1024;

const DISABLED: u8 = 1;
const HAS_PASSWORD: u8 = 1 << 1;
const HAS_PSK: u8 = 1 << 2;
const RATE_OF_FLEET: u8 = 1 << 3;
const ALL_FLAGS: u8 = DISABLED | HAS_PASSWORD | HAS_PSK | RATE_OF_FLEET;

// Hashed once: nodes derive the credentials of all users when they start.
static PASSWORD: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit fleet password v1"));
static PSK: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit fleet psk v1"));
static SUBSCRIPTION: LazyLock<KdfContext> =
    LazyLock::new(|| KdfContext::new("adit fleet subscription v1"));

/// The part of the fleet that a rate limit applies to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateScope {
    /// Each node allows the whole rate.
    #[default]
    Node,
    /// The nodes where the user is active share the rate.
    Fleet,
}

impl RateScope {
    /// Returns the name of the scope: `node` or `fleet`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Fleet => "fleet",
        }
    }

    /// Returns the scope with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Node, Self::Fleet]
            .into_iter()
            .find(|scope| scope.name() == name)
    }
}

/// The limits of a user. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordLimits {
    /// Payload bytes of both directions together in each period, over all nodes.
    pub quota: Option<u64>,
    /// The period of the quota.
    pub period: QuotaPeriod,
    /// The time from which on the user is refused, in seconds since 1970.
    pub expires: Option<u64>,
    /// Payload bytes per second, in each direction.
    pub rate: Option<u64>,
    /// The part of the fleet that `rate` applies to.
    pub rate_scope: RateScope,
    /// Maximum number of open sessions.
    pub sessions: Option<u32>,
    /// Maximum number of client addresses at once: IPv4 addresses, and IPv6 networks of 64 bits.
    pub devices: Option<u32>,
}

/// A user of the realm.
#[derive(Clone, PartialEq, Eq)]
pub struct FleetUser {
    /// The number that the store assigned. Numbers are not used again.
    pub id: u32,
    /// The name, which is unique in the realm.
    pub name: String,
    /// The secret that credentials are derived from.
    pub secret: Zeroizing<[u8; 32]>,
    /// The password of an imported user, instead of the derived one.
    pub password: Option<Zeroizing<String>>,
    /// The key of an imported user for the methods of SIP022, in base64, instead of the derived one.
    pub psk: Option<Zeroizing<String>>,
    /// The limits.
    pub limits: RecordLimits,
    /// True if the user is refused until an operator changes that.
    pub disabled: bool,
}

impl fmt::Debug for FleetUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetUser")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("limits", &self.limits)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

impl FleetUser {
    /// Creates a user without limits.
    #[must_use]
    pub fn new(id: u32, name: impl Into<String>, secret: [u8; 32]) -> Self {
        Self {
            id,
            name: name.into(),
            secret: Zeroizing::new(secret),
            password: None,
            psk: None,
            limits: RecordLimits::default(),
            disabled: false,
        }
    }

    /// Returns the password for AEAD methods, ShadowsocksR, SOCKS5, HTTP and SSH: 32 hexadecimal digits, unless
    /// `password` is set.
    #[must_use]
    pub fn password(&self) -> Zeroizing<String> {
        if let Some(password) = &self.password {
            return password.clone();
        }
        self.derive_hex(&PASSWORD)
    }

    /// Returns the user's key for a method of SIP022 with keys of `len` bytes (16 or 32), in base64. Returns `None` if
    /// `psk` is set and has another length: an imported user has no key for this method.
    #[must_use]
    pub fn psk(&self, len: usize) -> Option<Zeroizing<String>> {
        if let Some(psk) = &self.psk {
            let key = decode_key(psk)?;
            return (key.len() == len).then(|| psk.clone());
        }
        derive_psk(&PSK, &[&*self.secret], len)
    }

    /// Returns the key of the path of the user's subscription: 32 hexadecimal digits, the same at all nodes.
    #[must_use]
    pub fn subscription_key(&self) -> Zeroizing<String> {
        self.derive_hex(&SUBSCRIPTION)
    }

    fn derive_hex(&self, context: &KdfContext) -> Zeroizing<String> {
        let mut key = Zeroizing::new([0; 16]);
        context.derive_key(&[&*self.secret], &mut *key);
        Zeroizing::new(to_hex(&*key))
    }

    /// Encodes the user, except for the number, as it is before it is sealed.
    ///
    /// # Errors
    ///
    /// A text is too long, or the name is empty.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, EncodeError> {
        let Self { limits, .. } = self;
        if self.name.is_empty() || self.name.len() > MAX_NAME {
            return Err(EncodeError::Name);
        }
        // Enough at once: growing would leave copies of secrets behind.
        let mut out = Zeroizing::new(Vec::with_capacity(4 * MAX_CREDENTIAL));
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.push(
            flag(self.disabled, DISABLED)
                | flag(self.password.is_some(), HAS_PASSWORD)
                | flag(self.psk.is_some(), HAS_PSK)
                | flag(limits.rate_scope == RateScope::Fleet, RATE_OF_FLEET),
        );
        out.push(period_byte(limits.period));
        let present = [
            limits.quota.is_some(),
            limits.expires.is_some(),
            limits.rate.is_some(),
            limits.sessions.is_some(),
            limits.devices.is_some(),
        ];
        out.push(
            (0..)
                .zip(present)
                .fold(0, |mask, (bit, set)| mask | (u8::from(set) << bit)),
        );
        push_text(&mut out, &self.name)?;
        out.extend_from_slice(&*self.secret);
        for credential in [&self.password, &self.psk].into_iter().flatten() {
            if credential.is_empty() || credential.len() > MAX_CREDENTIAL {
                return Err(EncodeError::Credential);
            }
            push_text(&mut out, credential)?;
        }
        for number in [limits.quota, limits.expires, limits.rate]
            .into_iter()
            .flatten()
        {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for number in [limits.sessions, limits.devices].into_iter().flatten() {
            out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(out)
    }

    /// Decodes what [`Self::to_bytes`] returns. Each user has one encoding; `None` if this is none.
    #[must_use]
    pub fn from_bytes(id: u32, bytes: &[u8]) -> Option<Self> {
        Self::decode(id, bytes).ok()
    }

    fn decode(id: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let fields = UserFields::decode(bytes)?;
        let own = |text: Option<&str>| text.map(|text| Zeroizing::new(text.to_owned()));
        Ok(Self {
            id,
            name: fields.name.to_owned(),
            secret: Zeroizing::new(*fields.secret),
            password: own(fields.password),
            psk: own(fields.psk),
            limits: fields.limits,
            disabled: fields.disabled,
        })
    }
}

/// The fields of a user in the encoding, which is not copied.
pub(crate) struct UserFields<'a> {
    pub(crate) name: &'a str,
    secret: &'a [u8; 32],
    password: Option<&'a str>,
    psk: Option<&'a str>,
    pub(crate) limits: RecordLimits,
    pub(crate) disabled: bool,
}

impl<'a> UserFields<'a> {
    /// Returns the name in an encoding, as [`Self::decode`] does.
    pub(crate) fn name_of(bytes: &'a [u8]) -> Result<&'a str, DecodeError> {
        let mut reader = Reader::new(bytes);
        let _flags_period_and_mask = reader.take(3)?;
        take_text(&mut reader, MAX_NAME)
    }

    /// Returns true if the encoding is that of a user who is refused, or none.
    pub(crate) fn is_disabled(bytes: &[u8]) -> bool {
        bytes.first().is_none_or(|flags| flags & DISABLED != 0)
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u8()?;
        let period = period_from_byte(reader.u8()?).ok_or(DecodeError)?;
        let mask = reader.u8()?;
        if flags & !ALL_FLAGS != 0 || mask >= 1 << 5 {
            return Err(DecodeError);
        }
        let name = take_text(&mut reader, MAX_NAME)?;
        let secret = reader.take(32)?.first_chunk().ok_or(DecodeError)?;
        let mut credential = |flag: u8| match flags & flag {
            0 => Ok(None),
            _ => take_text(&mut reader, MAX_CREDENTIAL).map(Some),
        };
        let (password, psk) = (credential(HAS_PASSWORD)?, credential(HAS_PSK)?);
        let has = |bit: u8| mask & (1 << bit) != 0;
        let mut long = |bit| has(bit).then(|| reader.u64()).transpose();
        let (quota, expires, rate) = (long(0)?, long(1)?, long(2)?);
        let mut short = |bit| {
            let number = has(bit).then(|| reader.array::<4>()).transpose();
            number.map(|number| number.map(u32::from_be_bytes))
        };
        let (sessions, devices) = (short(3)?, short(4)?);
        if !reader.rest().is_empty() {
            return Err(DecodeError);
        }
        Ok(Self {
            name,
            secret,
            password,
            psk,
            limits: RecordLimits {
                quota,
                period,
                expires,
                rate,
                rate_scope: match flags & RATE_OF_FLEET {
                    0 => RateScope::Node,
                    _ => RateScope::Fleet,
                },
                sessions,
                devices,
            },
            disabled: flags & DISABLED != 0,
        })
    }
}

/// Derives a key for a method of SIP022, in base64.
pub(crate) fn derive_psk(
    context: &KdfContext,
    parts: &[&[u8]],
    len: usize,
) -> Option<Zeroizing<String>> {
    let last = match len {
        16 => [16],
        32 => [32],
        _ => return None,
    };
    let mut key = Zeroizing::new([0; 32]);
    let out = key.get_mut(..len)?;
    let mut all = parts.to_vec();
    all.push(&last);
    context.derive_key(&all, out);
    Some(encode_key(out))
}

/// The error of a user that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The name is empty or too long.
    #[error("a user's name has 1 to {MAX_NAME} bytes")]
    Name,
    /// A password or key is empty or too long.
    #[error("a password or a key has 1 to {MAX_CREDENTIAL} bytes")]
    Credential,
}

/// The error of bytes that are no encoding of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodeError;

impl From<EndOfInput> for DecodeError {
    fn from(EndOfInput: EndOfInput) -> Self {
        Self
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) -> Result<(), EncodeError> {
    let len = u16::try_from(text.len()).map_err(|_| EncodeError::Credential)?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn take_text<'a>(reader: &mut Reader<'a>, limit: usize) -> Result<&'a str, DecodeError> {
    let len = usize::from(reader.u16()?);
    if len == 0 || len > limit {
        return Err(DecodeError);
    }
    std::str::from_utf8(reader.take(len)?).map_err(|_| DecodeError)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns any user.
    pub(crate) fn any_user() -> impl Strategy<Value = FleetUser> {
        let limits = (
            any::<Option<u64>>(),
            0u8..4,
            any::<Option<u64>>(),
            any::<Option<u64>>(),
            any::<bool>(),
            any::<Option<u32>>(),
            any::<Option<u32>>(),
        );
        let texts = (
            "\\PC{1,20}",
            proptest::option::of("\\PC{1,20}"),
            any::<bool>(),
        );
        (
            any::<u32>(),
            texts,
            any::<[u8; 32]>(),
            limits,
            any::<bool>(),
        )
            .prop_map(|(id, (name, password, psk), secret, limits, disabled)| {
                let (quota, period, expires, rate, fleet, sessions, devices) = limits;
                FleetUser {
                    id,
                    name,
                    secret: Zeroizing::new(secret),
                    password: password.map(Zeroizing::new),
                    psk: psk.then(|| encode_key(&secret)),
                    limits: RecordLimits {
                        quota,
                        period: period_from_byte(period).unwrap(),
                        expires,
                        rate,
                        rate_scope: if fleet {
                            RateScope::Fleet
                        } else {
                            RateScope::Node
                        },
                        sessions,
                        devices,
                    },
                    disabled,
                }
            })
    }

    proptest! {
        #[test]
        fn a_user_is_decoded_from_their_one_encoding(user in any_user()) {
            let bytes = user.to_bytes().unwrap();
            prop_assert_eq!(&FleetUser::decode(user.id, &bytes).unwrap(), &user);
            for len in 0..bytes.len() {
                prop_assert!(FleetUser::decode(user.id, &bytes[..len]).is_err());
            }
            let mut longer = bytes.to_vec();
            longer.push(0);
            prop_assert!(FleetUser::decode(user.id, &longer).is_err());
        }

        #[test]
        fn what_is_decoded_is_encoded_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Ok(user) = FleetUser::decode(1, &bytes) {
                prop_assert_eq!(&**user.to_bytes().unwrap(), &*bytes);
            }
        }
    }

    #[test]
    fn credentials_differ_by_purpose_length_and_user() {
        let (one, two) = (
            FleetUser::new(1, "a", [1; 32]),
            FleetUser::new(1, "a", [2; 32]),
        );
        assert_ne!(one.password(), two.password());
        assert_eq!(one.password().len(), 32);
        let keys = [
            one.psk(16).unwrap(),
            one.psk(32).unwrap(),
            two.psk(32).unwrap(),
        ];
        assert_ne!(keys[1], keys[2]);
        assert!(!keys[1].starts_with(keys[0].trim_end_matches('=')));
        assert_eq!(one.psk(0), None);
        assert_eq!(one.psk(33), None);
    }

    #[test]
    fn credentials_of_imported_users_take_precedence() {
        let mut user = FleetUser::new(1, "a", [1; 32]);
        user.password = Some(Zeroizing::new("imported".to_owned()));
        user.psk = Some(encode_key(&[7; 16]));
        assert_eq!(&**user.password(), "imported");
        assert_eq!(user.psk(16), user.psk);
        assert_eq!(user.psk(32), None);
        let text = format!("{user:?}");
        assert!(!text.contains("imported"), "{text}");
    }
}
