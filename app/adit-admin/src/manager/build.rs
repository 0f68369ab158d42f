//! Conversion of `add` to a route.

use std::net::{IpAddr, Ipv4Addr};

use adit_config::{
    Chain, ListenAddr, ListenerConfig, ListenerKind, Plan, Plugin, PluginMode, Problem, Route,
    SsRole, SsServer, SsUser, WarningKind, link,
};
use adit_convert::AllowedPlugins;
use adit_shadowsocks::Method;
use adit_wire::Host;
use tracing::warn;
use zeroize::Zeroizing;

use super::command::{AddServerRequest, User};
use crate::untrusted_text::{NoExternalSources, is_user_name, join_titles};

/// The host of URLs whose host is replaced or ignored.
const HERE: Host = Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// The settings that servers share, and the limits of `add`.
#[derive(Debug)]
pub struct Settings {
    /// The addresses of each server, at least one; `None` stands for all addresses.
    pub hosts: Vec<Option<Host>>,
    /// The method of servers that do not name one.
    pub method: Method,
    /// The traffic of servers that do not specify a mode.
    pub mode: Mode,
    /// The plugin of servers that do not name one, and its options.
    pub plugin: Option<(String, String)>,
    /// The other plugins that servers may name. A plugin is a program with the rights of this process.
    pub plugins: AllowedPlugins,
    /// Private destinations that clients may reach: networks, `all` or `none`.
    pub private: Option<String>,
}

/// The traffic that a server carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Connections.
    TcpOnly,
    /// Datagrams.
    UdpOnly,
    /// Both.
    TcpAndUdp,
}

/// The reason why a command does not describe a server. The text is sent to the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerSpecError {
    #[error("unknown method `{0}`")]
    Method(String),
    #[error("unknown {0}: expected tcp_only, udp_only or tcp_and_udp")]
    Mode(&'static str),
    #[error("the plugin is not allowed: the manager's --allow-plugin lists the allowed ones")]
    Plugin,
    #[error("the plugin's name and options must not contain a zero byte")]
    Zero,
    #[error("no traffic of this mode goes through the plugin")]
    IdlePlugin,
    #[error("users need 2022-blake3-aes-128-gcm or 2022-blake3-aes-256-gcm, not {0}")]
    Users(Method),
    #[error("users of ShadowsocksR belong into `protocol_param`, not into `users`")]
    UsersOfSsr,
    #[error("a user name has 1 to 255 bytes and no control characters")]
    Name,
    #[error("{0}")]
    Config(String),
}

impl Mode {
    /// Returns the mode with this name, as shadowsocks-libev spells it.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "tcp_only" => Some(Self::TcpOnly),
            "udp_only" => Some(Self::UdpOnly),
            "tcp_and_udp" => Some(Self::TcpAndUdp),
            _ => None,
        }
    }

    const fn tcp(self) -> bool {
        !matches!(self, Self::UdpOnly)
    }

    const fn udp(self) -> bool {
        !matches!(self, Self::TcpOnly)
    }
}

impl Settings {
    /// Checks the settings.
    pub fn check(&self) -> Result<(), Vec<Problem>> {
        let trial = link::shadowsocks_link(Method::Aes128Gcm, "trial", &HERE, 1);
        Plan::from_words_with(&[self.with_private(trial)], &NoExternalSources).map(drop)
    }

    fn with_private(&self, mut url: String) -> String {
        if let Some(private) = &self.private {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str("allow_private=");
            url.push_str(private);
        }
        url
    }
}

/// Returns the method of a server.
pub(crate) fn method(
    add: &AddServerRequest,
    settings: &Settings,
) -> Result<Method, ServerSpecError> {
    let Some(name) = &add.method else {
        return Ok(settings.method);
    };
    let shown = || {
        name.chars()
            .take(64)
            .flat_map(char::escape_default)
            .collect()
    };
    name.parse().map_err(|_| ServerSpecError::Method(shown()))
}

/// Returns the method name of a server that was added.
pub(crate) fn method_name<'a>(add: &'a AddServerRequest, settings: &Settings) -> &'a str {
    match (&add.ssr, &add.method) {
        (Some(_), Some(method)) => method,
        // The server was added, so its method is valid.
        _ => method(add, settings).map_or("", Method::name),
    }
}

/// Returns the route of a server, named by its port.
pub(crate) fn route(add: &AddServerRequest, settings: &Settings) -> Result<Route, ServerSpecError> {
    let mode = match &add.mode {
        None => settings.mode,
        Some(text) => Mode::named(text).ok_or(ServerSpecError::Mode("mode"))?,
    };
    let plugin = plugin(add, settings, mode)?;
    let mut listen = Vec::with_capacity(settings.hosts.len());
    for host in &settings.hosts {
        let mut one = listener(add, settings, listen.is_empty())?;
        one.addr = ListenAddr {
            host: host.clone(),
            port: add.port,
        };
        match &mut one.kind {
            ListenerKind::Shadowsocks(server) => {
                server.tcp = mode.tcp();
                server.udp = mode.udp();
                server.plugin.clone_from(&plugin);
                serve_users(server, &add.users)?;
            }
            ListenerKind::ShadowsocksR(_) if !add.users.is_empty() => {
                return Err(ServerSpecError::UsersOfSsr);
            }
            ListenerKind::ShadowsocksR(server) => {
                server.tcp = mode.tcp();
                server.udp = mode.udp();
                server.plugin.clone_from(&plugin);
            }
            _ => {}
        }
        listen.push(one);
    }
    Ok(Route {
        name: add.port.to_string(),
        listen,
        via: Chain::default(),
        rules: Vec::new(),
        dns: None,
    })
}

/// Returns the listener for the method and key, with a checked key and default limits.
fn listener(
    add: &AddServerRequest,
    settings: &Settings,
    warns: bool,
) -> Result<ListenerConfig, ServerSpecError> {
    // The caller sets the address.
    let password = add.password.expose();
    let url = match &add.ssr {
        None => link::shadowsocks_link(method(add, settings)?, password, &HERE, add.port),
        Some(ssr) => {
            let own = settings.method.name();
            let method = add.method.as_deref().unwrap_or(own);
            let keys = [
                ("protocol", &*ssr.protocol),
                ("protocol_param", ssr.protocol_param.expose()),
                ("obfs", &ssr.obfs),
                ("obfs_param", &ssr.obfs_param),
            ];
            let said: Vec<_> = keys
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect();
            link::shadowsocksr_url(method, password, &HERE, add.port, &said)
        }
    };
    let words = Zeroizing::new(vec![settings.with_private(url)]);
    let plan = Plan::from_words_with(&words, &NoExternalSources);
    let mut plan = plan.map_err(|problems| ServerSpecError::Config(join_titles(&problems)))?;
    // The key was in a datagram, so no command line shows it.
    let told = plan.warnings.iter();
    let told = told.filter(|told| told.kind != WarningKind::LiteralSecret);
    for warning in told.filter(|_| warns) {
        warn!("the server on port {}: {}", add.port, warning.about.title);
    }
    let listen = plan.routes.pop().and_then(|mut route| route.listen.pop());
    listen.ok_or_else(|| ServerSpecError::Config("no address to listen on".to_owned()))
}

/// Turns the password into the server's key, and adds the keys of the users.
fn serve_users(server: &mut SsServer, users: &[User]) -> Result<(), ServerSpecError> {
    if users.is_empty() {
        return Ok(());
    }
    if !server.method.has_identities() {
        return Err(ServerSpecError::Users(server.method));
    }
    let mut list = Vec::with_capacity(users.len());
    for user in users {
        if !is_user_name(&user.name) {
            return Err(ServerSpecError::Name);
        }
        list.push(SsUser {
            name: user.name.clone(),
            secret: user.password.expose().into(),
        });
    }
    if let SsRole::Single(secret) = &mut server.role {
        server.role = SsRole::Users {
            identity: Some(std::mem::take(secret)),
            users: list,
            file: None,
        };
    }
    Ok(())
}

fn plugin(
    add: &AddServerRequest,
    settings: &Settings,
    carried: Mode,
) -> Result<Option<Plugin>, ServerSpecError> {
    let own = settings.plugin.as_ref();
    let (program, options) = match (&add.plugin, own) {
        (None, None) => return Ok(None),
        (None, Some((program, options))) => (program, options.as_str()),
        (Some(named), own) => {
            if own.is_none_or(|(program, _)| program != named) && !settings.plugins.allows(named) {
                return Err(ServerSpecError::Plugin);
            }
            (named, "")
        }
    };
    let options = add.plugin_opts.as_deref().unwrap_or(options);
    if program.contains('\0') || options.contains('\0') {
        return Err(ServerSpecError::Zero);
    }
    let mode = match add.plugin_mode.as_deref().map(Mode::named) {
        None | Some(Some(Mode::TcpOnly)) => PluginMode::TcpOnly,
        Some(Some(Mode::UdpOnly)) => PluginMode::UdpOnly,
        Some(Some(Mode::TcpAndUdp)) => PluginMode::TcpAndUdp,
        Some(None) => return Err(ServerSpecError::Mode("plugin_mode")),
    };
    if !(carried.tcp() && mode.tcp() || carried.udp() && mode.udp()) {
        return Err(ServerSpecError::IdlePlugin);
    }
    Ok(Some(Plugin {
        program: program.clone(),
        options: options.to_owned(),
        mode,
    }))
}
