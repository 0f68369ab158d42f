//! Listeners of SSH, which give streams.

use adit_config::SshServer;

use super::{Bench, Served};
use crate::StartError;
use crate::ssh::Ssh;

pub(super) fn served(server: &SshServer, bench: &Bench<'_>) -> Result<Served, StartError> {
    let acceptor = Ssh::new(server, bench.listen.limits.handshake)?;
    let mut worker = bench.worker(Box::new(acceptor));
    // The client's choice: it asks for a stream that has a name of its own.
    worker.over_tcp = true;
    Ok(Served::connections(worker))
}
