//! The router of shadowsocks-go: which client a server's requests take.

use std::collections::HashMap;

use adit_config::Match;
use adit_config::text::Problem;
use zeroize::Zeroizing;

use crate::clerk::Clerk;
use crate::fields::{Fields, Reasons};
use crate::go::client;
use crate::json::Json;
use crate::server::{self, objects};
use crate::shape::{Rule, Stage};

const CLIENT: Reasons = &[(
    &[
        "allowFragmentation",
        "allowSegmentedFixedLengthHeader",
        "dialerFwmark",
        "dialerTFO",
        "dialerTrafficClass",
        "multipathTCP",
        "overrideResolverDialAddress",
        "paddingPolicy",
        "slidingWindowFilterSize",
        "tcpFastOpenFallback",
        "tcpPathMTUDiscovery",
        "udpPathMTUDiscovery",
        "network",
    ],
    "adit sets this itself",
)];

/// Clients by name, what is the default, and the exceptions.
pub(super) struct Router {
    clients: HashMap<String, Client>,
    default_tcp: Choice,
    default_udp: Choice,
    routes: Vec<Exception>,
}

/// What the requests of one server take.
pub(super) struct Way {
    pub(super) via: Vec<Stage>,
    pub(super) rules: Vec<Rule>,
    /// UDP has a way.
    pub(super) udp: bool,
}

struct Client {
    tcp: bool,
    udp: bool,
    /// `None`: the direct way.
    hop: Option<Zeroizing<String>>,
}

#[derive(Clone, PartialEq, Eq)]
enum Choice {
    Reject,
    Client(String),
}

struct Exception {
    /// Empty means all.
    servers: Vec<String>,
    /// Empty means everything.
    matches: Vec<String>,
    to: Choice,
}

impl Router {
    pub(super) fn read(top: &mut Fields<'_>, clerk: &mut Clerk<'_>) -> Self {
        let mut clients = HashMap::new();
        for (i, mut fields) in objects(top, "clients", clerk).into_iter().enumerate() {
            if !server::room(i, clerk) {
                break;
            }
            let name = fields.text("name", clerk).unwrap_or_default();
            let tcp = fields.flag("enableTCP", clerk) == Some(true);
            let udp = fields.flag("enableUDP", clerk) == Some(true);
            if let Ok(hop) = client::read(&mut fields, udp, clerk) {
                clients.insert(name.to_owned(), Client { tcp, udp, hop });
            }
            fields.finish(CLIENT, clerk);
        }
        let mut router = Self {
            clients,
            default_tcp: Choice::Reject,
            default_udp: Choice::Reject,
            routes: Vec::new(),
        };
        let mut fields = top.object("router", clerk);
        let mut named = |field| {
            let fields = fields.as_mut()?;
            Some((fields.path(field), fields.text(field, clerk)?))
        };
        let (tcp, udp) = (named("defaultTCPClientName"), named("defaultUDPClientName"));
        router.default_tcp = router.choice(tcp, |client| client.tcp, clerk);
        router.default_udp = router.choice(udp, |client| client.udp, clerk);
        if let Some(mut fields) = fields {
            for mut route in objects(&mut fields, "routes", clerk) {
                let exception = router.exception(&mut route, clerk);
                router.routes.extend(exception);
            }
            let reasons: Reasons = &[(
                &["geoLite2CountryDbPath", "domainSets", "prefixSets"],
                "sets of names, networks and countries are not carried over",
            )];
            fields.finish(reasons, clerk);
        }
        router
    }

    /// The client that a field names; without a name, the only one there is.
    fn choice(
        &self,
        named: Option<(String, &str)>,
        fits: impl Fn(&Client) -> bool,
        clerk: &mut Clerk<'_>,
    ) -> Choice {
        match named {
            Some((_, "reject")) => Choice::Reject,
            Some((path, name)) => self.named(&path, name, clerk),
            None => {
                let mut fitting = self.clients.iter().filter(|(_, client)| fits(client));
                match (fitting.next(), fitting.next()) {
                    (Some((name, _)), None) => Choice::Client(name.clone()),
                    _ => Choice::Reject,
                }
            }
        }
    }

    fn named(&self, path: &str, name: &str, clerk: &mut Clerk<'_>) -> Choice {
        if !self.clients.contains_key(name) {
            let title = format!("`{path}` names `{name}`, which is not a client here");
            let help = "either it is missing, or it could not be carried over";
            clerk.problem(Problem::without_place(title, help));
        }
        Choice::Client(name.to_owned())
    }

    /// A route that adit's rules can say: by server, and by names, networks or ports.
    fn exception(&self, fields: &mut Fields<'_>, clerk: &mut Clerk<'_>) -> Option<Exception> {
        let path = fields.whole().to_owned();
        fields.get("name");
        fields.get("resolver");
        fields.get("disableNameResolutionForIPRules");
        let client = fields.text("client", clerk);
        let servers = fields.texts("fromServers", clerk);
        let mut places: Vec<String> = Vec::new();
        places.extend(
            fields
                .texts("toDomains", clerk)
                .iter()
                .map(ToString::to_string),
        );
        let networks = fields.texts("toPrefixes", clerk);
        places.extend(networks.iter().map(ToString::to_string));
        let mut ports: Vec<String> = fields
            .list("toPorts", clerk)
            .iter()
            .filter_map(Json::whole)
            .map(|port| format!(":{port}"))
            .collect();
        let ranges = fields.text("toPortRanges", clerk).unwrap_or_default();
        let ranges = ranges.split(',').filter(|range| !range.is_empty());
        ports.extend(ranges.map(|range| format!(":{}", range.trim())));
        let other = fields.take_unasked();
        // Conditions of different kinds must all hold there; of one rule here, one is enough.
        let mixed = !places.is_empty() && !ports.is_empty();
        let mut matches = places;
        matches.append(&mut ports);
        let readable = matches.iter().all(|text| Match::read(text).is_ok());
        if !other.is_empty() || mixed || !readable {
            let what = match other.first() {
                Some(name) => format!("`{name}`"),
                None if mixed => "ports together with names or networks".to_owned(),
                None => "one of its conditions".to_owned(),
            };
            clerk.note(
                path,
                format!("rules do not know {what}: the route is left out"),
            );
            return None;
        }
        if !networks.is_empty() {
            clerk.note(path.clone(), "names are not resolved for rules on networks");
        }
        let to = match client {
            Some("reject") => Choice::Reject,
            name => self.named(&format!("{path}.client"), name.unwrap_or_default(), clerk),
        };
        Some(Exception {
            servers: servers.iter().map(ToString::to_string).collect(),
            matches,
            to,
        })
    }

    /// The way of the requests of the server `name` at `path`.
    pub(super) fn way(&self, name: &str, path: &str, clerk: &mut Clerk<'_>) -> Way {
        let mut way = Way {
            via: Vec::new(),
            rules: Vec::new(),
            udp: false,
        };
        for route in &self.routes {
            if !route.servers.is_empty() && !route.servers.iter().any(|server| server == name) {
                continue;
            }
            if route.matches.is_empty() {
                // It takes all that is left.
                way.via = self.via(&route.to);
                way.udp = self.carries_udp(&route.to);
                return way;
            }
            way.rules.push(Rule {
                matches: route.matches.clone(),
                resolve: false,
                via: match self.via(&route.to) {
                    direct if direct.is_empty() => vec![vec!["direct://".to_owned().into()]],
                    via => via,
                },
            });
        }
        way.udp = self.carries_udp(&self.default_udp);
        let choice = if self.default_tcp == Choice::Reject && way.udp {
            &self.default_udp
        } else {
            &self.default_tcp
        };
        if way.udp && *choice != self.default_udp {
            clerk.note(path, "UDP takes the same way as TCP");
            way.udp = self.carries_udp(choice);
        }
        if *choice == Choice::Reject {
            let text = "several clients and no default: what no rule matches is refused, as before";
            clerk.note(path, text);
        }
        way.via = self.via(choice);
        way
    }

    fn carries_udp(&self, choice: &Choice) -> bool {
        match choice {
            Choice::Reject => false,
            Choice::Client(name) => self.clients.get(name).is_some_and(|client| client.udp),
        }
    }

    fn via(&self, choice: &Choice) -> Vec<Stage> {
        match choice {
            Choice::Reject => vec![vec!["reject://".to_owned().into()]],
            Choice::Client(name) => {
                let hop = self.clients.get(name).and_then(|client| client.hop.clone());
                hop.map(|hop| vec![hop]).into_iter().collect()
            }
        }
    }
}
