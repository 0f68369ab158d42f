//! Responses of the API.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::Notify;

use super::events::EventStream;

pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The header with the usage of a subscription, which clients of Clash, sing-box and others show.
const SUBSCRIPTION_USAGE: HeaderName = HeaderName::from_static("subscription-userinfo");
/// The origins whose pages may embed a response.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    kind: &'static str,
    body: ReplyBody,
    extra: Option<(HeaderName, &'static str)>,
    more: Vec<(HeaderName, HeaderValue)>,
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Whole(Full<Bytes>),
    Events(EventStream),
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
            body: serde_json::to_vec(value).unwrap_or_default().into(),
            extra: None,
            more: Vec::new(),
        }
    }

    pub(crate) fn ok(value: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, value)
    }

    pub(crate) fn text(kind: &'static str, body: String) -> Self {
        Self {
            status: StatusCode::OK,
            kind,
            body: body.into_bytes().into(),
            extra: None,
            more: Vec::new(),
        }
    }

    /// Adds the usage of a subscription, as its clients show it.
    pub(crate) fn with_usage(mut self, usage: &str) -> Self {
        if let Ok(usage) = HeaderValue::from_str(usage) {
            self.more.push((SUBSCRIPTION_USAGE, usage));
        }
        self
    }

    /// Creates a response with a file of this program.
    pub(crate) fn file(kind: &'static str, text: &'static [u8]) -> Self {
        Self {
            status: StatusCode::OK,
            kind,
            body: ReplyBody::Whole(Full::new(Bytes::from_static(text))),
            extra: None,
            more: Vec::new(),
        }
    }

    /// Adds a header, or replaces that of all responses.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.more.push((name, value));
        self
    }

    /// Creates a response that is a stream of events.
    pub(crate) const fn events(stream: EventStream) -> Self {
        Self {
            status: StatusCode::OK,
            kind: "text/event-stream",
            body: ReplyBody::Events(stream),
            extra: None,
            more: Vec::new(),
        }
    }

    /// Notifies `progress` whenever the connection takes a part of a stream.
    pub(crate) fn notify_progress(&mut self, progress: &Arc<Notify>) {
        if let ReplyBody::Events(stream) = &mut self.body {
            stream.notify_progress(progress.clone());
        }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            kind: "",
            body: Vec::new().into(),
            extra: None,
            more: Vec::new(),
        }
    }
}

impl From<Vec<u8>> for ReplyBody {
    fn from(body: Vec<u8>) -> Self {
        Self::Whole(Full::new(body.into()))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Events(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

impl From<Reply> for Response<ReplyBody> {
    fn from(reply: Reply) -> Self {
        let mut response = Self::new(reply.body);
        *response.status_mut() = reply.status;
        let headers = response.headers_mut();
        if !reply.kind.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.kind));
        }
        // Responses are not for pages of other origins, caches or content sniffing (SEC-E5).
        for (name, value) in [
            (header::CACHE_CONTROL, "no-store"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (RESOURCE_POLICY, "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = reply.extra {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in reply.more {
            headers.insert(name, value);
        }
        response
    }
}
