//! Settings similar to those that do not work: other protocols, obfuscations and methods with the
//! same password. Each try is a connection that the network can observe.

use std::sync::Arc;
use std::time::Duration;

use adit_config::{HopKind, Secret, ServerHop, SsrHop, UdpTransport};
use adit_crypto::StreamKind;
use adit_engine::probe::{self, ProbeRequest, ProbeResult};
use adit_obfs::ObfsKind;
use adit_shadowsocks::{Edition, Method};
use adit_shadowsocksr::ProtocolKind;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::requests::WebTarget;

/// Maximum number of tries at the same time.
const AT_ONCE: usize = 6;
/// Time limit of each try.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Protocols of existing servers, the most common first.
const PROTOCOLS: [ProtocolKind; 8] = [
    ProtocolKind::AuthAes128Md5,
    ProtocolKind::AuthAes128Sha1,
    ProtocolKind::AuthChainA,
    ProtocolKind::Origin,
    ProtocolKind::AuthSha1V4,
    ProtocolKind::AuthAes128Fast,
    ProtocolKind::AuthChainB,
    ProtocolKind::VerifySimple,
];

/// Obfuscations of existing servers, the most common first.
const OBFS: [ObfsKind; 6] = [
    ObfsKind::Plain,
    ObfsKind::HttpSimple,
    ObfsKind::TicketAuth,
    ObfsKind::HttpPost,
    ObfsKind::GoQuiet,
    ObfsKind::RandomHead,
];

/// Ciphers of existing servers, the most common first.
const CIPHERS: [&str; 10] = [
    "aes-256-cfb",
    "aes-128-ctr",
    "aes-256-ctr",
    "aes-128-cfb",
    "chacha20-ietf",
    "chacha20",
    "rc4-md5",
    "none",
    "aes-192-ctr",
    "aes-192-cfb",
];

/// Settings that differ from those of the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsVariant {
    Ssr {
        method: StreamKind,
        protocol: ProtocolKind,
        obfs: ObfsKind,
    },
    Shadowsocks(Method),
}

impl SettingsVariant {
    /// Returns the settings as a URL spells them, without secrets.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Ssr {
                method,
                protocol,
                obfs,
            } => format!("method {method}, protocol={protocol}, obfs={obfs}"),
            Self::Shadowsocks(method) => format!("method {method}"),
        }
    }

    /// Returns the hop with these settings, or none if they do not fit its kind.
    fn apply_to_hop(&self, given: &ServerHop) -> Option<ServerHop> {
        let kind = match (self, &given.kind) {
            (
                Self::Ssr {
                    method,
                    protocol,
                    obfs,
                },
                HopKind::ShadowsocksR(hop),
            ) => HopKind::ShadowsocksR(Box::new(SsrHop {
                method: *method,
                password: Secret::from(hop.password.expose()),
                protocol: *protocol,
                protocol_param: Secret::from(hop.protocol_param.expose()),
                obfs: *obfs,
                obfs_param: hop.obfs_param.clone(),
                udp: hop.udp,
                first_wait: hop.first_wait,
                fast_open: hop.fast_open,
                plugin: None,
            })),
            (
                Self::Shadowsocks(method),
                HopKind::Shadowsocks {
                    secret,
                    first_wait,
                    fast_open,
                    ..
                },
            ) => HopKind::Shadowsocks {
                method: *method,
                secret: Secret::from(secret.expose()),
                udp: UdpTransport::Off,
                first_wait: *first_wait,
                fast_open: *fast_open,
                plugin: None,
            },
            _ => return None,
        };
        Some(ServerHop {
            server: given.server.clone(),
            kind,
            dial: PATIENCE,
            carrier: None,
        })
    }
}

/// Returns up to `most` variants of a hop's settings, those with one difference before those with two.
pub(super) fn variants_of(kind: &HopKind, most: usize) -> Vec<SettingsVariant> {
    let mut found = match kind {
        // Servers with a plugin do not answer without it, and each try would start a process.
        HopKind::ShadowsocksR(hop) if hop.plugin.is_none() => ssr_variants(hop),
        HopKind::Shadowsocks {
            method,
            plugin: None,
            ..
        } => shadowsocks_variants(*method),
        _ => Vec::new(),
    };
    found.truncate(most);
    found
}

fn ssr_variants(hop: &SsrHop) -> Vec<SettingsVariant> {
    let given = (hop.method, hop.protocol, hop.obfs);
    let (method, protocol, obfs) = given;
    let ciphers: Vec<StreamKind> = CIPHERS
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    let mut found = Vec::new();
    let mut add = |(method, protocol, obfs)| {
        let one = SettingsVariant::Ssr {
            method,
            protocol,
            obfs,
        };
        if (method, protocol, obfs) != given && !found.contains(&one) {
            found.push(one);
        }
    };
    for other in PROTOCOLS {
        add((method, other, obfs));
    }
    for other in OBFS {
        add((method, protocol, other));
    }
    for other in &ciphers {
        add((*other, protocol, obfs));
    }
    for other in ProtocolKind::ALL {
        add((method, other, obfs));
    }
    for protocol in PROTOCOLS.into_iter().take(6) {
        for obfs in OBFS.into_iter().take(3) {
            add((method, protocol, obfs));
        }
    }
    for method in ciphers.iter().take(5) {
        for protocol in PROTOCOLS.into_iter().take(5) {
            add((*method, protocol, obfs));
        }
    }
    found
}

/// Returns the other methods that the same key may belong to.
fn shadowsocks_variants(given: Method) -> Vec<SettingsVariant> {
    let alike = |method: &Method| match (given.edition(), method.edition()) {
        (Edition::Aead2022, Edition::Aead2022) => method.key_len() == given.key_len(),
        (Edition::Aead2022 | Edition::None, _) | (_, Edition::Aead2022 | Edition::None) => false,
        // A password fits every method; of the legacy methods, only the common ones are tried.
        (_, Edition::Stream) => CIPHERS.contains(&method.name()),
        _ => true,
    };
    Method::ALL
        .into_iter()
        .filter(|method| *method != given && alike(method))
        .map(SettingsVariant::Shadowsocks)
        .collect()
}

/// Returns the first variant that the server understands, and the number of tries.
pub(super) async fn find_understood(
    given: &ServerHop,
    among: &[SettingsVariant],
    site: Option<&WebTarget>,
) -> (Option<SettingsVariant>, usize) {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for one in among.iter().copied() {
        let Some(hop) = one.apply_to_hop(given) else {
            continue;
        };
        let (gate, site) = (gate.clone(), site.cloned());
        let attempt = async move {
            // The semaphore is never closed.
            let _pass = gate.acquire().await.ok()?;
            let way = probe::build_hop_connector(&hop).await.ok()?;
            let heard = probe_settings(&*way, &hop.kind, site.as_ref(), PATIENCE).await;
            matches!(heard, ProbeResult::Answer { .. }).then_some(one)
        };
        // Failures are expected here, so they are not logged.
        running.spawn(attempt.with_subscriber(NoSubscriber::default()));
    }
    let mut tried = 0;
    while let Some(ended) = running.join_next().await {
        tried += 1;
        if let Ok(Some(found)) = ended {
            return (Some(found), tried);
        }
    }
    (None, tried)
}

/// Requests the name that adit servers answer, and then the site, if there is one. With protocols
/// that have no reply, other servers only show through a site that they have understood the request.
pub(super) async fn probe_settings(
    way: &dyn adit_engine::connector::Connector,
    kind: &HopKind,
    site: Option<&WebTarget>,
    patience: Duration,
) -> ProbeResult {
    let Some(name) = ProbeRequest::for_check_name() else {
        return ProbeResult::Silent;
    };
    let first = probe::ask_for(way, kind, &name, patience).await;
    match (&first, site) {
        (ProbeResult::Closed | ProbeResult::Undecodable | ProbeResult::Silent, Some(site)) => {
            match probe::ask_for(way, kind, &site.probe_request(), patience).await {
                answer @ ProbeResult::Answer { .. } => answer,
                _ => first,
            }
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_config::{Hop, Plan};

    fn kind(url: &str) -> HopKind {
        let words = ["socks5://127.0.0.1:1", url].map(str::to_owned);
        let mut plan = Plan::from_words(&words).unwrap();
        let hop = plan.routes.remove(0).via.stages.remove(0);
        match hop {
            adit_config::Stage::Single(Hop::Server(hop)) => hop.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_nearest_come_first_and_once() {
        let given = kind("ssr://aes-256-ctr:p@h:1?protocol=auth_sha1_v4&obfs=http_simple");
        let all = variants_of(&given, usize::MAX);
        assert!(all.len() < 120, "{}", all.len());
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{one:?}");
        }
        let differences = |one: &SettingsVariant| match one {
            SettingsVariant::Ssr {
                method,
                protocol,
                obfs,
            } => {
                u32::from(method.to_string() != "aes-256-ctr")
                    + u32::from(*protocol != ProtocolKind::AuthSha1V4)
                    + u32::from(*obfs != ObfsKind::HttpSimple)
            }
            SettingsVariant::Shadowsocks(_) => 9,
        };
        let each: Vec<u32> = all.iter().map(differences).collect();
        assert!(
            each.is_sorted() && each.iter().all(|n| (1..=2).contains(n)),
            "{each:?}"
        );
        assert_eq!(variants_of(&given, 7).len(), 7);
    }

    #[test]
    fn keys_of_the_2022_edition_fit_methods_of_their_length() {
        let given = kind("ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==@h:1");
        assert!(variants_of(&given, 99).is_empty());
        let given = kind("ss://aes-128-gcm:p@h:1");
        let names: Vec<String> = variants_of(&given, 99)
            .iter()
            .map(SettingsVariant::describe)
            .collect();
        for name in ["aes-256-gcm", "chacha20-ietf-poly1305", "aes-256-cfb"] {
            assert!(names.contains(&format!("method {name}")), "{names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("2022")), "{names:?}");
        assert!(variants_of(&kind("socks5://h:1"), 99).is_empty());
    }
}
