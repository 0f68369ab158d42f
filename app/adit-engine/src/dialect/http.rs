//! HTTP CONNECT with a hop's server.

use std::io;

use adit_http::client::{ClientError, Connect};
use adit_stream::{BoxStream, put, run};
use adit_wire::Target;

use super::{Dialect, Spoken, dialogue};
use crate::BoxFuture;

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
    ) -> BoxFuture<'a, io::Result<Spoken>> {
        Box::pin(async move {
            let mut core = Connect::new(to.clone(), self.login.clone());
            run(&mut io, &mut core)
                .await
                .map_err(|e| dialogue(e, kind))?;
            put(&mut io, first).await?;
            Ok(Spoken::plain(io))
        })
    }
}

fn kind(why: &ClientError) -> io::ErrorKind {
    match why {
        ClientError::Status(401 | 403 | 407) => io::ErrorKind::PermissionDenied,
        ClientError::Status(504) => io::ErrorKind::TimedOut,
        ClientError::Status(502 | 503) => io::ErrorKind::HostUnreachable,
        _ => io::ErrorKind::InvalidData,
    }
}
