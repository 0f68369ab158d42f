//! Message authentication codes. `ETM` means encrypt then MAC: over the encrypted packet.

names! { "A message authentication code." {
    /// UMAC-64, encrypt then MAC; russh has no UMAC.
    UMAC_64_ETM = "umac-64-etm@openssh.com",
    /// UMAC-128, encrypt then MAC.
    UMAC_128_ETM = "umac-128-etm@openssh.com",
    /// UMAC-64.
    UMAC_64 = "umac-64@openssh.com",
    /// UMAC-128.
    UMAC_128 = "umac-128@openssh.com",
    /// HMAC with SHA-256, encrypt then MAC.
    HMAC_SHA256_ETM = "hmac-sha2-256-etm@openssh.com",
    /// HMAC with SHA-512, encrypt then MAC.
    HMAC_SHA512_ETM = "hmac-sha2-512-etm@openssh.com",
    /// HMAC with SHA-1, encrypt then MAC.
    HMAC_SHA1_ETM = "hmac-sha1-etm@openssh.com",
    /// HMAC with SHA-256 (RFC 6668).
    HMAC_SHA256 = "hmac-sha2-256",
    /// HMAC with SHA-512.
    HMAC_SHA512 = "hmac-sha2-512",
    /// HMAC with SHA-1.
    HMAC_SHA1 = "hmac-sha1",
} }
