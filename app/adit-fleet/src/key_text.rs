//! Keys and tokens as text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// Secret texts in JSON, for `serde(with)`.
pub(crate) mod secret_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use zeroize::Zeroizing;

    pub(crate) fn serialize<S: Serializer>(
        text: &Zeroizing<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Zeroizing<String>, D::Error> {
        String::deserialize(deserializer).map(Zeroizing::new)
    }
}

/// Secret texts that may be absent, for `serde(with)`.
pub(crate) mod optional_secret_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use zeroize::Zeroizing;

    pub(crate) fn serialize<S: Serializer>(
        text: &Option<Zeroizing<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_ref()
            .map(|text| text.as_str())
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Zeroizing<String>>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Zeroizing::new))
    }
}

/// Encodes a key in base64.
pub(crate) fn encode_key(key: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(STANDARD.encode(key))
}

/// Decodes a key from base64.
pub(crate) fn decode_key(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    STANDARD.decode(text).ok().map(Zeroizing::new)
}

/// Encodes bytes for a token that is passed through shells and chats: base64url without padding.
pub(crate) fn encode_token(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes))
}

/// Decodes what [`encode_token`] returns.
pub(crate) fn decode_token(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    URL_SAFE_NO_PAD.decode(text).ok().map(Zeroizing::new)
}

/// Returns the hexadecimal digits of `bytes`.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    // Enough at once: growing would leave copies of secrets behind.
    let mut text = Vec::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(digits));
    // Digits are ASCII.
    String::from_utf8(text).unwrap_or_default()
}
