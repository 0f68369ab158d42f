//! Keys and tables of keys: the only place where a parameter is declared.

use core::fmt;

use crate::schema::Typed;

/// A key with its type and default, declared once and read by the builder of an endpoint.
pub(crate) struct ParamKey<T> {
    /// The key as it is written in a URL.
    pub(crate) name: &'static str,
    /// An alternative spelling of the name.
    pub(crate) alias: Option<&'static str>,
    /// The value of a key that is not written.
    pub(crate) default: T,
    /// The default in words where it depends on something else, otherwise empty.
    pub(crate) default_note: &'static str,
    /// One sentence about its effect, for the help and the reference.
    pub(crate) doc: &'static str,
}

impl<T> ParamKey<T> {
    /// Creates a key whose default is always the same.
    pub(crate) const fn new(name: &'static str, default: T, doc: &'static str) -> Self {
        Self {
            name,
            alias: None,
            default,
            default_note: "",
            doc,
        }
    }

    /// Adds an alternative spelling.
    pub(crate) const fn with_alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }
}

impl<T> ParamKey<Option<T>> {
    /// Creates a key whose default depends on something else, described in words.
    pub(crate) const fn with_dynamic_default(
        name: &'static str,
        default_note: &'static str,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            alias: None,
            default: None,
            default_note,
            doc,
        }
    }
}

/// A key without its Rust type, as help, reference and completions need it.
pub trait Setting: Sync {
    /// Returns the key as it is written in a URL.
    fn name(&self) -> &'static str;
    /// Returns the alternative spelling, if there is one.
    fn alias(&self) -> Option<&'static str>;
    /// True if `key` is one of the spellings of this key.
    fn is_named(&self, key: &str) -> bool {
        self.name() == key || self.alias() == Some(key)
    }
    /// Returns the name of the type, with its words or its unit.
    fn type_name(&self) -> &'static str;
    /// Returns the default as text, or what it depends on.
    fn default_text(&self) -> String;
    /// Returns one sentence about the effect of the key.
    fn doc(&self) -> &'static str;
    /// Returns the canonical spelling of a value.
    ///
    /// # Errors
    ///
    /// A text that says what was expected, if the value does not fit the type.
    fn canonicalize(&self, value: &str) -> Result<String, String>;
    /// True if a value can hold a secret: a misplaced one, or the options of a plugin.
    fn may_hold_secret(&self) -> bool;
    /// True if a value can name a file.
    fn may_name_file(&self) -> bool;
}

impl<T: Typed> Setting for ParamKey<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn alias(&self) -> Option<&'static str> {
        self.alias
    }

    fn type_name(&self) -> &'static str {
        T::NAME
    }

    fn default_text(&self) -> String {
        if self.default_note.is_empty() {
            self.default.write()
        } else {
            self.default_note.to_owned()
        }
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn canonicalize(&self, value: &str) -> Result<String, String> {
        T::read(value).map(|value| value.write())
    }

    fn may_hold_secret(&self) -> bool {
        T::HIDDEN
    }

    fn may_name_file(&self) -> bool {
        T::NAMES_FILE
    }
}

/// A row in the table of a scheme.
#[derive(Clone, Copy)]
pub struct SchemeParam {
    /// The key.
    pub setting: &'static dyn Setting,
    /// The roles in which the key has a meaning.
    pub roles: EndpointRoles,
}

/// The role of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointRole {
    /// Accepts connections.
    Listener,
    /// A server in a chain.
    Hop,
}

/// The roles in which a scheme or a key has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointRoles {
    /// Listeners only.
    Listener,
    /// Hops only.
    Hop,
    /// Both.
    Both,
}

impl EndpointRoles {
    /// True if `role` is among them.
    #[must_use]
    pub const fn includes_role(self, role: EndpointRole) -> bool {
        match role {
            EndpointRole::Listener => matches!(self, Self::Listener | Self::Both),
            EndpointRole::Hop => matches!(self, Self::Hop | Self::Both),
        }
    }
}

impl fmt::Display for EndpointRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listener => "listener",
            Self::Hop => "hop",
            Self::Both => "listener, hop",
        })
    }
}

impl fmt::Debug for SchemeParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemeParam({}, {})", self.setting.name(), self.roles)
    }
}

/// Returns a row for listeners.
pub(crate) const fn listener_param(setting: &'static dyn Setting) -> SchemeParam {
    SchemeParam {
        setting,
        roles: EndpointRoles::Listener,
    }
}

/// Returns a row for hops.
pub(crate) const fn hop_param(setting: &'static dyn Setting) -> SchemeParam {
    SchemeParam {
        setting,
        roles: EndpointRoles::Hop,
    }
}

/// Returns a row for both roles.
pub(crate) const fn shared_param(setting: &'static dyn Setting) -> SchemeParam {
    SchemeParam {
        setting,
        roles: EndpointRoles::Both,
    }
}

/// Concatenates two tables, which have `ALL` rows together.
#[expect(
    clippy::indexing_slicing,
    reason = "a constant: out of bounds does not compile"
)]
pub(crate) const fn concat_params<const A: usize, const B: usize, const ALL: usize>(
    first: &[SchemeParam; A],
    rest: &[SchemeParam; B],
) -> [SchemeParam; ALL] {
    assert!(A + B == ALL, "all rows and no others");
    let mut all = [first[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < A { first[at] } else { rest[at - A] };
        at += 1;
    }
    all
}
