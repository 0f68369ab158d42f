//! The client of HTTP proxies (CONNECT), for hops.

use adit_http::client::{ClientError, Connect};
use adit_stream::{BoxStream, put, run};
use adit_wire::Target;

use super::{HandshakeError, HopDialect, RequestedStream};
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
    ) -> BoxFuture<'a, Result<RequestedStream, HandshakeError>> {
        Box::pin(async move {
            let mut core = Connect::new(to.clone(), self.login.clone());
            run(&mut io, &mut core)
                .await
                .map_err(|e| HandshakeError::from_run_error(e, cause_of))?;
            put(&mut io, first).await?;
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
