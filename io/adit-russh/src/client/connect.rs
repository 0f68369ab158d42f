//! From a stream to a session: key exchange and host key.

use std::sync::Arc;

use adit_net::ambient::Chance;
use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::Role;
use adit_ssh_proto::key::AnyKey;
use adit_ssh_proto::transport::{Event, Transport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::sync::mpsc;

use super::run::Task;
use super::{Config, Handle, Handler, Session};
use crate::Error;
use crate::engine::{Came, Core, Hold, Wire};
use crate::keys::PublicKeyOrCertificate;

/// Pieces of data that wait in one channel before its writer does.
const PIECES: usize = 64;

/// Connects over TCP, exchanges keys, and asks `handler` about the server's.
///
/// # Errors
/// There is no connection, no common algorithm, the handler refuses the key
/// ([`Error::UnknownKey`]), or what it failed with.
pub async fn connect<H: Handler + 'static, A: ToSocketAddrs>(
    config: Arc<Config>,
    addrs: A,
    handler: H,
) -> Result<Handle<H>, H::Error> {
    let socket = TcpStream::connect(addrs).await.map_err(Error::from)?;
    if config.nodelay {
        socket.set_nodelay(true).map_err(Error::from)?;
    }
    connect_stream(config, socket, handler).await
}

/// The same over any stream.
///
/// # Errors
/// As [`connect`].
pub async fn connect_stream<H, R>(
    config: Arc<Config>,
    stream: R,
    mut handler: H,
) -> Result<Handle<H>, H::Error>
where
    H: Handler + 'static,
    R: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let transport =
        Transport::client(config.transport()?, Box::new(Chance)).map_err(Error::from)?;
    let mut wire = Wire::new(stream, transport, config.patience(), true);
    match exchange(&mut wire, &mut handler).await {
        Ok(true) => {}
        Ok(false) => {
            wire.part(Some(&Error::UnknownKey)).await;
            return Err(Error::UnknownKey.into());
        }
        Err(why) => {
            wire.part(None).await;
            return Err(why);
        }
    }
    let mailbox = config.channel_buffer_size;
    let core = Core::new(Role::Client, config.connection(), mailbox, PIECES);
    let hold = Hold::new(&core);
    let (wishes, wanted) = mpsc::channel(1);
    let task = Task {
        wire,
        handler,
        session: Session::new(Arc::clone(&core)),
        core: Arc::clone(&core),
    };
    let task = tokio::spawn(task.run(wanted));
    Ok(Handle::new(core, hold, wishes, task))
}

/// The first key exchange; false if the handler does not take the server's key.
async fn exchange<H: Handler, IO: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<IO>,
    handler: &mut H,
) -> Result<bool, H::Error> {
    loop {
        match wire.next().await? {
            Came::Event(Event::HostKey { algorithm, blob }) => {
                let key = AnyKey::parse_for(algorithm, &blob);
                let key = key.map_err(|why| Error::from(SshError::from(why)))?;
                let key = PublicKeyOrCertificate::of(key, algorithm);
                if !handler.check_server_key(&key).await? {
                    wire.transport.reject_host_key();
                    return Ok(false);
                }
                let accepted = wire.transport.accept_host_key();
                accepted.map_err(Error::from)?;
            }
            Came::Event(Event::Ready(_)) => return Ok(true),
            Came::Event(_) => {}
            Came::Payload(payload) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(Error::from(SshError::Unexpected(number)).into());
            }
        }
    }
}
