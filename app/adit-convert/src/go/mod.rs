//! The JSON of shadowsocks-go: servers are listeners, clients are ways out, a router joins them.

mod client;
mod listen;
mod router;

use adit_config::text::{Problem, Secret, SecretText};
use adit_wire::Target;

use crate::auth;
use crate::clerk::Clerk;
use crate::fields::{Fields, Reasons};
use crate::json::{self, Json};
use crate::server::{self, objects};
use crate::shape::{Route, Shape, Url};
use router::{Router, Way};

/// Conditions and users of all routes at most.
const MAX_SIZE: usize = 1_000_000;
const OURS: &str = "adit sets this itself";

const TOP: Reasons = &[
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
        OURS,
    ),
];

const SERVER: Reasons = &[
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
        OURS,
    ),
    (
        &["unsafeRequestStreamPrefix", "unsafeResponseStreamPrefix"],
        "bytes before the salt are not written; left out",
    ),
];

/// True if the fields are those of shadowsocks-go.
pub(super) fn is_it(entries: &[(String, Json)]) -> bool {
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

pub(super) fn read(tree: &Json, clerk: &mut Clerk<'_>) -> Shape {
    let Some(mut top) = Fields::of(tree, String::new(), clerk) else {
        return Shape::default();
    };
    let router = Router::read(&mut top, clerk);
    let mut routes = Vec::new();
    let mut private = false;
    let mut size = 0;
    for (i, mut fields) in objects(&mut top, "servers", clerk).into_iter().enumerate() {
        if !server::room(i, clerk) {
            break;
        }
        let name = fields.text("name", clerk).unwrap_or_default();
        let way = router.way(name, fields.whole(), clerk);
        let route = one(&mut fields, name, way, clerk);
        private |= route.as_ref().is_some_and(Route::is_server);
        size += route.as_ref().map_or(0, Route::size);
        if size > MAX_SIZE {
            let title = format!("the rules and users of all servers are more than {MAX_SIZE}");
            clerk.problem(Problem::without_place(title, "leave some of them out"));
            break;
        }
        routes.extend(route);
        fields.finish(SERVER, clerk);
    }
    if private {
        clerk.note(
            "",
            "private addresses behind the server are refused unless `allow_private` names them",
        );
    }
    top.finish(TOP, clerk);
    Shape { routes }
}

impl Route {
    /// Conditions and users: every server has the rules of the router again.
    fn size(&self) -> usize {
        let rules = self.rules.iter().map(|rule| 1 + rule.matches.len());
        rules.sum::<usize>() + self.users.len()
    }

    fn is_server(&self) -> bool {
        self.listen.iter().any(|url| url.scheme() == "ss")
    }
}

/// What all listeners of one server have in common.
struct Server<'a> {
    path: String,
    protocol: &'a str,
    tunnel: Option<Target>,
    psk: &'a str,
    reject: Option<String>,
    /// Who may use a proxy; `None` is everyone.
    users: Option<Vec<(&'a str, &'a str)>>,
    udp_idle: Option<String>,
}

fn one(fields: &mut Fields<'_>, name: &str, way: Way, clerk: &mut Clerk<'_>) -> Option<Route> {
    let protocol = fields.text("protocol", clerk).unwrap_or_default();
    fields.get("mtu");
    let mut udp_idle = None;
    let addresses = listen::read(fields, &mut udp_idle, clerk);
    let edition_2022 = protocol.starts_with("2022-");
    let users = if edition_2022 {
        users(fields, clerk)
    } else {
        Vec::new()
    };
    let psk = fields.text("psk", clerk).filter(|_| edition_2022);
    let server = Server {
        path: fields.whole().to_owned(),
        protocol,
        tunnel: tunnel_target(fields, protocol, clerk),
        psk: psk.unwrap_or_default(),
        reject: reject(fields, clerk),
        users: proxy_users(fields, protocol, clerk)?,
        udp_idle,
    };
    let mut listen = Vec::new();
    for ((host, port), carried) in addresses {
        let udp = carried.udp && way.udp;
        if carried.udp && !udp {
            let text = "no client carries UDP for it, so none is offered";
            clerk.note(server.path.clone(), text);
        }
        if carried.tcp || udp {
            let url = Url::new(server.scheme(carried.tcp, udp, clerk)?, host, port);
            listen.push(server.url(url, carried.tcp, udp, clerk)?);
        }
    }
    if listen.is_empty() {
        clerk.note(server.path, "it listens nowhere; left out");
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

impl Server<'_> {
    fn scheme(&self, tcp: bool, udp: bool, clerk: &mut Clerk<'_>) -> Option<&'static str> {
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
                clerk.note(self.path.clone(), text);
                return None;
            }
        })
    }

    fn url(&self, url: Url, tcp: bool, udp: bool, clerk: &mut Clerk<'_>) -> Option<Url> {
        let mut url = match url.scheme() {
            "socks5" | "http" => {
                let mut url = match &self.users {
                    Some(users) => auth::with_users(url, users, &self.path, clerk),
                    None => url,
                };
                auth::open(&mut url, &self.path, clerk);
                url
            }
            "ss" => {
                let mut url = url.user(self.protocol, SecretText::Literal(self.psk.into()));
                if !tcp {
                    url.set("tcp", "false");
                }
                if let Some(reject) = &self.reject {
                    url.set("reject", reject.as_str());
                }
                url
            }
            _ => url.target(self.tunnel.clone()?),
        };
        let scheme = url.scheme();
        if !udp && matches!(scheme, "socks5" | "ss") {
            url.set("udp", "false");
        }
        if let Some(idle) = self.udp_idle.as_ref().filter(|_| udp && scheme != "http") {
            url.set("udp_idle", idle.as_str());
        }
        Some(url)
    }
}

fn tunnel_target(fields: &mut Fields<'_>, protocol: &str, clerk: &mut Clerk<'_>) -> Option<Target> {
    let text = fields.text("tunnelRemoteAddress", clerk);
    if protocol != "direct" {
        return None;
    }
    let target = text.and_then(|text| text.parse::<Target>().ok());
    let target = target.filter(|target| target.port != 0);
    if target.is_none() {
        let path = fields.path("tunnelRemoteAddress");
        let title = format!("`{path}` is missing, or not `HOST:PORT`");
        clerk.problem(Problem::without_place(
            title,
            "write where the tunnel leads",
        ));
    }
    target
}

/// What a connection without the key sees.
fn reject(fields: &mut Fields<'_>, clerk: &mut Clerk<'_>) -> Option<String> {
    let fallback = fields.text("unsafeFallbackAddress", clerk);
    let policy = fields.text("rejectPolicy", clerk);
    if let Some(address) = fallback {
        return Some(format!("forward:{address}"));
    }
    match policy? {
        "JustClose" => Some("close".to_owned()),
        "ForceReset" => Some("reset".to_owned()),
        "CloseWriteDrain" => Some("drain".to_owned()),
        _ => {
            let path = fields.path("rejectPolicy");
            clerk.note(
                path,
                "has no equivalent: what has no key is met with silence",
            );
            None
        }
    }
}

/// The users of `uPSKStorePath`: an object of names and keys.
fn users(fields: &mut Fields<'_>, clerk: &mut Clerk<'_>) -> Vec<(String, SecretText)> {
    let Some(file) = fields.text("uPSKStorePath", clerk) else {
        return Vec::new();
    };
    let path = fields.path("uPSKStorePath");
    let Some(text) = clerk.file(&path, file) else {
        return Vec::new();
    };
    let tree = match json::lenient(&text.text, file) {
        Ok(tree) => tree,
        Err(problem) => {
            clerk.problem(*problem);
            return Vec::new();
        }
    };
    let Some(mut store) = Fields::of(&tree, path.clone(), clerk) else {
        return Vec::new();
    };
    let mut users = Vec::new();
    for (name, key) in store.all() {
        match key.text() {
            Some(key) => {
                users.push((name.clone(), SecretText::Literal(Secret::from(key))));
            }
            None => clerk.wrong_type(&format!("{path}.{name}"), "a key", key),
        }
    }
    if users.is_empty() {
        let title = format!("`{path}`: no user in `{file}`");
        let help = "the server would let nobody in; add users to the file";
        clerk.problem(Problem::without_place(title, help));
    }
    users
}

/// The users of a SOCKS or HTTP server; `None` outside if the server is left out.
#[allow(
    clippy::option_option,
    reason = "outside: whether it is served at all; inside: whether it asks for users"
)]
fn proxy_users<'j>(
    fields: &mut Fields<'j>,
    protocol: &str,
    clerk: &mut Clerk<'_>,
) -> Option<Option<Vec<(&'j str, &'j str)>>> {
    if !matches!(protocol, "socks5" | "http") {
        return Some(None);
    }
    let Some(mut own) = fields.object(protocol, clerk) else {
        return Some(None);
    };
    let asks = ["enableUserPassAuth", "enableBasicAuth"]
        .map(|name| own.flag(name, clerk) == Some(true))
        .contains(&true);
    let mut list = objects(&mut own, "users", clerk);
    let users = auth::pairs(&mut list, "username", clerk);
    if own.flag("enableTLS", clerk) == Some(true) {
        let path = own.path("enableTLS");
        clerk.note(
            path,
            "listeners with TLS are not known to this version; left out",
        );
        return None;
    }
    own.finish(&[], clerk);
    Some(asks.then_some(users))
}
