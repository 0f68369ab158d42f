//! Addresses of store servers.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::ConnectionAddr;
use zeroize::Zeroizing;

use crate::store::{StoreError, StoreErrorKind, StoreLogin};

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// The settings of a store server.
#[derive(Clone)]
pub struct ValkeyConfig {
    pub(super) realm: String,
    pub(super) topology: Topology,
    pub(super) user: Option<String>,
    pub(super) password: Option<Zeroizing<String>>,
    pub(super) ca_pem: Option<String>,
    /// Maximum time of a call.
    pub deadline: Duration,
    /// Maximum time between two attempts to connect: 1 to 30 s. The longest outage is noticed to be over within 6 s by
    /// default.
    pub max_backoff: Duration,
}

/// The servers, and how the one to talk to is found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Topology {
    Single(ConnectionAddr),
    Sentinel {
        sentinels: Vec<ConnectionAddr>,
        service: String,
        is_tls: bool,
    },
    Cluster {
        nodes: Vec<ConnectionAddr>,
        is_tls: bool,
    },
}

impl fmt::Debug for ValkeyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValkeyConfig")
            .field("realm", &self.realm)
            .field("topology", &self.topology)
            .finish_non_exhaustive()
    }
}

impl ValkeyConfig {
    /// Reads the settings of a login; [`StoreLogin::url`] lists the forms of addresses.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`], with the fault of the address.
    pub fn new(login: &StoreLogin) -> Result<Self, StoreError> {
        let topology = parse(&login.url).map_err(|why| {
            // The address is not quoted: it may contain a password by mistake.
            StoreError::new(StoreErrorKind::Configuration, why)
        })?;
        Ok(Self {
            realm: login.realm.clone(),
            topology,
            user: login.user.clone(),
            password: login.password.clone(),
            ca_pem: login.ca_pem.clone(),
            deadline: Duration::from_secs(2),
            max_backoff: Duration::from_secs(5),
        })
    }
}

fn parse(url: &str) -> Result<Topology, String> {
    let (scheme, rest) = url.split_once("://").ok_or(
        "an address of a store begins with `valkey://`, `valkeys://`, `unix://` or `file://`",
    )?;
    if scheme == "unix" {
        let path = percent_decode_str(rest).decode_utf8();
        let path = path.map_err(|_| "the path is no UTF-8")?;
        return match path.starts_with('/') {
            true => Ok(Topology::Single(ConnectionAddr::Unix(PathBuf::from(
                &*path,
            )))),
            false => Err("a path is absolute: `unix:///run/valkey.sock`".to_owned()),
        };
    }
    let (transport, kind) = match scheme.split_once('+') {
        Some((transport, kind)) => (transport, Some(kind)),
        None => (scheme, None),
    };
    let is_tls = match transport {
        "valkey" | "redis" => false,
        "valkeys" | "rediss" => true,
        _ => return Err(format!("unknown scheme `{}`", excerpt(scheme))),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let allows_plain = match query {
        "" => false,
        "plain=yes" => true,
        _ => return Err("the only option of an address is `plain=yes`".to_owned()),
    };
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    if hosts.contains('@') {
        return Err(
            "the address contains a user or a password, which are settings of their own".to_owned(),
        );
    }
    let port = match kind {
        Some("sentinel") => DEFAULT_SENTINEL_PORT,
        _ => DEFAULT_PORT,
    };
    let mut addresses = Vec::new();
    for text in hosts.split(',') {
        let (host, port) = parse_host(text, port)?;
        if !is_tls && !allows_plain && !is_loopback(&host) {
            return Err(format!(
                "{} is not this machine: use `valkeys://` (TLS), or, in a network that encrypts itself, add `?plain=yes`",
                excerpt(&host)
            ));
        }
        addresses.push(match is_tls {
            true => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
            false => ConnectionAddr::Tcp(host, port),
        });
    }
    let has_path = !path.is_empty();
    match (kind, addresses.as_mut_slice()) {
        (None, [_]) if !has_path => addresses.pop().map(Topology::Single).ok_or_else(String::new),
        (Some("cluster"), _) if !has_path => Ok(Topology::Cluster { nodes: addresses, is_tls }),
        (Some("sentinel"), _) if has_path => Ok(Topology::Sentinel {
            sentinels: addresses,
            service: path.to_owned(),
            is_tls,
        }),
        (Some("sentinel"), _) => Err("the name of the service follows the addresses: `valkey+sentinel://a,b,c/NAME`".to_owned()),
        (None | Some("cluster"), _) if has_path => Err("nothing follows the address of a server".to_owned()),
        (None, _) => Err("several servers are a cluster (`valkey+cluster://`) or sentinels (`valkey+sentinel://`)".to_owned()),
        (Some(_), _) => Err(format!("unknown scheme `{}`", excerpt(scheme))),
    }
}

fn parse_host(text: &str, default_port: u16) -> Result<(String, u16), String> {
    let wrong = || format!("`{}` is no address of a server", excerpt(text));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| wrong())?,
        None => default_port,
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match !host.is_empty() && host.chars().all(allowed) && port != 0 {
        true => Ok((host.to_owned(), port)),
        false => Err(wrong()),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |host: &str, port| ConnectionAddr::Tcp(host.to_owned(), port);
        assert_eq!(
            parse("valkey://127.0.0.1"),
            Ok(Topology::Single(tcp("127.0.0.1", 6379)))
        );
        assert_eq!(
            parse("redis://[::1]:7000"),
            Ok(Topology::Single(tcp("::1", 7000)))
        );
        assert_eq!(
            parse("valkey://db.internal:1/?plain=yes"),
            Ok(Topology::Single(tcp("db.internal", 1)))
        );
        assert_eq!(
            parse("unix:///run/a%20b.sock"),
            Ok(Topology::Single(ConnectionAddr::Unix(
                "/run/a b.sock".into()
            )))
        );
        assert_eq!(
            parse("valkey+sentinel://localhost,127.0.0.2:5/main"),
            Ok(Topology::Sentinel {
                sentinels: vec![tcp("localhost", 26379), tcp("127.0.0.2", 5)],
                service: "main".to_owned(),
                is_tls: false,
            })
        );
        let Ok(Topology::Cluster {
            nodes,
            is_tls: true,
        }) = parse("valkeys+cluster://a,b,c:9")
        else {
            panic!();
        };
        assert_eq!(nodes.len(), 3);
    }

    #[test]
    fn faults_are_named() {
        for (url, part) in [
            ("localhost:6379", "begins with"),
            ("http://localhost", "unknown scheme"),
            ("valkey+ring://localhost", "unknown scheme"),
            ("valkey://store.example", "valkeys://"),
            ("valkeys://user:secret@store.example", "user or a password"),
            ("valkeys://a,b", "several servers"),
            ("valkeys://a/2", "nothing follows"),
            ("valkeys+sentinel://a,b", "service"),
            ("valkeys://a:99999", "no address"),
            ("valkeys://", "no address"),
            ("valkeys://a?db=1", "option"),
            ("unix://run/x.sock", "absolute"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(
                error.contains(part) && !error.contains("secret"),
                "{url}: {error}"
            );
        }
    }
}
