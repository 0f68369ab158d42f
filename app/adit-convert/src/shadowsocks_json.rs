//! The JSON object of shadowsocks-libev, and what shadowsocks-rust and ShadowsocksR made of it.

use core::net::Ipv4Addr;

use adit_config::text::{Problem, SecretText};
use adit_wire::{Host, Role};

use crate::acl;
use crate::clerk::{Clerk, Format};
use crate::fields::Fields;
use crate::json::Json;
use crate::left_out::REASONS;
use crate::local::{self, Defaults};
use crate::server::{self, Mode, Plugin, Server};
use crate::shape::Shape;
use crate::ssr::{self, Ssr};
use crate::ways;

/// Fields that shadowsocks-libev does not have.
const RUST: &[&str] = &[
    "balancer",
    "dns",
    "dns_cache_size",
    "ipv6_only",
    "keep_alive",
    "locals",
    "online_config",
    "outbound_bind_addr",
    "outbound_bind_interface",
    "outbound_fwmark",
    "outbound_proxy",
    "plugin_args",
    "plugin_mode",
    "protocol",
    "security",
    "servers",
    "shadowsocks",
    "udp_max_associations",
    "udp_timeout",
    "users",
];

pub(super) fn read(tree: &Json, clerk: &mut Clerk<'_>) -> (Format, Shape) {
    let Some(mut top) = Fields::of(tree, String::new(), clerk) else {
        return (Format::Libev, Shape::default());
    };
    let format = if matches!(tree, Json::Object(entries) if ssr::is_it(entries)) {
        Format::Ssr
    } else if RUST.iter().any(|name| top.has(name)) {
        Format::Rust
    } else if top.has("prefix") {
        Format::Outline
    } else {
        Format::Libev
    };
    top.get("version");
    top.get("bytes_used");
    top.get("bytes_remaining");
    let servers = servers(&mut top, format, clerk);
    let role = role(&top, format, &servers, clerk);
    let servers = server::usable(servers, None, clerk);
    let timeout = server::seconds(&mut top, "timeout", clerk);
    let connects = format == Format::Rust && role == Role::Client;
    let defaults = Defaults {
        mode: Mode::of(&mut top, "mode", clerk).unwrap_or(match format {
            // It has no modes: UDP is always served.
            Format::Ssr => Mode::TcpAndUdp,
            _ => Mode::TcpOnly,
        }),
        // A client of shadowsocks-rust means the time to connect.
        idle: timeout.filter(|_| !connects),
        udp_idle: server::seconds(&mut top, "udp_timeout", clerk),
        prefer_v6: top.flag("ipv6_first", clerk) == Some(true),
        private: top.text("allow_private", clerk).map(str::to_owned),
        fast_open: top.flag("fast_open", clerk) == Some(true),
        ssr: format == Format::Ssr,
    };
    let proxies = ways::proxies(&mut top, clerk);
    let acl = top.text("acl", clerk);
    let acl = acl.and_then(|file| acl::read("acl", file, clerk));
    let routes = match role {
        Role::Server => {
            let rules = acl.map_or_else(Vec::new, |acl| acl.of_server("acl", clerk));
            ways::listeners(&servers, &defaults, &proxies, &rules, clerk)
        }
        Role::Client => {
            let mut listen = local::read(&mut top, &defaults, clerk);
            if top.has("shareOverLan") && top.flag("shareOverLan", clerk) == Some(true) {
                clerk.note("shareOverLan", "the local port is this machine's alone; write the address of `listen` to share it");
            }
            if listen.is_empty() && !top.has("locals") {
                let mut url = local::proxy();
                if !defaults.mode.udp() && top.has("mode") {
                    url.set("udp", "false");
                }
                match top.port("localPort", clerk) {
                    // The window program's own name for it.
                    Some(port) => url.port = port,
                    None => clerk.note("", "no local port is written: 127.0.0.1:1080 is taken"),
                }
                listen.push(url);
            }
            let dial = timeout.filter(|_| connects);
            let via = ways::way(&servers, dial, defaults.fast_open, proxies, clerk);
            ways::client(listen, via, acl)
        }
    };
    top.finish(REASONS, clerk);
    (format, Shape { routes })
}

/// Which end it is for. `local_port` alone says little: the example of a server that
/// distributions ship has one. The window programs (`configs`, `localPort`) are clients.
fn role(top: &Fields<'_>, format: Format, servers: &[Server], clerk: &mut Clerk<'_>) -> Role {
    if let Some(role) = clerk.wish.role {
        return role;
    }
    let any = |test: fn(&Host) -> bool| {
        let mut hosts = servers.iter().flat_map(|server| &server.addresses);
        hosts.any(|(host, _)| test(host))
    };
    let local = [
        "locals",
        "local_port",
        "localPort",
        "local_address",
        "tunnel_address",
        "configs",
    ];
    let (role, why) = if any(|host| matches!(host, Host::Ip(ip) if ip.is_unspecified())) {
        (Role::Server, "its server is on all addresses".to_owned())
    } else if top.has("port_password") || servers.iter().any(|s| !s.users.is_empty()) {
        (Role::Server, "it has several users".to_owned())
    } else if let Some(name) = local.iter().find(|name| top.has(name)) {
        (Role::Client, format!("it has `{name}`"))
    } else if format == Format::Outline {
        (Role::Client, "it is an access key".to_owned())
    } else if any(|host| matches!(host, Host::Name(_)) && !adit_config::text::is_this_machine(host))
    {
        (
            Role::Client,
            "its server has a name and it has no local port".to_owned(),
        )
    } else {
        (Role::Server, "it has no local port".to_owned())
    };
    let other = role.peer();
    clerk.note(
        "",
        format!("read as the configuration of a {role}, since {why}; `--role {other}` reads it as the other"),
    );
    role
}

/// The servers of the top level and of `servers`.
fn servers(top: &mut Fields<'_>, format: Format, clerk: &mut Clerk<'_>) -> Vec<Server> {
    let mut servers = Vec::new();
    // Each address becomes a URL.
    let mut addresses = 0;
    if let Some(mut ports) = top.object("port_password", clerk) {
        // One user to a port; the port of the top level is the default that nobody uses.
        top.get("server_port");
        for (port, password) in ports.all() {
            let own = (format == Format::Ssr).then(|| ssr::of_port(password));
            let own = own.flatten();
            let password = own
                .as_ref()
                .map_or_else(|| password.text(), |own| own.password);
            let path = ports.path(port);
            let Some(given) = port_password(port, password, &path, clerk) else {
                continue;
            };
            if !server::room(addresses, clerk) {
                return servers;
            }
            if let Some(mut server) = one(top, path, Some(given), format, clerk) {
                if let Some(own) = &own {
                    own.change(&mut server.method, server.ssr.as_mut());
                }
                addresses += server.addresses.len();
                servers.push(server);
            }
        }
    } else if top.has("server") || top.has("server_port") {
        servers.extend(one(top, "server".to_owned(), None, format, clerk));
    }
    for list in ["servers", "shadowsocks", "configs"] {
        for mut fields in server::objects(top, list, clerk) {
            if !server::room(addresses, clerk) {
                return servers;
            }
            let path = fields.whole().to_owned();
            let off = fields.flag("enable", clerk) == Some(false);
            if fields.flag("disabled", clerk) == Some(true) || off {
                clerk.note(path, "disabled, left out");
                continue;
            }
            let mode = Mode::of(&mut fields, "mode", clerk);
            let timeout = server::seconds(&mut fields, "timeout", clerk);
            if let Some(server) = one(&mut fields, path, None, format, clerk) {
                addresses += server.addresses.len();
                servers.push(Server {
                    mode,
                    timeout,
                    ..server
                });
            }
            fields.finish(REASONS, clerk);
        }
    }
    if servers.is_empty() && clerk.problems.is_empty() && !top.has("servers") {
        clerk.problem(Problem::without_place(
            format!("no server in this {format} configuration"),
            "it needs `server`, `server_port`, `method` and `password`",
        ));
    }
    servers
}

/// A port of `port_password` at `path`, and its password.
pub(super) fn port_password<'j>(
    port: &str,
    password: Option<&'j str>,
    path: &str,
    clerk: &mut Clerk<'_>,
) -> Option<(u16, &'j str)> {
    let number = port.parse::<u16>().ok().filter(|port| *port > 0);
    let found = number.zip(password);
    if found.is_none() {
        let title = format!("`{path}` is not a port with its password");
        let help = "write `\"8388\": \"password\"`";
        clerk.problem(Problem::without_place(title, help));
    }
    found
}

/// One server. `given` are the port and password of `port_password`.
fn one(
    fields: &mut Fields<'_>,
    path: String,
    given: Option<(u16, &str)>,
    format: Format,
    clerk: &mut Clerk<'_>,
) -> Option<Server> {
    let written = match fields.any(&["server_port", "port"]) {
        Some((name, _)) if given.is_none() => Some(match clerk.wish.role {
            Some(Role::Server) => fields.own_port(name, clerk)?,
            Some(Role::Client) | None => fields.port(name, clerk)?,
        }),
        _ => None,
    };
    let name = if fields.has("server") {
        "server"
    } else {
        "address"
    };
    let mut hosts = fields.texts(name, clerk);
    let v6 = fields.get("server_ipv6").and_then(Json::text);
    // The other family of a server; clients have the field too, from the same example.
    let serves =
        hosts.is_empty() || hosts.contains(&"0.0.0.0") || clerk.wish.role == Some(Role::Server);
    hosts.extend(v6.filter(|v6| serves && !v6.is_empty()));
    let mut addresses = Vec::new();
    for text in hosts {
        let (host, own) = server::host(text, &fields.path(name), clerk)?;
        let port = given.map(|(port, _)| port).or(own).or(written);
        let Some(port) = port else {
            let title = format!("`{}` is missing", fields.path("server_port"));
            clerk.problem(Problem::without_place(title, "add the port of the server"));
            return None;
        };
        if !server::room(addresses.len(), clerk) {
            return None;
        }
        addresses.push((host, port));
    }
    if addresses.is_empty() {
        // A server without an address listens on all of IPv4.
        let port = given.map(|(port, _)| port).or(written);
        let Some(port) = port.filter(|_| clerk.wish.role != Some(Role::Client)) else {
            let title = format!("`{}` is missing", fields.path("server"));
            clerk.problem(Problem::without_place(
                title,
                "add the address of the server",
            ));
            return None;
        };
        addresses.push((Host::Ip(Ipv4Addr::UNSPECIFIED.into()), port));
    }
    let Some(method) = fields.text("method", clerk) else {
        let title = format!("`{}` is missing", fields.path("method"));
        let help = "programs differ in their default: write the method that the server uses";
        clerk.problem(Problem::without_place(title, help));
        return None;
    };
    let password = fields.text("password", clerk);
    let raw_key = fields.get("key").is_some_and(|key| !key.is_empty());
    let password = match given.map(|(_, password)| password).or(password) {
        None if raw_key => {
            clerk.problem(Problem::without_place(
                format!(
                    "`{}` holds a raw key, which adit does not read",
                    fields.path("key")
                ),
                "set a `password` on both ends instead",
            ));
            return None;
        }
        password => password.unwrap_or_default(),
    };
    let label = fields.any(&["remarks", "name"]);
    fields.get("id");
    Some(Server {
        path,
        name: label.and_then(|(_, label)| label.text()).map(str::to_owned),
        addresses,
        method: method.to_owned(),
        secret: server::secret(password),
        plugin: Plugin::of(fields, clerk),
        ssr: (format == Format::Ssr).then(|| Ssr::of(fields, clerk)),
        mode: None,
        timeout: None,
        users: match given {
            // A user to a port: there are no others.
            Some(_) => Vec::new(),
            None => users(fields, clerk),
        },
    })
}

/// `users` of a server, each with a key.
fn users(fields: &mut Fields<'_>, clerk: &mut Clerk<'_>) -> Vec<(String, SecretText)> {
    let mut users = Vec::new();
    for (i, mut user) in server::objects(fields, "users", clerk)
        .into_iter()
        .enumerate()
    {
        let name = user.text("name", clerk);
        match user.text("password", clerk) {
            Some(key) => {
                let name = name.map_or_else(|| format!("user{}", i + 1), str::to_owned);
                users.push((name, server::secret(key)));
            }
            None => {
                let title = format!("`{}` has no key", user.path("password"));
                let help = "`adit keygen METHOD` makes one";
                clerk.problem(Problem::without_place(title, help));
            }
        }
        user.finish(&[], clerk);
    }
    users
}
