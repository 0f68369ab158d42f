//! Settings that ShadowsocksR adds to a server's description: protocol, obfs and their parameters.

use adit_config::Endpoint;
use adit_config::text::Problem;
use adit_crypto::StreamKind;
use adit_obfs::{ObfsKind, RedirectRule};
use adit_shadowsocksr::Protocol;

use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::toml_output::UrlBuilder;

/// A ShadowsocksR server, beside what every server has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SsrSettings {
    pub(super) protocol: String,
    /// It can hold passwords.
    pub(super) protocol_param: String,
    pub(super) obfs: String,
    pub(super) obfs_param: String,
    /// Decoys of a server.
    pub(super) redirect: Vec<String>,
}

/// Fields that shadowsocks-libev does not have and ShadowsocksR has.
const SSR_FIELDS: &[&str] = &[
    "additional_ports",
    "obfs",
    "obfs_param",
    "obfsparam",
    "protocol_param",
    "protocolparam",
    "redirect",
];

/// Local ends of shadowsocks-rust, which has a field `protocol` too.
const LOCAL_PROTOCOLS: &[&str] = &["socks", "http", "tunnel", "redir", "dns", "tun", "fake-dns"];

/// True if this describes a ShadowsocksR server, or several.
pub(super) fn is_ssr(entries: &[(String, Json)]) -> bool {
    let object = |item: &Json| matches!(item, Json::Object(entries) if is_ssr(entries));
    entries
        .iter()
        .any(|(name, value)| match (name.as_str(), value) {
            ("protocol", _) => value
                .as_str()
                .is_some_and(|text| !LOCAL_PROTOCOLS.contains(&text)),
            // The window program of Shadowsocks has the same list.
            ("configs", Json::List(items)) => items.iter().any(object),
            (name, _) => SSR_FIELDS.contains(&name),
        })
}

impl SsrSettings {
    /// Reads the fields, under all names that programs have for them.
    pub(super) fn read_fields(
        fields: &mut ObjectFields<'_>,
        clerk: &mut ConversionContext<'_>,
    ) -> Self {
        let mut text = |names: &[&'static str]| -> String {
            let mut found = String::new();
            for name in names {
                if let Some(text) = fields
                    .string_field(name, clerk)
                    .filter(|_| found.is_empty())
                {
                    text.clone_into(&mut found);
                }
            }
            found
        };
        Self {
            protocol: text(&["protocol"]),
            protocol_param: text(&["protocol_param", "protocolparam"]),
            obfs: text(&["obfs"]),
            obfs_param: text(&["obfs_param", "obfsparam"]),
            redirect: read_redirect(fields, clerk),
        }
    }

    /// The keys of a link.
    pub(super) fn from_link(endpoint: &Endpoint) -> Self {
        let text = |key: &str| {
            let pair = endpoint.param(key);
            pair.map_or_else(String::new, |pair| pair.value.value.clone())
        };
        Self {
            protocol: text("protocol"),
            protocol_param: text("protocol_param"),
            obfs: text("obfs"),
            obfs_param: text("obfs_param"),
            redirect: Vec::new(),
        }
    }

    /// Puts them into a URL; decoys are a listener's.
    pub(super) fn set_keys(&self, url: &mut UrlBuilder) {
        for (key, value, default) in [
            ("protocol", &self.protocol, "origin"),
            ("protocol_param", &self.protocol_param, ""),
            ("obfs", &self.obfs, "plain"),
            ("obfs_param", &self.obfs_param, ""),
        ] {
            if !value.is_empty() && value != default {
                url.set_key(key, value.as_str());
            }
        }
    }

    /// Why adit cannot use it, if so. No secret is in the text.
    pub(super) fn reason_unusable(&self, method: &str) -> Option<String> {
        if method.parse::<StreamKind>().is_err() {
            return Some(format!("method `{method}` is not one of ShadowsocksR"));
        }
        if self.protocol.parse::<Protocol>().is_err() {
            return Some(format!("protocol `{}` is not known", self.protocol));
        }
        if !self.obfs.is_empty() && ObfsKind::parse_server_name(&self.obfs).is_err() {
            return Some(format!("obfs `{}` is not known", self.obfs));
        }
        // A file named here would be one of this machine.
        let named = self.protocol_param.starts_with('@');
        named.then(|| "its `protocol_param` begins with `@`".to_owned())
    }
}

/// Settings of a single port of `port_password`.
pub(super) struct PortSettings<'j> {
    pub(super) password: Option<&'j str>,
    method: Option<&'j str>,
    protocol: Option<&'j str>,
    protocol_param: Option<&'j str>,
    obfs: Option<&'j str>,
    obfs_param: Option<&'j str>,
}

/// Reads `["password", "obfs", "protocol"]` or an object; `None` if it is neither.
pub(super) fn read_port(value: &Json) -> Option<PortSettings<'_>> {
    let entries = match value {
        Json::Object(entries) => entries,
        Json::List(items) => {
            let at = |place: usize| items.get(place).and_then(Json::as_str);
            return Some(PortSettings {
                password: at(0),
                method: None,
                protocol: at(2),
                protocol_param: None,
                obfs: at(1),
                obfs_param: None,
            });
        }
        _ => return None,
    };
    let field = |name: &str| {
        let mut entries = entries.iter();
        let found = entries.find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.as_str())
    };
    Some(PortSettings {
        password: field("password"),
        method: field("method"),
        protocol: field("protocol"),
        protocol_param: field("protocol_param"),
        obfs: field("obfs"),
        obfs_param: field("obfs_param"),
    })
}

impl PortSettings<'_> {
    /// Puts it in the place of what all ports have.
    pub(super) fn apply_to(&self, method: &mut String, ssr: Option<&mut SsrSettings>) {
        let put = |place: &mut String, own: Option<&str>| {
            if let Some(own) = own {
                own.clone_into(place);
            }
        };
        put(method, self.method);
        if let Some(ssr) = ssr {
            put(&mut ssr.protocol, self.protocol);
            put(&mut ssr.protocol_param, self.protocol_param);
            put(&mut ssr.obfs, self.obfs);
            put(&mut ssr.obfs_param, self.obfs_param);
        }
    }
}

/// `redirect`: a rule, or a list of them.
fn read_redirect(fields: &mut ObjectFields<'_>, clerk: &mut ConversionContext<'_>) -> Vec<String> {
    let path = fields.field_path("redirect");
    let mut rules = Vec::new();
    for text in fields.strings_field("redirect", clerk) {
        match RedirectRule::parse(text) {
            Ok(_) if !text.contains(',') => rules.push(text.to_owned()),
            Ok(_) => clerk.add_note(path.clone(), "a rule with a comma is left out"),
            Err(why) => clerk.add_problem(Problem::without_place(
                format!("`{path}`: {why}"),
                "without it strangers would be answered in another way",
            )),
        }
    }
    rules
}
