//! SSH listeners, which serve streams.

use adit_config::SshServer;

use super::{ListenerBuilder, ListenerHandlers};
use crate::StartError;
use crate::ssh::SshAcceptor;

pub(super) fn build_handlers(
    server: &SshServer,
    bench: &ListenerBuilder<'_>,
) -> Result<ListenerHandlers, StartError> {
    let passwords = bench.credentials(&server.users)?;
    let acceptor = SshAcceptor::new(server, passwords, bench.listen.limits.handshake)?;
    let mut worker = bench.build_worker(Box::new(acceptor));
    // UDP over TCP is the client's choice: it requests a stream with a reserved name.
    worker.over_tcp = true;
    Ok(ListenerHandlers::connections_only(worker))
}
