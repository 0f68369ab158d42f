//! Builds typed values from an endpoint: reads keys and addresses, and reports errors.

pub(crate) mod fetch;

use core::time::Duration;

use adit_wire::Target;

use crate::grammar::{Endpoint, Pair};
use crate::schema::{EndpointRole, Key, Typed};
use crate::scheme::definition::{Carrier, Scheme, Written};
use crate::scheme::keyring::{Entry, Next};
use crate::scheme::keys;
use crate::scheme::typed::{Limits, ListenAddr, Plugin, UdpWay};
use crate::text::{Diagnostics, Excerpt, Flaw, Lookup, Problem, Span, WarningKind, write_duration};

/// An endpoint with its role, and the diagnostics for its errors.
pub(crate) struct EndpointBuilder<'d, 'e> {
    diagnostics: &'d mut Diagnostics,
    lookup: Lookup<'e>,
    endpoint: &'e Endpoint,
    /// The position of the endpoint in its document.
    excerpt: Excerpt<'e>,
    /// Scheme and carrier.
    written: Written,
    role: EndpointRole,
    /// Keys beside the URL.
    table: Option<KeyTable>,
}

/// The table of keys that a file has for the Shadowsocks listener of a route. Spans refer to the file.
#[derive(Debug)]
pub(crate) struct KeyTable {
    /// The keys.
    pub(crate) holders: TableOf,
    /// The position of the table's name.
    pub(crate) at: Span,
}

/// The content of a table of keys.
#[derive(Debug)]
pub(crate) enum TableOf {
    /// Users.
    Users(Vec<Entry>),
    /// Next servers of a relay.
    Relay(Vec<Next>),
}

impl<'d, 'e> EndpointBuilder<'d, 'e> {
    /// Creates a builder for an endpoint whose scheme has this role.
    pub(crate) const fn new(
        diagnostics: &'d mut Diagnostics,
        lookup: Lookup<'e>,
        endpoint: &'e Endpoint,
        excerpt: Excerpt<'e>,
        written: Written,
        role: EndpointRole,
    ) -> Self {
        Self {
            diagnostics,
            lookup,
            endpoint,
            excerpt,
            written,
            role,
            table: None,
        }
    }

    /// Adds keys from a table beside the URL.
    pub(crate) fn with_table(mut self, table: Option<KeyTable>) -> Self {
        self.table = table;
        self
    }

    /// Takes the keys from the table beside the URL.
    pub(crate) const fn take_table(&mut self) -> Option<KeyTable> {
        self.table.take()
    }

    /// Returns scheme and carrier.
    pub(crate) const fn written(&self) -> Written {
        self.written
    }

    /// Returns the scheme.
    pub(crate) const fn scheme(&self) -> &'static Scheme {
        self.written.scheme
    }

    /// Returns the carrier, if there is one.
    pub(crate) const fn carrier(&self) -> Option<&'static Carrier> {
        self.written.carrier
    }

    /// Returns the role.
    pub(crate) const fn role(&self) -> EndpointRole {
        self.role
    }

    /// Returns the form of the scheme in this role.
    pub(crate) fn form(&self) -> String {
        self.written.form(self.role)
    }

    /// Returns the endpoint.
    pub(crate) const fn endpoint(&self) -> &'e Endpoint {
        self.endpoint
    }

    /// Reports an error in the URL.
    pub(crate) fn problem(&mut self, flaw: Flaw) {
        self.diagnostics.flaw(&self.excerpt, flaw);
    }

    /// Reports an error whose span counts from the start of the whole document.
    pub(crate) fn problem_in_document(&mut self, flaw: Flaw) {
        let place = self.excerpt.place_in_document(flaw.span);
        self.diagnostics.problem(flaw.at(place));
    }

    /// Reports problems of another document.
    pub(crate) fn problems(&mut self, problems: Vec<Problem>) {
        for problem in problems {
            self.diagnostics.problem(problem);
        }
    }

    /// Adds a warning about the URL.
    pub(crate) fn warn(&mut self, kind: WarningKind, flaw: Flaw) {
        self.diagnostics.warning(kind, self.excerpt.problem(flaw));
    }

    /// Returns the value of a key, or its default if it is not written, not in the table of this scheme
    /// and role, or wrong (which is reported).
    pub(crate) fn get<T: Typed>(&mut self, key: &Key<T>) -> T {
        let Some(pair) = self.pair(key) else {
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
                self.problem(bad_value(&pair.key.value, span, expected));
                key.default.clone()
            }
        }
    }

    /// Returns the pair of a key, in either spelling.
    pub(crate) fn param<T>(&self, key: &Key<T>) -> Option<&'e Pair> {
        let endpoint = self.endpoint;
        let also = || key.alias.and_then(|alias| endpoint.param(alias));
        endpoint.param(key.name).or_else(also)
    }

    /// Returns the position of a key's value, or of the address if the key is not written.
    pub(crate) fn value_span<T>(&self, key: &Key<T>) -> Span {
        let pair = self.param(key);
        pair.map_or(self.endpoint.address, |pair| pair.value.span)
    }

    /// Returns the position of a key, or of the address if it is not written.
    pub(crate) fn key_span<T>(&self, key: &Key<T>) -> Span {
        let pair = self.param(key);
        pair.map_or(self.endpoint.address, |pair| pair.key.span)
    }

    /// Returns the position of the user, or of the address if there is none.
    pub(crate) fn user_span(&self) -> Span {
        let user = self.endpoint.user.as_ref();
        user.map_or(self.endpoint.address, |user| user.span)
    }

    /// Reports a target, for schemes without one.
    pub(crate) fn no_target(&mut self) {
        if let Some(target) = &self.endpoint.target {
            let title = format!("`{}://` has no target", self.written);
            let flaw = Flaw::new(target.span, title).help(format!("write `{}`", self.form()));
            self.problem(flaw);
        }
    }

    /// Reports a user, for schemes without one.
    pub(crate) fn no_user(&mut self) {
        if let Some(user) = &self.endpoint.user {
            let title = format!("`{}://` has no users", self.written);
            self.problem(Flaw::new(user.span, title));
        }
    }

    /// Returns host and port of a server, which are both required.
    pub(crate) fn server(&mut self) -> Option<Target> {
        self.server_or(None)
    }

    /// Returns host and port of a server. `usual` is the default port.
    pub(crate) fn server_or(&mut self, usual: Option<u16>) -> Option<Target> {
        let endpoint = self.endpoint;
        let form = format!("write `{}`", self.form());
        let Some(host) = &endpoint.host else {
            let flaw = Flaw::new(endpoint.address, "the host is missing").help(form);
            self.problem(flaw);
            return None;
        };
        let written = endpoint.port.as_ref().map(|port| port.value);
        match (&endpoint.port, written.or(usual)) {
            (_, Some(port)) if port != 0 => Some(Target::new(host.value.clone(), port)),
            (Some(port), _) => {
                self.problem(Flaw::new(port.span, "the port of a server cannot be 0"));
                None
            }
            (None, _) => {
                let flaw = Flaw::new(endpoint.address, "the port is missing").help(form);
                self.problem(flaw);
                None
            }
        }
    }

    /// Returns the end of the range of ports, or the port; 0 without any, which is reported elsewhere.
    pub(crate) fn last_port(&self) -> u16 {
        let port = self.endpoint.port.as_ref().map(|port| port.value);
        self.endpoint.last_port.or(port).unwrap_or(0)
    }

    /// Returns the position of the port or its range, or of the address if there is none.
    pub(crate) fn port_span(&self) -> Span {
        let port = self.endpoint.port.as_ref();
        port.map_or(self.endpoint.address, |port| port.span)
    }

    /// Returns the address to listen on. The port is required; 0 means any.
    pub(crate) fn listen_addr(&mut self) -> Option<ListenAddr> {
        let endpoint = self.endpoint;
        let Some(port) = &endpoint.port else {
            let flaw = Flaw::new(endpoint.address, "the port is missing")
                .help(format!("write `{}`", self.form()))
                .help("port 0 means any free port");
            self.problem(flaw);
            return None;
        };
        Some(ListenAddr {
            host: endpoint.host.as_ref().map(|host| host.value.clone()),
            port: port.value,
        })
    }

    /// Returns the limits of a listener.
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

    /// Returns the maximum wait for first bytes that can be sent with the request.
    pub(crate) fn first_wait(&mut self) -> Duration {
        let wait = self.get(&keys::FIRST_WAIT).0;
        let dial = self.get(&keys::DIAL);
        if wait > dial {
            let span = self.value_span(&keys::FIRST_WAIT);
            let flaw = Flaw::new(span, "`first_wait` is longer than the time to dial");
            self.problem(flaw.label(format!("`dial` is {}", write_duration(dial))));
        }
        wait
    }

    /// Returns the transports of a keyed listener, TCP and UDP, and its plugin. UDP in streams is always
    /// served and needs no separate socket.
    pub(crate) fn served(&mut self) -> (bool, bool, Option<Plugin>) {
        let tcp = self.get(&keys::TCP);
        let udp = self.get(&keys::SS_UDP) == UdpWay::Native;
        if !tcp && !udp {
            let span = self.value_span(&keys::SS_UDP);
            self.problem(Flaw::new(span, "both TCP and UDP are off"));
        }
        (tcp, udp, self.plugin(tcp, udp))
    }

    /// True if connections come from a proxy on this machine, to `addr` or through a plugin there. Other
    /// machines must not reach the listener: they could claim any client address.
    pub(crate) fn proxy_protocol(&mut self, addr: Option<&ListenAddr>, plugin: bool) -> bool {
        if !self.get(&keys::PROXY_PROTOCOL) {
            return false;
        }
        let span = self.value_span(&keys::PROXY_PROTOCOL);
        if self.carrier().is_some() {
            self.problem(Flaw::new(span, "the PROXY protocol is for TCP connections"));
        } else if !plugin && addr.is_some_and(|addr| !addr.is_loopback()) {
            let flaw = Flaw::new(span, "the PROXY protocol is for a proxy on this machine")
                .label("other machines can reach this listener, too")
                .help("listen on 127.0.0.1, and let the proxy connect there");
            self.problem(flaw);
        }
        true
    }

    /// Returns the pair of a key that this scheme has in this role.
    fn pair<T>(&self, key: &Key<T>) -> Option<&'e Pair> {
        let mut params = self.written.params();
        let has =
            params.any(|param| param.setting.name() == key.name && param.roles.has(self.role));
        self.param(key).filter(|_| has)
    }

    /// Returns the plugin, which must carry at least one of the transports.
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
            let flaw = Flaw::new(span, "no transport goes through the plugin")
                .help("`plugin_mode` selects its transports, `tcp` and `udp` turn them on or off");
            self.problem(flaw);
        }
        Some(Plugin {
            program: written.program,
            options: written.options,
            mode,
        })
    }
}

/// Returns the error of a wrong value.
pub(crate) fn bad_value(key: &str, span: Span, expected: String) -> Flaw {
    Flaw::new(span, format!("bad value for `{key}`")).label(expected)
}
