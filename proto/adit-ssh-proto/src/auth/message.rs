//! Authentication messages (RFC 4252 sections 5 to 8, RFC 4256, OpenSSH's `PROTOCOL` section 3).

use crate::error::SshError;
use crate::msg;
use crate::wire::{Put, Reader};

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
pub enum Method {
    /// Signature by a key.
    PublicKey,
    /// A password.
    Password,
    /// Prompts and responses (RFC 4256), such as for a one-time password.
    KeyboardInteractive,
}

impl Method {
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
pub struct Prompt {
    /// Text of the prompt.
    pub text: String,
    /// True if the response may be visible while it is typed.
    pub echo: bool,
}

/// A USERAUTH_REQUEST.
pub(super) struct Request<'a> {
    pub(super) user: &'a str,
    pub(super) service: &'a str,
    pub(super) attempt: Attempt<'a>,
}

/// Method of a request, with its fields.
pub(super) enum Attempt<'a> {
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

impl<'a> Request<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self, SshError> {
        let mut r = Reader::new(payload, "USERAUTH_REQUEST");
        r.u8()?;
        let (user, service, method) = (r.text()?, r.text()?, r.string()?);
        if user.len() > MAX_USER {
            return Err(SshError::TooMuch {
                what: "length of the user name",
                limit: MAX_USER,
            });
        }
        let attempt = match core::str::from_utf8(method).unwrap_or_default() {
            "none" => Attempt::None,
            "password" => match r.boolean()? {
                false => Attempt::Password(r.string()?),
                true => Attempt::NewPassword {
                    old: r.string()?,
                    new: r.string()?,
                },
            },
            name @ ("publickey" | HOSTBOUND) => {
                let signed = r.boolean()?;
                let (algorithm, blob) = (r.string()?, r.string()?);
                // The host key precedes the signature, which covers everything before it.
                let host_key = (name == HOSTBOUND).then(|| r.string()).transpose()?;
                let signature = signed.then(|| r.string()).transpose()?;
                Attempt::PublicKey {
                    algorithm,
                    blob,
                    signature,
                    host_key,
                }
            }
            "keyboard-interactive" => {
                r.string()?;
                let submethods = r.string()?;
                Attempt::Interactive { submethods }
            }
            _ => {
                return Ok(Self {
                    user,
                    service,
                    attempt: Attempt::Other,
                });
            }
        };
        r.end()?;
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
        None => Method::PublicKey.name(),
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
pub(super) fn to_be_signed(session_id: &[u8], request: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(session_id.len() + request.len() + 4);
    data.put_string(session_id);
    data.put_raw(request);
    data
}

/// Returns the payload of a `SERVICE_REQUEST` or `SERVICE_ACCEPT`.
pub(super) fn service(number: u8, name: &str) -> Vec<u8> {
    let mut out = vec![number];
    out.put_string(name.as_bytes());
    out
}

/// Checks that a service message requests authentication.
pub(super) fn check_service(payload: &[u8]) -> Result<(), SshError> {
    let mut r = Reader::new(payload, "service");
    r.u8()?;
    if r.string()? != USERAUTH.as_bytes() {
        return Err(SshError::Policy("the requested service is not available"));
    }
    r.end()
}
