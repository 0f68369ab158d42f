//! The connector that refuses everything.

use adit_wire::Target;

use super::{ConnectedStream, Connector};
use crate::udp::BoxDatagramPath;
use crate::{BoxFuture, DialError};

/// Refuses every request, for `reject://`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RejectAll;

impl Connector for RejectAll {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        _first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move { Err(DialError::denied_by_rule(format!("a rule rejects {to}"))) })
    }

    fn rejects_all(&self) -> bool {
        true
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async { Err(DialError::denied_by_rule("a rule rejects datagrams")) })
    }
}
