//! `protocol_param`: the user of a client, or the users of a server's port.

use std::collections::BTreeMap;

use adit_crypto::Secret;
use adit_wire::usize_from;

use crate::ProtocolKind;

/// Default number of seconds after which `auth_chain_f` generates another list.
const INTERVAL: u32 = 86_400;

/// Default number of client ids that a server keeps per user.
const MAX_CLIENTS: usize = 64;

/// The reason a text is not a valid `protocol_param`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The text before a user's colon is not a number from 0 to 4294967295.
    #[error("a user id is a number from 0 to 4294967295, as in `42:password`")]
    Uid,
    /// A user without a colon or without a password.
    #[error("a user must be written as `id:password`")]
    User,
    /// Two users with one id.
    #[error("two users have the same id")]
    Twice,
    /// The text before `#` is not a number above zero.
    #[error("the number of clients per user must be above zero, as in `64#42:password`")]
    MaxClients,
    /// Users, or a user, for a protocol that does not support users.
    #[error("this protocol has no users")]
    NoUsers,
}

/// A client's `protocol_param`: `"<uid>:<password>"`, or any text without a colon for no user.
#[derive(Debug)]
pub struct ClientParam {
    pub(crate) user: Option<(u32, Secret<String>)>,
    pub(crate) interval: u32,
}

impl Default for ClientParam {
    fn default() -> Self {
        Self {
            user: None,
            interval: INTERVAL,
        }
    }
}

impl ClientParam {
    /// Parses the text. Protocols without users accept any text and ignore it, as other
    /// implementations do.
    ///
    /// Everything after the first colon is the password. For `auth_chain_f` the text may end in
    /// `#seconds`, the lifetime of a list.
    ///
    /// # Errors
    ///
    /// Fails if the user's id is not a number or the password is empty.
    pub fn parse(kind: ProtocolKind, text: &str) -> Result<Self, ParamError> {
        let mut param = Self::default();
        if !kind.has_users() {
            return Ok(param);
        }
        let mut text = text;
        if kind == ProtocolKind::AuthChainF
            && let Some((user, seconds)) = text.rsplit_once('#')
            && let Some(seconds) = parse_positive(seconds)
        {
            (text, param.interval) = (user, seconds);
        }
        if text.contains(':') {
            param.user = Some(parse_user(text)?);
        }
        Ok(param)
    }

    /// Returns the user's id.
    #[must_use]
    pub fn uid(&self) -> Option<u32> {
        self.user.as_ref().map(|(uid, _)| *uid)
    }
}

/// A server's `protocol_param`: `"<max clients>"` or `"<max clients>#<uid>:<password>,…"`.
#[derive(Debug)]
pub struct ServerParam {
    pub(crate) max_clients: usize,
    pub(crate) users: BTreeMap<u32, Secret<String>>,
    pub(crate) interval: u32,
    /// True if clients without a user are refused, even while there are no users.
    pub(crate) requires_user: bool,
}

impl Default for ServerParam {
    fn default() -> Self {
        Self {
            max_clients: MAX_CLIENTS,
            users: BTreeMap::new(),
            interval: INTERVAL,
            requires_user: false,
        }
    }
}

impl ServerParam {
    /// Parses the text; an empty text means 64 clients and no users. For `auth_chain_f` a field
    /// `#seconds#` may precede the users.
    ///
    /// # Errors
    ///
    /// Fails if the number of clients or a user is invalid, if two users have the same id, or if
    /// the protocol does not support users.
    pub fn parse(kind: ProtocolKind, text: &str) -> Result<Self, ParamError> {
        let mut param = Self::default();
        if text.is_empty() {
            return Ok(param);
        }
        let (clients, mut users) = text.split_once('#').unwrap_or((text, ""));
        let clients = parse_positive(clients).ok_or(ParamError::MaxClients)?;
        param.max_clients = usize_from(clients);
        if kind == ProtocolKind::AuthChainF {
            let (seconds, rest) = users.split_once('#').unwrap_or((users, ""));
            if let Some(seconds) = parse_positive(seconds) {
                (param.interval, users) = (seconds, rest);
            }
        }
        for text in users.split(',').filter(|text| !text.is_empty()) {
            let (uid, password) = parse_user(text)?;
            param.add_user(kind, uid, password)?;
        }
        Ok(param)
    }

    /// Refuses clients without a user, even while there are no users: these are added later, by
    /// [`ServerStack::change_users`](crate::ServerStack::change_users).
    ///
    /// # Errors
    ///
    /// Fails if the protocol does not support users.
    pub fn require_user(&mut self, kind: ProtocolKind) -> Result<(), ParamError> {
        if !kind.has_users() {
            return Err(ParamError::NoUsers);
        }
        self.requires_user = true;
        Ok(())
    }

    /// Adds a user.
    ///
    /// # Errors
    ///
    /// Fails if the protocol does not support users, or if another user has the same id.
    pub fn add_user(
        &mut self,
        kind: ProtocolKind,
        uid: u32,
        password: Secret<String>,
    ) -> Result<(), ParamError> {
        if !kind.has_users() {
            return Err(ParamError::NoUsers);
        }
        match self.users.insert(uid, password) {
            Some(_) => Err(ParamError::Twice),
            None => Ok(()),
        }
    }

    /// Returns the ids of the users.
    pub fn user_ids(&self) -> impl Iterator<Item = u32> {
        self.users.keys().copied()
    }
}

fn parse_user(text: &str) -> Result<(u32, Secret<String>), ParamError> {
    let (uid, password) = text.split_once(':').ok_or(ParamError::User)?;
    if password.is_empty() {
        return Err(ParamError::User);
    }
    let uid = parse_number(uid).ok_or(ParamError::Uid)?;
    Ok((uid, Secret::new(password.to_owned())))
}

/// Parses digits only: `str::parse` would accept a sign.
fn parse_number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn parse_positive(text: &str) -> Option<u32> {
    parse_number(text).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5: ProtocolKind = ProtocolKind::AuthAes128Md5;
    const F: ProtocolKind = ProtocolKind::AuthChainF;

    #[test]
    fn clients() {
        let param = ClientParam::parse(MD5, "42:user:pw#1").unwrap();
        let (uid, password) = param.user.unwrap();
        assert_eq!((uid, password.expose().as_str()), (42, "user:pw#1"));
        for none in ["", "64", "breakwa11.moe"] {
            assert!(ClientParam::parse(MD5, none).unwrap().user.is_none());
        }
        assert_eq!(
            ClientParam::parse(MD5, "+1:a").unwrap_err(),
            ParamError::Uid
        );
        assert_eq!(
            ClientParam::parse(MD5, "4294967296:a").unwrap_err(),
            ParamError::Uid
        );
        assert_eq!(ClientParam::parse(MD5, "1:").unwrap_err(), ParamError::User);
        let v4 = ClientParam::parse(ProtocolKind::AuthSha1V4, "1:a").unwrap();
        assert!(v4.user.is_none());
        let f = ClientParam::parse(F, "7:a#b#600").unwrap();
        assert_eq!((f.uid(), f.interval), (Some(7), 600));
    }

    #[test]
    fn servers() {
        let param = ServerParam::parse(MD5, "8#1:a,2:b:c").unwrap();
        assert_eq!(param.max_clients, 8);
        assert_eq!(param.user_ids().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(param.users[&2].expose(), "b:c");
        assert_eq!(ServerParam::parse(MD5, "").unwrap().max_clients, 64);
        for (text, why) in [
            ("0", ParamError::MaxClients),
            ("1:a", ParamError::MaxClients),
            ("64#1", ParamError::User),
            ("64#1:a,1:b", ParamError::Twice),
            ("64#x:a", ParamError::Uid),
        ] {
            assert_eq!(ServerParam::parse(MD5, text).unwrap_err(), why, "{text}");
        }
        let f = ServerParam::parse(F, "64#3600#1:a").unwrap();
        assert_eq!((f.interval, f.users.len()), (3600, 1));
        let v4 = ServerParam::parse(ProtocolKind::AuthSha1V4, "64#1:a");
        assert_eq!(v4.unwrap_err(), ParamError::NoUsers);
    }
}
