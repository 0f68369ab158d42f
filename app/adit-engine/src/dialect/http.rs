//! The client of HTTP proxies (CONNECT), for hops.

use adit_http::client::{ClientError, Connect};
use adit_stream::{BoxStream, put, run};
use adit_wire::Target;

use super::{Dialect, DialogueError, Spoken};
use crate::{BoxFuture, Cause};

/// A client of one HTTP proxy.
pub struct Http {
    /// User and password for Basic authentication.
    pub login: Option<(String, String)>,
}

impl Dialect for Http {
    fn speak<'a>(
        &'a self,
        mut io: BoxStream,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Spoken, DialogueError>> {
        Box::pin(async move {
            let mut core = Connect::new(to.clone(), self.login.clone());
            run(&mut io, &mut core)
                .await
                .map_err(|e| DialogueError::of(e, cause))?;
            put(&mut io, first).await?;
            Ok(Spoken::plain(io))
        })
    }
}

const fn cause(why: &ClientError) -> Cause {
    match why {
        ClientError::Status(401 | 403 | 407) => Cause::DeniedByServer,
        ClientError::Status(504) => Cause::TimedOut,
        ClientError::Status(502 | 503) => Cause::HostUnreachable,
        _ => Cause::Malformed,
    }
}
