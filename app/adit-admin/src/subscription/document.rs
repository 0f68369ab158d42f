//! Conversion of a document to a chain. A document may only name servers.

use adit_config::{Chain, Hop, HopKind, Plan, Stage};
use adit_convert::{AllowedPlugins, ConvertOptions, Note, Role};
use serde::Deserialize;

use crate::untrusted_text::{NoExternalSources, join_titles};

/// Maximum number of simultaneous plugins, each of which is a process.
const MAX_PLUGINS: usize = 16;
/// Maximum number of servers. A request tries them in turn, so it would not reach further ones.
const MAX_SERVERS: usize = 256;
/// The name of a document in messages.
const NAME: &str = "the subscription";

/// A parsed document.
#[derive(Debug)]
pub struct Document {
    /// The servers as one stage, with failover in the order of the document.
    pub chain: Chain,
    /// Notes about parts that were skipped.
    pub notes: Vec<String>,
    /// The traffic that the user has used and may still use, in bytes.
    pub quota: Option<Quota>,
}

/// The traffic quota of a SIP008 document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Quota {
    /// Bytes used.
    #[serde(rename = "bytes_used")]
    pub used: u64,
    /// Bytes remaining, if they are limited.
    #[serde(rename = "bytes_remaining", default)]
    pub remaining: Option<u64>,
}

/// The reason why a document cannot be used. It contains no secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It cannot be parsed.
    #[error("{0}")]
    Text(String),
    /// It has no usable server.
    #[error("the subscription has no usable server")]
    Empty,
}

/// Parses SIP008, the content of an `ssconf` URL, or a list of `ss://` and `ssr://` links.
///
/// # Errors
/// The text has none of these formats, or no usable server.
pub fn read(text: &str, plugins: &AllowedPlugins) -> Result<Document, DocumentError> {
    let wish = ConvertOptions {
        role: Some(Role::Client),
        plugins: plugins.clone(),
    };
    let unusable = |problems: Vec<_>| DocumentError::Text(join_titles(&problems));
    let converted =
        adit_convert::convert(text, NAME, &wish, &NoExternalSources).map_err(unusable)?;
    let mut notes: Vec<String> = converted.notes.iter().map(shown).collect();
    let plan = Plan::from_toml_with(&converted.toml, NAME, &NoExternalSources).map_err(unusable)?;
    let route = plan.routes.into_iter().next().ok_or(DocumentError::Empty)?;
    let mut servers = Vec::new();
    let mut with_plugin = 0;
    let (mut others, mut forbidden, mut many) = (0_usize, 0_usize, 0_usize);
    // The converter puts the servers into the last stage. A remote document must not add other
    // stages, so those before it are ignored.
    let last = route.via.stages.into_iter().next_back();
    let hops = match last {
        Some(Stage::Group(hops)) => hops,
        Some(Stage::Single(hop)) => vec![hop],
        Some(Stage::Named(group)) => group.hops,
        None => Vec::new(),
    };
    for hop in hops {
        let Hop::Server(server) = &hop else {
            others += 1;
            continue;
        };
        if !matches!(
            server.kind,
            HopKind::Shadowsocks { .. } | HopKind::ShadowsocksR(_)
        ) {
            others += 1;
            continue;
        }
        match server.kind.plugin() {
            Some(plugin) if !plugins.allows(&plugin.program) => {
                forbidden += 1;
                continue;
            }
            Some(_) if with_plugin == MAX_PLUGINS => {
                many += 1;
                continue;
            }
            Some(_) => with_plugin += 1,
            None => {}
        }
        if servers.len() == MAX_SERVERS {
            many += 1;
        } else {
            servers.push(hop);
        }
    }
    for (count, why) in [
        (others, "not a Shadowsocks or ShadowsocksR server"),
        (
            forbidden,
            "needs a plugin that --allow-plugin does not list",
        ),
        (many, "beyond the maximum number of servers or plugins"),
    ] {
        if count > 0 {
            notes.push(format!("{count} skipped: {why}"));
        }
    }
    let stage = match (servers.pop(), servers.is_empty()) {
        (None, _) => return Err(DocumentError::Empty),
        (Some(only), true) => Stage::Single(only),
        (Some(last), false) => {
            servers.push(last);
            Stage::Group(servers)
        }
    };
    Ok(Document {
        chain: Chain {
            stages: vec![stage],
        },
        notes,
        quota: serde_json::from_str(text).ok(),
    })
}

fn shown(note: &Note) -> String {
    if note.path.is_empty() {
        note.text.clone()
    } else {
        format!("`{}`: {}", note.path, note.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(count: usize, more: &str) -> String {
        let one = |i: usize| {
            format!(
                r#"{{"id":"{i}","remarks":"n{i}","server":"192.0.2.1","server_port":{},"password":"p","method":"aes-256-gcm"{more}}}"#,
                i + 1
            )
        };
        let list: Vec<String> = (0..count).map(one).collect();
        format!(
            r#"{{"version":1,"servers":[{}],"bytes_used":5}}"#,
            list.join(",")
        )
    }

    #[test]
    fn no_more_servers_and_plugins_than_can_be_used() {
        let none = AllowedPlugins::none();
        let many = read(&document(MAX_SERVERS + 44, ""), &none).unwrap();
        assert_eq!(many.servers(), MAX_SERVERS);
        assert!(many.notes.iter().any(|note| note.starts_with("44 skipped")));
        assert_eq!(
            many.quota,
            Some(Quota {
                used: 5,
                remaining: None
            })
        );
        let plugins = document(MAX_PLUGINS + 4, r#","plugin":"obfs-local""#);
        let allowed = AllowedPlugins::only(vec!["obfs-local".to_owned()]);
        assert_eq!(read(&plugins, &allowed).unwrap().servers(), MAX_PLUGINS);
        assert!(read(&plugins, &none).is_err());
    }

    #[test]
    fn only_servers_are_taken_over() {
        let none = AllowedPlugins::none();
        // A full configuration of another program: its listeners and outbound proxy are ignored.
        let text = r#"{"local_address":"0.0.0.0","local_port":1080,"mode":"tcp_and_udp",
            "outbound_proxy":"socks5://192.0.2.9:1080",
            "server":"192.0.2.1","server_port":8388,"password":"p","method":"aes-256-gcm"}"#;
        let found = read(text, &none).unwrap();
        assert_eq!(found.servers(), 1);
        assert_eq!(found.chain.stages.len(), 1);
        for text in [
            "",
            "{}",
            "[]",
            "null",
            "socks5://192.0.2.1:1080",
            "<html></html>",
        ] {
            assert!(read(text, &none).is_err(), "{text}");
        }
        let shown = format!("{:?}", read(&document(1, ""), &none).unwrap());
        assert!(!shown.contains("\"p\""), "{shown}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = read(&text, &AllowedPlugins::none());
        }

        #[test]
        fn no_broken_document_panics(at in 0usize..400, byte in any::<char>()) {
            let mut text: Vec<char> = document(2, r#","plugin":"x;y=z""#).chars().collect();
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            let text: String = text.into_iter().collect();
            let _ = read(&text, &AllowedPlugins::none());
        }
    }
}
