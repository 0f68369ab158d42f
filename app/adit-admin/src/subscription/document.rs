//! Conversion of a document to a chain. A document may only name servers.

use adit_config::{Chain, Plan, Stage};
use adit_convert::{AllowedPlugins, ConvertOptions, Format, Note, Role};
use serde::Deserialize;

use super::server_filter::ServerFilter;
use crate::untrusted_text::{NoExternalSources, join_places, join_titles};

/// The name of a document in messages.
const NAME: &str = "the subscription";

/// A parsed document.
#[derive(Debug)]
pub struct Document {
    /// The servers: one stage with failover in the order of the document, a group of the document, or a chain.
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

/// Parses any format that [`adit_convert`] reads. `select` is the group or server that is used; `None` is the first
/// group that a user selects from, or else all servers.
///
/// # Errors
/// The text has none of these formats, no usable server, or nothing of the selected name.
pub fn read(
    text: &str,
    plugins: &AllowedPlugins,
    select: Option<&str>,
) -> Result<Document, DocumentError> {
    let wish = ConvertOptions {
        role: Some(Role::Client),
        plugins: plugins.clone(),
        select: select.map(str::to_owned),
    };
    let converted = adit_convert::convert(text, NAME, &wish, &NoExternalSources)
        .map_err(|problems| DocumentError::Text(join_places(&problems)))?;
    let mut notes: Vec<String> = converted.notes.iter().map(shown).collect();
    // These places are not those of the document.
    let plan = Plan::from_toml_with(&converted.toml, NAME, &NoExternalSources)
        .map_err(|problems| DocumentError::Text(join_titles(&problems)))?;
    let route = plan.routes.into_iter().next().ok_or(DocumentError::Empty)?;
    let mut stages = route.via.stages;
    if !matches!(
        converted.format,
        Format::Clash | Format::SingBox | Format::Xray
    ) {
        // In the files of other programs the stages before the last one are proxies of that machine.
        stages.drain(..stages.len().saturating_sub(1));
    }
    let mut filter = ServerFilter::new(plugins);
    let stages: Option<Vec<Stage>> = stages
        .into_iter()
        .map(|stage| filter.filter_stage(stage))
        .collect();
    notes.extend(filter.notes());
    let stages = stages.filter(|stages| !stages.is_empty());
    Ok(Document {
        chain: Chain {
            stages: stages.ok_or(DocumentError::Empty)?,
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
    use super::super::server_filter::{MAX_PLUGINS, MAX_SERVERS};
    use super::*;
    use adit_config::GroupKind;
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
    fn errors_have_their_places_in_the_document() {
        let none = AllowedPlugins::none();
        let text = document(1, "").replace(r#""server_port":1"#, "\n\"server_port\":\"secret\"");
        let why = read(&text, &none, None).unwrap_err().to_string();
        assert!(
            why.starts_with("line 2, column 15: `servers[0].server_port` "),
            "{why}"
        );
        assert!(!why.contains("secret"), "{why}");
        let why = read("{\n\"version\": 2, \"servers\": []}", &none, None).unwrap_err();
        assert!(
            why.to_string().starts_with("line 2, column 12: `version` "),
            "{why}"
        );
    }

    #[test]
    fn no_more_servers_and_plugins_than_can_be_used() {
        let none = AllowedPlugins::none();
        let many = read(&document(MAX_SERVERS + 44, ""), &none, None).unwrap();
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
        assert_eq!(
            read(&plugins, &allowed, None).unwrap().servers(),
            MAX_PLUGINS
        );
        assert!(read(&plugins, &none, None).is_err());
    }

    #[test]
    fn only_servers_are_taken_over() {
        let none = AllowedPlugins::none();
        // A full configuration of another program: its listeners and outbound proxy are ignored.
        let text = r#"{"local_address":"0.0.0.0","local_port":1080,"mode":"tcp_and_udp",
            "outbound_proxy":"socks5://192.0.2.9:1080",
            "server":"192.0.2.1","server_port":8388,"password":"p","method":"aes-256-gcm"}"#;
        let found = read(text, &none, None).unwrap();
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
            assert!(read(text, &none, None).is_err(), "{text}");
        }
        let shown = format!("{:?}", read(&document(1, ""), &none, None).unwrap());
        assert!(!shown.contains("\"p\""), "{shown}");
    }

    const CLASH: &str = "\
proxies:
  - {name: one, type: ss, server: 192.0.2.1, port: 1, cipher: aes-256-gcm, password: p}
  - {name: two, type: socks5, server: 192.0.2.2, port: 2}
  - {name: three, type: http, server: 192.0.2.3, port: 3, dialer-proxy: two}
  - {name: four, type: vmess, server: 192.0.2.4, port: 4}
  - {name: key, type: ssh, server: 192.0.2.5, port: 22, private-key: /home/me/.ssh/id_rsa}
proxy-groups:
  - {name: Choice, type: select, proxies: [DIRECT, one, three, REJECT]}
  - {name: Auto, type: url-test, proxies: [one, two, four], url: 'http://a.example/'}
";

    #[test]
    fn groups_are_taken_over_without_direct_connections() {
        let none = AllowedPlugins::none();
        let choice = read(CLASH, &none, None).unwrap();
        let [Stage::Named(group)] = &choice.chain.stages[..] else {
            panic!("{:?}", choice.chain)
        };
        assert_eq!(group.name, "Choice");
        assert_eq!(group.member_names, ["one", "three"]);
        assert_eq!((group.selected, group.leads[1].len()), (0, 1));
        let notes = choice.notes.join("\n");
        for said in [
            "1 skipped: not a server",
            "vmess",
            "private keys are not taken",
        ] {
            assert!(notes.contains(said), "{said}: {notes}");
        }
        let auto = read(CLASH, &none, Some("Auto")).unwrap();
        let [Stage::Named(group)] = &auto.chain.stages[..] else {
            panic!("{:?}", auto.chain)
        };
        assert_eq!((group.kind, group.hops.len()), (GroupKind::Fastest, 2));
        assert_eq!(
            read(CLASH, &none, Some("three"))
                .unwrap()
                .chain
                .stages
                .len(),
            2
        );
        for name in ["DIRECT", "four", "Unknown"] {
            assert!(read(CLASH, &none, Some(name)).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = read(&text, &AllowedPlugins::none(), None);
        }

        #[test]
        fn no_broken_document_panics(at in 0usize..400, byte in any::<char>()) {
            let mut text: Vec<char> = document(2, r#","plugin":"x;y=z""#).chars().collect();
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            let text: String = text.into_iter().collect();
            let _ = read(&text, &AllowedPlugins::none(), None);
        }
    }
}
