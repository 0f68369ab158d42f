//! The logins of dashboards in browsers: a token is exchanged once for a cookie and a key.
//!
//! Browsers send a cookie to all ports of a host, so that a program of another user at a port of this machine can
//! receive it. Requests therefore need the key too, which the page keeps for its own origin, port included, and sends in
//! a header of its own. Pages of other origins can neither read it nor send that header.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_crypto::{CredentialDigest, CredentialHasher};
use adit_net::system::{self, SystemRng};
use adit_wire::{Entropy, Time};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use zeroize::Zeroizing;

use super::access::{TokenScope, single_header};
use super::reply::Refusal;

/// The header with the key.
pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("adit-key");
/// The header in which browsers name the relation of a request to its page.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Time after which an unused login is forgotten.
const MAX_IDLE: Duration = Duration::from_secs(12 * 3600);
/// Maximum number of logins. A new one replaces the one that was unused for longest.
const MAX_LOGINS: usize = 64;

/// The logins of a listener.
pub(super) struct PageSessions {
    hasher: CredentialHasher,
    logins: Mutex<Vec<PageLogin>>,
}

struct PageLogin {
    digest: CredentialDigest,
    scope: TokenScope,
    last_used: Time,
}

/// The secrets of a new login.
pub(super) struct LoginSecrets {
    pub(super) cookie: Zeroizing<String>,
    pub(super) key: Zeroizing<String>,
}

impl fmt::Debug for PageSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageSessions").finish_non_exhaustive()
    }
}

impl PageSessions {
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        SystemRng.fill(&mut key);
        Self {
            hasher: CredentialHasher::new(key),
            logins: Mutex::default(),
        }
    }

    fn lock_logins(&self) -> MutexGuard<'_, Vec<PageLogin>> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let now = system::monotonic_now();
        logins.retain(|login| now.duration_since(login.last_used) < MAX_IDLE);
        logins
    }

    /// Adds a login with the rights of a token.
    pub(super) fn open(&self, scope: TokenScope) -> LoginSecrets {
        let secrets = LoginSecrets {
            cookie: random_text(),
            key: random_text(),
        };
        let login = PageLogin {
            digest: self.digest(&secrets.cookie, &secrets.key),
            scope,
            last_used: system::monotonic_now(),
        };
        let mut logins = self.lock_logins();
        if logins.len() >= MAX_LOGINS {
            let by_age = logins.iter().enumerate();
            let oldest = by_age.min_by_key(|(_, login)| login.last_used);
            if let Some((at, _)) = oldest {
                logins.swap_remove(at);
            }
        }
        logins.push(login);
        drop(logins);
        secrets
    }

    /// Ends the login of a request, if it has one.
    pub(super) fn close(&self, headers: &HeaderMap) {
        if let Some(digest) = self.digest_of(headers) {
            self.lock_logins().retain(|login| login.digest != digest);
        }
    }

    /// Returns the rights of a request with a cookie; `None` without a valid one.
    ///
    /// # Errors
    /// The request does not come from the page itself.
    pub(super) fn check(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Option<TokenScope>, Refusal> {
        let Some(digest) = self.digest_of(headers) else {
            return Ok(None);
        };
        let mut logins = self.lock_logins();
        let mut found = None;
        for login in logins.iter_mut() {
            if login.digest == digest {
                login.last_used = system::monotonic_now();
                found = Some(login.scope);
            }
        }
        drop(logins);
        if found.is_some() && !is_from_page(method, headers) {
            let why = "requests with a cookie must come from the dashboard";
            return Err(Refusal::new(StatusCode::FORBIDDEN, why));
        }
        Ok(found)
    }

    fn digest(&self, cookie: &str, key: &str) -> CredentialDigest {
        self.hasher
            .digest_parts(&[cookie.as_bytes(), key.as_bytes()])
    }

    fn digest_of(&self, headers: &HeaderMap) -> Option<CredentialDigest> {
        let name = cookie_name(headers);
        let cookies = single_header(headers, &header::COOKIE)?;
        let cookie = cookies.split(';').find_map(|pair| {
            let (found, value) = pair.trim().split_once('=')?;
            (found == name).then_some(value)
        })?;
        Some(self.digest(cookie, single_header(headers, &KEY_HEADER)?))
    }
}

/// Returns true if a browser states that a request comes from a page of the same origin. `Origin` has been compared with
/// `Host`, if it is present; requests that change something must have either.
fn is_from_page(method: &Method, headers: &HeaderMap) -> bool {
    match single_header(headers, &FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => {
            *method == Method::GET && !headers.contains_key(&FETCH_SITE)
                || headers.contains_key(header::ORIGIN)
        }
    }
}

/// Returns the name of the cookie at the port of a request: cookies are shared by all ports of a host.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = single_header(headers, &header::HOST).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("80", |(_, port)| port);
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    format!("adit-{}", if digits { port } else { "80" })
}

/// Returns the header that sets the cookie of a login, or removes it.
pub(super) fn cookie_header(headers: &HeaderMap, cookie: Option<&str>) -> HeaderValue {
    let (value, age) = match cookie {
        Some(value) => (value, ""),
        None => ("", "; Max-Age=0"),
    };
    let name = cookie_name(headers);
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{age}");
    // The name and the value consist of letters, digits and hyphens.
    let mut header = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

/// Returns 256 random bits in hexadecimal.
fn random_text() -> Zeroizing<String> {
    let mut bits = Zeroizing::new([0u8; 32]);
    SystemRng.fill(&mut *bits);
    Zeroizing::new(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(port: u16, cookie: &str, key: &str, more: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut put = |name, value: &str| {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        };
        put("host", &format!("127.0.0.1:{port}"));
        put("cookie", &format!("other=1; adit-{port}={cookie}"));
        if !key.is_empty() {
            put("adit-key", key);
        }
        for (name, value) in more {
            put(name, value);
        }
        headers
    }

    #[test]
    fn a_cookie_needs_its_key_and_its_page() {
        let pages = PageSessions::new();
        let scope = TokenScope {
            reveal: true,
            ..TokenScope::default()
        };
        let LoginSecrets { cookie, key } = pages.open(scope);
        let other = pages.open(TokenScope::default());
        let same = ("sec-fetch-site", "same-origin");
        let check = |method: &Method, cookie: &str, key: &str, more: &[_]| {
            pages.check(method, &request(81, cookie, key, more))
        };
        assert_eq!(check(&Method::GET, &cookie, &key, &[]), Ok(Some(scope)));
        assert_eq!(
            check(&Method::POST, &cookie, &key, &[same]),
            Ok(Some(scope))
        );
        let origin = ("origin", "http://127.0.0.1:81");
        assert_eq!(
            check(&Method::POST, &cookie, &key, &[origin]),
            Ok(Some(scope))
        );
        // A program that received the cookie does not have the key.
        for (cookie, key) in [
            (cookie.as_str(), ""),
            (&cookie, &other.key),
            ("", &key),
            (&key, &cookie),
        ] {
            assert_eq!(check(&Method::GET, cookie, key, &[same]), Ok(None));
        }
        assert!(check(&Method::POST, &cookie, &key, &[]).is_err());
        for site in ["cross-site", "same-site", "none"] {
            for method in [Method::GET, Method::DELETE] {
                let refused = check(&method, &cookie, &key, &[("sec-fetch-site", site)]);
                assert_eq!(refused.unwrap_err().status, StatusCode::FORBIDDEN, "{site}");
            }
        }
        pages.close(&request(81, &cookie, &key, &[]));
        assert_eq!(check(&Method::GET, &cookie, &key, &[same]), Ok(None));
        let kept = check(&Method::GET, &other.cookie, &other.key, &[same]);
        assert_eq!(kept, Ok(Some(TokenScope::default())));
    }

    #[test]
    fn a_listener_has_a_limited_number_of_logins() {
        let pages = PageSessions::new();
        let all: Vec<LoginSecrets> = (0..MAX_LOGINS + 5)
            .map(|_| pages.open(TokenScope::default()))
            .collect();
        assert_eq!(pages.lock_logins().len(), MAX_LOGINS);
        let last = all.last().unwrap();
        let headers = request(81, &last.cookie, &last.key, &[]);
        assert_eq!(
            pages.check(&Method::GET, &headers),
            Ok(Some(TokenScope::default()))
        );
    }

    #[test]
    fn a_cookie_is_for_its_port_and_not_for_scripts() {
        let headers = request(6002, "", "", &[]);
        let set = cookie_header(&headers, Some("abc"));
        assert_eq!(set, "adit-6002=abc; HttpOnly; SameSite=Strict; Path=/");
        let removed = cookie_header(&headers, None);
        assert!(removed.to_str().unwrap().ends_with("Max-Age=0"));
    }
}
