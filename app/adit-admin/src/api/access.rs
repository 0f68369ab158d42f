//! Access checks (SEC-E5).

use std::net::IpAddr;

use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::SystemRng;
use adit_wire::Entropy;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, StatusCode, Uri};

use super::page_sessions::PageSessions;
use super::reply::Refusal;

/// Minimum length of a token, in bits.
const LEAST_BITS: usize = 128;
/// Maximum number of tokens of a listener.
const MAX_TOKENS: usize = 64;
/// Minimum number of different characters in a token, which excludes `aaaa…`.
const LEAST_VARIETY: usize = 8;

/// A secret that authorizes requests. Only a digest of it is stored.
#[derive(Debug)]
pub struct Token {
    hasher: CredentialHasher,
    digest: CredentialDigest,
}

/// The rights of a token besides managing users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenScope {
    /// True if the token may read the keys of users and the secret paths of their subscriptions.
    pub reveal: bool,
    /// The position of the token in its file, counted from 1; 0 without a token.
    pub number: usize,
}

/// The tokens of a listener, each with its scope.
#[derive(Debug)]
pub struct Tokens(Vec<(Token, TokenScope)>);

/// An error in a list of tokens. It does not contain their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// A token is too easy to guess.
    #[error("line {line}: {why}")]
    Weak {
        /// The line, starting at 1.
        line: usize,
        /// The reason.
        why: WeakToken,
    },
    /// The word after a token is not a scope.
    #[error("line {line}: the only word allowed after a token is `reveal`")]
    Scope {
        /// The line, starting at 1.
        line: usize,
    },
    /// There are too many tokens, each of which is compared for each request.
    #[error("there are more than {MAX_TOKENS} tokens")]
    TooMany,
    /// There is no token.
    #[error("there is no token")]
    Empty,
}

impl Tokens {
    /// Parses tokens, one per line, each followed by its scopes. Empty lines, and lines that start
    /// with `#`, are ignored.
    ///
    /// # Errors
    /// There is no token, a weak one, or an unknown scope.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            let Some(word) = words.next().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            let token = Token::new(word).map_err(|why| TokensError::Weak { line, why })?;
            let mut scope = TokenScope::default();
            for word in words {
                match word {
                    "reveal" => scope.reveal = true,
                    _ => return Err(TokensError::Scope { line }),
                }
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokensError::TooMany);
            }
            scope.number = tokens.len() + 1;
            tokens.push((token, scope));
        }
        if tokens.is_empty() {
            return Err(TokensError::Empty);
        }
        Ok(Self(tokens))
    }

    /// Returns the scope of a token, if it is one of these. The time does not depend on the token.
    fn find_scope(&self, attempt: &[u8]) -> Option<TokenScope> {
        let all = self.0.iter();
        all.fold(None, |found, (token, scope)| {
            let is = token.matches(attempt);
            if is { found.or(Some(*scope)) } else { found }
        })
    }
}

/// The error for a token that is too easy to guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token needs at least {LEAST_BITS} bits: 22 random letters and digits, or 32 hexadecimal digits"
)]
pub struct WeakToken;

impl Token {
    /// Creates a token from its text, without surrounding white space.
    ///
    /// # Errors
    /// The text is too easy to guess, or contains other characters than printable ASCII.
    pub fn new(text: &str) -> Result<Self, WeakToken> {
        let text = text.trim();
        let printable = text.bytes().all(|b| b.is_ascii_graphic());
        let each = if text.bytes().all(|b| b.is_ascii_hexdigit()) {
            4
        } else {
            6
        };
        let mut seen = [false; 256];
        for byte in text.bytes() {
            if let Some(seen) = seen.get_mut(usize::from(byte)) {
                *seen = true;
            }
        }
        let variety = seen.iter().filter(|seen| **seen).count();
        if !printable || text.len() * each < LEAST_BITS || variety < LEAST_VARIETY {
            return Err(WeakToken);
        }
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        let hasher = CredentialHasher::new(key);
        let digest = hasher.digest_parts(&[text.as_bytes()]);
        Ok(Self { hasher, digest })
    }

    /// Compares with the token in constant time.
    fn matches(&self, attempt: &[u8]) -> bool {
        self.hasher.digest_parts(&[attempt]) == self.digest
    }
}

/// Checks that a request is addressed to this machine, and does not come from a page in a browser. An
/// attacker's name that resolves to loopback appears in `Host` (DNS rebinding).
pub(crate) fn check_source(headers: &HeaderMap, by_port: bool) -> Result<(), Refusal> {
    let forbidden = |error: &str| Err(Refusal::new(StatusCode::FORBIDDEN, error));
    let host = single_header(headers, &header::HOST);
    if by_port && !host.is_some_and(is_loopback_host) {
        return forbidden("the Host of a request must be a loopback address or localhost");
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = single_header(headers, &header::ORIGIN).and_then(|o| o.strip_prefix("http://"));
    if origin.is_none() || origin != host {
        return forbidden("requests from pages of other origins are not allowed");
    }
    Ok(())
}

/// The access to a listener: its tokens, and the logins of dashboards.
#[derive(Debug)]
pub(crate) struct AccessControl {
    /// The tokens, if one is required.
    tokens: Option<Tokens>,
    pub(super) pages: PageSessions,
}

impl AccessControl {
    pub(crate) fn new(tokens: Option<Tokens>) -> Self {
        Self {
            tokens,
            pages: PageSessions::new(),
        }
    }

    /// Returns the rights of a request: by its token, or by the cookie of a dashboard.
    pub(crate) fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<TokenScope, Refusal> {
        if self.tokens.is_some()
            && !headers.contains_key(header::AUTHORIZATION)
            && let Some(scope) = self.pages.check(method, headers)?
        {
            return Ok(scope);
        }
        check_token(headers, self.tokens.as_ref())
    }

    /// Returns the rights of a token, for a login.
    pub(super) fn scope_of_token(&self, token: &str) -> Result<TokenScope, Refusal> {
        match &self.tokens {
            None => Ok(TokenScope::default()),
            Some(tokens) => {
                let scope = tokens.find_scope(token.as_bytes());
                scope.ok_or_else(|| Refusal::new(StatusCode::UNAUTHORIZED, "this is not a token"))
            }
        }
    }
}

/// Checks the token, if one is required, and returns its scope.
fn check_token(headers: &HeaderMap, tokens: Option<&Tokens>) -> Result<TokenScope, Refusal> {
    let Some(tokens) = tokens else {
        return Ok(TokenScope::default());
    };
    let shown = single_header(headers, &header::AUTHORIZATION).and_then(|text| {
        let (scheme, word) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| word.trim())
    });
    // A missing token is compared too, which takes the same time as a wrong one.
    if let Some(scope) = tokens.find_scope(shown.unwrap_or_default().as_bytes()) {
        return Ok(scope);
    }
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "a token is required");
    Err(refusal.with_header(header::WWW_AUTHENTICATE, "Bearer"))
}

/// Checks that the body is declared as JSON, which a form in a browser cannot do.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = single_header(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let error = "the body of a request must be application/json";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error))
}

/// Returns the value of a header that occurs exactly once.
pub(super) fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(only), None) => only.to_str().ok(),
        _ => None,
    }
}

fn is_loopback_host(host: &str) -> bool {
    let Ok(uri) = host.parse::<Uri>() else {
        return false;
    };
    let Some(authority) = uri
        .authority()
        .filter(|a| a.as_str() == host && !host.contains('@'))
    else {
        return false;
    };
    let name = authority.host();
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    name.eq_ignore_ascii_case("localhost")
        || bare
            .unwrap_or(name)
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn weak_tokens_are_refused() {
        for weak in [
            "",
            "secret",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "0123456789abcdef0123456789abcde",
            "with blanks in the middle of a long text",
            "ABCDEFGHIJKLMNOPQRSTU",
        ] {
            assert_eq!(Token::new(weak).err(), Some(WeakToken), "{weak}");
        }
        for good in [
            "0123456789abcdef0123456789abcdef\n",
            "AAECAwQFBgcICQoLDA0ODw==",
        ] {
            assert!(Token::new(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn only_the_token_opens() {
        let tokens = "AAECAwQFBgcICQoLDA0ODw==\n\n# another\nEBESExQVFhcYGRobHB0eHw== reveal";
        let tokens = Tokens::parse(tokens).unwrap();
        let check = |list: &[_]| check_token(&headers(list), Some(&tokens));
        let revealing = [("authorization", "Bearer EBESExQVFhcYGRobHB0eHw==")];
        assert_eq!(
            check(&revealing),
            Ok(TokenScope {
                reveal: true,
                number: 2
            })
        );
        let plain = [("authorization", "Bearer AAECAwQFBgcICQoLDA0ODw==")];
        assert_eq!(
            check(&plain),
            Ok(TokenScope {
                reveal: false,
                number: 1
            })
        );
        assert!(check(&[("authorization", "bearer  AAECAwQFBgcICQoLDA0ODw==")]).is_ok());
        for wrong in [
            "Bearer AAECAwQFBgcICQoLDA0ODw=",
            "Bearer ",
            "AAECAwQFBgcICQoLDA0ODw==",
            "Basic AAECAwQFBgcICQoLDA0ODw==",
        ] {
            let refused = check(&[("authorization", wrong)]).unwrap_err();
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{wrong}");
        }
        assert!(check(&[]).is_err());
        let right = ("authorization", "Bearer AAECAwQFBgcICQoLDA0ODw==");
        assert!(check(&[right, right]).is_err(), "two of them");
        assert!(!format!("{tokens:?}").contains("AAEC"));
    }

    #[test]
    fn files_of_tokens_are_read_whole_or_not_at_all() {
        const GOOD: &str = "AAECAwQFBgcICQoLDA0ODw==";
        let line = |text: String| Tokens::parse(&text).err().map(|why| why.to_string());
        assert_eq!(line(format!("{GOOD}\n")), None);
        for (text, says) in [
            (String::new(), "no token"),
            ("# none\n".to_owned(), "no token"),
            (format!("{GOOD}\npassword\n"), "line 2: a token needs"),
            (format!("{GOOD} everything"), "line 1: the only word"),
            (format!("{GOOD}\n").repeat(65), "more than 64"),
        ] {
            let why = line(text).unwrap();
            assert!(why.contains(says) && !why.contains("password"), "{why}");
        }
    }

    #[test]
    fn pages_and_other_names_are_kept_out() {
        for host in [
            "127.0.0.1:6002",
            "localhost",
            "LOCALHOST:80",
            "[::1]:9",
            "127.8.8.8",
        ] {
            let map = headers(&[("host", host)]);
            assert!(check_source(&map, true).is_ok(), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.1",
            "localhost.evil",
            "a@localhost",
            "127.0.0.1/x",
            "[::2]",
        ] {
            let map = headers(&[("host", host)]);
            assert!(check_source(&map, true).is_err(), "{host}");
            assert!(
                check_source(&map, false).is_ok(),
                "a Unix socket has no such name: {host}"
            );
        }
        assert!(check_source(&headers(&[]), true).is_err());
        let own = [("host", "localhost:1"), ("origin", "http://localhost:1")];
        assert!(check_source(&headers(&own), true).is_ok());
        for origin in [
            "http://localhost:2",
            "null",
            "https://localhost:1",
            "http://evil.example",
        ] {
            let map = headers(&[("host", "localhost:1"), ("origin", origin)]);
            assert!(check_source(&map, true).is_err(), "{origin}");
            assert!(check_source(&map, false).is_err(), "{origin}");
        }
    }

    #[test]
    fn bodies_say_what_they_are() {
        for (kind, good) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonp", false),
        ] {
            assert_eq!(
                check_json(&headers(&[("content-type", kind)])).is_ok(),
                good,
                "{kind}"
            );
        }
        assert!(check_json(&headers(&[])).is_err());
    }
}
