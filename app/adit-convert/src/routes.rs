//! Servers as hops and as listeners: the routes of all formats but one.

use adit_config::Endpoint;
use adit_config::text::Problem;
use adit_wire::{Host, Role};

use crate::acl_rules::Acl;
use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::local_listeners::{self, FileDefaults};
use crate::outbounds::list_names;
use crate::server_entry::{self, ServerEntry, Transports, format_seconds};
use crate::toml_output::{Route, RouteSet, Rule, Stage, UrlBuilder};

/// Proxies before a server at most: each costs a round trip.
const MAX_PROXIES: usize = 16;

/// `outbound_proxy`: hops before all others, one to a stage.
pub(super) fn read_outbound_proxies(
    top: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<Stage> {
    let path = top.field_path("outbound_proxy");
    let mut stages = Vec::new();
    let texts = top.strings_field("outbound_proxy", clerk);
    if texts.len() > MAX_PROXIES {
        let title = format!("`{path}` has more than {MAX_PROXIES} hops");
        clerk.add_problem(Problem::without_place(title, "name fewer"));
        return stages;
    }
    for text in texts {
        // To go without this hop is not what was asked for, so one that cannot be read stays, and
        // the plan is refused.
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
        let known =
            Endpoint::parse(text).is_ok() && adit_config::Scheme::find_by_name(scheme).is_ok();
        if !known {
            clerk.add_note(
                path.clone(),
                format!("`{scheme}` is not a hop of this version: the result will be refused"),
            );
        }
        stages.push(vec![zeroize::Zeroizing::new(text.to_owned())]);
    }
    stages
}

/// The way of a client: proxies, then the servers as one stage.
pub(super) fn client_chain(
    servers: &[ServerEntry],
    dial: Option<u64>,
    fast_open: bool,
    proxies: Vec<Stage>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<Stage> {
    let mut hops = Stage::new();
    for server in servers {
        for mut url in server.urls() {
            if server.mode == Some(Transports::TcpOnly) {
                url.set_key("udp", "false");
            }
            // Behind a plugin the connection goes to that, on this machine.
            if fast_open && server.plugin.is_none() && server.mode != Some(Transports::UdpOnly) {
                url.set_key("fast_open", "true");
            }
            if let Some(dial) = server.timeout.or(dial) {
                url.set_key("dial", format_seconds(dial));
            }
            hops.push(url.to_text());
        }
        if server.mode == Some(Transports::UdpOnly) {
            let path = format!("{}.mode", server.path);
            clerk.add_note(
                path,
                "a server for UDP alone is not known: TCP takes it too",
            );
        }
        if !server.users.is_empty() {
            let path = format!("{}.users", server.path);
            clerk.add_note(path, "belongs to a server; left out");
        }
    }
    if hops.len() > 1 {
        let text = "several servers are a group: the first that works is taken, in this order";
        clerk.add_note("servers", text);
    }
    let mut via = proxies;
    if !hops.is_empty() {
        via.push(hops);
    }
    via
}

/// The route of a client, whose requests take `via` where the ACL does not say otherwise.
pub(super) fn client_routes(
    listen: Vec<UrlBuilder>,
    via: Vec<Stage>,
    acl: Option<Acl>,
) -> Vec<Route> {
    if listen.is_empty() || via.is_empty() {
        return Vec::new();
    }
    let (rules, via) = match acl {
        Some(acl) => acl.client_rules(&via),
        None => (Vec::new(), via),
    };
    vec![Route {
        name: "main".to_owned(),
        listen,
        via,
        rules,
        users: Vec::new(),
    }]
}

/// The routes of a server: one, or one for each server with users.
pub(super) fn server_routes(
    servers: &[ServerEntry],
    defaults: &FileDefaults,
    proxies: &[Stage],
    rules: &[Rule],
    clerk: &mut ConversionContext<'_>,
) -> Vec<Route> {
    let route = |name: String| Route {
        name,
        listen: Vec::new(),
        via: proxies.to_vec(),
        rules: rules.to_vec(),
        users: Vec::new(),
    };
    let mut shared = route("server".to_owned());
    let mut own = Vec::new();
    for (i, server) in servers.iter().enumerate() {
        let mode = server.mode.unwrap_or(defaults.mode);
        let urls = listener_urls(server).map(|mut url| {
            if !mode.has_tcp() {
                url.set_key("tcp", "false");
            }
            if !mode.has_udp() {
                url.set_key("udp", "false");
            }
            if let Some(idle) = server.timeout {
                url.set_key("idle", format_seconds(idle));
            }
            if defaults.fast_open && server.plugin.is_none() && mode.has_tcp() {
                url.set_key("fast_open", "true");
            }
            if let Some(private) = &defaults.private {
                url.set_key("allow_private", private.as_str());
            }
            defaults.set_keys(&mut url, mode.has_tcp(), mode.has_udp());
            if let Some(ssr) = server.ssr.as_ref().filter(|ssr| !ssr.redirect.is_empty()) {
                url.set_key("redirect", ssr.redirect.join(","));
            }
            url
        });
        if server.users.is_empty() {
            shared.listen.extend(urls);
            continue;
        }
        let name = server.name.clone();
        let mut route = route(name.unwrap_or_else(|| format!("server{}", i + 1)));
        route.listen.extend(urls);
        route.users = server
            .users
            .iter()
            .map(|(name, key)| (name.clone(), server_entry::copy_secret(key)))
            .collect();
        own.push(route);
    }
    let mut routes = Vec::new();
    if !shared.listen.is_empty() {
        routes.push(shared);
    }
    routes.extend(own);
    if !routes.is_empty() && defaults.private.is_none() {
        clerk.add_note(
            "",
            "private addresses behind the server are refused unless `allow_private` names them",
        );
    }
    routes
}

/// The listeners of a server. All addresses of both families are one listener.
fn listener_urls(server: &ServerEntry) -> impl Iterator<Item = UrlBuilder> {
    let any = |v6: bool| {
        let mut hosts = server.addresses.iter();
        hosts.any(
            |(host, _)| matches!(host, Host::Ip(ip) if ip.is_unspecified() && ip.is_ipv6() == v6),
        )
    };
    let both = any(true) && any(false);
    let mut seen = false;
    server.urls().filter_map(move |mut url| {
        let unspecified = matches!(&url.host, Some(Host::Ip(ip)) if ip.is_unspecified());
        if both && unspecified {
            if core::mem::replace(&mut seen, true) {
                return None;
            }
            url.host = None;
        }
        Some(url.with_name(None))
    })
}

/// A client with one proxy for everything, and these servers as a group.
pub(super) fn client_of_servers(
    servers: Vec<ServerEntry>,
    what: &str,
    clerk: &mut ConversionContext<'_>,
) -> RouteSet {
    if clerk.options.role == Some(Role::Server) {
        let title = format!("{what} is for clients");
        let help = "leave `--role server` away";
        clerk.add_problem(Problem::without_place(title, help));
    }
    let plugins = clerk.options.plugins.clone();
    let mut servers = server_entry::usable_servers(servers, Some(&plugins), clerk);
    if let Some(name) = clerk.options.select.clone() {
        let is_selected = |server: &ServerEntry| server.name.as_deref() == Some(&*name);
        if servers.iter().any(is_selected) {
            servers.retain(is_selected);
        } else if clerk.problems.is_empty() {
            let names = servers.iter().filter_map(|server| server.name.as_deref());
            let help = format!("servers: {}", list_names(names));
            let title = format!("no server is called `{name}`");
            clerk.add_problem(Problem::without_place(title, help));
        }
    }
    let via = client_chain(&servers, None, false, Vec::new(), clerk);
    RouteSet {
        routes: client_routes(vec![local_listeners::default_proxy()], via, None),
        ..RouteSet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    #[test]
    fn both_families_are_one_listener() {
        let server = |hosts: &[&str]| ServerEntry {
            addresses: hosts
                .iter()
                .map(|host| (Host::parse(host).unwrap(), 8388))
                .collect(),
            ..ServerEntry::from_untrusted(
                server_entry::item_path("servers", 0),
                None,
                (Host::Ip(Ipv4Addr::LOCALHOST.into()), 1),
                "none".into(),
                "",
                None,
            )
        };
        let texts = |hosts: &[&str]| -> Vec<String> {
            listener_urls(&server(hosts))
                .map(|url| url.to_text().to_string())
                .collect()
        };
        assert_eq!(texts(&["::", "0.0.0.0"]), ["ss://none:@:8388"]);
        assert_eq!(texts(&["::"]), ["ss://none:@[::]:8388"]);
        assert_eq!(texts(&["::1", "127.0.0.1"]).len(), 2);
    }
}
