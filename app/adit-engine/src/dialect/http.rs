//! The client of HTTP proxies (CONNECT), for hops.

use adit_http::client::{self, ClientError};
use adit_stream::{BoxStream, run_handshake, write_all};
use adit_wire::Target;

use super::{HopDialect, HopError, RequestedStream};
use crate::{BoxFuture, FailureCause};

/// A client of one HTTP proxy.
pub struct HttpConnect {
    /// User and password for Basic authentication.
    pub login: Option<(String, String)>,
}

impl HopDialect for HttpConnect {
    fn request_target<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<RequestedStream, HopError>> {
        Box::pin(async move {
            let mut core = client::HttpConnect::new(to.clone(), self.login.clone());
            run_handshake(&mut io, &mut core)
                .await
                .map_err(|e| HopError::from_handshake(e, cause_of))?;
            write_all(&mut io, first).await?;
            Ok(RequestedStream::without_wait(io))
        })
    }
}

const fn cause_of(why: &ClientError) -> FailureCause {
    match why {
        ClientError::Status(401 | 403 | 407) => FailureCause::DeniedByServer,
        ClientError::Status(504) => FailureCause::TimedOut,
        ClientError::Status(502 | 503) => FailureCause::HostUnreachable,
        _ => FailureCause::Malformed,
    }
}
