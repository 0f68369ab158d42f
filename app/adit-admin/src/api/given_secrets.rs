//! Secrets that a request sets, instead of new ones.

use std::fmt;

use adit_shadowsocks::{Edition, Key, Method};
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// The secrets of a user, by the protocols that they are for. They are wiped when dropped, and `Debug` does not show
/// them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenSecrets {
    /// The password for Shadowsocks methods whose key is derived from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The base64 key for Shadowsocks methods of 2022.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub psk: Option<String>,
    /// The password for SOCKS and HTTP, which networks see in clear text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

/// The longest secret, in bytes.
const MAX_SECRET: usize = 255;

impl GivenSecrets {
    /// Returns true if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.password.is_none() && self.psk.is_none() && self.login.is_none()
    }

    /// Checks what would break the lines of a file, or the protocols.
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, secret) in [
            ("password", &self.password),
            ("psk", &self.psk),
            ("login", &self.login),
        ] {
            let Some(secret) = secret else { continue };
            if secret.is_empty() || secret.len() > MAX_SECRET {
                return Err(format!("`{name}` must have 1 to {MAX_SECRET} bytes"));
            }
            if secret.chars().any(char::is_control) {
                return Err(format!("`{name}` has control characters"));
            }
        }
        Ok(())
    }

    /// Returns the secret for a method of Shadowsocks, or without one for SOCKS and HTTP; `None` if none fits.
    pub(super) fn secret_for(&self, method: Option<Method>) -> Option<&str> {
        let Some(method) = method else {
            return self.login.as_deref();
        };
        let secret = match method.edition() {
            Edition::Aead2022 => self.psk.as_deref(),
            _ => self.password.as_deref(),
        };
        secret.filter(|secret| Key::parse(method, secret).is_ok())
    }
}

impl Drop for GivenSecrets {
    fn drop(&mut self) {
        self.password.zeroize();
        self.psk.zeroize();
        self.login.zeroize();
    }
}

impl fmt::Debug for GivenSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenSecrets(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_protocol() {
        let secrets = GivenSecrets {
            password: Some("pw".to_owned()),
            psk: Some("AQEBAQEBAQEBAQEBAQEBAQ==".to_owned()),
            login: None,
        };
        assert_eq!(secrets.check(), Ok(()));
        let of = |method| secrets.secret_for(Some(method));
        assert_eq!(of(Method::Blake3Aes128Gcm), secrets.psk.as_deref());
        // Its keys have 32 bytes.
        assert_eq!(of(Method::Blake3Aes256Gcm), None);
        assert_eq!(of(Method::Aes128Gcm), Some("pw"));
        assert_eq!(secrets.secret_for(None), None);
        assert_eq!(format!("{secrets:?}"), "GivenSecrets(***)");
    }

    #[test]
    fn a_secret_cannot_add_a_line() {
        for login in ["", "a\nb:c", "\u{7f}", &"x".repeat(256)] {
            let secrets = GivenSecrets {
                password: None,
                psk: None,
                login: Some(login.to_owned()),
            };
            let why = secrets.check().unwrap_err();
            assert!(why.contains("`login`") && !why.contains("b:c"), "{why}");
        }
    }
}
