//! The transport of a session: a socket, or a channel of the previous jump host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::ssh_config::{AddressFamily, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_net::dial::{self, Family};
use adit_net::tcp;
use adit_ssh_proto::connection::Originator;
use adit_stream::{BoxStream, Tcp};
use tokio::net::{TcpSocket, TcpStream};
use tracing::debug;

use super::{ConnectRequest, DEFAULT_CONNECT_TIMEOUT, start_session};

/// Maximum number of jump hosts, including those that the configuration requires for other jump hosts.
const MAX_JUMP_DEPTH: usize = 16;

/// Opens a stream to the host, through its jump hosts.
pub(super) async fn open_transport(
    asked: &ConnectRequest,
    settings: &SshSettings,
    depth: usize,
) -> Result<BoxStream, Failure> {
    if let Some(command) = &settings.proxy_command {
        let what = format!("ProxyCommand `{command}` is not supported");
        return Err(Failure::new(FailureCode::Config, what)
            .with_hint("use ProxyJump (-J), or connect directly with -o ProxyCommand=none"));
    }
    let Some((last, before)) = settings.proxy_jump.split_last() else {
        return connect_directly(settings).await;
    };
    if depth >= MAX_JUMP_DEPTH {
        let what = format!(
            "more than {MAX_JUMP_DEPTH} jump hosts on the path to {}",
            settings.host_name
        );
        return Err(Failure::new(FailureCode::Config, what)
            .with_hint("check whether a ProxyJump leads back to itself"));
    }
    let jump = asked.for_jump_host(last);
    let mut through = jump.resolve_settings()?;
    if !before.is_empty() {
        before.clone_into(&mut through.proxy_jump);
        through.proxy_command = None;
    }
    debug!(
        "connecting to {} through {}",
        settings.host_name, through.host_name
    );
    let below = Box::pin(open_transport(&jump, &through, depth + 1)).await?;
    let reached = start_session(below, &through).await?;
    let opened = reached.session.open_direct_tcpip(
        settings.host_name.clone(),
        settings.port,
        local_originator(),
    );
    let channel = opened.await.map_err(|why| {
        let place = describe_endpoint(settings);
        let what = format!("{} cannot connect to {place}: {why}", through.host_name);
        Failure::new(FailureCode::Network, what)
    })?;
    Ok(Box::new(channel))
}

/// Returns the originator of a channel that has no client, as OpenSSH sends it: it must be an address.
pub(crate) fn local_originator() -> Originator {
    Originator {
        address: "127.0.0.1".to_owned(),
        port: 65_535,
    }
}

/// Describes the host and port.
fn describe_endpoint(settings: &SshSettings) -> String {
    format!("{} port {}", settings.host_name, settings.port)
}

/// Connects to the host without a jump host.
async fn connect_directly(settings: &SshSettings) -> Result<BoxStream, Failure> {
    let family = match settings.address_family {
        AddressFamily::Any => Family::Any,
        AddressFamily::Inet => Family::V4Only,
        AddressFamily::Inet6 => Family::V6Only,
    };
    let found = dial::resolve(&settings.host_name, settings.port, family).await;
    let found = found.map_err(|why| {
        Failure::new(
            FailureCode::Network,
            format!("{}: {why}", settings.host_name),
        )
        .with_hint("check the name, and whether the name server can resolve it")
    })?;
    let limit = settings.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT);
    let connected = match &settings.bind_address {
        None => dial::connect_first(&found, limit).await,
        Some(from) => {
            let from = resolve_bind_address(from, family).await?;
            tokio::time::timeout(limit, connect_from(from, &found))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
    };
    let socket = connected.map_err(|why| connect_failure(settings, &why, limit))?;
    debug!("connected to {:?}", socket.peer_addr());
    Ok(Box::new(Tcp::new(socket)))
}

/// Returns the failure of a connection attempt, with a hint.
fn connect_failure(settings: &SshSettings, why: &io::Error, limit: Duration) -> Failure {
    let failure = Failure::new(
        FailureCode::Network,
        format!("{}: {why}", describe_endpoint(settings)),
    );
    match why.kind() {
        io::ErrorKind::ConnectionRefused => failure.with_hint(
            "the host responds, but nothing listens on this port; use -p PORT for another",
        ),
        io::ErrorKind::TimedOut => failure.with_hint(format!(
            "no response for {} s: the host may be down, or a firewall may drop the packets",
            limit.as_secs()
        )),
        _ => failure,
    }
}

/// Resolves the value of `BindAddress`.
async fn resolve_bind_address(text: &str, family: Family) -> Result<IpAddr, Failure> {
    let found = dial::resolve(text, 0, family).await;
    match found.as_deref() {
        Ok([first, ..]) => Ok(first.ip()),
        _ => {
            let what = format!("BindAddress `{text}` is not an address of this machine");
            Err(Failure::new(FailureCode::Config, what))
        }
    }
}

/// Tries the addresses one after the other, from a fixed local address.
async fn connect_from(from: IpAddr, found: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for to in found.iter().filter(|to| to.is_ipv4() == from.is_ipv4()) {
        let socket = match from.is_ipv4() {
            true => TcpSocket::new_v4()?,
            false => TcpSocket::new_v6()?,
        };
        socket.bind(SocketAddr::new(from, 0))?;
        match socket.connect(*to).await {
            Ok(stream) => {
                tcp::set_stream_options(&stream);
                return Ok(stream);
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}
