//! Routing of requests.

use std::collections::HashMap;

use adit_engine::KeyedServer;
use adit_net::system;
use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::access::{TokenScope, check_json, check_source};
use super::accounts::AccountResource;
use super::dashboard::{self, DashboardPart};
use super::reply::{ApiResult, Refusal, Reply};
use super::subscription::DocumentRequest;
use super::{Api, stats};

/// The name and version of the program in the answer to `GET /`.
const PROGRAM_VERSION: &str = concat!("adit/", env!("CARGO_PKG_VERSION"));

const NO_REVEAL: &str = "`reveal` needs a token that may read keys: add `reveal` after it in the \
                         file of --admin-token";

/// A request whose body has not been read.
#[derive(Debug)]
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    /// True if it arrived at a port, which all users of this machine can reach.
    pub(crate) by_port: bool,
}

/// The action that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Health,
    Readiness,
    Metrics,
    Reload,
    Upgrade,
    Import,
    Subscription {
        name: String,
        secret: String,
    },
    Servers,
    Dns,
    Fleet,
    Groups,
    Group(String),
    Overview,
    History,
    Events,
    Sessions,
    Session(u64),
    Accounts(AccountResource),
    Dashboard(DashboardPart),
    Server {
        server: Option<String>,
        about: Resource,
    },
}

/// A request that passed the access checks.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) action: Action,
    /// The rights of a request that is authorized to use the API.
    pub(crate) scope: Option<TokenScope>,
}

/// The resource of a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Info,
    Users,
    User(String),
    Stats,
}

#[derive(Serialize)]
struct ApiInfo<'a> {
    server: &'a str,
    #[serde(rename = "apiVersion")]
    version: &'a str,
}

#[derive(Serialize)]
struct ServerInfo {
    name: String,
    listen: String,
    method: &'static str,
    users: Option<usize>,
    api: String,
}

/// Returns the action of a path.
pub(crate) fn action_for_path(path: &str) -> Option<Action> {
    let decoded: Option<Vec<String>> = path
        .strip_prefix('/')?
        .split('/')
        .map(|part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned()))
        .collect();
    let decoded = decoded?;
    let mut parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    // `…/users/` is the same as `…/users`.
    while parts.last() == Some(&"") {
        parts.pop();
    }
    match parts.as_slice() {
        ["healthz"] => return Some(Action::Health),
        ["readyz"] => return Some(Action::Readiness),
        ["metrics"] => return Some(Action::Metrics),
        ["servers"] => return Some(Action::Servers),
        ["v1", "reload"] => return Some(Action::Reload),
        ["dns"] => return Some(Action::Dns),
        ["v1", "upgrade"] => return Some(Action::Upgrade),
        ["v1", "import"] => return Some(Action::Import),
        ["fleet"] => return Some(Action::Fleet),
        ["groups"] => return Some(Action::Groups),
        ["groups", name] => return Some(Action::Group((*name).to_owned())),
        ["dashboard", rest @ ..] => return DashboardPart::of_path(rest).map(Action::Dashboard),
        ["overview"] => return Some(Action::Overview),
        ["history"] => return Some(Action::History),
        ["events"] => return Some(Action::Events),
        ["sessions"] => return Some(Action::Sessions),
        ["sessions", id] => return id.parse().ok().map(Action::Session),
        ["accounts", rest @ ..] => return AccountResource::of_path(rest).map(Action::Accounts),
        ["sip008", name, secret] => {
            return Some(Action::Subscription {
                name: (*name).to_owned(),
                secret: (*secret).to_owned(),
            });
        }
        _ => {}
    }
    let (server, rest) = match parts.as_slice() {
        ["servers", server, "v1", rest @ ..] => (Some((*server).to_owned()), rest),
        ["v1", rest @ ..] => (None, rest),
        rest => (None, rest),
    };
    let about = match rest {
        [] => Resource::Info,
        ["users"] => Resource::Users,
        ["users", name] => Resource::User((*name).to_owned()),
        ["stats"] => Resource::Stats,
        _ => return None,
    };
    Some(Action::Server { server, about })
}

impl Api {
    /// Checks whether a request is allowed, before its body is read.
    pub(crate) fn authorize(&self, ask: &RequestHead<'_>) -> Result<Admitted, Refusal> {
        check_source(ask.headers, ask.by_port)?;
        let wish = action_for_path(ask.path);
        // A subscription has its secret in the path, and the checks of health and readiness reveal none.
        let open = match &wish {
            Some(Action::Health | Action::Readiness | Action::Subscription { .. }) => true,
            Some(Action::Dashboard(part)) => part.is_open(),
            Some(wish) => wish.is_page(ask.headers),
            None => false,
        };
        let mut admitted = None;
        if !open {
            let scope = self.access.check(ask.method, ask.headers)?;
            if query_flag(ask.query, "reveal") && !scope.reveal {
                return Err(Refusal::new(StatusCode::FORBIDDEN, NO_REVEAL));
            }
            admitted = Some(scope);
        }
        let wish = wish.ok_or_else(|| Refusal::not_found("not found"))?;
        let allowed = wish.allowed_methods();
        if !allowed
            .split(", ")
            .any(|method| method == ask.method.as_str())
        {
            return Err(Refusal::method_not_allowed(allowed));
        }
        if has_body(ask.method) {
            check_json(ask.headers)?;
        }
        Ok(Admitted {
            action: wish,
            scope: admitted,
        })
    }

    /// Performs the action.
    pub(crate) async fn perform(
        &self,
        wish: Action,
        ask: &RequestHead<'_>,
        body: &[u8],
    ) -> ApiResult {
        let (server, about) = match wish {
            Action::Health => {
                return Ok(Reply::text("text/plain; charset=utf-8", "ok\n".to_owned()));
            }
            Action::Readiness => return Ok(self.get_readiness()),
            Action::Metrics => return Ok(self.get_metrics(ask.headers)),
            Action::Reload => return self.request_reload().await,
            Action::Upgrade => return self.request_upgrade(body, ask.by_port).await,
            Action::Subscription { name, secret } => {
                let format = query_value(ask.query, "format");
                let user_agent = ask.headers.get(header::USER_AGENT);
                let request = DocumentRequest {
                    name: &name,
                    secret: &secret,
                    format: format.as_deref(),
                    user_agent: user_agent
                        .and_then(|it| it.to_str().ok())
                        .unwrap_or_default(),
                };
                return self.get_subscription(&request).await;
            }
            Action::Accounts(about) => return self.answer_accounts(about, ask, body).await,
            Action::Import => return self.import_accounts(body).await,
            Action::Servers => return Ok(self.list_servers()),
            Action::Dns => return Ok(self.list_dns()),
            Action::Dashboard(part) => return part.answer(&self.access, ask.headers, body),
            ref page if page.is_page(ask.headers) => return Ok(dashboard::redirect()),
            Action::Overview => return Ok(self.get_overview()),
            Action::History => return Ok(self.get_history()),
            Action::Events => return self.stream_events(),
            Action::Sessions => return self.list_sessions(ask.query),
            Action::Session(id) => return self.end_session(id),
            Action::Fleet => return self.get_fleet(system::unix_now().0),
            Action::Groups => return Ok(self.list_groups()),
            Action::Group(name) if *ask.method == Method::POST => {
                return self.select_member(&name, body).await;
            }
            Action::Group(name) => return self.get_group(&name),
            Action::Server { server, about } => (self.find_server(server.as_deref())?, about),
        };
        let reveal = query_flag(ask.query, "reveal");
        match (about, ask.method) {
            (Resource::Info, _) => Ok(Reply::ok(&ApiInfo {
                server: PROGRAM_VERSION,
                version: "v1",
            })),
            (Resource::Users, &Method::POST) => self.add_user(&server, body).await,
            (Resource::Users, _) => self.list_users(&server, reveal),
            (Resource::User(name), &Method::PATCH) => self.change_user(&server, &name, body).await,
            (Resource::User(name), &Method::DELETE) => self.remove_user(&server, &name).await,
            (Resource::User(name), _) => self.get_user(&server, &name, reveal),
            (Resource::Stats, _) => stats::get_stats(&server, query_flag(ask.query, "clear")),
        }
    }

    /// Returns the server with this name, or without a name, the only server.
    fn find_server(&self, name: Option<&str>) -> Result<KeyedServer, Refusal> {
        let servers = self.named_servers();
        match name {
            Some(name) => {
                let found = servers.into_iter().find(|(known, _)| known == name);
                let found = found.map(|(_, server)| server);
                found.ok_or_else(|| Refusal::not_found("no such server"))
            }
            None => match <[_; 1]>::try_from(servers) {
                Ok([(_, server)]) => Ok(server),
                Err(servers) if servers.is_empty() => Err(Refusal::not_found("there is no server")),
                Err(_) => Err(Refusal::not_found(
                    "there are several servers: see /servers",
                )),
            },
        }
    }

    /// Returns the servers with their names: the route, with the port if the route has several servers.
    fn named_servers(&self) -> Vec<(String, KeyedServer)> {
        let servers = self.engine.keyed_servers();
        let mut times: HashMap<String, usize> = HashMap::new();
        for server in &servers {
            *times.entry(server.listening.route.clone()).or_default() += 1;
        }
        let name = |server: &KeyedServer| {
            let at = &server.listening;
            match times.get(&at.route) {
                Some(1) => at.route.clone(),
                _ => format!("{}:{}", at.route, at.addr.port()),
            }
        };
        let each = servers.into_iter();
        each.map(|server| (name(&server), server)).collect()
    }

    fn list_servers(&self) -> Reply {
        let servers = self.named_servers().into_iter();
        let servers = servers.map(|(name, server)| {
            let users = server.user_table.users();
            ServerInfo {
                api: format!("/servers/{name}/v1"),
                name,
                listen: server.listening.addr.to_string(),
                method: users.method().name(),
                users: users.has_names().then(|| users.len()),
            }
        });
        #[derive(Serialize)]
        struct List {
            servers: Vec<ServerInfo>,
        }
        Reply::json(
            StatusCode::OK,
            &List {
                servers: servers.collect(),
            },
        )
    }
}

impl Action {
    /// Returns true if a browser requests a page at `/`, where other clients ask for the version.
    fn is_page(&self, headers: &HeaderMap) -> bool {
        let root = Self::Server {
            server: None,
            about: Resource::Info,
        };
        *self == root && dashboard::accepts_page(headers)
    }

    /// Returns the methods that are allowed.
    const fn allowed_methods(&self) -> &'static str {
        match self {
            Self::Server { about, .. } => match about {
                Resource::Info | Resource::Stats => "GET",
                Resource::Users => "GET, POST",
                Resource::User(_) => "GET, PATCH, DELETE",
            },
            Self::Accounts(about) => about.allowed_methods(),
            Self::Reload | Self::Upgrade | Self::Import => "POST",
            Self::Session(_) => "DELETE",
            Self::Dashboard(part) => part.allowed_methods(),
            Self::Group(_) => "GET, POST",
            _ => "GET",
        }
    }
}

/// Returns true if requests with this method have a body.
pub(crate) fn has_body(method: &Method) -> bool {
    [Method::POST, Method::PATCH, Method::PUT].contains(method)
}

/// Returns the value of a key of the query, decoded.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
}

/// Returns true if the query sets this key to `1` or `true`.
pub(crate) fn query_flag(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| {
        pair.split_once('=')
            .is_some_and(|(key, value)| key == name && matches!(value, "1" | "true"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: Option<&str>, about: Resource) -> Option<Action> {
        let server = server.map(str::to_owned);
        Some(Action::Server { server, about })
    }

    #[test]
    fn every_path_has_one_meaning() {
        let user = |name: &str| Resource::User(name.to_owned());
        for (path, meant) in [
            ("/", of(None, Resource::Info)),
            ("/v1", of(None, Resource::Info)),
            ("/v1/users", of(None, Resource::Users)),
            ("/users/", of(None, Resource::Users)),
            ("/users/a%2Fb", of(None, user("a/b"))),
            ("/users/%C3%BC", of(None, user("ü"))),
            ("/stats", of(None, Resource::Stats)),
            ("/servers", Some(Action::Servers)),
            ("/servers/main/v1", of(Some("main"), Resource::Info)),
            ("/servers/main/v1/users/x", of(Some("main"), user("x"))),
            ("/servers/main/v1/stats", of(Some("main"), Resource::Stats)),
            ("/dns", Some(Action::Dns)),
            ("/fleet", Some(Action::Fleet)),
            ("/groups", Some(Action::Groups)),
            ("/groups/home.1", Some(Action::Group("home.1".to_owned()))),
            ("/groups/a/b", None),
            ("/metrics", Some(Action::Metrics)),
            ("/overview", Some(Action::Overview)),
            ("/history", Some(Action::History)),
            ("/events", Some(Action::Events)),
            ("/sessions", Some(Action::Sessions)),
            ("/sessions/17", Some(Action::Session(17))),
            ("/sessions/-1", None),
            ("/sessions/x", None),
            (
                "/dashboard/login",
                Some(Action::Dashboard(DashboardPart::Login)),
            ),
            ("/dashboard/nothing.js", None),
            ("/dashboard/../x", None),
            ("/v1/reload", Some(Action::Reload)),
            ("/v1/upgrade", Some(Action::Upgrade)),
            ("/v1/import", Some(Action::Import)),
            ("/healthz", Some(Action::Health)),
            ("/accounts", Some(Action::Accounts(AccountResource::All))),
            (
                "/accounts/a%2Fb",
                Some(Action::Accounts(AccountResource::One("a/b".to_owned()))),
            ),
            (
                "/accounts/anna/limits",
                Some(Action::Accounts(AccountResource::Limits("anna".to_owned()))),
            ),
            ("/accounts/anna/keys", None),
            ("", None),
            ("*", None),
            ("/users/%ff", None),
            ("/users/a/b", None),
            ("/servers/main", None),
            ("/servers/main/v2/users", None),
            ("/sip008/a", None),
            ("/v1/v1", None),
        ] {
            assert_eq!(action_for_path(path), meant, "{path}");
        }
    }

    #[test]
    fn flags_are_on_when_they_say_so() {
        for (query, on) in [
            ("clear=true", true),
            ("clear=1", true),
            ("a=b&clear=true", true),
            ("clear=false", false),
            ("clear", false),
            ("unclear=true", false),
            ("", false),
        ] {
            assert_eq!(query_flag(query, "clear"), on, "{query}");
        }
    }
}
