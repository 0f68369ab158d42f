//! The subjects of `adit doctor`: each scheme of `adit help URLS` has one.

use adit_config::Endpoint;

/// The kind of endpoint that a URL names, which decides on the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// A server: name, connection, protocol, datagrams.
    Server,
    /// A proxy for several protocols on one port: each of them as a server.
    MixedProxy,
    /// A port that forwards: the port, and its target.
    Forwarder { tcp: bool, udp: bool },
    /// A DNS server of this machine.
    Dns,
    /// A port for traffic that the firewall redirects.
    Transparent,
    /// The network of this machine, without a server.
    Direct,
    /// Nothing is connected.
    Reject,
}

impl Subject {
    /// Returns the subject of a URL. One that cannot be parsed is a server's, whose checks report the error.
    pub(super) fn of_url(url: &str) -> Self {
        let scheme = Endpoint::parse(url).map(|url| url.scheme.value);
        scheme
            .ok()
            .and_then(|scheme| Self::of_scheme(&scheme))
            .unwrap_or(Self::Server)
    }

    /// Returns the subject of a scheme, with or without a carrier. `None` is a scheme that doctor does not know.
    fn of_scheme(scheme: &str) -> Option<Self> {
        let forwarder = |tcp, udp| Some(Self::Forwarder { tcp, udp });
        match scheme {
            "tcp" => return forwarder(true, false),
            "udp" => return forwarder(false, true),
            "tcp+udp" => return forwarder(true, true),
            _ => {}
        }
        let (base, carrier) = match scheme.rsplit_once('+') {
            Some((base, carrier)) => (base, Some(carrier)),
            None => (scheme, None),
        };
        match (base, carrier) {
            ("mixed", _) => Some(Self::MixedProxy),
            ("socks5" | "socks4a" | "http" | "ss" | "ssr" | "ssh" | "kcptun", _)
            // With a carrier, the remote end has the target.
            | ("tcp" | "udp", Some(_)) => Some(Self::Server),
            ("redir" | "tproxy", None) => Some(Self::Transparent),
            ("dns", None) => Some(Self::Dns),
            ("direct", None) => Some(Self::Direct),
            ("reject", None) => Some(Self::Reject),
            _ => None,
        }
    }
}

/// Returns the URLs that check a `mixed://` proxy as a server of each of its protocols. The keys of a listener have no
/// meaning there, and a listener without a host includes this machine.
pub(super) fn urls_of_mixed_proxy(url: &str) -> Vec<String> {
    let before = url.split('#').next().unwrap_or_default();
    let (address, query) = before.split_once('?').unwrap_or((before, ""));
    let Some((scheme, rest)) = address.split_once("://") else {
        return Vec::new();
    };
    let rest = match rest.rsplit_once('@') {
        Some((login, host)) if host.starts_with(':') => format!("{login}@127.0.0.1{host}"),
        None if rest.starts_with(':') => format!("127.0.0.1{rest}"),
        _ => rest.to_owned(),
    };
    let carrier = scheme.get("mixed".len()..).unwrap_or_default();
    // The keys of a carrier are the same at both ends.
    let query = match carrier.is_empty() || query.is_empty() {
        true => String::new(),
        false => format!("?{query}"),
    };
    ["socks5", "http"]
        .map(|protocol| format!("{protocol}{carrier}://{rest}{query}"))
        .to_vec()
}

#[cfg(test)]
mod tests {
    use adit_config::schemes;

    use super::*;

    #[test]
    fn every_scheme_has_a_doctor() {
        for scheme in schemes() {
            let name = scheme.to_string();
            assert!(
                Subject::of_scheme(&name).is_some(),
                "`{name}` has no doctor"
            );
        }
        for carried in ["ss+kcp", "mixed+kcp", "tcp+kcp", "udp+fec"] {
            assert!(Subject::of_scheme(carried).is_some(), "`{carried}`");
        }
        assert_eq!(Subject::of_scheme("gopher"), None);
        assert_eq!(Subject::of_url("not a URL"), Subject::Server);
    }

    #[test]
    fn a_mixed_proxy_is_checked_in_both_protocols() {
        for (url, http) in [
            ("mixed://127.0.0.1:1080", "http://127.0.0.1:1080"),
            ("mixed://:1080?udp=false#a", "http://127.0.0.1:1080"),
            ("mixed://u:p@:1080", "http://u:p@127.0.0.1:1080"),
            ("mixed+kcp://h:1?key=@k", "http+kcp://h:1?key=@k"),
        ] {
            let urls = urls_of_mixed_proxy(url);
            assert_eq!(urls.len(), 2);
            assert_eq!(urls[1], http);
            assert!(urls[0].starts_with("socks5"), "{}", urls[0]);
        }
    }
}
