//! Responses of the API.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    extra: Option<(HeaderName, &'static str)>,
}

/// A refused request: the status and the error text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: String,
    pub(crate) extra: Option<(HeaderName, &'static str)>,
}

pub(crate) type ApiResult = Result<Reply, Refusal>;

#[derive(Serialize)]
struct ErrorText<'a> {
    error: &'a str,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            extra: None,
        }
    }

    pub(crate) fn bad_request(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// Creates a refusal of the method, with the allowed ones.
    pub(crate) fn method_not_allowed(allowed: &'static str) -> Self {
        let refusal = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("allowed methods: {allowed}"),
        );
        refusal.with_header(header::ALLOW, allowed)
    }

    pub(crate) fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self {
            extra: Some((name, value)),
            ..self
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let error = ErrorText {
            error: &refusal.error,
        };
        Self {
            extra: refusal.extra,
            ..Self::json(refusal.status, &error)
        }
    }
}

impl Reply {
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Self {
        Self {
            status,
            kind: "application/json; charset=utf-8",
            // Strings, numbers and lists of them never fail to serialize.
            body: serde_json::to_vec(value).unwrap_or_default(),
            extra: None,
        }
    }

    pub(crate) fn ok(value: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, value)
    }

    pub(crate) fn text(kind: &'static str, body: String) -> Self {
        Self {
            status: StatusCode::OK,
            kind,
            body: body.into_bytes(),
            extra: None,
        }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) const fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            kind: "",
            body: Vec::new(),
            extra: None,
        }
    }
}

impl From<Reply> for Response<Full<Bytes>> {
    fn from(reply: Reply) -> Self {
        let mut response = Self::new(Full::new(reply.body.into()));
        *response.status_mut() = reply.status;
        let headers = response.headers_mut();
        if !reply.kind.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.kind));
        }
        // Responses are not for browsers, caches or content sniffing (SEC-E5).
        for (name, value) in [
            (header::CACHE_CONTROL, "no-store"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = reply.extra {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
