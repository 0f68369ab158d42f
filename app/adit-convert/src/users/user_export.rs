//! The users of an export, as all readers return them, and the formats of exports.

use core::fmt;
use core::str::FromStr;

use adit_config::text::Secret;

use crate::notes::Note;

/// Users of an export at most.
pub const MAX_EXPORT_USERS: usize = 100_000;

/// The program that an export comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserFormat {
    /// Outline: the answer to `GET /access-keys`, or `shadowbox_config.json`.
    Outline,
    /// Marzban: the answer to `GET /api/users`.
    Marzban,
    /// 3x-ui: the answer to `GET /panel/api/inbounds/list`, or one inbound.
    ThreeXUi,
    /// Keys by name, as shadowsocks-go and adit keep them, or the answer to `GET /users` of their API.
    Upsk,
    /// SIP008: the servers of one document as users.
    Sip008,
    /// Comma-separated values.
    Csv,
    /// `ss://` URLs, one in each line.
    Links,
}

/// All formats with their names.
const FORMATS: [(&str, UserFormat); 7] = [
    ("outline", UserFormat::Outline),
    ("marzban", UserFormat::Marzban),
    ("3x-ui", UserFormat::ThreeXUi),
    ("upsk", UserFormat::Upsk),
    ("sip008", UserFormat::Sip008),
    ("csv", UserFormat::Csv),
    ("links", UserFormat::Links),
];

impl UserFormat {
    /// Returns the names of all formats.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|(name, _)| *name)
    }

    /// Returns the name, as [`FromStr`] reads it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outline => "outline",
            Self::Marzban => "marzban",
            Self::ThreeXUi => "3x-ui",
            Self::Upsk => "upsk",
            Self::Sip008 => "sip008",
            Self::Csv => "csv",
            Self::Links => "links",
        }
    }
}

impl fmt::Display for UserFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that is not one of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownUserFormat;

impl fmt::Display for UnknownUserFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = UserFormat::names().collect();
        write!(f, "the formats are {}", names.join(", "))
    }
}

impl core::error::Error for UnknownUserFormat {}

impl FromStr for UserFormat {
    type Err = UnknownUserFormat;

    fn from_str(text: &str) -> Result<Self, UnknownUserFormat> {
        let found = FORMATS.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or(UnknownUserFormat)
    }
}

/// The limits of a user in an export. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportedLimits {
    /// Bytes of both directions in each period; at least 1.
    pub quota: Option<u64>,
    /// The period of the quota: `total`, `day`, `week` or `month`.
    pub period: Option<&'static str>,
    /// The time from which on the user is refused, in seconds since 1970; at least 1.
    pub expires: Option<u64>,
    /// The same as seconds from the import on, for a user who has not connected yet.
    pub expires_after: Option<u64>,
    /// Bytes per second, in each direction.
    pub rate: Option<u64>,
    /// Maximum number of sessions at once.
    pub sessions: Option<u32>,
    /// Maximum number of client addresses at once.
    pub devices: Option<u32>,
}

/// A user of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedUser {
    /// The name: 1 to 255 bytes without control characters and without space at the ends; unique in the export.
    pub name: String,
    /// The password for methods whose key is derived from one.
    pub password: Option<Secret>,
    /// The base64 key for 2022 methods.
    pub psk: Option<Secret>,
    /// The password for SOCKS and HTTP.
    pub login: Option<Secret>,
    /// The limits.
    pub limits: ExportedLimits,
    /// Bytes that the user has transferred in the period of the quota.
    pub used: Option<u64>,
    /// True if the user may not connect.
    pub is_disabled: bool,
}

/// A user who is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedUser {
    /// The name, or the place in the export of a user without one. It holds no control characters.
    pub name: String,
    /// The reason. It holds no secret.
    pub why: String,
}

/// The users of an export.
#[derive(Debug, PartialEq, Eq)]
pub struct UserExport {
    /// The format.
    pub format: UserFormat,
    /// The users, in the order of the export.
    pub users: Vec<ExportedUser>,
    /// The users who cannot be imported.
    pub skipped: Vec<SkippedUser>,
    /// Settings that are different from now on.
    pub notes: Vec<Note>,
}
