//! Seals arbitrary content in the formats of SIP004 and SIP022: a peer with the right key that
//! breaks the rules.

use std::sync::LazyLock;

use adit_crypto::{
    AeadKey, AeadKind, HeaderCipher, KdfContext, NonceCounter, evp_bytes_to_key, hkdf_sha1_subkey,
};
use adit_shadowsocks::{Key, Method};

const KEY_2022: &str = "AAECAwQFBgcICQoLDA0ODw==";
const PASSWORD: &str = "password";

/// One legacy method for each kind of cipher, with an IV and without.
const LEGACY_METHODS: [&str; 4] = ["rc4", "bf-cfb", "aes-128-cfb1", "chacha20-ietf"];

static LEGACY_KEYS: LazyLock<[Key; 4]> = LazyLock::new(|| {
    LEGACY_METHODS.map(|name| {
        let method = name.parse().expect("a method");
        Key::parse(method, PASSWORD).expect("a password")
    })
});

/// Returns the key of a legacy method if the highest bit of the byte is set.
#[must_use]
pub fn legacy_key(byte: u8) -> Option<&'static Key> {
    let asked = byte & 0x80 != 0;
    LEGACY_KEYS.get(usize::from(byte & 3)).filter(|_| asked)
}

/// The salt of every forged stream, and of a client whose randomness is zeros.
pub const SALT: [u8; 16] = [0; 16];
/// The salt of a forged response.
pub const RESPONSE_SALT: [u8; 16] = [9; 16];

/// The forged edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgedEdition {
    /// SIP022 with AES-128.
    Aead2022,
    /// SIP004 with AES-128.
    Aead,
}

impl ForgedEdition {
    /// Selects an edition by the lowest bit.
    #[must_use]
    pub const fn from_lowest_bit(byte: u8) -> Self {
        if byte & 1 == 0 {
            Self::Aead2022
        } else {
            Self::Aead
        }
    }

    /// Returns the key of the codec under test.
    ///
    /// # Panics
    /// Panics if the codec refuses a valid key.
    #[must_use]
    pub fn key(self) -> Key {
        match self {
            Self::Aead2022 => Key::parse(Method::Blake3Aes128Gcm, KEY_2022),
            Self::Aead => Key::parse(Method::Aes128Gcm, PASSWORD),
        }
        .expect("a right key")
    }

    fn master_key(self) -> [u8; 16] {
        match self {
            Self::Aead2022 => core::array::from_fn(|n| n as u8),
            Self::Aead => {
                let mut key = [0; 16];
                evp_bytes_to_key(PASSWORD.as_bytes(), &mut key);
                key
            }
        }
    }

    fn session_key(self, salt: &[u8]) -> AeadKey {
        let mut key = [0; 16];
        match self {
            Self::Aead2022 => {
                let context = KdfContext::new("shadowsocks 2022 session subkey");
                context.derive_key(&[&self.master_key(), salt], &mut key);
            }
            Self::Aead => hkdf_sha1_subkey(&self.master_key(), salt, &mut key).expect("16 bytes"),
        }
        AeadKey::new(AeadKind::Aes128Gcm, &key).expect("16 bytes")
    }
}

/// A stream of sealed blocks.
#[derive(Debug)]
pub struct ForgedStream {
    key: AeadKey,
    nonce: NonceCounter,
    /// The bytes on the wire.
    pub wire: Vec<u8>,
}

impl ForgedStream {
    /// Creates a stream that begins with the salt.
    #[must_use]
    pub fn new(edition: ForgedEdition, salt: &[u8]) -> Self {
        Self {
            key: edition.session_key(salt),
            nonce: NonceCounter::new(AeadKind::Aes128Gcm),
            wire: salt.to_vec(),
        }
    }

    /// Appends one sealed block and its tag.
    ///
    /// # Panics
    /// Panics if the cipher fails.
    pub fn append_block(&mut self, plain: &[u8]) {
        let nonce = self.nonce.next_nonce().expect("few blocks");
        let mut sealed = plain.to_vec();
        let tag = self.key.seal_in_place(&nonce, &mut sealed).expect("short");
        self.wire.extend_from_slice(&sealed);
        self.wire.extend_from_slice(&tag);
    }

    /// Appends `plain` as chunks with correct lengths, each of at most `most` bytes.
    pub fn append_chunks(&mut self, plain: &[u8], most: usize) {
        for chunk in plain.chunks(most.max(1)) {
            let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
            self.append_block(&len.to_be_bytes());
            self.append_block(chunk);
        }
    }
}

/// Returns a packet with an arbitrary body. In SIP022, `ids` are the session id and the packet id.
///
/// # Panics
/// Panics if the cipher fails.
#[must_use]
pub fn forge_packet(edition: ForgedEdition, ids: [u8; 16], body: &[u8]) -> Vec<u8> {
    match edition {
        ForgedEdition::Aead => {
            let mut stream = ForgedStream::new(edition, &ids);
            stream.append_block(body);
            stream.wire
        }
        ForgedEdition::Aead2022 => {
            let (session, _) = ids.split_at(8);
            let mut sealed = body.to_vec();
            let tag = edition
                .session_key(session)
                .seal_in_place(&ids[4..], &mut sealed);
            let mut head = ids;
            HeaderCipher::new(&edition.master_key())
                .expect("16 bytes")
                .encrypt_block(&mut head);
            [&head[..], &sealed, &tag.expect("short")].concat()
        }
    }
}
