//! The exchange hash, and the keys derived from it (RFC 4253 sections 7.2 and 8).

use adit_crypto::{Secret, Sha2};

use super::{DirectionAlgorithms, KexSecret};
use crate::algorithm::{Kex, Mac};
use crate::packet::DirectionKeys;
use crate::wire::SshBufMut;

/// Input of the exchange hash that does not depend on the method.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeHashInput<'a> {
    /// The client's identification, without CR and LF.
    pub client_version: &'a [u8],
    /// The server's identification, without CR and LF.
    pub server_version: &'a [u8],
    /// The client's KEXINIT, starting with the message number.
    pub client_kexinit: &'a [u8],
    /// The server's KEXINIT, starting with the message number.
    pub server_kexinit: &'a [u8],
    /// Blob of the host key.
    pub host_key: &'a [u8],
}

impl ExchangeHashInput<'_> {
    /// Returns the exchange hash H, which the host key signs. The first exchange's H is also the
    /// session identifier.
    #[must_use]
    pub fn exchange_hash(&self, kex: Kex, agreed: &KexSecret) -> Vec<u8> {
        let mut said = Vec::with_capacity(4096);
        said.put_string(self.client_version);
        said.put_string(self.server_version);
        said.put_string(self.client_kexinit);
        said.put_string(self.server_kexinit);
        said.put_string(self.host_key);
        said.put_raw(&agreed.transcript);
        let mut hasher = hash_of(kex).new_hasher();
        hasher.update(&said);
        hasher.update(agreed.secret.expose());
        // Not a secret: it is signed, and agents receive the session identifier.
        hasher.finish().expose().clone()
    }
}

/// Returns the hash function of a method.
const fn hash_of(kex: Kex) -> Sha2 {
    match kex {
        Kex::MlKem768X25519
        | Kex::Curve25519
        | Kex::Curve25519LibSsh
        | Kex::EcdhP256
        | Kex::GroupExchange
        | Kex::Group14 => Sha2::Sha256,
        Kex::EcdhP384 => Sha2::Sha384,
        Kex::Sntrup761X25519
        | Kex::Sntrup761X25519OpenSsh
        | Kex::EcdhP521
        | Kex::Group16
        | Kex::Group18 => Sha2::Sha512,
    }
}

/// Input of the key derivation.
#[derive(Debug)]
pub struct KeyDerivation<'a> {
    /// Method, which determines the hash function.
    pub kex: Kex,
    /// The shared secret.
    pub agreed: &'a KexSecret,
    /// H of this exchange.
    pub exchange_hash: &'a [u8],
    /// H of the first exchange.
    pub session_id: &'a [u8],
}

impl KeyDerivation<'_> {
    /// Derives the keys of one direction; `letters` select IV, cipher key and MAC key.
    fn derive_direction_keys(&self, with: DirectionAlgorithms, letters: [u8; 3]) -> DirectionKeys {
        let [iv, key, mac_key] = letters;
        let (key_len, iv_len) = with.cipher.key_iv_len();
        let mac_len = with.mac.map_or(0, |mac: Mac| mac.key_tag_len().0);
        DirectionKeys {
            cipher: with.cipher,
            mac: with.mac,
            compression: with.compression,
            key: self.derive_bytes(key, key_len),
            iv: self.derive_bytes(iv, iv_len),
            mac_key: self.derive_bytes(mac_key, mac_len),
        }
    }

    /// Derives the keys from client to server.
    #[must_use]
    pub fn client_to_server(&self, with: DirectionAlgorithms) -> DirectionKeys {
        self.derive_direction_keys(with, *b"ACE")
    }

    /// Derives the keys from server to client.
    #[must_use]
    pub fn server_to_client(&self, with: DirectionAlgorithms) -> DirectionKeys {
        self.derive_direction_keys(with, *b"BDF")
    }

    /// Derives `len` bytes: HASH(K, H, letter, session), followed by as many hashes of K, H and all
    /// preceding bytes as are needed.
    fn derive_bytes(&self, letter: u8, len: usize) -> Secret<Vec<u8>> {
        let hash = hash_of(self.kex);
        let mut start = hash.new_hasher();
        start.update(self.agreed.secret.expose());
        start.update(self.exchange_hash);
        let mut first = start.clone();
        first.update(&[letter]);
        first.update(self.session_id);
        // Allocated at full size, because growing would leave a copy behind in memory.
        let mut out = Secret::new(Vec::with_capacity(len.next_multiple_of(hash.output_len())));
        if len > 0 {
            out.expose_mut().extend_from_slice(first.finish().expose());
        }
        while out.expose().len() < len {
            let mut more = start.clone();
            more.update(out.expose());
            out.expose_mut().extend_from_slice(more.finish().expose());
        }
        // The bytes beyond `len` stay in the vector's memory, which is cleared as a whole on drop.
        out.expose_mut().truncate(len);
        out
    }
}
