//! Connecting: from a stream to a session by key exchange and host key check.

use std::sync::{Arc, OnceLock};

use adit_ssh::client::{Client, HostKey, HostKeyPolicy};
use adit_ssh::{BoxFuture, HostKeyRefused};
use adit_stream::{BoxStream, Buffered, Tcp};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::sync::{Mutex, mpsc};

use super::task::ClientTask;
use super::{Config, Handle, Handler, Session};
use crate::Error;
use crate::keys::PublicKeyOrCertificate;
use crate::keys::agent::AgentSessionBinding;
use crate::session_core::SessionCore;

/// Connects over TCP, exchanges keys, and asks `handler` to check the server's host key.
///
/// # Errors
/// The connection failed, there is no common algorithm, the handler refused the key
/// ([`Error::UnknownKey`]), or the handler's own error.
pub async fn connect<H: Handler + 'static, A: ToSocketAddrs>(
    config: Arc<Config>,
    addrs: A,
    handler: H,
) -> Result<Handle<H>, H::Error> {
    let socket = TcpStream::connect(addrs).await.map_err(Error::from)?;
    if config.nodelay {
        socket.set_nodelay(true).map_err(Error::from)?;
    }
    start_session(config, Box::new(Tcp::new(socket)), handler).await
}

/// Connects over any stream.
///
/// # Errors
/// The errors of [`connect`].
pub async fn connect_stream<H, R>(
    config: Arc<Config>,
    stream: R,
    handler: H,
) -> Result<Handle<H>, H::Error>
where
    H: Handler + 'static,
    R: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    start_session(config, Box::new(Buffered::from_tokio(stream)), handler).await
}

async fn start_session<H: Handler + 'static>(
    config: Arc<Config>,
    below: BoxStream,
    handler: H,
) -> Result<Handle<H>, H::Error> {
    let judge = Arc::new(HandlerPolicy(Mutex::new((handler, None))));
    let policy: Arc<dyn HostKeyPolicy> = Arc::clone(&judge) as _;
    let exchanged = Client::exchange_keys(below, &config.to_client_config(policy)?).await;
    // No one else holds it any more.
    let judge = Arc::into_inner(judge).ok_or(Error::Inconsistent)?;
    let (handler, failed) = judge.0.into_inner();
    if let Some(why) = failed {
        return Err(why);
    }
    let entrance = exchanged.map_err(Error::from)?;
    let binding = entrance.session_binding().map(AgentSessionBinding);
    let (core, hold) = (Arc::<SessionCore>::default(), Arc::<OnceLock<_>>::default());
    let (wishes, wanted) = mpsc::channel(1);
    let task = ClientTask {
        handler,
        session: Session::new(Arc::clone(&core)),
        core: Arc::clone(&core),
        keep_alive: Arc::clone(&hold),
        queue_limits: config.queue_limits(),
    };
    let task = tokio::spawn(task.run_task(entrance, wanted));
    Ok(Handle::new(core, hold, wishes, task, binding))
}

/// A host key policy that asks the handler, and keeps the handler's error.
struct HandlerPolicy<H: Handler>(Mutex<(H, Option<H::Error>)>);

impl<H: Handler> HostKeyPolicy for HandlerPolicy<H> {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        Box::pin(async move {
            let (handler, failed) = &mut *self.0.lock().await;
            let key = PublicKeyOrCertificate::from_key(key.key.clone(), key.algorithm);
            match handler.check_server_key(&key).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(why) => *failed = Some(why),
            }
            Err(HostKeyRefused(String::new()))
        })
    }
}
