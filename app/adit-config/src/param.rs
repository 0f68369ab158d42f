//! Keys and tables of keys: the one place where a parameter is declared.

use core::fmt;

use crate::scheme::carrier::all_params;
use crate::scheme::ssh::text::HostKeys;
use crate::scheme::ssr::text::UserText;
use crate::text::{PluginText, nearest};
use crate::value::{FilePath, SecretValue, Typed};

/// A key with its type and default, declared once and read by [`Draft::get`].
///
/// [`Draft::get`]: crate::draft::Draft::get
pub(crate) struct Key<T> {
    pub(crate) name: &'static str,
    pub(crate) default: T,
    /// The default in words, where it depends on something else; else empty.
    pub(crate) otherwise: &'static str,
    pub(crate) doc: &'static str,
}

/// A key without its Rust type: what help, reference and completions need.
pub trait Setting: Sync {
    /// The key as it is written in a URL.
    fn name(&self) -> &'static str;
    /// The type, with its words or its unit.
    fn type_name(&self) -> &'static str;
    /// The default as text, or what it depends on.
    fn default_text(&self) -> String;
    /// One sentence on what it does.
    fn doc(&self) -> &'static str;
    /// The canonical spelling of a value; the error says what was expected.
    fn canonical(&self, value: &str) -> Result<String, String>;
}

impl<T: Typed> Setting for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn type_name(&self) -> &'static str {
        T::NAME
    }

    fn default_text(&self) -> String {
        if self.otherwise.is_empty() {
            self.default.write()
        } else {
            self.otherwise.to_owned()
        }
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn canonical(&self, value: &str) -> Result<String, String> {
        T::read(value).map(|value| value.write())
    }
}

/// One row of a scheme's table.
#[derive(Clone, Copy)]
pub struct Param {
    /// The key.
    pub setting: &'static dyn Setting,
    /// Where it has a meaning.
    pub roles: Roles,
}

/// What an endpoint is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It accepts connections.
    Listener,
    /// It is a server on the way.
    Hop,
}

/// The roles in which something has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roles {
    /// Listeners only.
    Listener,
    /// Hops only.
    Hop,
    /// Both.
    Both,
}

impl Roles {
    /// True if `role` is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        match role {
            Role::Listener => matches!(self, Self::Listener | Self::Both),
            Role::Hop => matches!(self, Self::Hop | Self::Both),
        }
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listener => "listener",
            Self::Hop => "hop",
            Self::Both => "listener, hop",
        })
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Param({}, {})", self.setting.name(), self.roles)
    }
}

/// A row for listeners.
pub(crate) const fn listener(setting: &'static dyn Setting) -> Param {
    Param {
        setting,
        roles: Roles::Listener,
    }
}

/// A row for hops.
pub(crate) const fn hop(setting: &'static dyn Setting) -> Param {
    Param {
        setting,
        roles: Roles::Hop,
    }
}

/// A row for both roles.
pub(crate) const fn both(setting: &'static dyn Setting) -> Param {
    Param {
        setting,
        roles: Roles::Both,
    }
}

/// Types whose values can hold a secret: one misplaced, or options of a plugin.
const HIDDEN: [&str; 4] = [
    FilePath::NAME,
    PluginText::NAME,
    UserText::NAME,
    SecretValue::NAME,
];

/// Types whose values can name a file.
const FILES: [&str; 3] = [FilePath::NAME, SecretValue::NAME, HostKeys::NAME];

/// True if values of this key may be shown: some table has it, and it is not free text.
pub(crate) fn is_public(key: &str) -> bool {
    all_params()
        .any(|param| param.setting.name() == key && !HIDDEN.contains(&param.setting.type_name()))
}

/// True if an `@` behind this text begins the path of a file: the text ends with `?users=` or the
/// like, or a slip of it. Any other `@` in a query could be the end of a secret with a raw `?`, and base64
/// ends with `=`.
pub(crate) fn opens_file(before: &str) -> bool {
    let Some(query) = before.strip_suffix('=') else {
        return false;
    };
    let Some((_, key)) = query.rsplit_once(['?', '&']) else {
        return false;
    };
    let files = all_params()
        .filter(|param| FILES.contains(&param.setting.type_name()))
        .map(|param| param.setting.name());
    nearest(key, files).is_some()
}
