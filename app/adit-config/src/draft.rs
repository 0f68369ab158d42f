//! An endpoint on its way to a typed value: reads keys and addresses, notes what is wrong.

pub(crate) mod fetch;

use adit_wire::Target;

use crate::desk::{Desk, Lookup};
use crate::endpoint::{Endpoint, Pair};
use crate::keyring::{Entry, Next};
use crate::param::{Key, Role};
use crate::plan::{Limits, ListenAddr, Plugin};
use crate::quote::Quote;
use crate::scheme::{Carrier, Scheme, Written, keys};
use crate::text::{Flaw, Problem, Span, WarningKind, nearest, one_slip};
use crate::value::Typed;

/// An endpoint, what it is used as, and the desk for what is wrong with it.
pub(crate) struct Draft<'d, 'e> {
    desk: &'d mut Desk,
    lookup: Lookup<'e>,
    endpoint: &'e Endpoint,
    quote: Quote<'e>,
    written: Written,
    role: Role,
    table: Option<KeyTable>,
}

/// Keys that a file gives to the Shadowsocks listener of a route; places are those of the file.
#[derive(Debug)]
pub(crate) struct KeyTable {
    pub(crate) holders: TableOf,
    /// Where its name stands.
    pub(crate) at: Span,
}

#[derive(Debug)]
pub(crate) enum TableOf {
    Users(Vec<Entry>),
    Relay(Vec<Next>),
}

impl<'d, 'e> Draft<'d, 'e> {
    /// Finds the scheme and checks the keys against its table.
    pub(crate) fn new(
        desk: &'d mut Desk,
        lookup: Lookup<'e>,
        endpoint: &'e Endpoint,
        quote: Quote<'e>,
        role: Role,
    ) -> Option<Self> {
        let written = match written(endpoint) {
            Ok(written) => written,
            Err(flaw) => {
                desk.flaw(&quote, flaw);
                return None;
            }
        };
        let mut draft = Self {
            desk,
            lookup,
            endpoint,
            quote,
            written,
            role,
            table: None,
        };
        if written.roles().has(role) {
            for pair in &endpoint.params {
                draft.check_key(pair);
            }
        }
        Some(draft)
    }

    /// Gives the listener keys that stand beside its URL.
    pub(crate) fn with_table(mut self, table: Option<KeyTable>) -> Self {
        self.table = table;
        self
    }

    /// The keys that stand beside the URL.
    pub(crate) const fn take_table(&mut self) -> Option<KeyTable> {
        self.table.take()
    }

    pub(crate) const fn scheme(&self) -> Scheme {
        self.written.scheme
    }

    pub(crate) const fn carrier(&self) -> Option<Carrier> {
        self.written.carrier
    }

    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    /// How the scheme is written here.
    pub(crate) fn form(&self) -> String {
        self.written.form(self.role)
    }

    pub(crate) const fn endpoint(&self) -> &'e Endpoint {
        self.endpoint
    }

    pub(crate) fn problem(&mut self, flaw: Flaw) {
        self.desk.flaw(&self.quote, flaw);
    }

    /// Notes a flaw whose span counts from the start of the whole document.
    pub(crate) fn problem_in_document(&mut self, flaw: Flaw) {
        let place = self.quote.place_in_document(flaw.span);
        self.desk.problem(flaw.at(place));
    }

    /// Notes problems of another document.
    pub(crate) fn problems(&mut self, problems: Vec<Problem>) {
        for problem in problems {
            self.desk.problem(problem);
        }
    }

    pub(crate) fn warn(&mut self, kind: WarningKind, flaw: Flaw) {
        self.desk.warning(kind, self.quote.problem(flaw));
    }

    /// The value of a key, or its default if it is not written, not in the table of this scheme
    /// and role, or wrong (which is noted).
    pub(crate) fn get<T: Typed>(&mut self, key: &Key<T>) -> T {
        let Some(pair) = self.written(key) else {
            return key.default.clone();
        };
        match T::read(&pair.value.value) {
            Ok(value) => value,
            Err(expected) => {
                let span = if pair.value.value.is_empty() {
                    pair.key.span
                } else {
                    pair.value.span
                };
                self.problem(bad_value(key.name, span, expected));
                key.default.clone()
            }
        }
    }

    /// Where the value of a key stands; the address if it is not written.
    pub(crate) fn value_span<T>(&self, key: &Key<T>) -> Span {
        let pair = self.endpoint.param(key.name);
        pair.map_or(self.endpoint.address, |pair| pair.value.span)
    }

    /// Where a key stands.
    pub(crate) fn key_span<T>(&self, key: &Key<T>) -> Span {
        let pair = self.endpoint.param(key.name);
        pair.map_or(self.endpoint.address, |pair| pair.key.span)
    }

    /// Where the user stands; the address if there is none.
    pub(crate) fn user_span(&self) -> Span {
        let user = self.endpoint.user.as_ref();
        user.map_or(self.endpoint.address, |user| user.span)
    }

    /// Notes that the scheme cannot be used in this role.
    pub(crate) fn wrong_role<T>(&mut self, role: Role) -> Option<T> {
        let scheme = self.written;
        let flaw = match role {
            Role::Listener => Flaw::new(
                self.endpoint.scheme.span,
                format!("`{scheme}://` cannot listen"),
            )
            .help("the first endpoint listens, the others are the chain, left to right"),
            Role::Hop => Flaw::new(
                self.endpoint.scheme.span,
                format!("`{scheme}://` is a listener, it cannot be a hop"),
            )
            .help("hops are `socks5`, `socks4a`, `http`, `ss`, `ssr`, `ssh`, `kcptun`, `direct` and `reject`"),
        };
        self.problem(flaw);
        None
    }

    /// Notes a target where there can be none.
    pub(crate) fn no_target(&mut self) {
        if let Some(target) = &self.endpoint.target {
            let title = format!("`{}://` has no target", self.written);
            let flaw = Flaw::new(target.span, title).help(format!("written as `{}`", self.form()));
            self.problem(flaw);
        }
    }

    /// Notes a user where there can be none.
    pub(crate) fn no_user(&mut self) {
        if let Some(user) = &self.endpoint.user {
            let title = format!("`{}://` has no users", self.written);
            self.problem(Flaw::new(user.span, title));
        }
    }

    /// Host and port of a server; both are needed.
    pub(crate) fn server(&mut self) -> Option<Target> {
        self.server_or(None)
    }

    /// The same, where a port may be left out.
    pub(crate) fn server_or(&mut self, usual: Option<u16>) -> Option<Target> {
        let endpoint = self.endpoint;
        let form = format!("written as `{}`", self.form());
        let Some(host) = &endpoint.host else {
            let flaw = Flaw::new(endpoint.address, "the host is missing").help(form);
            self.problem(flaw);
            return None;
        };
        let written = endpoint.port.as_ref().map(|port| port.value);
        match (&endpoint.port, written.or(usual)) {
            (_, Some(port)) if port != 0 => Some(Target::new(host.value.clone(), port)),
            (Some(port), _) => {
                self.problem(Flaw::new(port.span, "a server has no port 0"));
                None
            }
            (None, _) => {
                let flaw = Flaw::new(endpoint.address, "the port is missing").help(form);
                self.problem(flaw);
                None
            }
        }
    }

    /// Where to listen; the port is needed, 0 means any.
    pub(crate) fn listen_addr(&mut self) -> Option<ListenAddr> {
        let endpoint = self.endpoint;
        let Some(port) = &endpoint.port else {
            let flaw = Flaw::new(endpoint.address, "the port is missing")
                .help(format!("written as `{}`", self.form()))
                .help("port 0 takes any free port");
            self.problem(flaw);
            return None;
        };
        Some(ListenAddr {
            host: endpoint.host.as_ref().map(|host| host.value.clone()),
            port: port.value,
        })
    }

    /// The limits of a listener.
    pub(crate) fn limits(&mut self) -> Limits {
        Limits {
            handshake: self.get(&keys::HANDSHAKE),
            dial: self.get(&keys::DIAL),
            idle: self.get(&keys::IDLE),
            half_close_idle: self.get(&keys::HALF_CLOSE_IDLE),
            udp_idle: self.get(&keys::UDP_IDLE),
            max_connections: self.get(&keys::MAX_CONNECTIONS).map(|count| count.0),
        }
    }

    /// Whether a proxy of this machine brings the connections to `addr`, or to what stands behind
    /// a plugin there. Whoever else reached it could say that they were somebody else.
    pub(crate) fn proxy_protocol(&mut self, addr: Option<&ListenAddr>, plugin: bool) -> bool {
        if !self.get(&keys::PROXY_PROTOCOL) {
            return false;
        }
        let span = self.value_span(&keys::PROXY_PROTOCOL);
        if self.carrier().is_some() {
            self.problem(Flaw::new(
                span,
                "the PROXY protocol is for connections of TCP",
            ));
        } else if !plugin && addr.is_some_and(|addr| !addr.is_loopback()) {
            let flaw = Flaw::new(span, "the PROXY protocol is for a proxy on this machine")
                .label("others reach this listener as well")
                .help("listen on 127.0.0.1, where the proxy sends its connections");
            self.problem(flaw);
        }
        true
    }

    /// The pair of a key that this scheme has in this role.
    fn written<T>(&self, key: &Key<T>) -> Option<&'e Pair> {
        let mut params = self.written.params();
        let has =
            params.any(|param| param.setting.name() == key.name && param.roles.has(self.role));
        self.endpoint.param(key.name).filter(|_| has)
    }

    /// The plugin; it has to carry some of what there is to carry.
    pub(crate) fn plugin(&mut self, tcp: bool, udp: bool) -> Option<Plugin> {
        let mode = self.get(&keys::PLUGIN_MODE);
        let Some(written) = self.get(&keys::PLUGIN) else {
            let endpoint = self.endpoint();
            if let Some(pair) = endpoint.param(keys::PLUGIN_MODE.name)
                && endpoint.param(keys::PLUGIN.name).is_none()
            {
                let about =
                    Flaw::new(pair.key.span, "`plugin_mode` without a plugin").label("ignored");
                self.warn(WarningKind::IgnoredKey, about);
            }
            return None;
        };
        if !(tcp && mode.tcp() || udp && mode.udp()) {
            let span = self.value_span(&keys::PLUGIN_MODE);
            let flaw = Flaw::new(span, "nothing is left that goes through the plugin")
                .help("`plugin_mode` says what goes through it, `tcp` and `udp` what there is");
            self.problem(flaw);
        }
        Some(Plugin {
            program: written.program,
            options: written.options,
            mode,
        })
    }

    fn check_key(&mut self, pair: &Pair) {
        let (written, key) = (self.written, pair.key.value.as_str());
        let known = written.params().find(|param| param.setting.name() == key);
        match known {
            Some(param) if param.roles.has(self.role) => {}
            Some(param) => {
                let title = format!("`{key}` is a key of the {} role", param.roles);
                if written.scheme.is_shared() {
                    // The same URL serves on both ends.
                    let about = Flaw::new(pair.key.span, title).label("ignored here");
                    self.warn(WarningKind::IgnoredKey, about);
                } else {
                    self.problem(Flaw::new(pair.key.span, title));
                }
            }
            None => match unknown_key(written, pair) {
                Ok(flaw) => self.problem(flaw),
                Err(ignored) => self.warn(WarningKind::IgnoredKey, ignored),
            },
        }
    }
}

/// The scheme of an endpoint, with its carrier.
pub(crate) fn written(endpoint: &Endpoint) -> Result<Written, Flaw> {
    let written = &endpoint.scheme;
    written.value.parse::<Written>().map_err(|why| {
        let flaw = Flaw::new(written.span, why.to_string());
        if let Some((dialect, name)) = why.name.rsplit_once('+')
            && let Ok(scheme) = dialect.parse::<Scheme>()
        {
            let mut all = Carrier::ALL.into_iter();
            return match all.find(|carrier| carrier.name() == name) {
                Some(carrier) => {
                    let carried = carrier.schemes().iter().map(|s| format!("`{s}+{name}`"));
                    let carried = carried.collect::<Vec<_>>().join(", ");
                    flaw.label(format!("`{name}` does not carry `{scheme}`"))
                        .help(format!("there are {carried}"))
                }
                None => flaw.label(format!("there is no carrier `{name}`")).help(
                    "carriers: `kcp` for every dialect, `fec` for `udp`; plugins by `?plugin=`",
                ),
            };
        }
        let flaw = match why.nearest {
            Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
            None => flaw,
        };
        let all = Scheme::ALL.map(Scheme::name).join(", ");
        flaw.help(format!("schemes: {all}"))
    })
}

/// Keys of other programs' links that decide about secrecy or the way: without what they ask for,
/// the traffic would leave in another form than its owner believes.
const DECIDING: &[&str] = &[
    "encryption",
    "headerType",
    "mux",
    "net",
    "network",
    "obfs-host",
    "peer",
    "security",
    "shadow-tls",
    "sni",
    "tls",
    "type",
    "uot",
    "v2ray-plugin",
];
/// Values of them that ask for nothing.
const NOTHING: &[&str] = &["", "0", "false", "none", "tcp"];

/// A key that no row has: `Ok` if it is wrong, `Err` if it can be ignored. Foreign links carry
/// keys of their own, so with `ss` and `ssr` only those are wrong that would change the way, and a
/// slip of the finger.
pub(crate) fn unknown_key(written: Written, pair: &Pair) -> Result<Flaw, Flaw> {
    let (key, value) = (pair.key.value.as_str(), pair.value.value.as_str());
    let names = || written.params().map(|param| param.setting.name());
    let flaw = Flaw::new(pair.key.span, format!("unknown key `{key}`"));
    if written.scheme.is_shared() {
        let schemes = Scheme::ALL.into_iter().map(Scheme::params);
        let mut others = schemes.chain(Carrier::ALL.map(Carrier::params)).flatten();
        let is_ours = others.any(|param| param.setting.name() == key);
        if is_ours || (DECIDING.contains(&key) && !NOTHING.contains(&value)) {
            let over_tcp = "`udp=over-tcp` puts datagrams into a connection";
            let flaw = flaw.label(format!("`{written}://` cannot do this"));
            let flaw = if key == "uot" {
                flaw.help(over_tcp)
            } else {
                flaw
            };
            return Ok(flaw
                .help("without it the traffic would go another way than the link says")
                .help(format!("`adit help {written}` lists the keys")));
        }
        if one_slip(key, names()).is_none() {
            return Err(flaw.label("ignored"));
        }
    }
    let flaw = match nearest(key, names()) {
        Some(meant) => flaw.label(format!("did you mean `{meant}`?")),
        None => flaw,
    };
    if names().next().is_none() {
        return Ok(flaw.help(format!("`{written}://` has no keys")));
    }
    Ok(flaw.help(format!("`adit help {written}` lists the keys")))
}

pub(crate) fn bad_value(key: &str, span: Span, expected: String) -> Flaw {
    Flaw::new(span, format!("bad value for `{key}`")).label(expected)
}
