//! SSH listeners, which serve streams.

use adit_config::SshServer;

use super::{Bench, Served};
use crate::StartError;
use crate::ssh::Ssh;

pub(super) fn served(server: &SshServer, bench: &Bench<'_>) -> Result<Served, StartError> {
    let acceptor = Ssh::new(server, bench.listen.limits.handshake)?;
    let mut worker = bench.worker(Box::new(acceptor));
    // UDP over TCP is the client's choice: it requests a stream with a reserved name.
    worker.over_tcp = true;
    Ok(Served::connections(worker))
}
