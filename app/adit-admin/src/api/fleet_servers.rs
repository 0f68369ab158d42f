//! The servers of all nodes of a fleet, for the documents of its users.

use adit_config::Secret;
use adit_convert::sip008::Server as Entry;
use adit_engine::{BoxFuture, ByteCounts, UserLimits};
use adit_wire::Host;

use super::server_uuid::stable_uuid;

/// The servers that users of a fleet can choose from, whichever node they ask.
pub trait SubscriptionServers: Send + Sync {
    /// Returns what the user with this name is offered, if `is_key` is true for one of the user's keys: with
    /// [`subscription_path`](super::subscription_path), each of them makes a path for which it is. All keys are tried,
    /// so that the duration reveals none.
    fn offer<'a>(
        &'a self,
        name: &'a str,
        is_key: &'a (dyn Fn(&str) -> bool + Sync),
    ) -> BoxFuture<'a, Option<SubscriptionOffer>>;
}

/// The content of a subscription for a user of a fleet.
#[derive(Debug, Default)]
pub struct SubscriptionOffer {
    /// The servers, the preferred ones first. They need neither a plugin nor a carrier.
    pub servers: Vec<OfferedServer>,
    /// The bytes of the user in the current period, over all nodes.
    pub usage: ByteCounts,
    /// The limits of the user.
    pub limits: UserLimits,
}

/// A server of a [`SubscriptionOffer`].
#[derive(Debug)]
pub struct OfferedServer {
    /// The name for people: that of the node, and of its listener if there are several.
    pub name: String,
    /// The host for clients.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The method of Shadowsocks.
    pub method: String,
    /// The password of the user, or the chain of keys (2022 edition).
    pub password: Secret,
}

impl From<OfferedServer> for Entry {
    fn from(server: OfferedServer) -> Self {
        Self {
            id: stable_uuid(&server.name, server.port),
            remarks: server.name,
            server: server.host,
            server_port: server.port,
            password: server.password,
            method: server.method,
            plugin: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use adit_config::Plan;
    use adit_engine::Engine;
    use adit_wire::UnixTime;
    use http_body_util::BodyExt;
    use hyper::Response;

    use super::super::reply::{Reply, ReplyBody};
    use super::super::subscription::DocumentRequest;
    use super::super::{Api, subscription_path};
    use super::*;

    /// A realm with one user, who has two keys.
    struct Realm {
        servers: u8,
    }

    /// The keys of the nodes.
    const IDENTITIES: [&str; 2] = ["ICEiIyQlJicoKSorLC0uLw==", "MDEyMzQ1Njc4OTo7PD0+Pw=="];
    const KEYS: [&str; 2] = ["the key of documents", "AAECAwQFBgcICQoLDA0ODw=="];

    impl SubscriptionServers for Realm {
        fn offer<'a>(
            &'a self,
            name: &'a str,
            is_key: &'a (dyn Fn(&str) -> bool + Sync),
        ) -> BoxFuture<'a, Option<SubscriptionOffer>> {
            let is_known = name == "anna" && KEYS.iter().any(|key| is_key(key));
            Box::pin(async move { is_known.then(|| self.offer_all()) })
        }
    }

    impl Realm {
        fn offer_all(&self) -> SubscriptionOffer {
            let server = |n: u8| OfferedServer {
                name: format!("node {n}"),
                host: Host::parse(&format!("n{n}.example")).unwrap(),
                port: 8388,
                method: "2022-blake3-aes-128-gcm".to_owned(),
                password: Secret::from(
                    format!("{}:{}", IDENTITIES[usize::from(n) - 1], KEYS[1]).as_str(),
                ),
            };
            SubscriptionOffer {
                servers: (1..=self.servers).map(server).collect(),
                usage: ByteCounts { up: 10, down: 30 },
                limits: UserLimits {
                    quota: Some(100),
                    expires: Some(UnixTime(1_800_000_000)),
                    ..UserLimits::default()
                },
            }
        }
    }

    async fn node(servers: u8) -> Api {
        let plan = Plan::from_words(&["mixed://127.0.0.1:0".to_owned()]).unwrap();
        let engine = Arc::new(Engine::start(&plan).await.unwrap());
        Api::new(engine, &plan, None, None).with_subscription_servers(Arc::new(Realm { servers }))
    }

    async fn ask(api: &Api, name: &str, key: &str, format: Option<&str>) -> Response<ReplyBody> {
        let path = subscription_path(name, key);
        let request = DocumentRequest {
            name,
            secret: path.rsplit('/').next().unwrap(),
            format,
            user_agent: "",
        };
        let answer = api.get_subscription(&request).await;
        answer.unwrap_or_else(Reply::from).into()
    }

    #[tokio::test]
    async fn documents_have_the_servers_of_all_nodes() {
        let api = node(2).await;
        for format in ["sip008", "base64", "clash", "sing-box"] {
            for key in KEYS {
                let answer = ask(&api, "anna", key, Some(format)).await;
                assert_eq!(answer.status(), 200);
                let usage = "upload=10; download=30; total=100; expire=1800000000";
                assert_eq!(answer.headers()["subscription-userinfo"], usage);
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let read = adit_convert::convert(
                    std::str::from_utf8(&body).unwrap(),
                    "document",
                    &adit_convert::ConvertOptions {
                        role: Some(adit_convert::Role::Client),
                        ..Default::default()
                    },
                    &adit_config::text::MemorySources::default(),
                );
                let toml = read.unwrap_or_else(|why| panic!("{format}: {why:?}")).toml;
                let places = ["n1.example:8388", "n2.example:8388"].map(|at| toml.find(at));
                assert!(
                    places[0].is_some() && places[0] < places[1],
                    "{format}\n{}",
                    *toml
                );
            }
        }
    }

    #[tokio::test]
    async fn other_keys_open_nothing() {
        let api = node(2).await;
        assert_eq!(ask(&api, "anna", "another key", None).await.status(), 404);
        assert_eq!(ask(&api, "bert", KEYS[0], None).await.status(), 404);
    }

    /// Clients keep the document that they have.
    #[tokio::test]
    async fn without_nodes_there_is_no_document() {
        let api = node(0).await;
        assert_eq!(ask(&api, "anna", KEYS[0], None).await.status(), 503);
        assert_eq!(ask(&api, "anna", "another key", None).await.status(), 404);
    }
}
