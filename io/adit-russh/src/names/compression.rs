//! Compression.

names! { "A compression." {
    /// None.
    NONE = "none",
    /// Deflate, from the first keys on (RFC 4253).
    ZLIB = "zlib",
    /// Deflate, once the user is in.
    ZLIB_LEGACY = "zlib@openssh.com",
} }
