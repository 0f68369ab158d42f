//! Several chains for one purpose, tried in order.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_wire::Target;

use super::{Bound, Connected, Connector};
use crate::udp::BoxDatagrams;
use crate::{BoxFuture, DialError, Fault};

/// Takes the first member that opens; an error of our own rules ends the search.
pub struct Group {
    members: Vec<Arc<dyn Connector>>,
}

impl Group {
    /// A group of at least one member.
    #[must_use]
    pub const fn new(members: Vec<Arc<dyn Connector>>) -> Self {
        Self { members }
    }

    async fn first<'a, T>(
        &'a self,
        open: impl Fn(&'a dyn Connector) -> BoxFuture<'a, Result<T, DialError>>,
    ) -> Result<T, DialError> {
        let mut last = DialError::denied("an empty group");
        for member in &self.members {
            match open(&**member).await {
                Ok(way) => return Ok(way),
                Err(why) if why.fault == Fault::Policy => return Err(why),
                Err(why) => last = why,
            }
        }
        Err(last)
    }
}

impl Connector for Group {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(self.first(move |member| member.connect(to, first)))
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(self.first(|member| member.associate()))
    }

    fn listen<'a>(&'a self, near: SocketAddr) -> BoxFuture<'a, Result<Bound, DialError>> {
        Box::pin(self.first(move |member| member.listen(near)))
    }
}
