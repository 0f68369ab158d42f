//! The dashboard: a page for browsers, its login, and QR codes for it.
//!
//! The page itself contains no secrets and needs no token. It asks the API for everything it shows.

use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use qrcode::types::Color;
use qrcode::{EcLevel, QrCode};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::access::AccessControl;
use super::page_sessions::cookie_header;
use super::reply::{ApiResult, Refusal, Reply};

/// The sources that the page may load from: its own files, and the API.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Maximum length of the text of a QR code, in bytes.
const MAX_QR_TEXT: usize = 2048;

/// A part of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DashboardPart {
    /// One of its files.
    File(&'static PageFile),
    /// The exchange of a token for a cookie.
    Login,
    /// The end of a login.
    Logout,
    /// The QR code of a text.
    QrCode,
}

/// A file of the dashboard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageFile {
    name: &'static str,
    kind: &'static str,
    text: &'static [u8],
}

macro_rules! page_files {
    ($($name:literal $kind:literal,)+) => {
        [$(PageFile {
            name: $name,
            kind: $kind,
            text: include_bytes!(concat!("../../assets/", $name)),
        }),+]
    };
}

static FILES: [PageFile; 10] = page_files![
    "dashboard.html" "text/html; charset=utf-8",
    "dashboard.css" "text/css; charset=utf-8",
    "dashboard.js" "text/javascript; charset=utf-8",
    "chart.js" "text/javascript; charset=utf-8",
    "client.js" "text/javascript; charset=utf-8",
    "elements.js" "text/javascript; charset=utf-8",
    "fleet.js" "text/javascript; charset=utf-8",
    "text.js" "text/javascript; charset=utf-8",
    "users.js" "text/javascript; charset=utf-8",
    "icon.svg" "image/svg+xml",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginRequest {
    token: String,
}

#[derive(Serialize)]
struct LoginReply<'a> {
    key: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QrRequest {
    text: String,
}

/// A QR code.
#[derive(Serialize)]
struct QrReply {
    /// Number of modules of each side.
    size: usize,
    /// The rows from top to bottom, with `1` for a dark module.
    rows: Vec<String>,
}

impl DashboardPart {
    /// Returns the part at the path `/dashboard/…`.
    pub(crate) fn of_path(rest: &[&str]) -> Option<Self> {
        Some(match rest {
            [] => Self::File(FILES.first()?),
            ["login"] => Self::Login,
            ["logout"] => Self::Logout,
            ["qr"] => Self::QrCode,
            [name] => Self::File(FILES.iter().find(|file| file.name == *name)?),
            _ => return None,
        })
    }

    /// Returns the method that is allowed.
    pub(crate) const fn allowed_methods(self) -> &'static str {
        match self {
            Self::File(_) => "GET",
            Self::Login | Self::Logout | Self::QrCode => "POST",
        }
    }

    /// Returns true if a request needs no token.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Self::File(_) | Self::Login)
    }

    /// Performs a request for this part.
    pub(crate) fn answer(
        self,
        access: &AccessControl,
        headers: &HeaderMap,
        body: &[u8],
    ) -> ApiResult {
        match self {
            Self::File(file) => Ok(file.reply()),
            Self::Login => log_in(access, headers, body),
            Self::Logout => {
                access.pages.close(headers);
                let cookie = cookie_header(headers, None);
                Ok(Reply::no_content().with_header(header::SET_COOKIE, cookie))
            }
            Self::QrCode => draw_qr_code(body),
        }
    }
}

impl PageFile {
    fn reply(&self) -> Reply {
        let policy = HeaderValue::from_static(PAGE_POLICY);
        Reply::file(self.kind, self.text).with_header(header::CONTENT_SECURITY_POLICY, policy)
    }
}

/// Returns the redirection from `/` to the page.
pub(super) fn redirect() -> Reply {
    let place = HeaderValue::from_static("/dashboard");
    let mut reply = Reply::no_content().with_header(header::LOCATION, place);
    reply.status = StatusCode::TEMPORARY_REDIRECT;
    reply
}

/// Returns true if a request is that of a browser for a page.
pub(super) fn accepts_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Exchanges a token for a cookie and a key.
fn log_in(access: &AccessControl, headers: &HeaderMap, body: &[u8]) -> ApiResult {
    let request: LoginRequest = serde_json::from_slice(body)
        .map_err(|_| Refusal::bad_request("expected {\"token\": \"TOKEN\"}"))?;
    let token = Zeroizing::new(request.token);
    let scope = access.scope_of_token(token.trim())?;
    let secrets = access.pages.open(scope);
    let reply = Reply::ok(&LoginReply { key: &secrets.key });
    let cookie = cookie_header(headers, Some(&secrets.cookie));
    Ok(reply.with_header(header::SET_COOKIE, cookie))
}

fn draw_qr_code(body: &[u8]) -> ApiResult {
    let request: QrRequest = serde_json::from_slice(body)
        .map_err(|_| Refusal::bad_request("expected {\"text\": \"TEXT\"}"))?;
    let text = Zeroizing::new(request.text);
    let too_long = || Refusal::bad_request("the text does not fit into a QR code");
    if text.len() > MAX_QR_TEXT {
        return Err(too_long());
    }
    let code = QrCode::with_error_correction_level(text.as_bytes(), EcLevel::L);
    let code = code.map_err(|_| too_long())?;
    let size = code.width();
    let colors = code.to_colors();
    let row = |row: &[Color]| row.iter().map(|color| color.select('1', '0')).collect();
    Ok(Reply::ok(&QrReply {
        size,
        rows: colors.chunks(size).map(row).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_but_its_files() {
        for file in &FILES {
            let text = std::str::from_utf8(file.text).unwrap();
            assert!(
                !text.contains("https://") && !text.contains("//cdn"),
                "{}",
                file.name
            );
            let is_script = file.name.ends_with(".js");
            for forbidden in ["innerHTML", "insertAdjacentHTML", "eval(", "document.write"] {
                assert!(
                    !is_script || !text.contains(forbidden),
                    "{}: {forbidden}",
                    file.name
                );
            }
        }
        let page = std::str::from_utf8(FILES[0].text).unwrap();
        // The policy forbids them.
        assert!(!page.contains("style=") && !page.contains("onclick") && !page.contains("<style"));
        for part in page.split("/dashboard/").skip(1) {
            let name: String = part.chars().take_while(|c| *c != '"').collect();
            assert!(DashboardPart::of_path(&[&name]).is_some(), "{name}");
        }
    }

    #[test]
    fn qr_codes_are_squares() {
        let reply = draw_qr_code(br#"{"text": "ss://example"}"#).unwrap();
        assert_eq!(reply.status, StatusCode::OK);
        let long = format!("{{\"text\": \"{}\"}}", "x".repeat(MAX_QR_TEXT + 1));
        assert!(draw_qr_code(long.as_bytes()).is_err());
    }
}
