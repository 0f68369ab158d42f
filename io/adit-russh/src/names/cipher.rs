//! Ciphers.

names! { "A cipher." {
    /// AES-128 in Galois/counter mode.
    AES_128_GCM = "aes128-gcm@openssh.com",
    /// AES-256 in Galois/counter mode.
    AES_256_GCM = "aes256-gcm@openssh.com",
    /// ChaCha20 and Poly1305.
    CHACHA20_POLY1305 = "chacha20-poly1305@openssh.com",
    /// AES-128 in counter mode (RFC 4344).
    AES_128_CTR = "aes128-ctr",
    /// AES-192 in counter mode.
    AES_192_CTR = "aes192-ctr",
    /// AES-256 in counter mode.
    AES_256_CTR = "aes256-ctr",
} }
