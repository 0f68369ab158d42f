//! What differs between schemes in how a URL is written.

use adit_wire::Host;

use crate::grammar::{Endpoint, Pair};
use crate::text::{Flaw, SecretText, Span, Spanned};

/// User and secret, each if it is written.
pub(crate) type UserInfo = (Option<Spanned<String>>, Option<Spanned<SecretText>>);

/// How the part before the query is written.
#[derive(Debug)]
pub(crate) struct Syntax {
    /// What stands before the `@` is the secret and nothing else.
    pub(crate) secret_alone: bool,
    /// The user is a method, and this tells whether a text is one. What stands there and is none
    /// can be base64 of the secret.
    pub(crate) is_method: Option<fn(&str) -> bool>,
    /// Values are written with a raw `#`, and secrets behind it.
    pub(crate) hash_in_values: bool,
    /// In place of a port there can be a range of them, `MIN-MAX`.
    pub(crate) port_range: bool,
    pub(crate) folded_user: Option<FoldedUser>,
    pub(crate) link: Option<LinkForm>,
}

/// SIP002: method and secret in one text, and a slash before the query.
#[derive(Debug)]
pub(crate) struct FoldedUser {
    pub(crate) read: fn(&str, Span) -> Result<UserInfo, Flaw>,
    pub(crate) write: fn(method: &str, secret: &str) -> String,
}

/// Writes an endpoint as a link.
pub(crate) type Fold = fn(&Endpoint) -> Result<String, Flaw>;

/// The form of links in which all is one base64 text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkForm {
    /// Whether the part between `://` and the query has this form.
    pub(crate) is: fn(&str) -> bool,
    pub(crate) unfold: fn(&str, Span) -> Result<Unfolded, Flaw>,
    /// Writes it, if other programs still read it.
    pub(crate) fold: Option<Fold>,
    /// Schemes with a carrier have it, too.
    pub(crate) with_carrier: bool,
}

/// What a link holds; every part has the place of the whole, there is no finer one.
pub(crate) struct Unfolded {
    pub(crate) method: Spanned<String>,
    pub(crate) secret: Spanned<SecretText>,
    pub(crate) host: Option<Spanned<Host>>,
    pub(crate) port: Spanned<u16>,
    pub(crate) params: Vec<Pair>,
    pub(crate) name: Option<Spanned<String>>,
}

/// What those know who know the schemes.
#[derive(Clone, Copy)]
pub(crate) struct Dialects {
    /// The syntax of a scheme, whatever carries it.
    pub(crate) syntax: fn(scheme: &str) -> &'static Syntax,
    /// True if an `@` behind this text begins the path of a file.
    pub(crate) opens_file: fn(before: &str) -> bool,
}

impl Syntax {
    /// `user:secret@host:port`, and no other form.
    pub(crate) const PLAIN: Self = Self {
        secret_alone: false,
        is_method: None,
        hash_in_values: false,
        port_range: false,
        folded_user: None,
        link: None,
    };
}
