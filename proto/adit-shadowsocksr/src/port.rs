//! The shared parameters of a client and its server: protocol, key, and the lists of `auth_chain`.

use std::sync::Arc;

use adit_crypto::Secret;
use adit_wire::UnixTime;

use crate::ProtocolKind;
use crate::chain_padding::{ChainKind, PaddingSizes};
use crate::protocol_kind::ProtocolFamily;

/// Number of bytes that `auth_chain` itself adds to a full frame.
const CHAIN_OVERHEAD: u16 = 4;

pub(crate) struct PortParams {
    pub(crate) kind: ProtocolKind,
    key: Secret<Vec<u8>>,
    pub(crate) overhead: u16,
    interval: u32,
    /// Generated once; `None` for `auth_chain_f` and for protocols outside `auth_chain`.
    sizes: Option<Arc<PaddingSizes>>,
}

impl PortParams {
    pub(crate) fn new(kind: ProtocolKind, key: &[u8], obfs_overhead: u16, interval: u32) -> Self {
        let overhead = obfs_overhead.saturating_add(CHAIN_OVERHEAD);
        let sizes = match kind.family() {
            ProtocolFamily::Chain(ChainKind::F) => None,
            ProtocolFamily::Chain(chain) => {
                Some(Arc::new(PaddingSizes::new(chain, key, overhead, 0)))
            }
            _ => None,
        };
        Self {
            kind,
            key: Secret::new(key.to_vec()),
            overhead,
            interval,
            sizes,
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.key.expose()
    }

    /// Returns the key of the MACs of a first message.
    pub(crate) fn iv_key(&self, iv: &[u8]) -> Secret<Vec<u8>> {
        Secret::new([iv, self.key()].concat())
    }

    /// Returns the lists for a connection whose first message has this time.
    pub(crate) fn padding_sizes(&self, chain: ChainKind, time: UnixTime) -> Arc<PaddingSizes> {
        self.sizes.clone().unwrap_or_else(|| {
            let period = time.0 / u64::from(self.interval.max(1));
            Arc::new(PaddingSizes::new(chain, self.key(), self.overhead, period))
        })
    }
}
