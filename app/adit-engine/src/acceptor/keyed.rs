//! Shadowsocks clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::ambient::{Chance, SystemClock};
use adit_shadowsocks::tcp::{Accepted, ServerHandshake};
use adit_shadowsocks::{SaltPool, Users};
use adit_stream::{BoxStream, Layered, Stream, fill};
use adit_wire::{Broken, Handshake, Host, Rx, Step, Target, Tx};
use tokio::time::timeout;

use super::reject::farewell;
use super::{Acceptor, Inbound, Pending, Rejection, Rejects, Reply};
use crate::{AcceptError, BoxFuture, DialError, Peer, Request};

/// A name that an adit server answers by itself, so that a client can tell whether its key and
/// its clock are right. It ends in `.invalid`, so that other servers find nothing there.
pub const CHECK_NAME: &str = "adit-check.invalid";

/// Reads Shadowsocks request headers; everything else is left to [`Rejects`].
pub struct Keyed {
    /// Whose requests are read.
    pub users: Arc<Users>,
    /// The salts seen.
    pub salts: Arc<SaltPool>,
    /// The reaction to whatever is not a request.
    pub rejects: Arc<Rejects>,
    /// Time for a complete header.
    pub deadline: Duration,
}

impl Keyed {
    /// Reads the header; on a failure `seen` holds the bytes as they came, if they are kept.
    async fn read(&self, io: &mut BoxStream, seen: &mut Vec<u8>) -> Result<Accepted, AcceptError> {
        let mut core = ServerHandshake::new(
            &self.users,
            Arc::new(SystemClock),
            self.salts.clone(),
            &mut Chance,
        );
        let (mut want, mut taken) = (1, 0);
        loop {
            if fill(io, want).await? < want {
                return Err(AcceptError::Rejected(Broken::Truncated(
                    "the request header",
                )));
            }
            let bytes = io.filled();
            if self.rejects.keeps_bytes() {
                // As they came: the core opens them in place.
                seen.extend_from_slice(bytes.get(seen.len() - taken..).unwrap_or_default());
            }
            let mut rx = Rx::new(bytes);
            let step = core
                .step(&mut rx, &mut Tx::new(&mut Vec::new()))
                .map_err(AcceptError::Rejected)?;
            let eaten = rx.eaten();
            io.consume(eaten);
            taken += eaten;
            match step {
                Step::Done(accepted) => return Ok(accepted),
                Step::NeedMore { total } => want = total,
            }
        }
    }
}

impl Acceptor for Keyed {
    fn accept(&self, mut io: BoxStream, _: Peer) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let mut seen = Vec::new();
            let read = timeout(self.deadline, self.read(&mut io, &mut seen)).await;
            let accepted = match read.unwrap_or(Err(AcceptError::Deadline)) {
                Ok(accepted) => accepted,
                Err(AcceptError::Io(e)) => return Err(e.into()),
                Err(why) => {
                    let rejects = self.rejects.clone();
                    let reaction = Box::pin(async move { rejects.apply(io, &seen).await });
                    return Ok(Inbound::Rejected(Rejection { why, reaction }));
                }
            };
            let Accepted {
                user,
                target,
                first,
                open,
                seal,
            } = accepted;
            let mut io: BoxStream = Box::new(Layered::new(io, seal, open));
            if is_check(&target) {
                farewell(
                    &mut io,
                    concat!("adit ", env!("CARGO_PKG_VERSION"), "\n").as_bytes(),
                )
                .await;
                return Ok(Inbound::Served);
            }
            let request = Request {
                target,
                first,
                user: user.map(|user| user.to_string()),
            };
            Ok(Inbound::Stream(Pending::new(request, Silent { io })))
        })
    }
}

fn is_check(target: &Target) -> bool {
    matches!(&target.host, Host::Name(name) if name.as_str() == CHECK_NAME)
}

/// The protocol has no words for yes and no: a refused client, which holds the key, is closed.
struct Silent {
    io: BoxStream,
}

impl Reply for Silent {
    fn client(&mut self) -> &mut BoxStream {
        &mut self.io
    }

    fn proceed(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async { Ok(self.io) })
    }

    fn refuse<'a>(mut self: Box<Self>, _: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            farewell(&mut self.io, &[]).await;
            Ok(())
        })
    }
}
