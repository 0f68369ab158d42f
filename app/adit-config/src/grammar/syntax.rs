//! Differences between schemes in the syntax of URLs.

use adit_wire::Host;

use crate::grammar::{Endpoint, QueryPair};
use crate::text::{ConfigError, SecretText, Span, Spanned};

/// User and secret, each if it is written.
pub(crate) type UserInfo = (Option<Spanned<String>>, Option<Spanned<SecretText>>);

/// The syntax of the part before the query.
#[derive(Debug)]
pub(crate) struct UrlSyntax {
    /// True if the part before the `@` is the secret and nothing else.
    pub(crate) secret_only: bool,
    /// Set if the user is a method: a function that returns true for names of methods. Any other text
    /// there can be base64 of the secret.
    pub(crate) is_method: Option<fn(&str) -> bool>,
    /// True if values can be written with a raw `#`, followed by secrets.
    pub(crate) hash_in_values: bool,
    /// True if a range `MIN-MAX` is allowed in place of a port.
    pub(crate) port_range: bool,
    /// The encoded form of user and secret.
    pub(crate) encoded_user: Option<EncodedUser>,
    /// The form of links that are one base64 text.
    pub(crate) link: Option<LinkForm>,
}

/// The form of SIP002: method and secret in one text, and a slash before the query.
#[derive(Debug)]
pub(crate) struct EncodedUser {
    /// Parses the text before the `@`.
    pub(crate) read: fn(&str, Span) -> Result<UserInfo, ConfigError>,
    /// Writes it.
    pub(crate) write: fn(method: &str, secret: &str) -> String,
}

/// A function that writes an endpoint as a link.
pub(crate) type LinkWriter = fn(&Endpoint) -> Result<String, ConfigError>;

/// The form of links that are one base64 text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkForm {
    /// True if the part between `://` and the query has this form.
    pub(crate) matches: fn(&str) -> bool,
    /// Parses that part.
    pub(crate) parse: fn(&str, Span) -> Result<ParsedLink, ConfigError>,
    /// Writes the link, if other programs still read it.
    pub(crate) write: Option<LinkWriter>,
    /// True if schemes with a carrier have this form, too.
    pub(crate) with_carrier: bool,
}

/// The content of a link. Every part has the position of the whole link.
pub(crate) struct ParsedLink {
    /// The method.
    pub(crate) method: Spanned<String>,
    /// The secret.
    pub(crate) secret: Spanned<SecretText>,
    /// The host.
    pub(crate) host: Option<Spanned<Host>>,
    /// The port.
    pub(crate) port: Spanned<u16>,
    /// The keys.
    pub(crate) params: Vec<QueryPair>,
    /// The name.
    pub(crate) name: Option<Spanned<String>>,
}

/// The lookups that need the table of schemes, which is in a higher layer.
#[derive(Clone, Copy)]
pub(crate) struct SchemeLookups {
    /// Returns the syntax of a scheme, with or without a carrier.
    pub(crate) syntax: fn(scheme: &str) -> &'static UrlSyntax,
    /// True if an `@` after this text begins the path of a file.
    pub(crate) opens_file: fn(before: &str) -> bool,
}

impl UrlSyntax {
    /// The syntax `user:secret@host:port`, without other forms.
    pub(crate) const PLAIN: Self = Self {
        secret_only: false,
        is_method: None,
        hash_in_values: false,
        port_range: false,
        encoded_user: None,
        link: None,
    };
}
