//! The local ends of a client: what `local_port` and `locals` ask for.

use adit_config::text::Problem;
use adit_wire::{Host, Target};

use crate::auth;
use crate::clerk::Clerk;
use crate::fields::{Fields, Reasons};
use crate::server::{self, Mode, duration};
use crate::shape::Url;

/// What the whole file says and each local end inherits.
pub(super) struct Defaults {
    pub(super) mode: Mode,
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

const REASONS: Reasons = &[(
    &[
        "local_dns_address",
        "local_dns_port",
        "remote_dns_address",
        "remote_dns_port",
        "client_cache_size",
    ],
    "belongs to a kind of listener that this version does not have",
)];

impl Defaults {
    /// The keys that every listener takes from the file.
    pub(super) fn set(&self, url: &mut Url, tcp: bool, udp: bool) {
        if let Some(idle) = self.idle.filter(|_| tcp) {
            url.set("idle", duration(idle));
        }
        if let Some(idle) = self.udp_idle.filter(|_| udp) {
            url.set("udp_idle", duration(idle));
        }
        if self.prefer_v6 {
            url.set("prefer", "v6");
        }
    }
}

/// Where a client listens that does not say so.
pub(super) fn proxy() -> Url {
    let host = Host::Ip(core::net::Ipv4Addr::LOCALHOST.into());
    Url::new("mixed", Some(host), 1080)
}

/// All local ends of a file.
pub(super) fn read(top: &mut Fields<'_>, defaults: &Defaults, clerk: &mut Clerk<'_>) -> Vec<Url> {
    let mut urls = Vec::new();
    let names = ["local_port", "local_address", "tunnel_address", "protocol"];
    let at_top = names.iter().any(|name| top.has(name));
    if at_top && (top.has("local_port") || !top.has("locals")) {
        urls.extend(one(top, defaults, clerk).into_iter().flatten().flatten());
    }
    for mut fields in server::objects(top, "locals", clerk) {
        if fields.flag("disabled", clerk) == Some(true) {
            let path = fields.whole().to_owned();
            clerk.note(path, "disabled, left out");
            continue;
        }
        let found = one(&mut fields, defaults, clerk);
        urls.extend(found.into_iter().flatten().flatten());
        if fields.has("acl") {
            let title = format!(
                "`{}`: an ACL for one local end is not known",
                fields.path("acl")
            );
            clerk.problem(Problem::without_place(
                title,
                "`acl` at the top of the file is for all of them; run several files for several ACLs",
            ));
            fields.get("acl");
        }
        fields.finish(REASONS, clerk);
    }
    urls
}

/// The listeners of one local end: one, or for a transparent one another for UDP.
fn one(
    fields: &mut Fields<'_>,
    defaults: &Defaults,
    clerk: &mut Clerk<'_>,
) -> Option<[Option<Url>; 2]> {
    let address = fields.text("local_address", clerk);
    let (host, port) = match address {
        Some(text) => {
            let path = fields.path("local_address");
            let (host, port) = server::host(text, &path, clerk)?;
            (host, port)
        }
        None => (Host::Ip(core::net::Ipv4Addr::LOCALHOST.into()), None),
    };
    let written = fields.own_port("local_port", clerk);
    let port = written.or(port).unwrap_or(1080);
    let tunnel = fields.text("tunnel_address", clerk);
    let protocol = match defaults.ssr {
        true => None,
        false => fields.text("protocol", clerk),
    };
    let protocol = match protocol {
        Some(protocol) => protocol,
        None if tunnel.is_some() => "tunnel",
        None => "socks",
    };
    let mode = Mode::of(fields, "mode", clerk).unwrap_or(defaults.mode);
    for (name, same) in [("local_udp_address", false), ("local_udp_port", true)] {
        let other = fields.get(name);
        let equal = match other {
            Some(value) if same => value.whole() == Some(u64::from(port)),
            Some(value) => value.text() == address,
            None => true,
        };
        if !equal {
            clerk.note(
                fields.path(name),
                "UDP takes the same address and port as TCP",
            );
        }
    }
    let whole = match fields.whole() {
        "" => "local_port".to_owned(),
        whole => whole.to_owned(),
    };
    let mut url = match protocol {
        "socks" | "socks5" | "socks4" => {
            // One port for all languages: a client finds what it found before.
            let url = Url::new("mixed", Some(host), port);
            let mut url =
                auth::from_file(url, fields, "socks5_auth_config_path", "password", clerk);
            if !mode.udp() {
                url.set("udp", "false");
            }
            if !mode.tcp() {
                let path = fields.path("mode");
                clerk.note(
                    path,
                    "a SOCKS port without TCP is not known: TCP is offered too",
                );
            }
            auth::open(&mut url, &whole, clerk);
            url
        }
        "http" => {
            let url = Url::new("http", Some(host), port);
            let mut url = auth::from_file(url, fields, "http_auth_config_path", "basic", clerk);
            auth::open(&mut url, &whole, clerk);
            url
        }
        "tunnel" => {
            let target = forward_target(fields, tunnel, &whole, clerk)?;
            let scheme = match mode {
                Mode::TcpOnly => "tcp",
                Mode::UdpOnly => "udp",
                Mode::TcpAndUdp => "tcp+udp",
            };
            Url::new(scheme, Some(host), port).target(target)
        }
        "redir" => return Some(transparent(fields, (host, port), mode, &whole, clerk)),
        other => {
            let text = format!("`{other}` is not a kind of listener of this version; left out");
            clerk.note(whole, text);
            return None;
        }
    };
    let udp = mode.udp() && protocol != "http";
    defaults.set(&mut url, protocol != "tunnel" || mode.tcp(), udp);
    Some([Some(url), None])
}

/// What a firewall turns here: TCP by `REDIRECT` or `TPROXY`, UDP always by the latter.
fn transparent(
    fields: &mut Fields<'_>,
    (host, port): (Host, u16),
    mode: Mode,
    path: &str,
    clerk: &mut Clerk<'_>,
) -> [Option<Url>; 2] {
    let mut way = |name: &str, ways: &[&str]| {
        let text = fields.text(name, clerk)?;
        if !ways.contains(&text) {
            let title = format!(
                "`{}`: `{text}` is not a way that is known",
                fields.path(name)
            );
            let help = format!("known: {}", ways.join(", "));
            clerk.problem(Problem::without_place(title, help));
        }
        Some(text == "tproxy")
    };
    let tproxy = way("tcp_redir", &["redirect", "tproxy"]) == Some(true);
    way("udp_redir", &["tproxy"]);
    let url = |scheme| Url::new(scheme, Some(host.clone()), port);
    let mut urls = match (mode.tcp() && !tproxy, mode) {
        (true, _) => [
            Some(url("redir")),
            mode.udp().then(|| {
                let mut udp = url("tproxy");
                udp.set("tcp", "false");
                udp
            }),
        ],
        (false, mode) => {
            let mut url = url("tproxy");
            for (key, off) in [("tcp", !mode.tcp()), ("udp", !mode.udp())] {
                if off {
                    url.set(key, "false");
                }
            }
            [Some(url), None]
        }
    };
    for url in urls.iter_mut().flatten() {
        auth::open(url, path, clerk);
    }
    urls
}

fn forward_target(
    fields: &mut Fields<'_>,
    tunnel: Option<&str>,
    path: &str,
    clerk: &mut Clerk<'_>,
) -> Option<Target> {
    let host = fields.text("forward_address", clerk);
    let port = fields.port("forward_port", clerk);
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
        clerk.problem(Problem::without_place(title, help));
    }
    target
}
