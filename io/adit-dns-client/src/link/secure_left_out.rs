//! TLS and HTTPS in a build without the feature `tls`: an error.

use adit_dns::{Answer, UpstreamQuery};

use super::ServerLink;
use crate::error::ServerError;
use crate::path::BoxDnsStream;
use crate::tls::TlsError;

/// The state of a server over TLS or HTTPS: there is none.
#[derive(Default)]
pub(super) struct SecureState {}

impl SecureState {
    pub(super) const fn clear(&self) {}
}

impl ServerLink {
    pub(super) async fn ask_over_https(&self, _: &UpstreamQuery) -> Result<Answer, ServerError> {
        Err(self.left_out())
    }

    pub(super) async fn open_secure_stream(&self) -> Result<BoxDnsStream, ServerError> {
        Err(self.left_out())
    }

    fn left_out(&self) -> ServerError {
        // The authorities would be used here.
        let _ = &self.roots;
        TlsError::LeftOut.into()
    }
}
