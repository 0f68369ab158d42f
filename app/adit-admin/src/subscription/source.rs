//! The URL of a subscription.

use std::fmt;
use std::str::FromStr;

use adit_wire::Host;
use hyper::Uri;
use zeroize::Zeroizing;

/// Maximum length of a URL, in bytes.
const MOST: usize = 8 << 10;

/// The URL of a document. Its path is treated as a secret and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    pub(super) tls: bool,
    pub(super) host: Host,
    pub(super) port: u16,
    /// Path and query.
    pub(super) path: Zeroizing<String>,
}

/// The error for text that is not the URL of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSource {
    /// The scheme is not supported.
    #[error("the URL of a subscription starts with https:// or ssconf://")]
    Scheme,
    /// The document could be read and changed on the network.
    #[error("a subscription contains keys: it needs https, unless it is on this machine")]
    Plain,
    /// The URL is otherwise invalid.
    #[error("not a URL of the form https://HOST[:PORT]/PATH")]
    Form,
}

impl FromStr for Source {
    type Err = BadSource;

    fn from_str(text: &str) -> Result<Self, BadSource> {
        Self::parse(text, false)
    }
}

impl Source {
    /// Parses the URL of something that has no keys, so that it may be on any host without TLS.
    #[cfg(feature = "otlp")]
    pub(crate) fn parse_at_any_host(text: &str) -> Result<Self, BadSource> {
        Self::parse(text, true)
    }

    fn parse(text: &str, is_public: bool) -> Result<Self, BadSource> {
        let (scheme, rest) = text.split_once("://").ok_or(BadSource::Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" | "ssconf" => true,
            "http" => false,
            _ => return Err(BadSource::Scheme),
        };
        if text.len() > MOST {
            return Err(BadSource::Form);
        }
        // The part after `#` is a name for users.
        let rest = rest.split('#').next().unwrap_or_default();
        let uri: Uri = format!("https://{rest}")
            .parse()
            .map_err(|_| BadSource::Form)?;
        let authority = uri.authority().ok_or(BadSource::Form)?;
        if authority.as_str().contains('@') {
            return Err(BadSource::Form);
        }
        let name = authority.host();
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        let host = Host::parse(bare.unwrap_or(name)).map_err(|_| BadSource::Form)?;
        let here = match &host {
            Host::Ip(ip) => ip.is_loopback(),
            Host::Name(name) => name.as_str().eq_ignore_ascii_case("localhost"),
        };
        if !tls && !here && !is_public {
            return Err(BadSource::Plain);
        }
        let port = match (authority.port(), tls) {
            (Some(port), _) => Some(port.as_u16())
                .filter(|p| *p != 0)
                .ok_or(BadSource::Form)?,
            // A port that is not a number.
            (None, _) if authority.as_str() != name => return Err(BadSource::Form),
            (None, true) => 443,
            (None, false) => 80,
        };
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        Ok(Self {
            tls,
            host,
            port,
            path: Zeroizing::new(path.to_owned()),
        })
    }
}

impl Source {
    /// Returns the target of a redirection, unless it leads from TLS to unencrypted HTTP.
    pub(super) fn follow(&self, location: &str) -> Option<Self> {
        let next = if location.starts_with('/') && !location.starts_with("//") {
            format!("{}{location}", self.origin()).parse().ok()?
        } else {
            location.parse::<Self>().ok()?
        };
        (next.tls || !self.tls).then_some(next)
    }

    /// Returns the whole URL, to derive a file name from.
    pub(crate) fn whole(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}{}", self.origin(), self.path.as_str()))
    }

    /// Returns the URL of a path below this one.
    #[cfg(feature = "otlp")]
    pub(crate) fn joined(&self, path: &str) -> Self {
        let path = format!("{}/{path}", self.path.trim_end_matches('/'));
        Self {
            path: Zeroizing::new(path),
            ..self.clone()
        }
    }

    fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Returns host and port, as in the `Host` header.
    pub(super) fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        let host = match &self.host {
            Host::Ip(ip) if ip.is_ipv6() => format!("[{ip}]"),
            other => other.to_string(),
        };
        if self.port == usual {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.origin())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Source, BadSource> {
        text.parse()
    }

    #[test]
    fn addresses_are_read() {
        for (text, tls, authority, path) in [
            ("https://a.example/x?y=z", true, "a.example", "/x?y=z"),
            (
                "ssconf://a.example:8443/k#My%20server",
                true,
                "a.example:8443",
                "/k",
            ),
            ("HTTPS://a.example", true, "a.example", "/"),
            (
                "https://[2001:db8::1]:444/x",
                true,
                "[2001:db8::1]:444",
                "/x",
            ),
            ("http://127.0.0.1:80/x", false, "127.0.0.1", "/x"),
            ("http://localhost:8080/x", false, "localhost:8080", "/x"),
        ] {
            let source = read(text).unwrap();
            assert_eq!(
                (
                    source.tls,
                    source.authority().as_str(),
                    source.path.as_str()
                ),
                (tls, authority, path),
                "{text}"
            );
            assert_eq!(read(&source.whole()), Ok(source), "{text}");
        }
        assert_eq!(read("http://a.example/x"), Err(BadSource::Plain));
        assert_eq!(read("http://192.0.2.1/x"), Err(BadSource::Plain));
        for text in ["ss://x@y:1", "a.example/x", "", "file:///etc/passwd"] {
            assert_eq!(read(text), Err(BadSource::Scheme), "{text}");
        }
        for text in [
            "https://",
            "https:///x",
            "https://me:pw@a.example/",
            "https://a b/",
            "https://a:0/",
            "https://a:x/",
            "https://a:99999/",
        ] {
            assert_eq!(read(text), Err(BadSource::Form), "{text}");
        }
        let long = format!("https://a.example/{}", "x".repeat(9000));
        assert_eq!(read(&long), Err(BadSource::Form));
    }

    #[test]
    fn the_path_is_not_shown() {
        let source = read("https://a.example/secret?token=secret").unwrap();
        assert!(!format!("{source} {source:?}").contains("secret"));
    }

    #[test]
    fn redirections_stay_in_tls() {
        let from = read("https://a.example:444/x").unwrap();
        assert_eq!(
            &*from.follow("/y?z").unwrap().whole(),
            "https://a.example:444/y?z"
        );
        assert_eq!(
            &*from.follow("https://b.example/q").unwrap().whole(),
            "https://b.example/q"
        );
        for bad in ["http://127.0.0.1/x", "//b.example/x", "x", "", "file:///x"] {
            assert_eq!(from.follow(bad), None, "{bad}");
        }
        let plain = read("http://127.0.0.1/x").unwrap();
        assert!(plain.follow("https://b.example/").is_some());
    }
}
