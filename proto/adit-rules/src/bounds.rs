//! Bounds of sets, which their compilation and their cache share.

/// Maximum regular expressions of a set.
pub(crate) const MAX_PATTERNS: usize = 4096;
/// Maximum memory of a regular expression of a list, in bytes.
pub(crate) const LIST_PATTERN_SIZE: usize = 64 * 1024;
/// Maximum patterns with wildcards of a set.
pub(crate) const MAX_GLOBS: usize = 16 * 1024;
/// Maximum keywords of a set.
pub(crate) const MAX_KEYWORDS: usize = 64 * 1024;
/// Maximum users, and maximum listeners, of a set.
pub(crate) const MAX_PEERS: usize = 64 * 1024;
/// Maximum length of a keyword, a user or a listener, in bytes.
pub(crate) const MAX_TEXT: usize = 255;
/// Maximum length of a regular expression, in bytes.
pub(crate) const MAX_PATTERN: usize = 16 * 1024;
/// Maximum regular expressions of all sets inside of a set.
pub(crate) const MAX_ALL_PATTERNS: usize = MAX_PATTERNS;
/// Maximum sets inside of a set, at all levels.
pub(crate) const MAX_SETS: usize = 64 * 1024;
/// Maximum levels of sets inside of sets.
pub(crate) const MAX_DEPTH: usize = 16;

/// An error from adding a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// No host can have the name.
    #[error("not a host name")]
    Name,
    /// The keyword is empty, longer than 255 bytes or has characters that are not in names.
    #[error("not a part of a host name")]
    Keyword,
    /// The pattern with wildcards is empty, too long or has characters that are not in names.
    #[error("not a pattern of host names")]
    Glob,
    /// The regular expression is wrong or too large; the text says why.
    #[error("wrong regular expression: {0}")]
    Pattern(String),
    /// Not a network or an address.
    #[error("not a network or an address")]
    Network,
    /// Not a port or a range of ports.
    #[error("not a port or a range of ports")]
    Ports,
    /// The name of a user or a listener is empty or longer than 255 bytes.
    #[error("a name must have 1 to 255 bytes")]
    Text,
    /// The transport is not `tcp` or `udp`.
    #[error("neither `tcp` nor `udp`")]
    Transport,
    /// The text has no known form of a condition.
    #[error(
        "expected a network, a name, `*.suffix`, `suffix:…`, `keyword:…`, `glob:…`, `regex:…`, `:port`, \
         `:from-to`, `network:tcp`, `network:udp`, `source:…`, `user:…`, `listener:…` or `*`"
    )]
    Condition,
    /// The set has the maximum number of entries of this kind, or its table is full.
    #[error("too many {0} in one set")]
    TooMany(&'static str),
    /// More than 16 levels of sets inside of sets.
    #[error("more than 16 levels of conditions")]
    Depth,
}
