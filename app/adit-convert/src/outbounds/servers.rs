//! Servers as hops, from fields that the formats name differently.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD_NO_PAD;
use adit_config::text::{MemorySources, Secret, SecretText, base64};
use adit_config::{Plan, RouteOption};
use adit_wire::Host;

use super::{OutboundHop, Unusable};
use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::server_entry::{self, PluginEntry, ServerEntry};
use crate::ssr::SsrSettings;
use crate::toml_output::UrlBuilder;

/// Maximum number of host keys of a server.
const MAX_HOST_KEYS: usize = 32;

/// The address of a server.
pub(in super::super) struct ServerPlace {
    host: Host,
    port: u16,
}

impl ServerPlace {
    /// Reads host and port from fields. The port is required unless it has a default.
    pub(in super::super) fn read(
        fields: &mut ObjectFields<'_>,
        (host_key, port_key): (&'static str, &'static str),
        default_port: Option<u16>,
        clerk: &mut ConversionContext<'_>,
    ) -> Result<Self, Unusable> {
        let host = fields.string_field(host_key, clerk);
        let port = fields.port_field(port_key, clerk).or(default_port);
        let missing = |key: &str| Unusable::Reason(format!("`{key}` is missing"));
        let host = host.ok_or_else(|| missing(host_key))?;
        let path = fields.field_path(host_key);
        let (host, _) = server_entry::parse_host(host, &path, clerk)
            .ok_or_else(|| Unusable::Reason(format!("`{host_key}` is not a host")))?;
        let port = port.ok_or_else(|| missing(port_key))?;
        Ok(Self { host, port })
    }

    fn url(self, scheme: &'static str) -> UrlBuilder {
        UrlBuilder::new(scheme, Some(self.host), self.port)
    }
}

/// A Shadowsocks server.
pub(in super::super) fn shadowsocks_hop(
    place: ServerPlace,
    method: &str,
    password: &str,
    plugin: Option<PluginEntry>,
    clerk: &ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let method = method.to_owned();
    let at = (place.host, place.port);
    let entry = ServerEntry::from_untrusted(String::new(), None, at, method, password, plugin);
    entry_hop(&entry, clerk)
}

/// A ShadowsocksR server.
pub(in super::super) fn ssr_hop(
    place: ServerPlace,
    method: &str,
    password: &str,
    settings: SsrSettings,
    clerk: &ConversionContext<'_>,
) -> Result<UrlBuilder, Unusable> {
    let method = method.to_owned();
    let at = (place.host, place.port);
    let entry = ServerEntry {
        ssr: Some(settings),
        ..ServerEntry::from_untrusted(String::new(), None, at, method, password, None)
    };
    let url = entry_hop(&entry, clerk)?;
    check(url)
}

fn entry_hop(entry: &ServerEntry, clerk: &ConversionContext<'_>) -> Result<UrlBuilder, Unusable> {
    if let Some(why) = entry.reason_unusable(Some(&clerk.options.plugins)) {
        return Err(why.into());
    }
    entry
        .urls()
        .next()
        .ok_or_else(|| "it has no address".into())
}

/// A SOCKS5 server.
pub(in super::super) fn socks_hop(
    place: ServerPlace,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<UrlBuilder, Unusable> {
    check(with_login(place.url("socks5"), user, password))
}

/// An HTTP proxy.
pub(in super::super) fn http_hop(
    place: ServerPlace,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<UrlBuilder, Unusable> {
    check(with_login(place.url("http"), user, password))
}

/// An SSH server. Private keys are files of this machine, which a document from elsewhere must not name.
pub(in super::super) fn ssh_hop(
    place: ServerPlace,
    user: &str,
    password: Option<&str>,
    pins: &[String],
) -> Result<UrlBuilder, Unusable> {
    let Some(password) = password else {
        return Err("it has no password, and private keys are not taken from a document".into());
    };
    let mut url = with_login(place.url("ssh"), Some(user), Some(password));
    if !pins.is_empty() {
        url.set_key("host_key", pins.join(","));
    }
    check(url)
}

fn with_login(url: UrlBuilder, user: Option<&str>, password: Option<&str>) -> UrlBuilder {
    let Some(user) = user else {
        return url;
    };
    let secret = Secret::from(password.unwrap_or_default());
    url.with_user(user, SecretText::Literal(secret))
}

/// Refuses a URL that a plan would refuse, with the reason, so that one server does not affect the others.
fn check(url: UrlBuilder) -> Result<UrlBuilder, Unusable> {
    let words = [
        RouteOption::Listen("mixed://127.0.0.1:0".to_owned()),
        RouteOption::Forward(url.to_text().to_string()),
    ];
    match Plan::from_args_with(&words, &MemorySources::default()) {
        Ok(_) => Ok(url),
        Err(problems) => {
            let title = problems.into_iter().next().map(|problem| problem.title);
            Err(title.unwrap_or_default().into())
        }
    }
}

/// Fingerprints of public keys in the format of `known_hosts` and `.pub` files: `TYPE BASE64`.
pub(in super::super) fn host_key_pins(keys: &[&str]) -> Result<Vec<String>, Unusable> {
    if keys.len() > MAX_HOST_KEYS {
        return Err(format!("more than {MAX_HOST_KEYS} host keys").into());
    }
    let pin = |key: &&str| {
        let blob = base64::decode_key(key.split_whitespace().nth(1)?)?;
        let hash = STANDARD_NO_PAD.encode(adit_crypto::sha256(&blob));
        Some(format!("SHA256:{hash}"))
    };
    let pins: Option<Vec<String>> = keys.iter().map(pin).collect();
    pins.ok_or_else(|| "a host key is not `TYPE BASE64`".into())
}

impl From<UrlBuilder> for OutboundHop {
    fn from(url: UrlBuilder) -> Self {
        Self::Server(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keys_become_fingerprints() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS comment";
        let pins = host_key_pins(&[key]).ok().unwrap();
        assert_eq!(pins.len(), 1);
        assert!(
            pins[0].starts_with("SHA256:") && pins[0].len() == 50,
            "{pins:?}"
        );
        for bad in ["", "ssh-ed25519", "ssh-ed25519 %%%"] {
            assert!(host_key_pins(&[bad]).is_err(), "{bad}");
        }
        assert!(host_key_pins(&[key; 33]).is_err());
    }

    #[test]
    fn servers_that_no_plan_accepts_are_refused() {
        let place = || ServerPlace {
            host: Host::parse("a.example").unwrap(),
            port: 1,
        };
        assert!(socks_hop(place(), None, None).is_ok());
        assert!(socks_hop(place(), Some("u"), Some("p@:/$")).is_ok());
        assert!(socks_hop(place(), Some(&"u".repeat(256)), Some("p")).is_err());
        assert!(http_hop(place(), Some("a:b"), Some("p")).is_err());
        assert!(ssh_hop(place(), "root", None, &[]).is_err());
        assert!(ssh_hop(place(), "root", Some("p"), &[]).is_ok());
    }
}
