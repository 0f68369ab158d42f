//! User and password in the Basic scheme (RFC 7617).

use adit_wire::subslice;
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// Padding is optional when decoding and always written when encoding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A user and a password, wiped from memory when dropped.
pub(crate) struct BasicLogin {
    plain: Zeroizing<Vec<u8>>,
    colon: usize,
}

impl BasicLogin {
    /// Parses the value of a `Proxy-Authorization` field; `None` if it is not Basic.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, rest) = value.split_at(value.iter().position(|b| *b == b' ')?);
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let plain = Zeroizing::new(BASE64.decode(rest.trim_ascii_start()).ok()?);
        // The password may contain colons, the name may not.
        let colon = plain.iter().position(|b| *b == b':')?;
        Some(Self { plain, colon })
    }

    pub(crate) fn user(&self) -> &[u8] {
        subslice(&self.plain, ..self.colon)
    }

    pub(crate) fn password(&self) -> &[u8] {
        subslice(&self.plain, self.colon + 1..)
    }
}

/// Formats the value of a `Proxy-Authorization` field; `None` if the name contains a colon.
pub(crate) fn format_basic(user: &str, password: &str) -> Option<Zeroizing<String>> {
    if user.contains(':') {
        return None;
    }
    let plain = Zeroizing::new([user, ":", password].concat());
    let coded = Zeroizing::new(BASE64.encode(plain.as_bytes()));
    Some(Zeroizing::new(["Basic ", coded.as_str()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for (user, password) in [("u", "p"), ("", ""), ("user", "a:b:c"), ("ü", "пароль")] {
            let login =
                BasicLogin::parse(format_basic(user, password).unwrap().as_bytes()).unwrap();
            assert_eq!(login.user(), user.as_bytes());
            assert_eq!(login.password(), password.as_bytes());
        }
        assert_eq!(format_basic("u", "p").unwrap().as_str(), "Basic dTpw");
        assert!(format_basic("a:b", "p").is_none());
    }

    #[test]
    fn is_liberal_in_case_blanks_and_padding_alone() {
        for value in ["basic dTpwcA==", "BASIC   dTpwcA==", "Basic dTpwcA"] {
            assert_eq!(BasicLogin::parse(value.as_bytes()).unwrap().user(), b"u");
        }
        for value in [
            "Basic",
            "Basic ",
            "BasicdTpw",
            "Bearer dTpw",
            "Basic dTp-",
            "Basic dXA=",
        ] {
            assert!(BasicLogin::parse(value.as_bytes()).is_none(), "{value}");
        }
    }
}
