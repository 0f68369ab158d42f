//! Compression methods.

names! { "A compression method." {
    /// No compression.
    NONE = "none",
    /// Deflate, from the first key exchange on (RFC 4253).
    ZLIB = "zlib",
    /// Deflate, after authentication.
    ZLIB_LEGACY = "zlib@openssh.com",
} }
