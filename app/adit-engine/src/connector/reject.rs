//! The connector that refuses everything.

use adit_wire::Target;

use super::{Connected, Connector};
use crate::udp::BoxDatagrams;
use crate::{BoxFuture, DialError};

/// Refuses every request, for `reject://`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reject;

impl Connector for Reject {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        _first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async move { Err(DialError::denied(format!("a rule rejects {to}"))) })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async { Err(DialError::denied("a rule rejects datagrams")) })
    }
}
