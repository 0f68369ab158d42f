//! Text form of a private key (RFC 7468), and its legacy encryption (RFC 1421).

use adit_crypto::{Secret, aes128_cbc_decrypt, md5};
use adit_wire::subslice;

use super::{base64, error::KeyError};

const MALFORMED: KeyError = KeyError::Malformed("text of a private key");

/// A PEM document with its label.
pub(super) struct PemDocument<'a> {
    /// Text after `BEGIN`.
    pub(super) label: &'a str,
    /// Value of `DEK-Info`, if the document has the legacy encryption.
    cipher: Option<&'a str>,
    document: Secret<Vec<u8>>,
}

impl<'a> PemDocument<'a> {
    /// Parses the first document of `text`; text before and after it is ignored.
    pub(super) fn parse(text: &'a str) -> Result<Self, KeyError> {
        let begin = |line: &'a str| {
            let label = line.trim().strip_prefix("-----BEGIN ")?;
            label.strip_suffix("-----")
        };
        let mut lines = text.lines();
        let label = lines.by_ref().find_map(begin).ok_or(MALFORMED)?;
        // Allocated at full size, so that no copy is left behind in memory.
        let mut body = Secret::new(String::with_capacity(text.len()));
        let (mut cipher, mut whole) = (None, false);
        for line in lines.map(str::trim) {
            if line.starts_with("-----END ") {
                whole = true;
                break;
            }
            match line.split_once(':') {
                Some(("DEK-Info", value)) => cipher = Some(value.trim()),
                Some(_) => {}
                None => body.expose_mut().push_str(line),
            }
        }
        let document = base64::decode(body.expose()).filter(|_| whole);
        Ok(Self {
            label,
            cipher,
            document: Secret::new(document.ok_or(MALFORMED)?),
        })
    }

    /// Returns the document, decrypted if necessary.
    pub(super) fn decrypt(self, passphrase: Option<&[u8]>) -> Result<Secret<Vec<u8>>, KeyError> {
        let Self {
            cipher,
            mut document,
            ..
        } = self;
        let Some(cipher) = cipher else {
            return Ok(document);
        };
        let passphrase = passphrase.ok_or(KeyError::Encrypted)?;
        let (name, iv) = cipher.split_once(',').ok_or(MALFORMED)?;
        if name != "AES-128-CBC" {
            return Err(KeyError::Unsupported("the cipher of the PEM key file"));
        }
        let iv = u128::from_str_radix(iv, 16).map_err(|_| MALFORMED)?;
        let iv = iv.to_be_bytes();
        let (salt, _) = iv.split_at(8);
        // EVP_BytesToKey with MD5 and one iteration yields one hash, which is the key.
        let key = Secret::new(md5(&[passphrase, salt]));
        let data = document.expose_mut();
        aes128_cbc_decrypt(key.expose(), &iv, data).map_err(|_| MALFORMED)?;
        // Nothing is authenticated: a wrong passphrase shows only in the padding, and in the key's
        // numbers, which have to match each other.
        let pad = data.last().copied().unwrap_or(0);
        let len = data.len().checked_sub(usize::from(pad));
        let len = len.ok_or(KeyError::WrongPassphrase)?;
        let padding = subslice(data, len..);
        if !(1..=16).contains(&pad) || padding.iter().any(|b| *b != pad) {
            return Err(KeyError::WrongPassphrase);
        }
        data.truncate(len);
        Ok(document)
    }
}

/// Returns the text of a document, with lines of 70 characters like OpenSSH's.
pub(super) fn encode_pem(label: &str, document: &[u8]) -> Secret<String> {
    let body = Secret::new(base64::encode(document));
    let len = body.expose().len();
    let mut text = String::with_capacity(len + len / 70 + 2 * label.len() + 64);
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    let mut rest: &str = body.expose();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at_checked(70).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    Secret::new(text)
}
