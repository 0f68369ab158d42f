//! Share links of ShadowsocksR, which are one base64 text.
//!
//! ```text
//! ssr:// B( host:port:protocol:method:obfs:B(password)/?obfsparam=B(…)&protoparam=B(…)&remarks=B(…)&group=B(…) )
//! ```
//! B is base64url without padding.

use adit_wire::Host;
use zeroize::Zeroizing;

use crate::grammar::{Endpoint, LinkForm, ParsedLink, QueryPair, parse_bare_host};
use crate::text::{ConfigError, Secret, SecretText, Span, Spanned, base64, escape};

/// The form of the links.
pub(crate) const LINK_FORM: LinkForm = LinkForm {
    matches: is_link,
    parse: parse_link,
    write: Some(write_link),
    with_carrier: false,
};

/// The value of `udp` in a URL that corresponds to `uot=1`.
const OVER_TCP: &str = "over-tcp";

/// The hint for wrong links.
const FORM_HINT: &str =
    "write `ssr://METHOD:PASSWORD@HOST:PORT?protocol=…&obfs=…`, or a share link";

/// Keys of the URL, each with its name in links.
const LINK_NAMES: [(&str, &str); 2] = [
    ("obfs_param", "obfsparam"),
    ("protocol_param", "protoparam"),
];

/// Parses the part after `ssr://`.
fn parse_link(raw: &str, span: Span) -> Result<ParsedLink, ConfigError> {
    let wrong = |what: &str| ConfigError::new(span, what).with_help(FORM_HINT);
    let unreadable = || wrong("neither `METHOD:PASSWORD@HOST:PORT` nor a share link");
    // `/` is a base64 digit, but some programs write it after the text.
    let text = base64::decode_link(raw)
        .filter(|text| text.contains(':'))
        .or_else(|| base64::decode_link(raw.strip_suffix('/')?))
        .ok_or_else(unreadable)?;
    let (main, query) = text.split_once('?').unwrap_or((&text, ""));
    let main = main.strip_suffix('/').unwrap_or(main);
    // From the right: an IPv6 host contains colons.
    let mut parts = main.rsplitn(6, ':');
    let mut part = || parts.next().ok_or_else(unreadable);
    let (password, obfs, method, protocol, port, host) =
        (part()?, part()?, part()?, part()?, part()?, part()?);
    let password = base64::decode_link(password)
        .ok_or_else(|| wrong("the link's password is not base64 of a text"))?;
    let port = port
        .parse()
        .map_err(|_| wrong("the link's port is not a number"))?;
    let host = parse_bare_host(host, span)?;
    let at = |value: String| Spanned::new(value, span);
    let pair = |key: &str, value: &str| QueryPair {
        key: at(key.to_owned()),
        value: at(value.to_owned()),
    };
    let mut unfolded = ParsedLink {
        method: at(method.to_owned()),
        secret: Spanned::new(SecretText::Literal(Secret::from(&**password)), span),
        host: Some(Spanned::new(host, span)),
        port: Spanned::new(port, span),
        params: Vec::new(),
        name: None,
    };
    for (key, name, default) in [("protocol", protocol, "origin"), ("obfs", obfs, "plain")] {
        if !name.is_empty() && name != default {
            unfolded.params.push(pair(key, name));
        }
    }
    for item in query.split('&').filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once('=').unwrap_or((item, ""));
        let text = || base64::decode_link(value).unwrap_or_default();
        let written = LINK_NAMES.iter().find(|(_, theirs)| *theirs == key);
        match (key, written) {
            _ if value.is_empty() => {}
            // An `@` would name a file on this machine.
            (_, Some(_)) if text().starts_with('@') => {
                return Err(wrong("a share link cannot name a file"));
            }
            (_, Some((ours, _))) => {
                if unfolded.params.iter().all(|pair| pair.key.value != *ours) {
                    unfolded.params.push(pair(ours, &text()));
                }
            }
            ("remarks", _) => {
                unfolded.name = Some(at(text().to_string())).filter(|n| !n.value.is_empty());
            }
            ("group", _) => {}
            // The same port, and no UDP over TCP: the defaults.
            ("udpport", _) if matches!(value.parse::<u16>(), Ok(udp) if udp == 0 || udp == port) => {
            }
            ("uot", _) if value == "0" => {}
            ("uot", _) if value == "1" => unfolded.params.push(pair("udp", OVER_TCP)),
            // The format has no plugins: this one would run a program on this machine.
            ("plugin" | "plugin_mode", _) => {
                return Err(wrong("a link of this form cannot name a plugin"));
            }
            // The builder warns that it is ignored.
            (key, _) => {
                if unfolded.params.iter().all(|pair| pair.key.value != key) {
                    unfolded.params.push(pair(key, value));
                }
            }
        }
    }
    Ok(unfolded)
}

/// Returns the share link of a server, with the settings that clients of other programs support.
fn write_link(endpoint: &Endpoint) -> Result<String, ConfigError> {
    let missing = |what: &str| {
        ConfigError::new(endpoint.address, what).with_help("a share link names a server")
    };
    let host = endpoint
        .host
        .as_ref()
        .ok_or_else(|| missing("the host is missing"))?;
    let port = endpoint
        .port
        .as_ref()
        .ok_or_else(|| missing("the port is missing"))?;
    let method = endpoint
        .user
        .as_ref()
        .ok_or_else(|| missing("the method is missing"))?;
    let password = match endpoint
        .secret
        .as_ref()
        .map(|secret| (&secret.value, secret.span))
    {
        None => "",
        Some((SecretText::Literal(secret), _)) => secret.expose(),
        Some((_, span)) => {
            return Err(
                ConfigError::new(span, "a share link contains the password itself")
                    .with_help("write the password instead of the file or variable"),
            );
        }
    };
    let value = |key: &str| {
        endpoint
            .param(key)
            .map_or("", |pair| pair.value.value.as_str())
    };
    if let Some(pair) = endpoint
        .param("plugin")
        .filter(|pair| !pair.value.value.is_empty())
    {
        return Err(
            ConfigError::new(pair.key.span, "a share link cannot contain a plugin")
                .with_label("without it the traffic would be sent undisguised")
                .with_help("pass on the URL unchanged"),
        );
    }
    let or = |text: &'static str, default: &'static str| -> String {
        let bare = value(text).trim_end_matches("_compatible");
        if bare.is_empty() {
            default.to_owned()
        } else {
            bare.to_owned()
        }
    };
    let host = match &host.value {
        Host::Ip(ip) => ip.to_string(),
        Host::Name(name) => name.as_str().to_owned(),
    };
    let mut text = Zeroizing::new(format!(
        "{host}:{}:{}:{}:{}:{}",
        port.value,
        or("protocol", "origin"),
        method.value,
        or("obfs", "plain"),
        base64::encode_link(password),
    ));
    let name = endpoint.name.as_ref().map_or("", |name| &name.value);
    let shown = LINK_NAMES.map(|(ours, theirs)| (theirs, value(ours)));
    let pairs = shown.into_iter().chain([("remarks", name)]);
    let mut mark = "/?";
    for (key, value) in pairs.filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!("{mark}{key}={}", base64::encode_link(value)));
        mark = "&";
    }
    if value("udp") == OVER_TCP {
        text.push_str(&format!("{mark}uot=1"));
    }
    Ok(format!("ssr://{}", base64::encode_link(&text)))
}

/// True if this is the part after `ssr://` of a share link.
fn is_link(raw: &str) -> bool {
    let plain = escape::decode(raw).unwrap_or_default();
    !matches!(raw, "" | "/") && !plain.contains(['@', ':'])
}
