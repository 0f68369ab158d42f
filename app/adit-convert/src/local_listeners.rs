//! The local ends of a client: what `local_port` and `locals` ask for.

use adit_config::text::Problem;
use adit_wire::{Host, Target};

use crate::conversion_context::ConversionContext;
use crate::fields::{ObjectFields, OmitReasons};
use crate::proxy_users;
use crate::server_entry::{self, Transports, format_seconds};
use crate::toml_output::UrlBuilder;

/// Settings of the whole file that each local end inherits.
pub(super) struct FileDefaults {
    pub(super) mode: Transports,
    pub(super) idle: Option<u64>,
    pub(super) udp_idle: Option<u64>,
    pub(super) prefer_v6: bool,
    /// Private destinations that clients of a server may reach; a field of adit's own.
    pub(super) private: Option<String>,
    /// Connections between client and server begin with TCP Fast Open.
    pub(super) fast_open: bool,
    /// `protocol` is a word of the server's.
    pub(super) ssr: bool,
}

const OMITTED_FIELDS: OmitReasons = &[(
    &[
        "local_dns_address",
        "local_dns_port",
        "remote_dns_address",
        "remote_dns_port",
        "client_cache_size",
    ],
    "belongs to a kind of listener that this version does not have",
)];

impl FileDefaults {
    /// The keys that every listener takes from the file.
    pub(super) fn set_keys(&self, url: &mut UrlBuilder, tcp: bool, udp: bool) {
        if let Some(idle) = self.idle.filter(|_| tcp) {
            url.set_key("idle", format_seconds(idle));
        }
        if let Some(idle) = self.udp_idle.filter(|_| udp) {
            url.set_key("udp_idle", format_seconds(idle));
        }
        if self.prefer_v6 {
            url.set_key("prefer", "v6");
        }
    }
}

/// Where a client listens that does not say so.
pub(super) fn default_proxy() -> UrlBuilder {
    let host = Host::Ip(core::net::Ipv4Addr::LOCALHOST.into());
    UrlBuilder::new("mixed", Some(host), 1080)
}

/// All local ends of a file.
pub(super) fn read_locals(
    top: &mut ObjectFields<'_>,
    defaults: &FileDefaults,
    clerk: &mut ConversionContext<'_>,
) -> Vec<UrlBuilder> {
    let mut urls = Vec::new();
    let names = ["local_port", "local_address", "tunnel_address", "protocol"];
    let at_top = names.iter().any(|name| top.has_field(name));
    if at_top && (top.has_field("local_port") || !top.has_field("locals")) {
        urls.extend(
            read_local(top, defaults, clerk)
                .into_iter()
                .flatten()
                .flatten(),
        );
    }
    for mut fields in server_entry::read_objects(top, "locals", clerk) {
        if fields.bool_field("disabled", clerk) == Some(true) {
            let path = fields.object_path().to_owned();
            clerk.add_note(path, "disabled, left out");
            continue;
        }
        let found = read_local(&mut fields, defaults, clerk);
        urls.extend(found.into_iter().flatten().flatten());
        if fields.has_field("acl") {
            let title = format!(
                "`{}`: an ACL for one local end is not known",
                fields.field_path("acl")
            );
            clerk.add_problem(Problem::without_place(
                title,
                "`acl` at the top of the file is for all of them; run several files for several ACLs",
            ));
            fields.get("acl");
        }
        fields.note_unread(OMITTED_FIELDS, clerk);
    }
    urls
}

/// The listeners of one local end: one, or for a transparent one another for UDP.
fn read_local(
    fields: &mut ObjectFields<'_>,
    defaults: &FileDefaults,
    clerk: &mut ConversionContext<'_>,
) -> Option<[Option<UrlBuilder>; 2]> {
    let address = fields.string_field("local_address", clerk);
    let (host, port) = match address {
        Some(text) => {
            let path = fields.field_path("local_address");
            let (host, port) = server_entry::parse_host(text, &path, clerk)?;
            (host, port)
        }
        None => (Host::Ip(core::net::Ipv4Addr::LOCALHOST.into()), None),
    };
    let written = fields.listen_port_field("local_port", clerk);
    let port = written.or(port).unwrap_or(1080);
    let tunnel = fields.string_field("tunnel_address", clerk);
    let protocol = match defaults.ssr {
        true => None,
        false => fields.string_field("protocol", clerk),
    };
    let protocol = match protocol {
        Some(protocol) => protocol,
        None if tunnel.is_some() => "tunnel",
        None => "socks",
    };
    let mode = Transports::read_field(fields, "mode", clerk).unwrap_or(defaults.mode);
    for (name, same) in [("local_udp_address", false), ("local_udp_port", true)] {
        let other = fields.get(name);
        let equal = match other {
            Some(value) if same => value.as_u64() == Some(u64::from(port)),
            Some(value) => value.as_str() == address,
            None => true,
        };
        if !equal {
            clerk.add_note(
                fields.field_path(name),
                "UDP takes the same address and port as TCP",
            );
        }
    }
    let whole = match fields.object_path() {
        "" => "local_port".to_owned(),
        whole => whole.to_owned(),
    };
    let mut url = match protocol {
        "socks" | "socks5" | "socks4" => {
            // One port for all languages: a client finds what it found before.
            let url = UrlBuilder::new("mixed", Some(host), port);
            let mut url = proxy_users::add_users_from_file(
                url,
                fields,
                "socks5_auth_config_path",
                "password",
                clerk,
            );
            if !mode.has_udp() {
                url.set_key("udp", "false");
            }
            if !mode.has_tcp() {
                let path = fields.field_path("mode");
                clerk.add_note(
                    path,
                    "a SOCKS port without TCP is not known: TCP is offered too",
                );
            }
            proxy_users::keep_open_proxy(&mut url, &whole, clerk);
            url
        }
        "http" => {
            let url = UrlBuilder::new("http", Some(host), port);
            let mut url = proxy_users::add_users_from_file(
                url,
                fields,
                "http_auth_config_path",
                "basic",
                clerk,
            );
            proxy_users::keep_open_proxy(&mut url, &whole, clerk);
            url
        }
        "tunnel" => {
            let target = forward_target(fields, tunnel, &whole, clerk)?;
            let scheme = match mode {
                Transports::TcpOnly => "tcp",
                Transports::UdpOnly => "udp",
                Transports::TcpAndUdp => "tcp+udp",
            };
            UrlBuilder::new(scheme, Some(host), port).with_target(target)
        }
        "redir" => {
            return Some(transparent_listeners(
                fields,
                (host, port),
                mode,
                &whole,
                clerk,
            ));
        }
        other => {
            let text = format!("`{other}` is not a kind of listener of this version; left out");
            clerk.add_note(whole, text);
            return None;
        }
    };
    let udp = mode.has_udp() && protocol != "http";
    defaults.set_keys(&mut url, protocol != "tunnel" || mode.has_tcp(), udp);
    Some([Some(url), None])
}

/// Traffic that a firewall redirects here: TCP by `REDIRECT` or `TPROXY`, UDP always by the latter.
fn transparent_listeners(
    fields: &mut ObjectFields<'_>,
    (host, port): (Host, u16),
    mode: Transports,
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> [Option<UrlBuilder>; 2] {
    let mut redirect_method = |name: &str, known: &[&str]| {
        let text = fields.string_field(name, clerk)?;
        if !known.contains(&text) {
            let title = format!(
                "`{}`: `{text}` is not a known method",
                fields.field_path(name)
            );
            let help = format!("known: {}", known.join(", "));
            clerk.add_problem(Problem::without_place(title, help));
        }
        Some(text == "tproxy")
    };
    let tproxy = redirect_method("tcp_redir", &["redirect", "tproxy"]) == Some(true);
    redirect_method("udp_redir", &["tproxy"]);
    let url = |scheme| UrlBuilder::new(scheme, Some(host.clone()), port);
    let mut urls = match (mode.has_tcp() && !tproxy, mode) {
        (true, _) => [
            Some(url("redir")),
            mode.has_udp().then(|| {
                let mut udp = url("tproxy");
                udp.set_key("tcp", "false");
                udp
            }),
        ],
        (false, mode) => {
            let mut url = url("tproxy");
            for (key, off) in [("tcp", !mode.has_tcp()), ("udp", !mode.has_udp())] {
                if off {
                    url.set_key(key, "false");
                }
            }
            [Some(url), None]
        }
    };
    for url in urls.iter_mut().flatten() {
        proxy_users::keep_open_proxy(url, path, clerk);
    }
    urls
}

fn forward_target(
    fields: &mut ObjectFields<'_>,
    tunnel: Option<&str>,
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<Target> {
    let host = fields.string_field("forward_address", clerk);
    let port = fields.port_field("forward_port", clerk);
    let target = match (tunnel, host, port) {
        (Some(text), _, _) => text.parse::<Target>().ok(),
        (None, Some(host), Some(port)) => {
            Host::parse(host).ok().map(|host| Target::new(host, port))
        }
        _ => None,
    };
    let target = target.filter(|target| target.port != 0);
    if target.is_none() {
        let title = format!("`{path}`: where the tunnel leads is missing, or not an address");
        let help = "it needs `forward_address` and `forward_port` (or `tunnel_address`)";
        clerk.add_problem(Problem::without_place(title, help));
    }
    target
}
