//! Builds typed values from an endpoint: reads keys and addresses, and reports errors.

pub(crate) mod secret_files;

use core::time::Duration;

use adit_wire::Target;

use crate::grammar::{Endpoint, QueryPair};
use crate::schema::{EndpointRole, ParamKey, Typed};
use crate::scheme::definition::{Carrier, Scheme, SchemeWithCarrier};
use crate::scheme::endpoint_types::{ListenAddr, ListenerLimits, Plugin, UdpTransport};
use crate::scheme::key_files::{KeyEntry, NextServer};
use crate::scheme::shared_keys;
use crate::text::{
    ConfigError, Diagnostics, Problem, SecretLookup, Span, UrlSnippet, WarningKind, format_duration,
};

/// An endpoint with its role, and the diagnostics for its errors.
pub(crate) struct EndpointBuilder<'d, 'e> {
    diagnostics: &'d mut Diagnostics,
    lookup: SecretLookup<'e>,
    endpoint: &'e Endpoint,
    /// The position of the endpoint in its document.
    excerpt: UrlSnippet<'e>,
    /// Scheme and carrier.
    written: SchemeWithCarrier,
    role: EndpointRole,
    /// Keys beside the URL.
    table: Option<KeyTable>,
}

/// The table of keys that a file has for the Shadowsocks listener of a route. Spans refer to the file.
#[derive(Debug)]
pub(crate) struct KeyTable {
    /// The keys.
    pub(crate) entries: KeyTableEntries,
    /// The position of the table's name.
    pub(crate) at: Span,
}

/// The content of a table of keys.
#[derive(Debug)]
pub(crate) enum KeyTableEntries {
    /// Users.
    Users(Vec<KeyEntry>),
    /// Next servers of a relay.
    Relay(Vec<NextServer>),
}

impl<'d, 'e> EndpointBuilder<'d, 'e> {
    /// Creates a builder for an endpoint whose scheme has this role.
    pub(crate) const fn new(
        diagnostics: &'d mut Diagnostics,
        lookup: SecretLookup<'e>,
        endpoint: &'e Endpoint,
        excerpt: UrlSnippet<'e>,
        written: SchemeWithCarrier,
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
    pub(crate) const fn written(&self) -> SchemeWithCarrier {
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
    pub(crate) fn url_form(&self) -> String {
        self.written.url_form(self.role)
    }

    /// Returns the endpoint.
    pub(crate) const fn endpoint(&self) -> &'e Endpoint {
        self.endpoint
    }

    /// Reports an error in the URL.
    pub(crate) fn report_error(&mut self, flaw: ConfigError) {
        self.diagnostics.add_url_error(&self.excerpt, flaw);
    }

    /// Reports an error whose span counts from the start of the whole document.
    pub(crate) fn report_document_error(&mut self, flaw: ConfigError) {
        self.diagnostics.add_error(self.excerpt.document(), flaw);
    }

    /// Reports problems of another document.
    pub(crate) fn report_problems(&mut self, problems: Vec<Problem>) {
        for problem in problems {
            self.diagnostics.add_problem(problem);
        }
    }

    /// Adds a warning about the URL.
    pub(crate) fn add_warning(&mut self, kind: WarningKind, flaw: ConfigError) {
        self.diagnostics
            .add_warning(kind, self.excerpt.locate_error(flaw));
    }

    /// Returns the value of a key, or its default if it is not written, not in the table of this scheme
    /// and role, or wrong (which is reported).
    pub(crate) fn get<T: Typed>(&mut self, key: &ParamKey<T>) -> T {
        let Some(pair) = self.pair_in_role(key) else {
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
                self.report_error(bad_value_error(&pair.key.value, span, expected));
                key.default.clone()
            }
        }
    }

    /// Returns the pair of a key, in either spelling.
    pub(crate) fn param<T>(&self, key: &ParamKey<T>) -> Option<&'e QueryPair> {
        let endpoint = self.endpoint;
        let also = || key.alias.and_then(|alias| endpoint.param(alias));
        endpoint.param(key.name).or_else(also)
    }

    /// Returns the position of a key's value, or of the address if the key is not written.
    pub(crate) fn value_span<T>(&self, key: &ParamKey<T>) -> Span {
        let pair = self.param(key);
        pair.map_or(self.endpoint.address, |pair| pair.value.span)
    }

    /// Returns the position of a key, or of the address if it is not written.
    pub(crate) fn key_span<T>(&self, key: &ParamKey<T>) -> Span {
        let pair = self.param(key);
        pair.map_or(self.endpoint.address, |pair| pair.key.span)
    }

    /// Returns the position of the user, or of the address if there is none.
    pub(crate) fn user_span(&self) -> Span {
        let user = self.endpoint.user.as_ref();
        user.map_or(self.endpoint.address, |user| user.span)
    }

    /// Reports a target, for schemes without one.
    pub(crate) fn check_no_target(&mut self) {
        if let Some(target) = &self.endpoint.target {
            let title = format!("`{}://` has no target", self.written);
            let flaw = ConfigError::new(target.span, title)
                .with_help(format!("write `{}`", self.url_form()));
            self.report_error(flaw);
        }
    }

    /// Reports a user, for schemes without one.
    pub(crate) fn check_no_user(&mut self) {
        if let Some(user) = &self.endpoint.user {
            let title = format!("`{}://` has no users", self.written);
            self.report_error(ConfigError::new(user.span, title));
        }
    }

    /// Returns host and port of a server, which are both required.
    pub(crate) fn server(&mut self) -> Option<Target> {
        self.server_with_default_port(None)
    }

    /// Returns host and port of a server. `usual` is the default port.
    pub(crate) fn server_with_default_port(&mut self, usual: Option<u16>) -> Option<Target> {
        let endpoint = self.endpoint;
        let form = format!("write `{}`", self.url_form());
        let Some(host) = &endpoint.host else {
            let flaw = ConfigError::new(endpoint.address, "the host is missing").with_help(form);
            self.report_error(flaw);
            return None;
        };
        let written = endpoint.port.as_ref().map(|port| port.value);
        match (&endpoint.port, written.or(usual)) {
            (_, Some(port)) if port != 0 => Some(Target::new(host.value.clone(), port)),
            (Some(port), _) => {
                self.report_error(ConfigError::new(
                    port.span,
                    "the port of a server cannot be 0",
                ));
                None
            }
            (None, _) => {
                let flaw =
                    ConfigError::new(endpoint.address, "the port is missing").with_help(form);
                self.report_error(flaw);
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
            let flaw = ConfigError::new(endpoint.address, "the port is missing")
                .with_help(format!("write `{}`", self.url_form()))
                .with_help("port 0 means any free port");
            self.report_error(flaw);
            return None;
        };
        Some(ListenAddr {
            host: endpoint.host.as_ref().map(|host| host.value.clone()),
            port: port.value,
        })
    }

    /// Returns the limits of a listener.
    pub(crate) fn read_limits(&mut self) -> ListenerLimits {
        ListenerLimits {
            handshake: self.get(&shared_keys::HANDSHAKE),
            dial: self.get(&shared_keys::DIAL),
            idle: self.get(&shared_keys::IDLE),
            half_close_idle: self.get(&shared_keys::HALF_CLOSE_IDLE),
            udp_idle: self.get(&shared_keys::UDP_IDLE),
            max_connections: self.get(&shared_keys::MAX_CONNECTIONS).map(|count| count.0),
        }
    }

    /// Returns the maximum wait for first bytes that can be sent with the request.
    pub(crate) fn read_first_wait(&mut self) -> Duration {
        let wait = self.get(&shared_keys::FIRST_WAIT).0;
        let dial = self.get(&shared_keys::DIAL);
        if wait > dial {
            let span = self.value_span(&shared_keys::FIRST_WAIT);
            let flaw = ConfigError::new(span, "`first_wait` is longer than the time to dial");
            self.report_error(flaw.with_label(format!("`dial` is {}", format_duration(dial))));
        }
        wait
    }

    /// Returns the transports of a keyed listener, TCP and UDP, and its plugin. UDP in streams is always
    /// served and needs no separate socket.
    pub(crate) fn served_transports(&mut self) -> (bool, bool, Option<Plugin>) {
        let tcp = self.get(&shared_keys::TCP);
        let udp = self.get(&shared_keys::SS_UDP) == UdpTransport::Native;
        if !tcp && !udp {
            let span = self.value_span(&shared_keys::SS_UDP);
            self.report_error(ConfigError::new(span, "both TCP and UDP are off"));
        }
        (tcp, udp, self.read_plugin(tcp, udp))
    }

    /// True if connections come from a proxy on this machine, to `addr` or through a plugin there. Other
    /// machines must not reach the listener: they could claim any client address.
    pub(crate) fn read_proxy_protocol(&mut self, addr: Option<&ListenAddr>, plugin: bool) -> bool {
        if !self.get(&shared_keys::PROXY_PROTOCOL) {
            return false;
        }
        let span = self.value_span(&shared_keys::PROXY_PROTOCOL);
        if self.carrier().is_some() {
            self.report_error(ConfigError::new(
                span,
                "the PROXY protocol is for TCP connections",
            ));
        } else if !plugin && addr.is_some_and(|addr| !addr.is_loopback()) {
            let flaw = ConfigError::new(span, "the PROXY protocol is for a proxy on this machine")
                .with_label("other machines can reach this listener, too")
                .with_help("listen on 127.0.0.1, and let the proxy connect there");
            self.report_error(flaw);
        }
        true
    }

    /// Returns the pair of a key that this scheme has in this role.
    fn pair_in_role<T>(&self, key: &ParamKey<T>) -> Option<&'e QueryPair> {
        let mut params = self.written.params();
        let has = params
            .any(|param| param.setting.name() == key.name && param.roles.includes_role(self.role));
        self.param(key).filter(|_| has)
    }

    /// Returns the plugin, which must carry at least one of the transports.
    pub(crate) fn read_plugin(&mut self, tcp: bool, udp: bool) -> Option<Plugin> {
        let mode = self.get(&shared_keys::PLUGIN_MODE);
        let Some(written) = self.get(&shared_keys::PLUGIN) else {
            let endpoint = self.endpoint();
            if let Some(pair) = endpoint.param(shared_keys::PLUGIN_MODE.name)
                && endpoint.param(shared_keys::PLUGIN.name).is_none()
            {
                let about = ConfigError::new(pair.key.span, "`plugin_mode` without a plugin")
                    .with_label("ignored");
                self.add_warning(WarningKind::IgnoredKey, about);
            }
            return None;
        };
        if !(tcp && mode.tcp() || udp && mode.udp()) {
            let span = self.value_span(&shared_keys::PLUGIN_MODE);
            let flaw = ConfigError::new(span, "no transport goes through the plugin").with_help(
                "`plugin_mode` selects its transports, `tcp` and `udp` turn them on or off",
            );
            self.report_error(flaw);
        }
        Some(Plugin {
            program: written.program,
            options: written.options,
            mode,
        })
    }
}

/// Returns the error of a wrong value.
pub(crate) fn bad_value_error(key: &str, span: Span, expected: String) -> ConfigError {
    ConfigError::new(span, format!("bad value for `{key}`")).with_label(expected)
}
