//! Parsing of commands. Any program that reaches the socket can send them, so they are not trusted.

use std::fmt;

use adit_config::Secret;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Start a server, which replaces the one on its port.
    Add(Box<AddServerRequest>),
    /// Stop the server on a port.
    Remove(u16),
    /// List all servers.
    List,
    /// Report the traffic of all servers.
    Ping,
}

/// The fields of `add`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AddServerRequest {
    pub(crate) port: u16,
    pub(crate) password: Secret,
    pub(crate) method: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) plugin: Option<String>,
    pub(crate) plugin_opts: Option<String>,
    pub(crate) plugin_mode: Option<String>,
    pub(crate) users: Vec<User>,
    pub(crate) ssr: Option<SsrFields>,
}

/// The ShadowsocksR fields of a server. Empty strings stand for the defaults.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SsrFields {
    pub(crate) protocol: String,
    /// Parameter of the protocol, which may contain passwords.
    pub(crate) protocol_param: Secret,
    pub(crate) obfs: String,
    pub(crate) obfs_param: String,
}

/// A user with a separate key (an extension of shadowsocks-rust).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: Secret,
}

/// A datagram that is not a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoCommand {
    /// An invalid command: the answer is `err`.
    Mistake,
    /// Noise, or the traffic report of a server to its manager, which is not used: no answer.
    Silence,
}

/// Parses a datagram.
pub(crate) fn read(datagram: &[u8]) -> Result<Command, NoCommand> {
    let text = str::from_utf8(datagram).map_err(|_| NoCommand::Silence)?;
    // Programs in C also send the zero byte at the end of their strings.
    let text = text.trim_end_matches('\0').trim();
    let end = text.find(|c: char| c.is_whitespace() || c == ':');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let rest = rest.trim_start();
    let body = rest.strip_prefix(':').unwrap_or(rest);
    match word {
        "add" => {
            let said: AddServerText = serde_json::from_str(body).map_err(|_| NoCommand::Mistake)?;
            Ok(Command::Add(Box::new(said.into())))
        }
        "remove" => {
            let said: RemoveText = serde_json::from_str(body).map_err(|_| NoCommand::Mistake)?;
            Ok(Command::Remove(said.server_port.0))
        }
        "list" => Ok(Command::List),
        "ping" => Ok(Command::Ping),
        "stat" | "" => Err(NoCommand::Silence),
        _ => Err(NoCommand::Mistake),
    }
}

#[derive(serde::Deserialize)]
struct AddServerText {
    server_port: Port,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    plugin: Option<String>,
    #[serde(default, alias = "plugin_options")]
    plugin_opts: Option<String>,
    #[serde(default)]
    plugin_mode: Option<String>,
    #[serde(default)]
    users: Option<Vec<UserText>>,
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default, alias = "protocolparam")]
    protocol_param: Option<String>,
    #[serde(default)]
    obfs: Option<String>,
    #[serde(default, alias = "obfsparam")]
    obfs_param: Option<String>,
}

#[derive(serde::Deserialize)]
struct UserText {
    name: String,
    password: String,
}

#[derive(serde::Deserialize)]
struct RemoveText {
    server_port: Port,
}

impl From<AddServerText> for AddServerRequest {
    fn from(said: AddServerText) -> Self {
        // An empty string means the same as a missing one, as in the files of these programs.
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let ssr = SsrFields {
            protocol: said.protocol.unwrap_or_default(),
            protocol_param: Secret::new(said.protocol_param.unwrap_or_default()),
            obfs: said.obfs.unwrap_or_default(),
            obfs_param: said.obfs_param.unwrap_or_default(),
        };
        // Without either, it is a Shadowsocks server, even if panels fill in other fields.
        let is_usual =
            matches!(&*ssr.protocol, "" | "origin") && matches!(&*ssr.obfs, "" | "plain");
        let ssr = Some(ssr).filter(|_| !is_usual);
        let users = said.users.unwrap_or_default().into_iter().map(|user| User {
            name: user.name,
            password: Secret::new(user.password),
        });
        Self {
            port: said.server_port.0,
            password: Secret::new(said.password.unwrap_or_default()),
            method: some(said.method),
            mode: some(said.mode),
            plugin: some(said.plugin),
            plugin_opts: some(said.plugin_opts),
            plugin_mode: some(said.plugin_mode),
            users: users.collect(),
            ssr,
        }
    }
}

/// A port other than 0, as a number or a string.
struct Port(u16);

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyForm;
        impl Visitor<'_> for AnyForm {
            type Value = Port;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port from 1 to 65535")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Port, E> {
                let port = u16::try_from(number).ok().filter(|port| *port != 0);
                port.map(Port).ok_or_else(|| E::custom("not a port"))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Port, E> {
                let digits = text.bytes().all(|b| b.is_ascii_digit());
                let number = text.parse().ok().filter(|_| digits);
                self.visit_u64(number.unwrap_or_default())
            }
        }
        from.deserialize_any(AnyForm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn add(text: &str) -> AddServerRequest {
        match read(text.as_bytes()) {
            Ok(Command::Add(add)) => *add,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn ports_are_numbers_or_texts() {
        for port in ["8001", "\"8001\""] {
            let add = add(&format!(r#"add: {{"server_port":{port},"password":"x"}}"#));
            assert_eq!((add.port, add.password.expose()), (8001, "x"));
            let remove = format!(r#"remove: {{"server_port": {port}}}"#);
            assert_eq!(read(remove.as_bytes()), Ok(Command::Remove(8001)));
        }
        for port in [
            "0", "\"0\"", "65536", "-1", "\"+80\"", "\"\"", "80.0", "null", "[]",
        ] {
            let text = format!(r#"remove: {{"server_port":{port}}}"#);
            assert_eq!(read(text.as_bytes()), Err(NoCommand::Mistake), "{port}");
        }
    }

    #[test]
    fn the_word_ends_at_a_colon_or_white_space() {
        for text in ["ping", " ping", "\n ping\n", "ping:", "ping\0", "ping {}"] {
            assert_eq!(read(text.as_bytes()), Ok(Command::Ping), "{text:?}");
        }
        assert_eq!(read(b"list\n"), Ok(Command::List));
        for text in [
            "add{}", "pinged", "ADD: {}", "flush", "add:", "add: []", "add: {}",
        ] {
            assert_eq!(read(text.as_bytes()), Err(NoCommand::Mistake), "{text:?}");
        }
        for noise in [
            &b""[..],
            b"\xff\xfe",
            b"\0\0\0",
            b"stat: {\"8001\": 1}",
            b" ",
        ] {
            assert_eq!(read(noise), Err(NoCommand::Silence), "{noise:?}");
        }
    }

    #[test]
    fn every_field_is_read_and_unknown_ones_are_not() {
        let add = add(
            r#"add {"server_port": "1", "password": "p", "method": "m", "mode": "tcp_only",
               "plugin": "obfs", "plugin_opts": "a=b", "plugin_mode": "udp_only", "fast_open": true,
               "no_delay": true, "users": [{"name": "u", "password": "k", "extra": 1}]}"#,
        );
        assert_eq!(add.method.as_deref(), Some("m"));
        assert_eq!(add.mode.as_deref(), Some("tcp_only"));
        assert_eq!(add.plugin.as_deref(), Some("obfs"));
        assert_eq!(add.plugin_opts.as_deref(), Some("a=b"));
        assert_eq!(add.plugin_mode.as_deref(), Some("udp_only"));
        assert_eq!(add.users[0].name, "u");
        assert_eq!(add.ssr, None);
        assert!(!format!("{add:?}").contains("\"p\""));
    }

    #[test]
    fn a_protocol_or_an_obfs_makes_it_shadowsocksr() {
        let ssr = |fields: &str| add(&format!(r#"add: {{"server_port": 1, {fields}}}"#)).ssr;
        assert_eq!(
            ssr(r#""protocol": "origin", "obfs": "plain", "obfs_param": "h""#),
            None
        );
        let of = ssr(r#""protocol": "auth_chain_a", "protocol_param": "1:p", "obfs": "plain""#);
        let of = of.unwrap();
        assert_eq!(
            (&*of.protocol, of.protocol_param.expose()),
            ("auth_chain_a", "1:p")
        );
        let of = ssr(r#""obfs": "http_simple", "obfsparam": "h""#).unwrap();
        assert_eq!((&*of.obfs, &*of.obfs_param), ("http_simple", "h"));
    }

    proptest! {
        #[test]
        fn no_datagram_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn no_text_panics(text in "(add|remove|list|ping|stat)?[: ]?[{}\\[\\]\":,a-z_0-9]{0,60}") {
            let _ = read(text.as_bytes());
        }
    }
}
