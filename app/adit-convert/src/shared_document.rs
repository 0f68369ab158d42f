//! Documents that offer the servers of a user to clients: SIP008, and the formats of other programs.

use core::fmt::Write;

use adit_config::text::escape;
use adit_wire::Host;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::sip008::{self, Server};

/// Port of the proxy that a client opens with a Clash document: the default of these programs.
const CLASH_PORT: u16 = 7890;
/// Port of the proxy that a client opens with a sing-box document: the default of its examples.
const SING_BOX_PORT: u16 = 2080;
/// Name of the group from which a client chooses the server.
const GROUP: &str = "adit";

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// JSON of SIP008.
    Sip008,
    /// `ss://` links, one per line, in base64.
    Base64,
    /// A configuration of Clash and mihomo, in YAML.
    Clash,
    /// A configuration of sing-box, in JSON.
    SingBox,
}

/// The traffic of a user with a quota, in bytes of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes that the user has transferred.
    pub used: u64,
    /// Bytes that the user may still transfer.
    pub remaining: u64,
}

/// Parts of the `User-Agent` of clients, in lower case, with the format that they read. The first match decides:
/// clients that read several formats list their names.
const CLIENTS: [(&str, DocumentFormat); 15] = [
    ("clash", DocumentFormat::Clash),
    ("mihomo", DocumentFormat::Clash),
    ("stash", DocumentFormat::Clash),
    ("sing-box", DocumentFormat::SingBox),
    ("sfa/", DocumentFormat::SingBox),
    ("sfi/", DocumentFormat::SingBox),
    ("sfm/", DocumentFormat::SingBox),
    ("sft/", DocumentFormat::SingBox),
    ("v2ray", DocumentFormat::Base64),
    ("neko", DocumentFormat::Base64),
    ("throne", DocumentFormat::Base64),
    ("shadowrocket", DocumentFormat::Base64),
    ("quantumult", DocumentFormat::Base64),
    ("streisand", DocumentFormat::Base64),
    ("happ/", DocumentFormat::Base64),
];

impl DocumentFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Sip008, Self::Base64, Self::Clash, Self::SingBox];

    /// Returns the name, as `?format=` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sip008 => "sip008",
            Self::Base64 => "base64",
            Self::Clash => "clash",
            Self::SingBox => "sing-box",
        }
    }

    /// Returns the format of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns the format that a client reads, by its `User-Agent`. That of unknown clients is SIP008.
    #[must_use]
    pub fn of_client(user_agent: &str) -> Self {
        let name = user_agent.to_ascii_lowercase();
        let known = CLIENTS.iter().find(|(part, _)| name.contains(part));
        known.map_or(Self::Sip008, |(_, format)| *format)
    }

    /// Returns the value of `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Sip008 | Self::SingBox => "application/json; charset=utf-8",
            Self::Base64 => "text/plain; charset=utf-8",
            // RFC 9512
            Self::Clash => "application/yaml; charset=utf-8",
        }
    }
}

/// Returns the document that offers these servers, of which none has a plugin. It holds their keys.
///
/// Only SIP008 has a place for the usage.
#[must_use]
pub fn write_document(
    format: DocumentFormat,
    servers: &[Server],
    usage: Option<QuotaUsage>,
) -> String {
    debug_assert!(servers.iter().all(|server| server.plugin.is_none()));
    match format {
        DocumentFormat::Sip008 => sip008::write_with_usage(servers, usage),
        DocumentFormat::Base64 => write_links(servers),
        DocumentFormat::Clash => write_clash(servers),
        DocumentFormat::SingBox => write_sing_box(servers),
    }
}

/// Returns the names of the servers, each of which occurs once: clients tell servers apart by their names.
fn unique_names(servers: &[Server]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(servers.len());
    for server in servers {
        let mut name = server.display_name().to_owned();
        let is_taken = |name: &String| name.is_empty() || name == GROUP || names.contains(name);
        if is_taken(&name) {
            name = format!("{name}:{}", server.server_port);
        }
        let mut number = 2;
        let base = name.clone();
        while is_taken(&name) {
            name = format!("{base} {number}");
            number += 1;
        }
        names.push(name);
    }
    names
}

fn write_links(servers: &[Server]) -> String {
    let mut lines = String::new();
    for (server, name) in servers.iter().zip(unique_names(servers)) {
        lines.push_str(&server.link());
        let _ = writeln!(lines, "#{}", escape::encode_part(&name));
    }
    STANDARD.encode(lines)
}

/// Writes YAML in which each text is between quotation marks: a string of JSON is one of YAML.
fn write_clash(servers: &[Server]) -> String {
    let names = unique_names(servers);
    let mut text = format!("mixed-port: {CLASH_PORT}\nmode: rule\nproxies:\n");
    for (server, name) in servers.iter().zip(&names) {
        let _ = write!(
            text,
            "  - name: {}\n    type: ss\n    server: {}\n    port: {}\n    cipher: {}\n    password: {}\n    udp: true\n",
            quoted(name),
            quoted(&host_text(&server.server)),
            server.server_port,
            quoted(&server.method),
            quoted(server.password.expose()),
        );
    }
    let _ = write!(
        text,
        "proxy-groups:\n  - name: {}\n    type: select\n    proxies:\n",
        quoted(GROUP)
    );
    for name in &names {
        let _ = writeln!(text, "      - {}", quoted(name));
    }
    let _ = write!(text, "rules:\n  - {}\n", quoted(&format!("MATCH,{GROUP}")));
    text
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(crate) fn host_text(host: &Host) -> String {
    match host {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.as_str().to_owned(),
    }
}

#[derive(Serialize)]
struct SingBoxDocument<'a> {
    inbounds: [SingBoxInbound; 1],
    outbounds: Vec<SingBoxOutbound<'a>>,
    route: SingBoxRoute,
}

#[derive(Serialize)]
struct SingBoxInbound {
    #[serde(rename = "type")]
    kind: &'static str,
    tag: &'static str,
    listen: &'static str,
    listen_port: u16,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum SingBoxOutbound<'a> {
    Selector {
        tag: &'static str,
        outbounds: &'a [String],
    },
    Shadowsocks {
        tag: &'a str,
        server: String,
        server_port: u16,
        method: &'a str,
        password: &'a str,
    },
}

#[derive(Serialize)]
struct SingBoxRoute {
    #[serde(rename = "final")]
    last: &'static str,
}

fn write_sing_box(servers: &[Server]) -> String {
    let names = unique_names(servers);
    let mut outbounds = vec![SingBoxOutbound::Selector {
        tag: GROUP,
        outbounds: &names,
    }];
    outbounds.extend(servers.iter().zip(&names).map(|(server, name)| {
        SingBoxOutbound::Shadowsocks {
            tag: name,
            server: host_text(&server.server),
            server_port: server.server_port,
            method: &server.method,
            password: server.password.expose(),
        }
    }));
    let document = SingBoxDocument {
        inbounds: [SingBoxInbound {
            kind: "mixed",
            tag: "proxy",
            listen: "127.0.0.1",
            listen_port: SING_BOX_PORT,
        }],
        outbounds,
        route: SingBoxRoute { last: GROUP },
    };
    // Texts and numbers alone: nothing of it can fail.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use adit_config::text::{MemorySources, Secret};

    use super::*;
    use crate::{ConvertOptions, Role, convert};

    const KEYS: &str = "AAECAwQFBgcICQoLDA0ODw==:EBESExQVFhcYGRobHB0eHw==";

    fn server(remarks: &str, host: &str, port: u16) -> Server {
        Server {
            id: String::new(),
            remarks: remarks.to_owned(),
            server: Host::parse(host).unwrap(),
            server_port: port,
            password: Secret::from(KEYS),
            method: "2022-blake3-aes-128-gcm".to_owned(),
            plugin: None,
        }
    }

    /// Each document is read back by the reader of its format, with the same servers.
    #[test]
    fn every_format_names_the_same_servers() {
        let servers = [
            server("main", "vps.example", 8388),
            server("main", "2001:db8::1", 443),
            server("a \"b\" #ü", "192.0.2.7", 9),
            server("adit", "192.0.2.8", 10),
        ];
        for format in DocumentFormat::ALL {
            let text = write_document(format, &servers, None);
            let options = ConvertOptions {
                role: Some(Role::Client),
                ..ConvertOptions::default()
            };
            let read = convert(&text, "document", &options, &MemorySources::default());
            let toml = read
                .unwrap_or_else(|why| panic!("{format:?}: {why:?}\n{text}"))
                .toml;
            for place in [
                "vps.example:8388",
                "[2001:db8::1]:443",
                "192.0.2.7:9",
                "192.0.2.8:10",
            ] {
                assert_eq!(
                    toml.matches(place).count(),
                    1,
                    "{format:?} {place}\n{}",
                    *toml
                );
            }
            let key = escape::encode_part(KEYS);
            assert_eq!(toml.matches(&key).count(), 4, "{format:?}\n{}", *toml);
        }
    }

    #[test]
    fn names_occur_once() {
        let servers = [
            server("main", "a.example", 1),
            server("main", "b.example", 1),
            server("main", "c.example", 1),
            server("adit", "d.example", 2),
        ];
        let names = unique_names(&servers);
        assert_eq!(names, ["main", "main:1", "main:1 2", "adit:2"]);
    }

    #[test]
    fn clients_get_the_format_that_they_read() {
        for (agent, format) in [
            ("clash-verge/v2.2.3", DocumentFormat::Clash),
            ("ClashX Meta/v1.4", DocumentFormat::Clash),
            ("mihomo/1.19.2", DocumentFormat::Clash),
            (
                "NekoBox/Android/1.3 (Prefer ClashMeta Format)",
                DocumentFormat::Clash,
            ),
            ("sing-box 1.14.1", DocumentFormat::SingBox),
            (
                "SFA/1.11.9 (Build 451; sing-box 1.11.9)",
                DocumentFormat::SingBox,
            ),
            ("v2rayNG/1.10.2", DocumentFormat::Base64),
            ("Shadowrocket/2592 CFNetwork/1568", DocumentFormat::Base64),
            ("adit/0.1.0", DocumentFormat::Sip008),
            ("curl/8.5.0", DocumentFormat::Sip008),
            ("", DocumentFormat::Sip008),
        ] {
            assert_eq!(DocumentFormat::of_client(agent), format, "{agent}");
        }
        for format in DocumentFormat::ALL {
            assert_eq!(DocumentFormat::from_name(format.name()), Some(format));
        }
        assert_eq!(DocumentFormat::from_name("toml"), None);
    }

    #[test]
    fn usage_is_part_of_sip008() {
        let usage = QuotaUsage {
            used: 7,
            remaining: 93,
        };
        let text = write_document(
            DocumentFormat::Sip008,
            &[server("main", "a.example", 1)],
            Some(usage),
        );
        let read = sip008::read_subscription(&text, &crate::AllowedPlugins::none()).unwrap();
        assert_eq!((read.bytes_used, read.bytes_remaining), (Some(7), Some(93)));
    }
}
