//! Key exchange methods.

names! { "A key exchange method, or a marker." {
    /// ML-KEM-768 with X25519.
    MLKEM768X25519_SHA256 = "mlkem768x25519-sha256",
    /// Streamlined NTRU Prime 761 with X25519; not in russh.
    SNTRUP761X25519_SHA512 = "sntrup761x25519-sha512",
    /// The same method under its older name.
    SNTRUP761X25519_SHA512_OPENSSH = "sntrup761x25519-sha512@openssh.com",
    /// X25519 (RFC 8731).
    CURVE25519 = "curve25519-sha256",
    /// The same method under its older name.
    CURVE25519_PRE_RFC_8731 = "curve25519-sha256@libssh.org",
    /// ECDH on P-256 (RFC 5656).
    ECDH_SHA2_NISTP256 = "ecdh-sha2-nistp256",
    /// ECDH on P-384.
    ECDH_SHA2_NISTP384 = "ecdh-sha2-nistp384",
    /// ECDH on P-521.
    ECDH_SHA2_NISTP521 = "ecdh-sha2-nistp521",
    /// Diffie–Hellman in a group that the server chooses (RFC 4419).
    DH_GEX_SHA256 = "diffie-hellman-group-exchange-sha256",
    /// Diffie–Hellman, 4096 bits (RFC 8268).
    DH_G16_SHA512 = "diffie-hellman-group16-sha512",
    /// Diffie–Hellman, 8192 bits.
    DH_G18_SHA512 = "diffie-hellman-group18-sha512",
    /// Diffie–Hellman, 2048 bits.
    DH_G14_SHA256 = "diffie-hellman-group14-sha256",
    /// A marker that requests extensions. It is always sent, even if it is not listed.
    EXTENSION_SUPPORT_AS_CLIENT = "ext-info-c",
    /// The same marker of a server.
    EXTENSION_SUPPORT_AS_SERVER = "ext-info-s",
    /// A marker for strict key exchange (CVE-2023-48795). It is always sent, even if it is not listed.
    EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT = "kex-strict-c-v00@openssh.com",
    /// The same marker of a server.
    EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER = "kex-strict-s-v00@openssh.com",
} }
