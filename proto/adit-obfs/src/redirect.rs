//! The `redirect` rules, which select where a server relays a refused connection.

use adit_wire::Target;

/// The default port.
const DEFAULT_PORT: u16 = 80;

/// One rule: `[pattern[:port]#]host[:port]`.
///
/// The pattern is searched in the bytes received so far, unmodified; `*` (or none) matches
/// everything. The first port is the listener's; `*`, `0` or none matches all. The peer is then
/// relayed to the second part, starting with the bytes received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectRule {
    /// `None` matches all.
    pattern: Option<Box<[u8]>>,
    /// `None` matches all.
    listener: Option<u16>,
    to: Target,
}

/// The reason a text is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// The decoy is not `host` or `host:port`.
    #[error("the decoy of a redirect rule is not `host:port`")]
    Decoy,
    /// The listener's port is not a number.
    #[error("the first port of a redirect rule is not a number or `*`")]
    Port,
    /// The pattern is a regular expression, not a plain text.
    #[error("the pattern of a redirect rule must be a plain text or `*` (`\\.` is read as a dot)")]
    Pattern,
}

impl RedirectRule {
    /// Parses a rule.
    ///
    /// # Errors
    ///
    /// Fails if the decoy or the port is invalid, or if the pattern is a regular expression.
    pub fn parse(text: &str) -> Result<Self, RedirectError> {
        let (when, decoy) = text.rsplit_once('#').unwrap_or(("*", text));
        let (pattern, port) = when.rsplit_once(':').unwrap_or((when, "*"));
        let listener = match port {
            "" | "*" | "0" => None,
            port => Some(port.parse().map_err(|_| RedirectError::Port)?),
        };
        Ok(Self {
            pattern: parse_pattern(pattern)?,
            listener,
            to: parse_decoy(decoy)?,
        })
    }

    /// Returns the decoy of the first of `rules` that matches a connection to the listener's `port`
    /// which has sent `seen`.
    #[must_use]
    pub fn find_decoy<'a>(rules: &'a [Self], seen: &[u8], port: u16) -> Option<&'a Target> {
        let fits = |rule: &&Self| rule.matches_peer(seen, port);
        rules.iter().find(fits).map(|rule| &rule.to)
    }

    fn matches_peer(&self, seen: &[u8], port: u16) -> bool {
        let here = self.listener.is_none_or(|listener| listener == port);
        here && self.pattern.as_ref().is_none_or(|pattern| {
            seen.windows(pattern.len().max(1))
                .any(|at| at == &pattern[..])
        })
    }
}

/// ShadowsocksR accepts regular expressions. In practice they are host names, some with `\.`.
fn parse_pattern(pattern: &str) -> Result<Option<Box<[u8]>>, RedirectError> {
    if matches!(pattern, "" | "*" | ".*") {
        return Ok(None);
    }
    let text = pattern.replace("\\.", ".");
    if text.contains([
        '\\', '*', '+', '?', '[', ']', '(', ')', '{', '}', '|', '^', '$',
    ]) {
        return Err(RedirectError::Pattern);
    }
    Ok(Some(text.into_bytes().into()))
}

fn parse_decoy(decoy: &str) -> Result<Target, RedirectError> {
    let with_port = decoy.parse();
    with_port
        .or_else(|_| format!("{decoy}:{DEFAULT_PORT}").parse())
        .map_err(|_| RedirectError::Decoy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<RedirectRule> {
        texts
            .iter()
            .map(|t| RedirectRule::parse(t).unwrap())
            .collect()
    }

    #[test]
    fn the_first_rule_that_fits() {
        let rules = rules(&[
            "a\\.com:443#192.0.2.1:8443",
            "b.com#b.com:8080",
            "*:80#w.com",
            "*#[2001:db8::1]:1",
        ]);
        let decoy = |seen: &[u8], port| {
            let found = RedirectRule::find_decoy(&rules, seen, port);
            found.map(ToString::to_string).unwrap_or_default()
        };
        assert_eq!(decoy(b"\x16..a.com..", 443), "192.0.2.1:8443");
        assert_eq!(decoy(b"\x16..a.com..", 80), "w.com:80");
        assert_eq!(decoy(b"Host: b.com\r\n", 80), "b.com:8080");
        assert_eq!(decoy(b"", 443), "[2001:db8::1]:1");
        assert_eq!(RedirectRule::find_decoy(&rules[..1], b"a,com", 443), None);
        assert_eq!(RedirectRule::find_decoy(&[], b"", 443), None);
    }

    #[test]
    fn a_decoy_alone() {
        for (text, to) in [("w.com:443", "w.com:443"), ("w.com", "w.com:80")] {
            let rules = rules(&[text]);
            let to: Target = to.parse().unwrap();
            assert_eq!(RedirectRule::find_decoy(&rules, b"x", 1), Some(&to));
        }
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        let fault = |text| RedirectRule::parse(text).unwrap_err();
        assert_eq!(fault("a.*b#w.com"), RedirectError::Pattern);
        assert_eq!(fault("a:http#w.com"), RedirectError::Port);
        for bad in ["", "a#", "a b:80", "::1", "a:1:2"] {
            assert_eq!(fault(bad), RedirectError::Decoy, "{bad}");
        }
    }
}
