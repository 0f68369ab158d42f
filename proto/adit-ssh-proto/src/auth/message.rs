//! Authentication messages (RFC 4252 sections 5 to 8, RFC 4256, OpenSSH's `PROTOCOL` section 3).

use crate::error::SshError;
use crate::msg;
use crate::wire::{MessageReader, SshBufMut};

/// Name of the authentication service.
pub(super) const USERAUTH: &str = "ssh-userauth";
/// Name of the service that starts after authentication.
pub(super) const CONNECTION: &str = "ssh-connection";
/// Variant of `publickey` whose signature covers the host key.
pub(super) const HOSTBOUND: &str = "publickey-hostbound-v00@openssh.com";
/// Maximum length of a user name, in bytes.
pub(super) const MAX_USER: usize = 1024;
/// Maximum number of prompts in one message.
pub(super) const MAX_PROMPTS: u32 = 32;

/// Authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// Signature by a key.
    PublicKey,
    /// A password.
    Password,
    /// Prompts and responses (RFC 4256), such as for a one-time password.
    KeyboardInteractive,
}

impl AuthMethod {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::PublicKey, Self::Password, Self::KeyboardInteractive];

    /// Returns the name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublicKey => "publickey",
            Self::Password => "password",
            Self::KeyboardInteractive => "keyboard-interactive",
        }
    }

    /// Returns the method with this name; `None` if it is not supported.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }
}

/// A prompt for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractivePrompt {
    /// Text of the prompt.
    pub text: String,
    /// True if the response may be visible while it is typed.
    pub echo: bool,
}

/// A USERAUTH_REQUEST.
pub(super) struct UserAuthRequest<'a> {
    pub(super) user: &'a str,
    pub(super) service: &'a str,
    pub(super) attempt: AuthAttempt<'a>,
}

/// Method of a request, with its fields.
pub(super) enum AuthAttempt<'a> {
    None,
    Password(&'a [u8]),
    NewPassword {
        old: &'a [u8],
        new: &'a [u8],
    },
    PublicKey {
        algorithm: &'a [u8],
        blob: &'a [u8],
        signature: Option<&'a [u8]>,
        /// Set in the variant that is bound to the host key.
        host_key: Option<&'a [u8]>,
    },
    Interactive {
        submethods: &'a [u8],
    },
    /// An unknown method.
    Other,
}

impl<'a> UserAuthRequest<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, SshError> {
        let mut r = MessageReader::new(payload, "USERAUTH_REQUEST");
        r.read_u8()?;
        let (user, service, method) = (r.read_text()?, r.read_text()?, r.read_string()?);
        if user.len() > MAX_USER {
            return Err(SshError::TooMuch {
                what: "length of the user name",
                limit: MAX_USER,
            });
        }
        let attempt = match core::str::from_utf8(method).unwrap_or_default() {
            "none" => AuthAttempt::None,
            "password" => match r.read_bool()? {
                false => AuthAttempt::Password(r.read_string()?),
                true => AuthAttempt::NewPassword {
                    old: r.read_string()?,
                    new: r.read_string()?,
                },
            },
            name @ ("publickey" | HOSTBOUND) => {
                let signed = r.read_bool()?;
                let (algorithm, blob) = (r.read_string()?, r.read_string()?);
                // The host key precedes the signature, which covers everything before it.
                let host_key = (name == HOSTBOUND).then(|| r.read_string()).transpose()?;
                let signature = signed.then(|| r.read_string()).transpose()?;
                AuthAttempt::PublicKey {
                    algorithm,
                    blob,
                    signature,
                    host_key,
                }
            }
            "keyboard-interactive" => {
                r.read_string()?;
                let submethods = r.read_string()?;
                AuthAttempt::Interactive { submethods }
            }
            _ => {
                return Ok(Self {
                    user,
                    service,
                    attempt: AuthAttempt::Other,
                });
            }
        };
        r.expect_end()?;
        Ok(Self {
            user,
            service,
            attempt,
        })
    }
}

/// Appends the first fields of a request.
pub(super) fn put_request(out: &mut Vec<u8>, user: &str, method: &str) {
    out.put_u8(msg::USERAUTH_REQUEST);
    for text in [user, CONNECTION, method] {
        out.put_string(text.as_bytes());
    }
}

/// Appends a `publickey` request without its signature, or a query.
pub(super) fn put_key(
    out: &mut Vec<u8>,
    user: &str,
    signed: bool,
    algorithm: &str,
    blob: &[u8],
    host_key: Option<&[u8]>,
) {
    let method = match host_key {
        Some(_) => HOSTBOUND,
        None => AuthMethod::PublicKey.name(),
    };
    put_request(out, user, method);
    out.put_bool(signed);
    out.put_string(algorithm.as_bytes());
    out.put_string(blob);
    if let Some(host_key) = host_key {
        out.put_string(host_key);
    }
}

/// Returns the data to sign: the session identifier, and the request up to the signature.
pub(super) fn data_to_sign(session_id: &[u8], request: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(session_id.len() + request.len() + 4);
    data.put_string(session_id);
    data.put_raw(request);
    data
}

/// Returns the payload of a `SERVICE_REQUEST` or `SERVICE_ACCEPT`.
pub(super) fn service_message(number: u8, name: &str) -> Vec<u8> {
    let mut out = vec![number];
    out.put_string(name.as_bytes());
    out
}

/// Checks that a service message requests authentication.
pub(super) fn check_auth_service(payload: &[u8]) -> Result<(), SshError> {
    let mut r = MessageReader::new(payload, "service");
    r.read_u8()?;
    if r.read_string()? != USERAUTH.as_bytes() {
        return Err(SshError::Policy("the requested service is not available"));
    }
    r.expect_end()
}
