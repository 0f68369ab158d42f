//! The JSON of shadowsocks-go: servers are listeners, clients are hops, a router joins them.

mod client;
mod listen_addresses;
mod router;

use adit_config::text::{Problem, Secret, SecretText};
use adit_wire::Target;

use crate::conversion_context::ConversionContext;
use crate::fields::{ObjectFields, OmitReasons};
use crate::json::{self, Json};
use crate::proxy_users;
use crate::server_entry::{self, read_objects};
use crate::toml_output::{Route, RouteSet, UrlBuilder};
use router::{Router, ServerChain};

/// Conditions and users of all routes at most.
const MAX_SIZE: usize = 1_000_000;
const CHOSEN_BY_ADIT: &str = "adit sets this itself";

const OMITTED_TOP_FIELDS: OmitReasons = &[
    (
        &["dns"],
        "names are looked up by the system's resolver; left out",
    ),
    (&["api", "stats", "certs"], "has no equivalent; left out"),
    (
        &[
            "udpBatchMode",
            "udpRelayBatchSize",
            "udpServerRecvBatchSize",
            "udpSendChannelCapacity",
            "udpPreferIPv6",
        ],
        CHOSEN_BY_ADIT,
    ),
];

const OMITTED_SERVER_FIELDS: OmitReasons = &[
    (
        &[
            "listenerFwmark",
            "listenerTrafficClass",
            "listenerTFO",
            "disableInitialPayloadWait",
            "udpBatchMode",
            "udpRelayBatchSize",
            "udpServerRecvBatchSize",
            "udpSendChannelCapacity",
            "allowSegmentedFixedLengthHeader",
            "paddingPolicy",
            "slidingWindowFilterSize",
            "tunnelUDPTargetOnly",
        ],
        CHOSEN_BY_ADIT,
    ),
    (
        &["unsafeRequestStreamPrefix", "unsafeResponseStreamPrefix"],
        "bytes before the salt are not written; left out",
    ),
];

/// True if the fields are those of shadowsocks-go.
pub(super) fn is_shadowsocks_go(entries: &[(String, Json)]) -> bool {
    const MARKS: [&str; 5] = ["tcpListeners", "udpListeners", "listen", "psk", "enableTCP"];
    entries.iter().any(|(key, value)| {
        let listens = |value: &Json| match value {
            Json::Object(server) => server.iter().any(|(key, _)| MARKS.contains(&key.as_str())),
            _ => false,
        };
        match value {
            Json::List(items) if key == "servers" => items.iter().any(listens),
            Json::List(_) => key == "clients",
            _ => false,
        }
    })
}

pub(super) fn convert_document(tree: &Json, clerk: &mut ConversionContext<'_>) -> RouteSet {
    let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) else {
        return RouteSet::default();
    };
    let router = Router::read_router(&mut top, clerk);
    let mut routes = Vec::new();
    let mut private = false;
    let mut size = 0;
    for (i, mut fields) in read_objects(&mut top, "servers", clerk)
        .into_iter()
        .enumerate()
    {
        if !server_entry::allows_another(i, clerk) {
            break;
        }
        let name = fields.string_field("name", clerk).unwrap_or_default();
        let way = router.chain_for_server(name, fields.object_path(), clerk);
        let route = convert_server(&mut fields, name, way, clerk);
        private |= route.as_ref().is_some_and(Route::has_shadowsocks_listener);
        size += route.as_ref().map_or(0, Route::condition_count);
        if size > MAX_SIZE {
            let title = format!("the rules and users of all servers are more than {MAX_SIZE}");
            clerk.add_problem(Problem::without_place(title, "leave some of them out"));
            break;
        }
        routes.extend(route);
        fields.note_unread(OMITTED_SERVER_FIELDS, clerk);
    }
    if private {
        clerk.add_note(
            "",
            "private addresses behind the server are refused unless `allow_private` names them",
        );
    }
    top.note_unread(OMITTED_TOP_FIELDS, clerk);
    RouteSet {
        routes,
        ..RouteSet::default()
    }
}

impl Route {
    /// Conditions and users: every server has the rules of the router again.
    fn condition_count(&self) -> usize {
        let rules = self.rules.iter().map(|rule| 1 + rule.matches.len());
        rules.sum::<usize>() + self.users.len()
    }

    fn has_shadowsocks_listener(&self) -> bool {
        self.listen.iter().any(|url| url.scheme() == "ss")
    }
}

/// Settings that all listeners of one server share.
struct ServerSettings<'a> {
    path: String,
    protocol: &'a str,
    tunnel: Option<Target>,
    psk: &'a str,
    reject: Option<String>,
    /// Users of a proxy; `None` means everyone.
    users: Option<Vec<(&'a str, &'a str)>>,
    udp_idle: Option<String>,
}

fn convert_server(
    fields: &mut ObjectFields<'_>,
    name: &str,
    way: ServerChain,
    clerk: &mut ConversionContext<'_>,
) -> Option<Route> {
    let protocol = fields.string_field("protocol", clerk).unwrap_or_default();
    fields.get("mtu");
    let mut udp_idle = None;
    let addresses = listen_addresses::read_listen_addresses(fields, &mut udp_idle, clerk);
    let edition_2022 = protocol.starts_with("2022-");
    let users = if edition_2022 {
        read_key_store(fields, clerk)
    } else {
        Vec::new()
    };
    let psk = fields.string_field("psk", clerk).filter(|_| edition_2022);
    let server = ServerSettings {
        path: fields.object_path().to_owned(),
        protocol,
        tunnel: tunnel_target(fields, protocol, clerk),
        psk: psk.unwrap_or_default(),
        reject: reject_policy(fields, clerk),
        users: proxy_users(fields, protocol, clerk)?,
        udp_idle,
    };
    let mut listen = Vec::new();
    for ((host, port), carried) in addresses {
        let udp = carried.udp && way.udp;
        if carried.udp && !udp {
            let text = "no client carries UDP for it, so none is offered";
            clerk.add_note(server.path.clone(), text);
        }
        if carried.tcp || udp {
            let url = UrlBuilder::new(server.listener_scheme(carried.tcp, udp, clerk)?, host, port);
            listen.push(server.listener_url(url, carried.tcp, udp, clerk)?);
        }
    }
    if listen.is_empty() {
        clerk.add_note(server.path, "it listens nowhere; left out");
        return None;
    }
    Some(Route {
        name: name.to_owned(),
        listen,
        via: way.via,
        rules: way.rules,
        users,
    })
}

impl ServerSettings<'_> {
    fn listener_scheme(
        &self,
        tcp: bool,
        udp: bool,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<&'static str> {
        Some(match (self.protocol, tcp, udp) {
            ("socks5", ..) => "socks5",
            ("http", ..) => "http",
            ("direct", true, true) => "tcp+udp",
            ("direct", true, false) => "tcp",
            ("direct", false, _) => "udp",
            ("none" | "plain", ..) => "ss",
            (method, ..) if method.starts_with("2022-") => "ss",
            (other, ..) => {
                let text = format!("protocol `{other}` is not known to this version; left out");
                clerk.add_note(self.path.clone(), text);
                return None;
            }
        })
    }

    fn listener_url(
        &self,
        url: UrlBuilder,
        tcp: bool,
        udp: bool,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<UrlBuilder> {
        let mut url = match url.scheme() {
            "socks5" | "http" => {
                let mut url = match &self.users {
                    Some(users) => proxy_users::add_users(url, users, &self.path, clerk),
                    None => url,
                };
                proxy_users::keep_open_proxy(&mut url, &self.path, clerk);
                url
            }
            "ss" => {
                let mut url = url.with_user(self.protocol, SecretText::Literal(self.psk.into()));
                if !tcp {
                    url.set_key("tcp", "false");
                }
                if let Some(reject) = &self.reject {
                    url.set_key("reject", reject.as_str());
                }
                url
            }
            _ => url.with_target(self.tunnel.clone()?),
        };
        let scheme = url.scheme();
        if !udp && matches!(scheme, "socks5" | "ss") {
            url.set_key("udp", "false");
        }
        if let Some(idle) = self.udp_idle.as_ref().filter(|_| udp && scheme != "http") {
            url.set_key("udp_idle", idle.as_str());
        }
        Some(url)
    }
}

fn tunnel_target(
    fields: &mut ObjectFields<'_>,
    protocol: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<Target> {
    let text = fields.string_field("tunnelRemoteAddress", clerk);
    if protocol != "direct" {
        return None;
    }
    let target = text.and_then(|text| text.parse::<Target>().ok());
    let target = target.filter(|target| target.port != 0);
    if target.is_none() {
        let path = fields.field_path("tunnelRemoteAddress");
        let title = format!("`{path}` is missing, or not `HOST:PORT`");
        clerk.add_problem(Problem::without_place(
            title,
            "write where the tunnel leads",
        ));
    }
    target
}

/// The reaction to a connection without the key.
fn reject_policy(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Option<String> {
    let fallback = fields.string_field("unsafeFallbackAddress", clerk);
    let policy = fields.string_field("rejectPolicy", clerk);
    if let Some(address) = fallback {
        return Some(format!("forward:{address}"));
    }
    match policy? {
        "JustClose" => Some("close".to_owned()),
        "ForceReset" => Some("reset".to_owned()),
        "CloseWriteDrain" => Some("drain".to_owned()),
        _ => {
            let path = fields.field_path("rejectPolicy");
            clerk.add_note(
                path,
                "has no equivalent: what has no key is met with silence",
            );
            None
        }
    }
}

/// The users of `uPSKStorePath`: an object of names and keys.
fn read_key_store(
    fields: &mut ObjectFields<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Vec<(String, SecretText)> {
    let Some(file) = fields.string_field("uPSKStorePath", clerk) else {
        return Vec::new();
    };
    let path = fields.field_path("uPSKStorePath");
    let Some(text) = clerk.read_file(&path, file) else {
        return Vec::new();
    };
    let tree = match json::parse_json5(&text.text, file) {
        Ok(tree) => tree,
        Err(problem) => {
            clerk.add_problem(*problem);
            return Vec::new();
        }
    };
    let Some(mut store) = ObjectFields::of_object(&tree, path.clone(), clerk) else {
        return Vec::new();
    };
    let mut users = Vec::new();
    for (name, key) in store.take_all() {
        match key.as_str() {
            Some(key) => {
                users.push((name.clone(), SecretText::Literal(Secret::from(key))));
            }
            None => clerk.report_wrong_type(&format!("{path}.{name}"), "a key", key),
        }
    }
    if users.is_empty() {
        let title = format!("`{path}`: no user in `{file}`");
        let help = "the server would let no one in; add users to the file";
        clerk.add_problem(Problem::without_place(title, help));
    }
    users
}

/// The users of a SOCKS or HTTP server; `None` outside if the server is left out.
#[allow(
    clippy::option_option,
    reason = "outside: whether it is served at all; inside: whether it asks for users"
)]
fn proxy_users<'j>(
    fields: &mut ObjectFields<'j>,
    protocol: &str,
    clerk: &mut ConversionContext<'_>,
) -> Option<Option<Vec<(&'j str, &'j str)>>> {
    if !matches!(protocol, "socks5" | "http") {
        return Some(None);
    }
    let Some(mut own) = fields.object_field(protocol, clerk) else {
        return Some(None);
    };
    let asks = ["enableUserPassAuth", "enableBasicAuth"]
        .map(|name| own.bool_field(name, clerk) == Some(true))
        .contains(&true);
    let mut list = read_objects(&mut own, "users", clerk);
    let users = proxy_users::read_user_pairs(&mut list, "username", clerk);
    if own.bool_field("enableTLS", clerk) == Some(true) {
        let path = own.field_path("enableTLS");
        clerk.add_note(
            path,
            "listeners with TLS are not known to this version; left out",
        );
        return None;
    }
    own.note_unread(&[], clerk);
    Some(asks.then_some(users))
}
