//! A Shadowsocks server as the formats describe it, and its URLs on both ends.

use adit_config::parse_address as parse_host_and_port;
use adit_config::text::{PluginText, Problem, Secret, SecretText, Span, format_duration};
use adit_shadowsocks::{Edition, Key, Method};
use adit_wire::Host;
use core::time::Duration;

use crate::conversion_context::{AllowedPlugins, ConversionContext, MAX_SERVERS};
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::ssr::SsrSettings;
use crate::toml_output::UrlBuilder;

/// No time of adit is longer than a year.
const MAX_SECONDS: u64 = 365 * 86_400;

/// A server.
pub(super) struct ServerEntry {
    /// Where it is described.
    pub(super) path: String,
    /// Its name for people.
    pub(super) name: Option<String>,
    /// Its addresses, at least one, with their ports.
    pub(super) addresses: Vec<(Host, u16)>,
    pub(super) method: String,
    pub(super) secret: SecretText,
    pub(super) plugin: Option<PluginEntry>,
    /// Settings that only a ShadowsocksR server has.
    pub(super) ssr: Option<SsrSettings>,
    /// The transport, if the file names it.
    pub(super) mode: Option<Transports>,
    /// `timeout`, in seconds; not 0.
    pub(super) timeout: Option<u64>,
    /// Users with keys of their own (SIP023).
    pub(super) users: Vec<(String, SecretText)>,
}

/// A SIP003 plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PluginEntry {
    pub(super) name: String,
    pub(super) options: String,
    /// The transport (SIP003u).
    pub(super) mode: Transports,
}

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transports {
    TcpOnly,
    TcpAndUdp,
    UdpOnly,
}

impl Transports {
    pub(super) const fn has_tcp(self) -> bool {
        !matches!(self, Self::UdpOnly)
    }

    pub(super) const fn has_udp(self) -> bool {
        !matches!(self, Self::TcpOnly)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TcpOnly => "tcp_only",
            Self::TcpAndUdp => "tcp_and_udp",
            Self::UdpOnly => "udp_only",
        }
    }

    /// Reads the field, if it is there.
    pub(super) fn read_field(
        fields: &mut ObjectFields<'_>,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<Self> {
        let text = fields.string_field(name, clerk)?;
        let all = [Self::TcpOnly, Self::TcpAndUdp, Self::UdpOnly];
        let found = all.into_iter().find(|mode| mode.name() == text);
        if found.is_none() {
            let title = format!("`{}` is not a mode", fields.field_path(name));
            let help = "the modes are `tcp_only`, `tcp_and_udp` and `udp_only`";
            clerk.add_problem(Problem::without_place(title, help));
        }
        found
    }
}

impl PluginEntry {
    /// Reads `plugin`, `plugin_opts`, `plugin_args` and `plugin_mode`.
    pub(super) fn read_fields(
        fields: &mut ObjectFields<'_>,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<Self> {
        let name = fields.string_field("plugin", clerk);
        let options = fields
            .string_field("plugin_opts", clerk)
            .unwrap_or_default();
        let mode = Transports::read_field(fields, "plugin_mode", clerk);
        // The window program writes them as one text.
        let arguments = fields.strings_field("plugin_args", clerk);
        let name = name?;
        if arguments.iter().any(|argument| !argument.is_empty()) {
            let path = fields.field_path("plugin_args");
            clerk.add_note(path, "plugins get options, not arguments; left out");
        }
        Some(Self {
            name: name.to_owned(),
            options: options.to_owned(),
            mode: mode.unwrap_or(Transports::TcpOnly),
        })
    }

    fn set_keys(&self, url: &mut UrlBuilder) {
        let text = PluginText {
            program: self.name.clone(),
            options: self.options.clone(),
        };
        url.set_key("plugin", text.to_text());
        if self.mode != Transports::TcpOnly {
            url.set_key("plugin_mode", self.mode.name());
        }
    }
}

impl ServerEntry {
    /// A server that a link or a document from elsewhere describes.
    pub(super) fn from_untrusted(
        path: String,
        name: Option<String>,
        address: (Host, u16),
        method: String,
        secret: &str,
        plugin: Option<PluginEntry>,
    ) -> Self {
        Self {
            path,
            name,
            addresses: vec![address],
            method,
            secret: SecretText::Literal(Secret::from(secret)),
            plugin,
            ssr: None,
            mode: None,
            timeout: None,
            users: Vec::new(),
        }
    }

    /// One URL for each address: a hop, or a listener without the keys that only listeners have.
    pub(super) fn urls(&self) -> impl Iterator<Item = UrlBuilder> {
        self.addresses.iter().map(|(host, port)| {
            let scheme = if self.ssr.is_some() { "ssr" } else { "ss" };
            let mut url = UrlBuilder::new(scheme, Some(host.clone()), *port)
                .with_user(&self.method.to_ascii_lowercase(), copy_secret(&self.secret))
                .with_name(self.name.as_deref());
            if let Some(ssr) = &self.ssr {
                ssr.set_keys(&mut url);
            }
            if let Some(plugin) = &self.plugin {
                plugin.set_keys(&mut url);
            }
            url
        })
    }

    /// Why adit cannot use it, if so. No secret is in the text.
    pub(super) fn reason_unusable(&self, plugins: Option<&AllowedPlugins>) -> Option<String> {
        if let Some(ssr) = &self.ssr {
            return ssr.reason_unusable(&self.method);
        }
        let Ok(method) = self.method.parse::<Method>() else {
            return Some(format!(
                "method `{}` is not known to this version",
                self.method
            ));
        };
        if let SecretText::Literal(secret) = &self.secret {
            let fault = reason_key_unusable(method, secret.expose());
            if fault.is_some() {
                return fault;
            }
        }
        let plugin = self.plugin.as_ref()?;
        if plugin.name.contains('\0') || plugin.options.contains('\0') {
            return Some("its plugin has a zero byte, which no program can be given".to_owned());
        }
        if plugins.is_some_and(|plugins| !plugins.allows(&plugin.name)) {
            return Some(format!(
                "it starts the program `{}` on this machine, which was not allowed",
                plugin.name
            ));
        }
        None
    }
}

fn reason_key_unusable(method: Method, secret: &str) -> Option<String> {
    if method.edition() != Edition::Aead2022 {
        return Key::parse(method, secret).err().map(|why| why.to_string());
    }
    // Identity keys come before the user's, joined by colons (SIP023).
    secret
        .split(':')
        .find_map(|key| Key::parse(method, key).err())
        .map(|why| why.to_string())
}

/// The servers that can be used; the others are noted. With none left, the notes are problems.
/// `plugins` are those that a document from elsewhere may start.
pub(super) fn usable_servers(
    servers: Vec<ServerEntry>,
    plugins: Option<&AllowedPlugins>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<ServerEntry> {
    let mut good = Vec::with_capacity(servers.len());
    let mut faults = Vec::new();
    for server in servers {
        match server.reason_unusable(plugins) {
            None => good.push(server),
            Some(why) => faults.push((server, why)),
        }
    }
    for (server, why) in faults {
        let path = server.path;
        if good.is_empty() {
            let help = if server.plugin.is_some() && why.contains("was not allowed") {
                "`--allow-plugin NAME` allows it, if you trust where the document comes from"
            } else {
                match server.ssr {
                    Some(_) => "`adit help ssr` lists methods, protocols and obfs",
                    None => "`adit help ss` lists the methods, `adit keygen METHOD` makes a key",
                }
            };
            let title = format!("`{path}`: {why}");
            clerk.add_problem(Problem::without_place(title, help));
        } else {
            clerk.add_note(path, format!("left out: {why}"));
        }
    }
    good
}

/// True while there is room for one server more.
pub(super) fn allows_another(count: usize, clerk: &mut ConversionContext<'_>) -> bool {
    if count < MAX_SERVERS {
        return true;
    }
    let title = format!("more than {MAX_SERVERS} servers");
    clerk.add_problem(Problem::without_place(title, "leave some of them out"));
    false
}

/// A password as shadowsocks-rust reads it: `${NAME}` is a variable of the environment.
pub(super) fn parse_secret(text: &str) -> SecretText {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.strip_prefix("${").and_then(|t| t.strip_suffix('}')) {
        Some(name) if !name.is_empty() && name.chars().all(good) => {
            SecretText::Variable(name.to_owned())
        }
        _ => SecretText::Literal(Secret::from(text)),
    }
}

pub(super) fn copy_secret(secret: &SecretText) -> SecretText {
    match secret {
        SecretText::Literal(secret) => SecretText::Literal(Secret::from(secret.expose())),
        SecretText::File(path) => SecretText::File(path.clone()),
        SecretText::Variable(name) => SecretText::Variable(name.clone()),
    }
}

/// An address as these programs write it: IPv6 with or without brackets, perhaps with a port.
pub(super) fn parse_address(
    text: &str,
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<(Option<Host>, Option<u16>)> {
    if let Ok(Host::Ip(ip)) = Host::parse(text) {
        return Some((Some(Host::Ip(ip)), None));
    }
    match parse_host_and_port(text, Span::default()) {
        Ok((host, port)) => Some((host.map(|host| host.value), port.map(|port| port.value))),
        Err(why) => {
            let title = format!("`{path}` is not an address: {why}");
            let help = "write `example.com`, `192.0.2.7` or `2001:db8::7`";
            clerk.add_problem(Problem::without_place(title, help));
            None
        }
    }
}

/// As [`parse_address`], where a host is needed.
pub(super) fn parse_host(
    text: &str,
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<(Host, Option<u16>)> {
    match parse_address(text, path, clerk)? {
        (Some(host), port) => Some((host, port)),
        (None, _) => {
            let title = format!("`{path}` has no host");
            clerk.add_problem(Problem::without_place(title, "write `HOST:PORT`"));
            None
        }
    }
}

/// A time in seconds; 0 counts as absent.
pub(super) fn read_seconds(
    fields: &mut ObjectFields<'_>,
    name: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<u64> {
    let seconds = fields.whole_number(name, clerk)?;
    if seconds > MAX_SECONDS {
        clerk.add_note(fields.field_path(name), "longer than a year; left out");
        return None;
    }
    Some(seconds).filter(|seconds| *seconds > 0)
}

/// Seconds as a URL writes them.
pub(super) fn format_seconds(seconds: u64) -> String {
    format_duration(Duration::from_secs(seconds))
}

/// The path of an item of a list.
pub(super) fn item_path(list: &str, index: usize) -> String {
    format!("{list}[{index}]")
}

/// A list of objects: the fields of each.
pub(super) fn read_objects<'j>(
    fields: &mut ObjectFields<'j>,
    name: &str,
    clerk: &mut ConversionContext<'_>,
) -> Vec<ObjectFields<'j>> {
    let path = fields.field_path(name);
    let items: &'j [Json] = fields.list_field(name, clerk);
    let numbered = items.iter().enumerate();
    numbered
        .take(MAX_SERVERS + 1)
        .filter_map(|(i, value)| ObjectFields::of_object(value, item_path(&path, i), clerk))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_passwords() {
        assert_eq!(
            parse_secret("${SS_KEY}"),
            SecretText::Variable("SS_KEY".into())
        );
        for text in ["$SS", "${}", "${a b}", "${a", "@file"] {
            assert_eq!(parse_secret(text), SecretText::Literal(Secret::from(text)));
        }
    }

    #[test]
    fn plugins_are_written_as_they_are_read() {
        let server = |name: &str, options: &str| {
            let host = Host::parse("a.example").unwrap();
            let plugin = PluginEntry {
                name: name.to_owned(),
                options: options.to_owned(),
                mode: Transports::TcpOnly,
            };
            let method = "aes-128-gcm".to_owned();
            ServerEntry::from_untrusted(String::new(), None, (host, 1), method, "pw", Some(plugin))
        };
        let url = |name, options| server(name, options).urls().next().unwrap().to_text();
        assert!(url("/opt/a;b", "tls").contains("plugin=/opt/a%5C%3Bb%3Btls"));
        assert!(url("p", "").ends_with("plugin=p"));
        let fault = |name, options| server(name, options).reason_unusable(None);
        assert!(fault("p", "a\0").is_some() && fault("p\0", "").is_some());
        assert_eq!(fault("p", "a"), None);
    }

    #[test]
    fn faults_tell_no_secret() {
        let method = Method::Blake3Aes128Gcm;
        let good = "AAECAwQFBgcICQoLDA0ODw==";
        assert_eq!(reason_key_unusable(method, good), None);
        assert_eq!(reason_key_unusable(method, &format!("{good}:{good}")), None);
        let why = reason_key_unusable(method, &format!("{good}:hunter2")).unwrap();
        assert!(!why.contains("hunter2") && !why.contains(good), "{why}");
        assert!(reason_key_unusable(Method::Aes256Gcm, "").is_some());
        assert_eq!(reason_key_unusable(Method::Aes256Gcm, "a:b"), None);
    }
}
