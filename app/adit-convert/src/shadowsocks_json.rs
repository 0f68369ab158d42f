//! The JSON object of shadowsocks-libev, and what shadowsocks-rust and ShadowsocksR made of it.

use core::net::Ipv4Addr;

use adit_config::text::{Problem, SecretText};
use adit_wire::{Host, Role};

use crate::acl_rules;
use crate::conversion_context::{ConversionContext, Format};
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::local_listeners::{self, FileDefaults};
use crate::omitted_fields::OMITTED_FIELDS;
use crate::routes;
use crate::server_entry::{self, PluginEntry, ServerEntry, Transports};
use crate::ssr::{self, SsrSettings};
use crate::toml_output::RouteSet;

/// Fields that shadowsocks-libev does not have.
const RUST_FIELDS: &[&str] = &[
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

pub(super) fn convert_document(
    tree: &Json,
    clerk: &mut ConversionContext<'_>,
) -> (Format, RouteSet) {
    let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) else {
        return (Format::Libev, RouteSet::default());
    };
    let format = if matches!(tree, Json::Object(entries) if ssr::is_ssr(entries)) {
        Format::Ssr
    } else if RUST_FIELDS.iter().any(|name| top.has_field(name)) {
        Format::Rust
    } else if top.has_field("prefix") {
        Format::Outline
    } else {
        Format::Libev
    };
    top.get("version");
    top.get("bytes_used");
    top.get("bytes_remaining");
    let servers = read_servers(&mut top, format, clerk);
    let role = detect_role(&top, format, &servers, clerk);
    let servers = server_entry::usable_servers(servers, None, clerk);
    let timeout = server_entry::read_seconds(&mut top, "timeout", clerk);
    let connects = format == Format::Rust && role == Role::Client;
    let defaults = FileDefaults {
        mode: Transports::read_field(&mut top, "mode", clerk).unwrap_or(match format {
            // It has no modes: UDP is always served.
            Format::Ssr => Transports::TcpAndUdp,
            _ => Transports::TcpOnly,
        }),
        // A client of shadowsocks-rust means the time to connect.
        idle: timeout.filter(|_| !connects),
        udp_idle: server_entry::read_seconds(&mut top, "udp_timeout", clerk),
        prefer_v6: top.bool_field("ipv6_first", clerk) == Some(true),
        private: top.string_field("allow_private", clerk).map(str::to_owned),
        fast_open: top.bool_field("fast_open", clerk) == Some(true),
        ssr: format == Format::Ssr,
    };
    let proxies = routes::read_outbound_proxies(&mut top, clerk);
    let acl = top.string_field("acl", clerk);
    let acl = acl.and_then(|file| acl_rules::read_acl("acl", file, clerk));
    let routes = match role {
        Role::Server => {
            let rules = acl.map_or_else(Vec::new, |acl| acl.server_rules("acl", clerk));
            routes::server_routes(&servers, &defaults, &proxies, &rules, clerk)
        }
        Role::Client => {
            let mut listen = local_listeners::read_locals(&mut top, &defaults, clerk);
            if top.has_field("shareOverLan") && top.bool_field("shareOverLan", clerk) == Some(true)
            {
                clerk.add_note("shareOverLan", "the local port is this machine's alone; write the address of `listen` to share it");
            }
            if listen.is_empty() && !top.has_field("locals") {
                let mut url = local_listeners::default_proxy();
                if !defaults.mode.has_udp() && top.has_field("mode") {
                    url.set_key("udp", "false");
                }
                match top.port_field("localPort", clerk) {
                    // The window program's own name for it.
                    Some(port) => url.port = port,
                    None => clerk.add_note("", "no local port is written: 127.0.0.1:1080 is taken"),
                }
                listen.push(url);
            }
            let dial = timeout.filter(|_| connects);
            let via = routes::client_chain(&servers, dial, defaults.fast_open, proxies, clerk);
            routes::client_routes(listen, via, acl)
        }
    };
    top.note_unread(OMITTED_FIELDS, clerk);
    (
        format,
        RouteSet {
            routes,
            ..RouteSet::default()
        },
    )
}

/// Which end it is for. `local_port` alone says little: the example of a server that
/// distributions ship has one. The window programs (`configs`, `localPort`) are clients.
fn detect_role(
    top: &ObjectFields<'_>,
    format: Format,
    servers: &[ServerEntry],
    clerk: &mut ConversionContext<'_>,
) -> Role {
    if let Some(role) = clerk.options.role {
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
    } else if top.has_field("port_password") || servers.iter().any(|s| !s.users.is_empty()) {
        (Role::Server, "it has several users".to_owned())
    } else if let Some(name) = local.iter().find(|name| top.has_field(name)) {
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
    clerk.add_note(
        "",
        format!("read as the configuration of a {role}, since {why}; `--role {other}` reads it as the other"),
    );
    role
}

/// The servers of the top level and of `servers`.
fn read_servers(
    top: &mut ObjectFields<'_>,
    format: Format,
    clerk: &mut ConversionContext<'_>,
) -> Vec<ServerEntry> {
    let mut servers = Vec::new();
    // Each address becomes a URL.
    let mut addresses = 0;
    if let Some(mut ports) = top.object_field("port_password", clerk) {
        // One user to a port; the port of the top level is the default that no one uses.
        top.get("server_port");
        for (port, password) in ports.take_all() {
            let own = (format == Format::Ssr).then(|| ssr::read_port(password));
            let own = own.flatten();
            let password = own
                .as_ref()
                .map_or_else(|| password.as_str(), |own| own.password);
            let path = ports.field_path(port);
            let Some(given) = read_port_password(port, password, &path, clerk) else {
                continue;
            };
            if !server_entry::allows_another(addresses, clerk) {
                return servers;
            }
            if let Some(mut server) = read_server(top, path, Some(given), format, clerk) {
                if let Some(own) = &own {
                    own.apply_to(&mut server.method, server.ssr.as_mut());
                }
                addresses += server.addresses.len();
                servers.push(server);
            }
        }
    } else if top.has_field("server") || top.has_field("server_port") {
        servers.extend(read_server(top, "server".to_owned(), None, format, clerk));
    }
    for list in ["servers", "shadowsocks", "configs"] {
        for mut fields in server_entry::read_objects(top, list, clerk) {
            if !server_entry::allows_another(addresses, clerk) {
                return servers;
            }
            let path = fields.object_path().to_owned();
            let off = fields.bool_field("enable", clerk) == Some(false);
            if fields.bool_field("disabled", clerk) == Some(true) || off {
                clerk.add_note(path, "disabled, left out");
                continue;
            }
            let mode = Transports::read_field(&mut fields, "mode", clerk);
            let timeout = server_entry::read_seconds(&mut fields, "timeout", clerk);
            if let Some(server) = read_server(&mut fields, path, None, format, clerk) {
                addresses += server.addresses.len();
                servers.push(ServerEntry {
                    mode,
                    timeout,
                    ..server
                });
            }
            fields.note_unread(OMITTED_FIELDS, clerk);
        }
    }
    if servers.is_empty() && clerk.problems.is_empty() && !top.has_field("servers") {
        clerk.add_problem(Problem::without_place(
            format!("no server in this {format} configuration"),
            "it needs `server`, `server_port`, `method` and `password`",
        ));
    }
    servers
}

/// A port of `port_password` at `path`, and its password.
pub(super) fn read_port_password<'j>(
    port: &str,
    password: Option<&'j str>,
    path: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<(u16, &'j str)> {
    let number = port.parse::<u16>().ok().filter(|port| *port > 0);
    let found = number.zip(password);
    if found.is_none() {
        let title = format!("`{path}` is not a port with its password");
        let help = "write `\"8388\": \"password\"`";
        clerk.add_problem(Problem::without_place(title, help));
    }
    found
}

/// One server. `given` are the port and password of `port_password`.
fn read_server(
    fields: &mut ObjectFields<'_>,
    path: String,
    given: Option<(u16, &str)>,
    format: Format,
    clerk: &mut ConversionContext<'_>,
) -> Option<ServerEntry> {
    let written = match fields.first_of(&["server_port", "port"]) {
        Some((name, _)) if given.is_none() => Some(match clerk.options.role {
            Some(Role::Server) => fields.listen_port_field(name, clerk)?,
            Some(Role::Client) | None => fields.port_field(name, clerk)?,
        }),
        _ => None,
    };
    let name = if fields.has_field("server") {
        "server"
    } else {
        "address"
    };
    let mut hosts = fields.strings_field(name, clerk);
    let v6 = fields.get("server_ipv6").and_then(Json::as_str);
    // The other family of a server; clients have the field too, from the same example.
    let serves =
        hosts.is_empty() || hosts.contains(&"0.0.0.0") || clerk.options.role == Some(Role::Server);
    hosts.extend(v6.filter(|v6| serves && !v6.is_empty()));
    let mut addresses = Vec::new();
    for text in hosts {
        let (host, own) = server_entry::parse_host(text, &fields.field_path(name), clerk)?;
        let port = given.map(|(port, _)| port).or(own).or(written);
        let Some(port) = port else {
            let title = format!("`{}` is missing", fields.field_path("server_port"));
            clerk.add_problem(Problem::without_place(title, "add the port of the server"));
            return None;
        };
        if !server_entry::allows_another(addresses.len(), clerk) {
            return None;
        }
        addresses.push((host, port));
    }
    if addresses.is_empty() {
        // A server without an address listens on all of IPv4.
        let port = given.map(|(port, _)| port).or(written);
        let Some(port) = port.filter(|_| clerk.options.role != Some(Role::Client)) else {
            let title = format!("`{}` is missing", fields.field_path("server"));
            clerk.add_problem(Problem::without_place(
                title,
                "add the address of the server",
            ));
            return None;
        };
        addresses.push((Host::Ip(Ipv4Addr::UNSPECIFIED.into()), port));
    }
    let Some(method) = fields.string_field("method", clerk) else {
        let title = format!("`{}` is missing", fields.field_path("method"));
        let help = "programs differ in their default: write the method that the server uses";
        clerk.add_problem(Problem::without_place(title, help));
        return None;
    };
    let password = fields.string_field("password", clerk);
    let raw_key = fields.get("key").is_some_and(|key| !key.is_empty());
    let password = match given.map(|(_, password)| password).or(password) {
        None if raw_key => {
            clerk.add_problem(Problem::without_place(
                format!(
                    "`{}` holds a raw key, which adit does not read",
                    fields.field_path("key")
                ),
                "set a `password` on both ends instead",
            ));
            return None;
        }
        password => password.unwrap_or_default(),
    };
    let label = fields.first_of(&["remarks", "name"]);
    fields.get("id");
    Some(ServerEntry {
        path,
        name: label
            .and_then(|(_, label)| label.as_str())
            .map(str::to_owned),
        addresses,
        method: method.to_owned(),
        secret: server_entry::parse_secret(password),
        plugin: PluginEntry::read_fields(fields, clerk),
        ssr: (format == Format::Ssr).then(|| SsrSettings::read_fields(fields, clerk)),
        mode: None,
        timeout: None,
        users: match given {
            // A user to a port: there are no others.
            Some(_) => Vec::new(),
            None => read_users(fields, clerk),
        },
    })
}

/// `users` of a server, each with a key.
fn read_users(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<(String, SecretText)> {
    let mut users = Vec::new();
    for (i, mut user) in server_entry::read_objects(fields, "users", clerk)
        .into_iter()
        .enumerate()
    {
        let name = user.string_field("name", clerk);
        match user.string_field("password", clerk) {
            Some(key) => {
                let name = name.map_or_else(|| format!("user{}", i + 1), str::to_owned);
                users.push((name, server_entry::parse_secret(key)));
            }
            None => {
                let title = format!("`{}` has no key", user.field_path("password"));
                let help = "`adit keygen METHOD` makes one";
                clerk.add_problem(Problem::without_place(title, help));
            }
        }
        user.note_unread(&[], clerk);
    }
    users
}
