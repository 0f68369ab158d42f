//! The router of shadowsocks-go: which client a server's requests take.

use std::collections::HashMap;

use adit_config::Condition;
use adit_config::text::Problem;
use zeroize::Zeroizing;

use crate::conversion_context::ConversionContext;
use crate::fields::{ObjectFields, OmitReasons};
use crate::json::Json;
use crate::server_entry::{self, read_objects};
use crate::shadowsocks_go::client;
use crate::toml_output::{Rule, Stage};

const OMITTED_CLIENT_FIELDS: OmitReasons = &[(
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
    default_tcp: RouterChoice,
    default_udp: RouterChoice,
    routes: Vec<RouterRoute>,
}

/// The route of one server's requests.
pub(super) struct ServerChain {
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
enum RouterChoice {
    Reject,
    Client(String),
}

struct RouterRoute {
    /// Empty means all.
    servers: Vec<String>,
    /// Empty means everything.
    matches: Vec<String>,
    to: RouterChoice,
}

impl Router {
    pub(super) fn read_router(
        top: &mut ObjectFields<'_>,
        clerk: &mut ConversionContext<'_>,
    ) -> Self {
        let mut clients = HashMap::new();
        for (i, mut fields) in read_objects(top, "clients", clerk).into_iter().enumerate() {
            if !server_entry::allows_another(i, clerk) {
                break;
            }
            let name = fields.string_field("name", clerk).unwrap_or_default();
            let tcp = fields.bool_field("enableTCP", clerk) == Some(true);
            let udp = fields.bool_field("enableUDP", clerk) == Some(true);
            if let Ok(hop) = client::read_client(&mut fields, udp, clerk) {
                clients.insert(name.to_owned(), Client { tcp, udp, hop });
            }
            fields.note_unread(OMITTED_CLIENT_FIELDS, clerk);
        }
        let mut router = Self {
            clients,
            default_tcp: RouterChoice::Reject,
            default_udp: RouterChoice::Reject,
            routes: Vec::new(),
        };
        let mut fields = top.object_field("router", clerk);
        let mut named = |field| {
            let fields = fields.as_mut()?;
            Some((fields.field_path(field), fields.string_field(field, clerk)?))
        };
        let (tcp, udp) = (named("defaultTCPClientName"), named("defaultUDPClientName"));
        router.default_tcp = router.default_choice(tcp, |client| client.tcp, clerk);
        router.default_udp = router.default_choice(udp, |client| client.udp, clerk);
        if let Some(mut fields) = fields {
            for mut route in read_objects(&mut fields, "routes", clerk) {
                let exception = router.read_route(&mut route, clerk);
                router.routes.extend(exception);
            }
            let reasons: OmitReasons = &[(
                &["geoLite2CountryDbPath", "domainSets", "prefixSets"],
                "sets of names, networks and countries are not carried over",
            )];
            fields.note_unread(reasons, clerk);
        }
        router
    }

    /// The client that a field names; without a name, the only one there is.
    fn default_choice(
        &self,
        named: Option<(String, &str)>,
        fits: impl Fn(&Client) -> bool,
        clerk: &mut ConversionContext<'_>,
    ) -> RouterChoice {
        match named {
            Some((_, "reject")) => RouterChoice::Reject,
            Some((path, name)) => self.client_by_name(&path, name, clerk),
            None => {
                let mut fitting = self.clients.iter().filter(|(_, client)| fits(client));
                match (fitting.next(), fitting.next()) {
                    (Some((name, _)), None) => RouterChoice::Client(name.clone()),
                    _ => RouterChoice::Reject,
                }
            }
        }
    }

    fn client_by_name(
        &self,
        path: &str,
        name: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> RouterChoice {
        if !self.clients.contains_key(name) {
            let title = format!("`{path}` names `{name}`, which is not a client here");
            let help = "either it is missing, or it could not be carried over";
            clerk.add_problem(Problem::without_place(title, help));
        }
        RouterChoice::Client(name.to_owned())
    }

    /// A route that adit's rules can say: by server, and by names, networks or ports.
    fn read_route(
        &self,
        fields: &mut ObjectFields<'_>,
        clerk: &mut ConversionContext<'_>,
    ) -> Option<RouterRoute> {
        let path = fields.object_path().to_owned();
        fields.get("name");
        fields.get("resolver");
        fields.get("disableNameResolutionForIPRules");
        let client = fields.string_field("client", clerk);
        let servers = fields.strings_field("fromServers", clerk);
        let mut places: Vec<String> = Vec::new();
        places.extend(
            fields
                .strings_field("toDomains", clerk)
                .iter()
                .map(ToString::to_string),
        );
        let networks = fields.strings_field("toPrefixes", clerk);
        places.extend(networks.iter().map(ToString::to_string));
        let mut ports: Vec<String> = fields
            .list_field("toPorts", clerk)
            .iter()
            .filter_map(Json::as_u64)
            .map(|port| format!(":{port}"))
            .collect();
        let ranges = fields
            .string_field("toPortRanges", clerk)
            .unwrap_or_default();
        let ranges = ranges.split(',').filter(|range| !range.is_empty());
        ports.extend(ranges.map(|range| format!(":{}", range.trim())));
        let other = fields.take_unread();
        // Conditions of different kinds must all hold there; of one rule here, one is enough.
        let mixed = !places.is_empty() && !ports.is_empty();
        let mut matches = places;
        matches.append(&mut ports);
        let readable = matches.iter().all(|text| Condition::parse(text).is_ok());
        if !other.is_empty() || mixed || !readable {
            let what = match other.first() {
                Some(name) => format!("`{name}`"),
                None if mixed => "ports together with names or networks".to_owned(),
                None => "one of its conditions".to_owned(),
            };
            clerk.add_note(
                path,
                format!("rules do not know {what}: the route is left out"),
            );
            return None;
        }
        if !networks.is_empty() {
            clerk.add_note(path.clone(), "names are not resolved for rules on networks");
        }
        let to = match client {
            Some("reject") => RouterChoice::Reject,
            name => self.client_by_name(&format!("{path}.client"), name.unwrap_or_default(), clerk),
        };
        Some(RouterRoute {
            servers: servers.iter().map(ToString::to_string).collect(),
            matches,
            to,
        })
    }

    /// The way of the requests of the server `name` at `path`.
    pub(super) fn chain_for_server(
        &self,
        name: &str,
        path: &str,
        clerk: &mut ConversionContext<'_>,
    ) -> ServerChain {
        let mut way = ServerChain {
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
                way.via = self.chain_of_choice(&route.to);
                way.udp = self.choice_carries_udp(&route.to);
                return way;
            }
            way.rules.push(Rule {
                matches: route.matches.clone(),
                resolve: false,
                via: match self.chain_of_choice(&route.to) {
                    direct if direct.is_empty() => vec![vec!["direct://".to_owned().into()]],
                    via => via,
                },
            });
        }
        way.udp = self.choice_carries_udp(&self.default_udp);
        let choice = if self.default_tcp == RouterChoice::Reject && way.udp {
            &self.default_udp
        } else {
            &self.default_tcp
        };
        if way.udp && *choice != self.default_udp {
            clerk.add_note(path, "UDP takes the same way as TCP");
            way.udp = self.choice_carries_udp(choice);
        }
        if *choice == RouterChoice::Reject {
            let text = "several clients and no default: what no rule matches is refused, as before";
            clerk.add_note(path, text);
        }
        way.via = self.chain_of_choice(choice);
        way
    }

    fn choice_carries_udp(&self, choice: &RouterChoice) -> bool {
        match choice {
            RouterChoice::Reject => false,
            RouterChoice::Client(name) => self.clients.get(name).is_some_and(|client| client.udp),
        }
    }

    fn chain_of_choice(&self, choice: &RouterChoice) -> Vec<Stage> {
        match choice {
            RouterChoice::Reject => vec![vec!["reject://".to_owned().into()]],
            RouterChoice::Client(name) => {
                let hop = self.clients.get(name).and_then(|client| client.hop.clone());
                hop.map(|hop| vec![hop]).into_iter().collect()
            }
        }
    }
}
