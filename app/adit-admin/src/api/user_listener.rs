//! The listeners that have users, and the credentials of a user at each of them.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use adit_config::text::escape;
use adit_config::{SystemSources, link, read_users};
use adit_engine::{KeyedServer, ProxyServer};
use adit_net::system::SystemRng;
use adit_shadowsocks::{Key, Method};
use adit_wire::{Entropy, Host, Target};
use hyper::StatusCode;
use zeroize::Zeroizing;

use super::account_client::IssuedCredential;
use super::given_secrets::GivenSecrets;
use super::reply::Refusal;
use super::users_file::{self, UserChange};
use super::{Api, ServerSettings, subscription};
use crate::outgoing_address::outgoing_address;

/// A key or password.
pub(super) type UserSecret = Zeroizing<String>;

/// A listener that has users.
pub(super) struct UserListener {
    /// The name of its route, with the port if the route has several such listeners.
    pub(super) name: String,
    /// The name with the port.
    long_name: String,
    kind: ListenerUsers,
}

/// The users of a listener.
enum ListenerUsers {
    Keyed(KeyedServer, ServerSettings),
    Proxy(ProxyServer),
}

/// The place where a user of a listener is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserOrigin {
    /// A file or table of users.
    List,
    /// The URL of the listener.
    Url,
}

/// The secrets that were created for one user: listeners with the same kind of key share one, so that one subscription
/// has all of them.
#[derive(Default)]
pub(super) struct NewSecrets<'g> {
    known: Vec<(Option<Method>, UserSecret)>,
    /// The secrets that are used where they fit.
    given: Option<&'g GivenSecrets>,
}

impl<'g> NewSecrets<'g> {
    /// Uses these secrets where they fit, and new ones elsewhere.
    pub(super) const fn with_given(given: &'g GivenSecrets) -> Self {
        Self {
            known: Vec::new(),
            given: Some(given),
        }
    }

    /// Returns the secret for a listener.
    pub(super) fn get(&mut self, listener: &UserListener) -> UserSecret {
        let method = listener.method();
        if let Some(given) = self.given.and_then(|given| given.secret_for(method)) {
            return Zeroizing::new(given.to_owned());
        }
        let fits = |known: Option<Method>, secret: &str| match (known, method) {
            (Some(known), Some(method)) => {
                known.edition() == method.edition() && Key::parse(method, secret).is_ok()
            }
            // A proxy's password crosses networks in clear text, and is never a key.
            (known, method) => known.is_none() && method.is_none(),
        };
        let mut known = self.known.iter();
        if let Some((_, secret)) = known.find(|(known, secret)| fits(*known, secret)) {
            return secret.clone();
        }
        let secret = match method {
            Some(method) => Zeroizing::new(Key::generate(method, &mut SystemRng).1),
            None => generate_password(),
        };
        self.known.push((method, secret.clone()));
        secret
    }
}

/// Returns 128 random bits in hexadecimal.
fn generate_password() -> UserSecret {
    let mut bits = Zeroizing::new([0u8; 16]);
    SystemRng.fill(&mut *bits);
    Zeroizing::new(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Api {
    /// Returns all listeners that have users, or could have.
    pub(super) fn user_listeners(&self) -> Vec<UserListener> {
        let keyed = self.servers_with_settings().into_iter();
        let keyed = keyed.map(|(server, settings)| ListenerUsers::Keyed(server, settings));
        let proxies = self.engine.proxy_servers().into_iter();
        let all: Vec<ListenerUsers> = keyed.chain(proxies.map(ListenerUsers::Proxy)).collect();
        let mut times: HashMap<String, usize> = HashMap::new();
        for kind in &all {
            *times.entry(kind.route().to_owned()).or_default() += 1;
        }
        let named = |kind: ListenerUsers| {
            let long_name = format!("{}:{}", kind.route(), kind.addr().port());
            let name = match times.get(kind.route()) {
                Some(1) => kind.route().to_owned(),
                _ => long_name.clone(),
            };
            UserListener {
                name,
                long_name,
                kind,
            }
        };
        all.into_iter().map(named).collect()
    }

    /// Writes the credentials of a user, or removes them, and applies the change.
    pub(super) async fn change_listener_user(
        &self,
        listener: &UserListener,
        change: UserChange,
    ) -> Result<(), Refusal> {
        let failed = |why: String| {
            Refusal::new(
                StatusCode::CONFLICT,
                format!("listener `{}`: {why}", listener.name),
            )
        };
        match &listener.kind {
            ListenerUsers::Keyed(server, _) => {
                let changed = self.apply_change(server, change).await;
                changed.map_err(|refusal| failed(refusal.error))
            }
            ListenerUsers::Proxy(server) => {
                let users = server.users.clone();
                let work = move || {
                    users.change_file(|| users_file::write_password_change(&users, &change))
                };
                let changed = tokio::task::spawn_blocking(work).await;
                changed
                    .unwrap_or_else(|why| Err(why.to_string()))
                    .map(drop)
                    .map_err(failed)
            }
        }
    }

    /// Returns a user's credentials as clients need them. `host` is the one that clients connect to.
    pub(super) fn issued_credential(
        &self,
        listener: &UserListener,
        name: &str,
        secret: &str,
        host: Option<&Host>,
    ) -> IssuedCredential {
        let url = listener.client_url(name, secret, host.or(self.public_host.as_ref()));
        let subscription = match &listener.kind {
            ListenerUsers::Keyed(_, settings) => {
                let is_served = settings.identity.is_some() && settings.is_plain;
                (is_served && self.public_host.is_some())
                    .then(|| subscription::subscription_path(name, secret))
            }
            ListenerUsers::Proxy(_) => None,
        };
        IssuedCredential {
            listener: listener.name.clone(),
            secret: secret.to_owned(),
            note: match (&url, listener.is_lasting()) {
                (None, _) => Some(
                    "clients need a plugin or a carrier, whose settings are part of their URL"
                        .to_owned(),
                ),
                (_, false) => Some(
                    "a restart forgets this user, who is not in a file: `users=@FILE`".to_owned(),
                ),
                _ => None,
            },
            url,
            subscription,
        }
    }
}

impl ListenerUsers {
    fn route(&self) -> &str {
        match self {
            Self::Keyed(server, _) => &server.listening.route,
            Self::Proxy(server) => &server.listening.route,
        }
    }

    const fn addr(&self) -> SocketAddr {
        match self {
            Self::Keyed(server, _) => server.listening.addr,
            Self::Proxy(server) => server.listening.addr,
        }
    }
}

impl UserListener {
    /// Returns true if this is the name of the listener.
    pub(super) fn is_named(&self, name: &str) -> bool {
        name == self.name || name == self.long_name
    }

    /// Returns the method of a keyed listener.
    pub(super) fn method(&self) -> Option<Method> {
        match &self.kind {
            ListenerUsers::Keyed(server, _) => Some(server.user_table.users().method()),
            ListenerUsers::Proxy(_) => None,
        }
    }

    /// Returns the reason why users cannot be added, if there is one.
    pub(super) fn reason_fixed(&self) -> Option<&'static str> {
        match &self.kind {
            ListenerUsers::Keyed(server, _) if server.user_table.has_fleet_users() => {
                Some("its users are those of the fleet: `adit fleet user` changes them")
            }
            ListenerUsers::Keyed(server, _) => (!server.user_table.users().has_names())
                .then_some("it has a single key and no users: add `users=@FILE` to its URL"),
            ListenerUsers::Proxy(server) => server
                .users
                .file()
                .is_none()
                .then_some("it has no file of users: add `users=@FILE` to its URL"),
        }
    }

    /// Returns the reason why the listener has no user of this name, if the name is not possible there.
    pub(super) fn check_name(&self, name: &str) -> Result<(), String> {
        match self.kind {
            ListenerUsers::Proxy(_) if name.contains(':') || name.starts_with('#') => Err(format!(
                "in the file of users of listener `{}`, a name has no `:` and does not begin with `#`",
                self.name
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if changes of users survive a restart.
    fn is_lasting(&self) -> bool {
        match &self.kind {
            ListenerUsers::Keyed(server, _) => server.user_table.file().is_some(),
            ListenerUsers::Proxy(_) => true,
        }
    }

    /// Returns the place where a user is defined; `None` if there is no such user.
    pub(super) fn origin_of(&self, name: &str) -> Option<UserOrigin> {
        match &self.kind {
            ListenerUsers::Keyed(server, _) => {
                let users = server.user_table.users();
                let found = users.has_names().then(|| users.find_by_name(name))?;
                found.map(|_| UserOrigin::List)
            }
            ListenerUsers::Proxy(server) if server.users.name_in_url() == Some(name) => {
                Some(UserOrigin::Url)
            }
            ListenerUsers::Proxy(server) => {
                let names = server.users.names_in_file();
                names
                    .iter()
                    .any(|known| known == name)
                    .then_some(UserOrigin::List)
            }
        }
    }

    /// Calls `each` with the name of each user.
    pub(super) fn for_each_name(&self, mut each: impl FnMut(&str)) {
        match &self.kind {
            ListenerUsers::Keyed(server, _) => {
                let users = server.user_table.users();
                if users.has_names() {
                    users.iter().for_each(|user| each(user.name()));
                }
            }
            ListenerUsers::Proxy(server) => {
                server.users.name_in_url().into_iter().for_each(&mut each);
                server
                    .users
                    .names_in_file()
                    .iter()
                    .for_each(|name| each(name));
            }
        }
    }

    /// Returns the key or password of a user who is in a list; `None` if it is not known, because only what is derived
    /// from it is in memory and there is no file.
    pub(super) async fn secret_of(&self, name: &str) -> Option<UserSecret> {
        match &self.kind {
            ListenerUsers::Keyed(server, settings) => {
                let users = server.user_table.users();
                let user = users.find_by_name(name)?;
                if let Some(secret) = users.secret_text(user.id()) {
                    return Some(Zeroizing::new(secret.expose().as_str().to_owned()));
                }
                let (path, method) = (server.user_table.file()?, users.method());
                let (name, identity) = (name.to_owned(), settings.identity.clone());
                let work = move || {
                    let read = read_users(method, identity.as_ref(), &path, &SystemSources);
                    let found = read.ok()?.into_iter().find(|user| user.name == name)?;
                    Some(Zeroizing::new(found.secret.expose().to_owned()))
                };
                tokio::task::spawn_blocking(work).await.ok()?
            }
            ListenerUsers::Proxy(server) => {
                let (users, name) = (Arc::clone(&server.users), name.to_owned());
                let work = move || {
                    let found = users.read_file().ok()?;
                    let found = found.into_iter().find(|login| login.user == name)?;
                    Some(Zeroizing::new(found.password.expose().to_owned()))
                };
                tokio::task::spawn_blocking(work).await.ok()?
            }
        }
    }

    /// Returns the keys or passwords of those among `names` who are in a list, as far as they are known.
    pub(super) async fn secrets_of(&self, names: &[&str]) -> HashMap<String, UserSecret> {
        let listed = names
            .iter()
            .filter(|name| self.origin_of(name) == Some(UserOrigin::List));
        let mut wanted: HashSet<String> = listed.map(|name| (*name).to_owned()).collect();
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return found;
        }
        match &self.kind {
            ListenerUsers::Keyed(server, settings) => {
                let users = server.user_table.users();
                wanted.retain(|name| {
                    let user = users.find_by_name(name);
                    let secret = user.and_then(|user| users.secret_text(user.id()));
                    match secret {
                        Some(secret) => {
                            let secret = Zeroizing::new(secret.expose().as_str().to_owned());
                            found.insert(name.clone(), secret);
                            false
                        }
                        None => true,
                    }
                });
                let Some(path) = server.user_table.file().filter(|_| !wanted.is_empty()) else {
                    return found;
                };
                let (method, identity) = (users.method(), settings.identity.clone());
                let work = move || {
                    let read = read_users(method, identity.as_ref(), &path, &SystemSources);
                    let each = read.unwrap_or_default().into_iter();
                    let each = each.filter(|user| wanted.contains(&user.name));
                    each.map(|user| (user.name, Zeroizing::new(user.secret.expose().to_owned())))
                        .collect::<Vec<_>>()
                };
                found.extend(tokio::task::spawn_blocking(work).await.unwrap_or_default());
            }
            ListenerUsers::Proxy(server) => {
                let users = Arc::clone(&server.users);
                let work = move || {
                    let each = users.read_file().unwrap_or_default().into_iter();
                    let each = each.filter(|login| wanted.contains(&login.user));
                    each.map(|login| {
                        let password = Zeroizing::new(login.password.expose().to_owned());
                        (login.user, password)
                    })
                    .collect::<Vec<_>>()
                };
                found.extend(tokio::task::spawn_blocking(work).await.unwrap_or_default());
            }
        }
        found
    }

    /// Checks that the listener could have these users and secrets.
    pub(super) fn check_changes(&self, put: &[(&str, &str)]) -> Result<(), String> {
        match &self.kind {
            ListenerUsers::Keyed(server, _) => {
                let users = server.user_table.users();
                let changed = users.with_changes(&[], put);
                changed
                    .map(drop)
                    .map_err(|why| format!("listener `{}`: {why}", self.name))
            }
            ListenerUsers::Proxy(_) => Ok(()),
        }
    }

    /// Returns the URL for a client; `None` if it depends on settings that only the operator knows.
    fn client_url(&self, name: &str, secret: &str, public: Option<&Host>) -> Option<String> {
        let addr = self.kind.addr();
        let host = match public {
            Some(host) => host.clone(),
            None if addr.ip().is_unspecified() => {
                Host::Ip(outgoing_address().unwrap_or_else(|| addr.ip()))
            }
            None => Host::Ip(addr.ip()),
        };
        match &self.kind {
            ListenerUsers::Keyed(server, settings) => {
                if !settings.is_plain || !settings.tcp {
                    return None;
                }
                let key = match &settings.identity {
                    Some(identity) => Zeroizing::new(format!("{}:{secret}", identity.expose())),
                    None => Zeroizing::new(secret.to_owned()),
                };
                let method = server.user_table.users().method();
                let mut url = link::shadowsocks_link(method, &key, &host, addr.port());
                if !settings.udp {
                    url.push_str("?udp=false");
                }
                Some(url)
            }
            ListenerUsers::Proxy(server) => {
                let scheme = match server.users.accepts_socks() {
                    true => "socks5",
                    false => "http",
                };
                // Only this machine can reach a port of it.
                let host = match addr.ip().is_loopback() {
                    true => Host::Ip(addr.ip()),
                    false => host,
                };
                let (user, password) = (escape::encode_part(name), escape::encode_part(secret));
                let at = Target::new(host, addr.port());
                server
                    .users
                    .is_plain()
                    .then(|| format!("{scheme}://{user}:{password}@{at}"))
            }
        }
    }
}
