//! Forwarded ports and sockets of the host (`-R`).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::{SshBind, SshDestination, SshForward};
use adit_engine::access::AccessRule;
use adit_engine::connector::{Connector, DirectConnector};
use adit_engine::serve::ConnectionHandler;
use adit_engine::udp::SenderFilter;
use adit_engine::{ConnectionAddrs, DialError, NameResolver};
use adit_net::dial::Family;
use adit_net::tcp::FastOpen;
use adit_ssh::client::RemoteForward;
use adit_ssh::{IncomingChannel, RequestError};
use adit_ssh_proto::connection::OpenFailureReason;
use adit_stream::Buffered;
use adit_stream::{BoxStream, lane};
use adit_wire::{Host, Target};
use tokio::task::JoinSet;

use super::forward_target::socks_handler;
use super::{ForwardContext, describe_destination, relay_connection};
use crate::ssh::platform::connect_socket;
use crate::ssh::terminal;

/// Time limit for an outgoing connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Asks the host to listen, and serves its connections.
pub(super) async fn open_remote_forward(
    tasks: &mut JoinSet<()>,
    forward: &SshForward,
    shared: &Arc<ForwardContext>,
) -> Result<(), RequestError> {
    let forwarded = match &forward.listen {
        SshBind::Socket(path) => shared.session.forward_streamlocal(path.as_str()).await?,
        SshBind::Port { address, port } => {
            let address = match address.as_deref() {
                None => "localhost",
                Some("*") => "",
                Some(address) => address,
            };
            let forwarded = shared.session.forward_tcpip(address, *port).await?;
            if *port == 0
                && let Some(port) = forwarded.port()
            {
                // The host chose the port, so the user has to learn it.
                terminal::print_message(&format!(
                    "allocated port {port} on the host for the forward to {}",
                    describe_destination(&forward.to)
                ));
            }
            forwarded
        }
    };
    tasks.spawn(serve_remote_forward(
        forwarded,
        forward.to.clone(),
        Arc::clone(shared),
    ));
    Ok(())
}

/// Accepts forwarded channels and serves each in its own task.
async fn serve_remote_forward(
    mut forwarded: RemoteForward,
    to: SshDestination,
    shared: Arc<ForwardContext>,
) {
    let direct = Arc::new(DirectConnector {
        access: AccessRule::UNRESTRICTED,
        family: Family::Any,
        deadline: DIAL_TIMEOUT,
        filter: SenderFilter::Contacted,
        fast_open: FastOpen::Off,
        names: NameResolver::system(),
    });
    let worker = Arc::new(socks_handler(direct.clone()));
    while let Some(opening) = forwarded.accept().await {
        let (to, shared) = (to.clone(), Arc::clone(&shared));
        let (direct, worker) = (Arc::clone(&direct), Arc::clone(&worker));
        let ticket = shared.counter.count_connection();
        lane::spawn_movable(async move {
            match &to {
                SshDestination::Socks => serve_socks_channel(opening, &worker).await,
                to => serve_fixed_channel(opening, to, &direct, &shared).await,
            }
            drop(ticket);
        });
    }
}

/// Serves SOCKS on a forwarded channel.
async fn serve_socks_channel(opening: IncomingChannel, worker: &Arc<ConnectionHandler>) {
    let remote = opening.originator().and_then(|(address, port)| {
        Some(SocketAddr::new(
            address.parse().ok()?,
            u16::try_from(port).ok()?,
        ))
    });
    let remote = remote.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    // An error means that the session has ended.
    if let Ok(channel) = opening.accept() {
        let peer = ConnectionAddrs {
            remote,
            local: remote,
        };
        worker.serve_connection(Box::new(channel), peer).await;
    }
}

/// Connects a forwarded channel to a fixed destination.
async fn serve_fixed_channel(
    opening: IncomingChannel,
    to: &SshDestination,
    direct: &DirectConnector,
    shared: &ForwardContext,
) {
    match connect_local(to, direct).await {
        Ok(mut near) => {
            if let Ok(mut channel) = opening.accept() {
                relay_connection(&mut channel, &mut *near, &describe_destination(to)).await;
            }
        }
        Err(why) => {
            shared.print_message(&format!(
                "warning: cannot forward to {}: {why}",
                describe_destination(to)
            ));
            opening.refuse(
                OpenFailureReason::ConnectFailed,
                "the client could not connect",
            );
        }
    }
}

/// Connects from this machine to the destination of a forward.
async fn connect_local(to: &SshDestination, direct: &DirectConnector) -> anyhow::Result<BoxStream> {
    match to {
        SshDestination::Socket(path) => {
            Ok(Box::new(Buffered::from_tokio(connect_socket(path).await?)))
        }
        SshDestination::Port { host, port } => {
            let target = Target::new(Host::parse(host)?, *port);
            let connected = direct.connect(&target, b"").await;
            Ok(connected.map_err(|why: DialError| why.source_error)?.io)
        }
        SshDestination::Socks => anyhow::bail!("SOCKS has no fixed destination"),
    }
}
