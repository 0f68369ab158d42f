//! Algorithms by their names on the wire, and the order in which they are offered.
//!
//! Each list of KEXINIT (RFC 4253 section 7.1) has an enum; [`AlgorithmPreferences`] is what one side offers.

macro_rules! algorithms {
    ($(#[$doc:meta])* $kind:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $($(#[$vdoc])* $variant,)*
        }

        impl $kind {
            /// All variants, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the algorithm with this name; `None` if it is not supported.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|a| a.name() == name)
            }
        }

        impl core::fmt::Display for $kind {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

algorithms! {
    /// Key exchange methods.
    Kex {
        /// ML-KEM-768 with X25519.
        MlKem768X25519 = "mlkem768x25519-sha256",
        /// Streamlined NTRU Prime 761 with X25519.
        Sntrup761X25519 = "sntrup761x25519-sha512",
        /// Streamlined NTRU Prime 761 with X25519, under its older name.
        Sntrup761X25519OpenSsh = "sntrup761x25519-sha512@openssh.com",
        /// X25519 (RFC 8731).
        Curve25519 = "curve25519-sha256",
        /// X25519, under its older name.
        Curve25519LibSsh = "curve25519-sha256@libssh.org",
        /// ECDH on P-256 (RFC 5656).
        EcdhP256 = "ecdh-sha2-nistp256",
        /// ECDH on P-384.
        EcdhP384 = "ecdh-sha2-nistp384",
        /// ECDH on P-521.
        EcdhP521 = "ecdh-sha2-nistp521",
        /// Diffie–Hellman in a group that the server chooses (RFC 4419).
        GroupExchange = "diffie-hellman-group-exchange-sha256",
        /// Diffie–Hellman, 4096-bit group (RFC 8268).
        Group16 = "diffie-hellman-group16-sha512",
        /// Diffie–Hellman, 8192-bit group (RFC 8268).
        Group18 = "diffie-hellman-group18-sha512",
        /// Diffie–Hellman, 2048-bit group (RFC 8268).
        Group14 = "diffie-hellman-group14-sha256",
    }
}

algorithms! {
    /// Ciphers.
    Cipher {
        /// AES-128 in Galois/counter mode.
        Aes128Gcm = "aes128-gcm@openssh.com",
        /// AES-256 in Galois/counter mode.
        Aes256Gcm = "aes256-gcm@openssh.com",
        /// ChaCha20-Poly1305 with an encrypted length.
        ChaCha20Poly1305 = "chacha20-poly1305@openssh.com",
        /// AES-128 in counter mode (RFC 4344).
        Aes128Ctr = "aes128-ctr",
        /// AES-192 in counter mode.
        Aes192Ctr = "aes192-ctr",
        /// AES-256 in counter mode.
        Aes256Ctr = "aes256-ctr",
    }
}

algorithms! {
    /// Message authentication codes. `Etm` variants are computed over the encrypted packet.
    Mac {
        /// UMAC-64, encrypt then MAC.
        Umac64Etm = "umac-64-etm@openssh.com",
        /// UMAC-128, encrypt then MAC.
        Umac128Etm = "umac-128-etm@openssh.com",
        /// HMAC with SHA-256, encrypt then MAC.
        HmacSha256Etm = "hmac-sha2-256-etm@openssh.com",
        /// HMAC with SHA-512, encrypt then MAC.
        HmacSha512Etm = "hmac-sha2-512-etm@openssh.com",
        /// HMAC with SHA-1, encrypt then MAC.
        HmacSha1Etm = "hmac-sha1-etm@openssh.com",
        /// UMAC-64.
        Umac64 = "umac-64@openssh.com",
        /// UMAC-128.
        Umac128 = "umac-128@openssh.com",
        /// HMAC with SHA-256 (RFC 6668).
        HmacSha256 = "hmac-sha2-256",
        /// HMAC with SHA-512.
        HmacSha512 = "hmac-sha2-512",
        /// HMAC with SHA-1.
        HmacSha1 = "hmac-sha1",
        /// HMAC with SHA-1 and a 96-bit tag, encrypt then MAC. This and the following ones are only
        /// used if the configuration names them.
        HmacSha1ShortEtm = "hmac-sha1-96-etm@openssh.com",
        /// HMAC with MD5, encrypt then MAC.
        HmacMd5Etm = "hmac-md5-etm@openssh.com",
        /// HMAC with MD5 and a 96-bit tag, encrypt then MAC.
        HmacMd5ShortEtm = "hmac-md5-96-etm@openssh.com",
        /// HMAC with SHA-1 and a 96-bit tag.
        HmacSha1Short = "hmac-sha1-96",
        /// HMAC with MD5.
        HmacMd5 = "hmac-md5",
        /// HMAC with MD5 and a 96-bit tag.
        HmacMd5Short = "hmac-md5-96",
    }
}

algorithms! {
    /// Algorithms of host keys and user keys: signature scheme and hash.
    KeyAlgorithm {
        /// A certificate of an Ed25519 key.
        Ed25519Cert = "ssh-ed25519-cert-v01@openssh.com",
        /// A certificate of an ECDSA key on P-256.
        EcdsaP256Cert = "ecdsa-sha2-nistp256-cert-v01@openssh.com",
        /// A certificate of an ECDSA key on P-384.
        EcdsaP384Cert = "ecdsa-sha2-nistp384-cert-v01@openssh.com",
        /// A certificate of an ECDSA key on P-521.
        EcdsaP521Cert = "ecdsa-sha2-nistp521-cert-v01@openssh.com",
        /// A certificate of an Ed25519 key in a security key (FIDO).
        SkEd25519Cert = "sk-ssh-ed25519-cert-v01@openssh.com",
        /// A certificate of an ECDSA key in a security key (FIDO).
        SkEcdsaP256Cert = "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
        /// A certificate of an RSA key, signing with SHA-512.
        RsaSha512Cert = "rsa-sha2-512-cert-v01@openssh.com",
        /// A certificate of an RSA key, signing with SHA-256.
        RsaSha256Cert = "rsa-sha2-256-cert-v01@openssh.com",
        /// Ed25519 (RFC 8709).
        Ed25519 = "ssh-ed25519",
        /// ECDSA on P-256 (RFC 5656).
        EcdsaP256 = "ecdsa-sha2-nistp256",
        /// ECDSA on P-384.
        EcdsaP384 = "ecdsa-sha2-nistp384",
        /// ECDSA on P-521.
        EcdsaP521 = "ecdsa-sha2-nistp521",
        /// Ed25519 in a security key (FIDO).
        SkEd25519 = "sk-ssh-ed25519@openssh.com",
        /// ECDSA on P-256 in a security key (FIDO).
        SkEcdsaP256 = "sk-ecdsa-sha2-nistp256@openssh.com",
        /// RSA with SHA-512 (RFC 8332).
        RsaSha512 = "rsa-sha2-512",
        /// RSA with SHA-256.
        RsaSha256 = "rsa-sha2-256",
    }
}

algorithms! {
    /// Compression methods.
    Compression {
        /// No compression.
        None = "none",
        /// Deflate, enabled when authentication ends.
        ZlibDelayed = "zlib@openssh.com",
        /// Deflate, enabled after the first key exchange (RFC 4253).
        Zlib = "zlib",
    }
}

impl Kex {
    /// True for Diffie–Hellman in a finite field. Its cost grows with the cube of the group's size:
    /// with 8192 bits, an exchange costs the server tens of milliseconds, while a client can
    /// request it at almost no cost.
    #[must_use]
    pub const fn is_finite_field(self) -> bool {
        matches!(
            self,
            Self::GroupExchange | Self::Group14 | Self::Group16 | Self::Group18
        )
    }
}

impl Cipher {
    /// True if the cipher computes its own tag, so that no MAC is used.
    #[must_use]
    pub const fn is_aead(self) -> bool {
        matches!(
            self,
            Self::Aes128Gcm | Self::Aes256Gcm | Self::ChaCha20Poly1305
        )
    }

    /// Returns the lengths of the key and of the IV derived from the key exchange, in bytes.
    #[must_use]
    pub const fn key_iv_len(self) -> (usize, usize) {
        match self {
            Self::Aes128Gcm => (16, 12),
            Self::Aes256Gcm => (32, 12),
            Self::ChaCha20Poly1305 => (64, 0),
            Self::Aes128Ctr => (16, 16),
            Self::Aes192Ctr => (24, 16),
            Self::Aes256Ctr => (32, 16),
        }
    }

    /// Returns the block length in bytes; packets are padded to a multiple of it.
    #[must_use]
    pub const fn block_len(self) -> usize {
        match self {
            Self::ChaCha20Poly1305 => 8,
            _ => 16,
        }
    }
}

impl Mac {
    /// True if the MAC is computed over the encrypted packet.
    #[must_use]
    pub const fn is_etm(self) -> bool {
        matches!(
            self,
            Self::Umac64Etm
                | Self::Umac128Etm
                | Self::HmacSha256Etm
                | Self::HmacSha512Etm
                | Self::HmacSha1Etm
                | Self::HmacSha1ShortEtm
                | Self::HmacMd5Etm
                | Self::HmacMd5ShortEtm
        )
    }

    /// True if the hash is broken or the tag is truncated: only for peers that support nothing
    /// else. None of them is known to be broken as a MAC, but they are not recommended today.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        matches!(
            self,
            Self::HmacSha1
                | Self::HmacSha1Etm
                | Self::HmacSha1Short
                | Self::HmacSha1ShortEtm
                | Self::HmacMd5
                | Self::HmacMd5Etm
                | Self::HmacMd5Short
                | Self::HmacMd5ShortEtm
        )
    }

    /// Returns the lengths of the key and of the tag, in bytes.
    #[must_use]
    pub const fn key_tag_len(self) -> (usize, usize) {
        match self {
            Self::Umac64 | Self::Umac64Etm => (16, 8),
            Self::Umac128 | Self::Umac128Etm => (16, 16),
            Self::HmacSha256 | Self::HmacSha256Etm => (32, 32),
            Self::HmacSha512 | Self::HmacSha512Etm => (64, 64),
            Self::HmacSha1 | Self::HmacSha1Etm => (20, 20),
            Self::HmacSha1Short | Self::HmacSha1ShortEtm => (20, 12),
            Self::HmacMd5 | Self::HmacMd5Etm => (16, 16),
            Self::HmacMd5Short | Self::HmacMd5ShortEtm => (16, 12),
        }
    }
}

impl KeyAlgorithm {
    /// Returns the plain key's algorithm, without the certificate.
    #[must_use]
    pub const fn without_certificate(self) -> Self {
        match self {
            Self::Ed25519Cert => Self::Ed25519,
            Self::EcdsaP256Cert => Self::EcdsaP256,
            Self::EcdsaP384Cert => Self::EcdsaP384,
            Self::EcdsaP521Cert => Self::EcdsaP521,
            Self::SkEd25519Cert => Self::SkEd25519,
            Self::SkEcdsaP256Cert => Self::SkEcdsaP256,
            Self::RsaSha512Cert => Self::RsaSha512,
            Self::RsaSha256Cert => Self::RsaSha256,
            other => other,
        }
    }

    /// True if the algorithm uses a certificate.
    #[must_use]
    pub fn is_certificate(self) -> bool {
        self.without_certificate() != self
    }
}

/// CPU features that decide the order of ciphers; detected by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuFeatures {
    /// AES instructions.
    pub aes: bool,
    /// Carry-less multiplication, which GCM depends on for speed.
    pub clmul: bool,
}

/// Algorithms that one side offers, most preferred first. Each list may be changed freely; an empty
/// list offers nothing, which no peer can accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmPreferences {
    /// Key exchange methods.
    pub kex: Vec<Kex>,
    /// Host key algorithms.
    pub host_key: Vec<KeyAlgorithm>,
    /// Ciphers, for both directions.
    pub cipher: Vec<Cipher>,
    /// MACs, for both directions.
    pub mac: Vec<Mac>,
    /// Compression methods, for both directions.
    pub compression: Vec<Compression>,
}

impl AlgorithmPreferences {
    /// Returns the order for `machine`: AES-GCM first if the CPU has carry-less multiplication,
    /// AES-CTR with UMAC if it has only AES instructions, ChaCha20 if it has neither. UMAC is
    /// always the first MAC.
    #[must_use]
    pub fn for_machine(machine: CpuFeatures) -> Self {
        use Cipher::{Aes128Ctr, Aes128Gcm, Aes192Ctr, Aes256Ctr, Aes256Gcm, ChaCha20Poly1305};
        let cipher = match (machine.aes, machine.clmul) {
            (true, true) => [
                Aes128Gcm,
                Aes256Gcm,
                Aes128Ctr,
                Aes192Ctr,
                Aes256Ctr,
                ChaCha20Poly1305,
            ],
            (true, false) => [
                Aes128Ctr,
                Aes192Ctr,
                Aes256Ctr,
                Aes128Gcm,
                Aes256Gcm,
                ChaCha20Poly1305,
            ],
            (false, _) => [
                ChaCha20Poly1305,
                Aes128Ctr,
                Aes192Ctr,
                Aes256Ctr,
                Aes128Gcm,
                Aes256Gcm,
            ],
        };
        Self {
            kex: Kex::ALL.to_vec(),
            host_key: KeyAlgorithm::ALL.to_vec(),
            cipher: cipher.to_vec(),
            mac: vec![
                Mac::Umac64Etm,
                Mac::Umac128Etm,
                // Ahead of HMAC over ciphertext: a peer that has UMAC only in this form gets the
                // fast MAC. The cost is that a length is decrypted before it is authenticated, as
                // in SSH without extensions.
                Mac::Umac64,
                Mac::Umac128,
                Mac::HmacSha256Etm,
                Mac::HmacSha512Etm,
                Mac::HmacSha1Etm,
                Mac::HmacSha256,
                Mac::HmacSha512,
                Mac::HmacSha1,
            ],
            compression: vec![Compression::None, Compression::ZlibDelayed],
        }
    }

    /// Removes the key exchange methods that a server does not offer by default: Diffie–Hellman in
    /// finite fields ([`Kex::is_finite_field`]), like OpenSSH's server from version 10.0.
    #[must_use]
    pub fn for_server(mut self) -> Self {
        self.kex.retain(|kex| !kex.is_finite_field());
        self
    }

    /// Removes every MAC with a tag shorter than 128 bits: the 64-bit UMACs.
    #[must_use]
    pub fn with_long_tags(mut self) -> Self {
        self.mac.retain(|mac| mac.key_tag_len().1 >= 16);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for mac in Mac::ALL {
            assert_eq!(Mac::by_name(mac.name()), Some(*mac));
            assert_eq!(mac.is_etm(), mac.name().contains("-etm"));
        }
        assert_eq!(Kex::by_name("kex-strict-c-v00@openssh.com"), None);
        assert_eq!(KeyAlgorithm::by_name("ssh-rsa"), None, "SHA-1 never");
        for key in KeyAlgorithm::ALL {
            assert_eq!(key.is_certificate(), key.name().contains("-cert-v01"));
        }
    }

    #[test]
    fn servers_offer_no_finite_fields() {
        let machine = CpuFeatures {
            aes: true,
            clmul: true,
        };
        let all = AlgorithmPreferences::for_machine(machine);
        let server = all.clone().for_server();
        assert_eq!(all.kex.len() - server.kex.len(), 4);
        let costly = |kex: &Kex| kex.name().starts_with("diffie-hellman-group");
        assert!(!server.kex.iter().any(costly), "{:?}", server.kex);
    }

    #[test]
    fn umac_is_first_on_every_machine() {
        for (aes, clmul) in [(true, true), (true, false), (false, false)] {
            let p = AlgorithmPreferences::for_machine(CpuFeatures { aes, clmul });
            assert_eq!(p.mac.first(), Some(&Mac::Umac64Etm));
            // The same holds for a peer that only has the plain variant.
            let place = |mac| p.mac.iter().position(|m| *m == mac);
            assert!(place(Mac::Umac128) < place(Mac::HmacSha256Etm));
            assert_eq!(place(Mac::HmacMd5), None, "only by its name");
            assert_eq!(p.cipher.len(), Cipher::ALL.len());
            let long = p.with_long_tags();
            assert_eq!(long.mac.first(), Some(&Mac::Umac128Etm));
            assert!(long.mac.iter().all(|m| m.key_tag_len().1 >= 16));
        }
    }
}
