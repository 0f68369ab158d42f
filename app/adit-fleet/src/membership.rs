//! The membership of a node or an operator in a realm: a file that only its user can read.

use std::fmt;
use std::io;
use std::path::Path;

use adit_net::persistent_file::{FileOwner, write_atomically};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use zeroize::Zeroizing;

use crate::key_text::optional_secret_text;
use crate::realm_key::RealmKey;
use crate::seal::RecordCipher;

/// Maximum length of a membership, in bytes.
const MAX_MEMBERSHIP: usize = 256 << 10;
/// Maximum length of the name of a realm or node, in bytes.
const MAX_NAME: usize = 64;

/// The role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Changes users and nodes.
    Operator,
    /// Serves users.
    Node,
}

/// A membership in a realm.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// The version of the file; 1.
    pub version: u32,
    /// The name of the realm.
    pub realm: String,
    /// The key of the realm.
    #[serde(serialize_with = "write_key", deserialize_with = "read_key")]
    pub realm_key: RealmKey,
    /// The role.
    pub role: Role,
    /// The number of the node; `None` for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<u32>,
    /// The name of the node or the operator.
    pub name: String,
    /// The address of the store, without user and password.
    pub store: String,
    /// The user at the store server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_user: Option<String>,
    /// The password at the store server.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_secret_text"
    )]
    pub store_password: Option<Zeroizing<String>>,
    /// The certificate, in PEM, that must have signed the store server's; without it, an authority that the system
    /// trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("realm", &self.realm)
            .field("role", &self.role)
            .field("node_id", &self.node_id)
            .field("name", &self.name)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// The error of a membership.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The content is no membership.
    #[error("no membership: {0}")]
    Content(String),
    /// A newer adit has written it.
    #[error("a newer adit has written this membership, in format {0}")]
    NewerFormat(u32),
}

impl Membership {
    /// The version of the file.
    pub const VERSION: u32 = 1;

    /// Reads a membership from a text.
    ///
    /// # Errors
    ///
    /// The text is no membership, or one of a newer version.
    pub fn from_json(text: &[u8]) -> Result<Self, MembershipError> {
        let content = |why: String| MembershipError::Content(why);
        if text.len() > MAX_MEMBERSHIP {
            return Err(content("it is too long".to_owned()));
        }
        let membership: Self = serde_json::from_slice(text).map_err(|why| {
            // The words of the error would quote a value.
            content(format!("line {}, column {}", why.line(), why.column()))
        })?;
        if membership.version != Self::VERSION {
            return Err(MembershipError::NewerFormat(membership.version));
        }
        check_name(&membership.realm).map_err(content)?;
        if membership.name.is_empty() || membership.name.len() > MAX_NAME {
            return Err(content(format!("a name has 1 to {MAX_NAME} bytes")));
        }
        match (membership.role, membership.node_id) {
            (Role::Operator, None) | (Role::Node, Some(1..)) => Ok(membership),
            _ => Err(content(
                "a node has a number, an operator has none".to_owned(),
            )),
        }
    }

    /// Returns the membership as a text.
    ///
    /// # Errors
    ///
    /// None that occurs.
    pub fn to_json(&self) -> Result<Zeroizing<Vec<u8>>, MembershipError> {
        let text = serde_json::to_vec_pretty(self);
        let text = text.map_err(|why| MembershipError::Content(why.to_string()))?;
        Ok(Zeroizing::new(text))
    }

    /// Reads the file of a membership.
    ///
    /// # Errors
    ///
    /// The file cannot be read, other users can read it, or it is no membership.
    pub fn read(path: &Path) -> Result<Self, MembershipError> {
        let text = FileOwner::current().read_secret_of_anyone(path, MAX_MEMBERSHIP)?;
        Self::from_json(Zeroizing::new(text).as_bytes())
    }

    /// Writes the file of a membership, for its user alone.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), MembershipError> {
        Ok(write_atomically(path, &self.to_json()?)?)
    }

    /// Returns the cipher of the realm.
    #[must_use]
    pub fn cipher(&self) -> RecordCipher {
        RecordCipher::new(&self.realm, &self.realm_key)
    }
}

/// Checks the name of a realm, which is a part of keys in the store.
///
/// # Errors
///
/// The rule that the name does not follow.
pub fn check_name(realm: &str) -> Result<(), String> {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    match (1..=MAX_NAME).contains(&realm.len()) && realm.bytes().all(allowed) {
        true => Ok(()),
        false => Err(format!(
            "the name of a realm has 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`"
        )),
    }
}

fn write_key<S: Serializer>(key: &RealmKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&key.to_base64())
}

fn read_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RealmKey, D::Error> {
    let text = Zeroizing::new(String::deserialize(deserializer)?);
    RealmKey::from_base64(&text).ok_or_else(|| de::Error::custom("no key"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the membership of a node, with all fields.
    pub(crate) fn membership() -> Membership {
        Membership {
            version: Membership::VERSION,
            realm: "main".to_owned(),
            realm_key: RealmKey::new([7; 32]),
            role: Role::Node,
            node_id: Some(3),
            name: "fra-1".to_owned(),
            store: "valkeys://store.example:6380".to_owned(),
            store_user: Some("adit-main-3".to_owned()),
            store_password: Some(Zeroizing::new("very secret".to_owned())),
            ca_pem: Some("-----BEGIN CERTIFICATE-----".to_owned()),
        }
    }

    #[test]
    fn a_membership_is_read_back_and_shows_no_secret() {
        let text = membership().to_json().unwrap();
        assert_eq!(Membership::from_json(&text).unwrap(), membership());
        let debug = format!("{:?}", membership());
        assert!(!debug.contains("very secret"), "{debug}");
        let broken = String::from_utf8(text.to_vec())
            .unwrap()
            .replace("\"node\"", "\"very secret");
        let error = Membership::from_json(broken.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn contradictions_are_refused() {
        let mut operator = membership();
        operator.role = Role::Operator;
        let mut nameless = membership();
        nameless.realm = "a b".to_owned();
        let mut newer = membership();
        newer.version = 2;
        for wrong in [operator, nameless, newer] {
            Membership::from_json(&wrong.to_json().unwrap()).unwrap_err();
        }
    }

    #[test]
    #[cfg(unix)]
    fn the_file_is_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = std::env::temp_dir().join(format!("adit-membership-{}", std::process::id()));
        let path = folder.join("membership.json");
        membership().write(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Membership::read(&path).unwrap(), membership());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let error = Membership::read(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
