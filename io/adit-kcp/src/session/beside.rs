//! Out-of-band datagrams of a session.

use adit_net::system;

use super::{Session, State};
use crate::oob::{self, OobError, OobReceiver};

impl Session {
    /// Sends an out-of-band datagram, if the rate and the peer's allowance permit it.
    pub(crate) fn send_oob(&self, payload: &[u8]) -> Result<(), OobError> {
        let mut state = self.lock();
        let limit = self.oob_limit(&state).ok_or(OobError::NoCorrection)?;
        if payload.len() > limit {
            return Err(OobError::TooLong { limit });
        }
        if state.is_over() {
            return Err(OobError::Ended);
        }
        let State {
            wire, crypt, peer, ..
        } = &mut *state;
        let packet = (self.conv, payload);
        wire.put_oob(
            &self.socket,
            *peer,
            crypt.as_deref_mut(),
            packet,
            system::monotonic_now(),
        );
        Ok(())
    }

    /// Returns the maximum length of an out-of-band datagram in bytes; 0 without FEC.
    pub(crate) fn oob_max_size(&self) -> usize {
        self.oob_limit(&self.lock()).unwrap_or(0)
    }

    fn oob_limit(&self, state: &State) -> Option<usize> {
        let sends = self.socket.settings.fec.is_some();
        sends.then(|| oob::limit(state.kcp.config().mtu))
    }

    /// Creates a receiver for out-of-band datagrams, which replaces the previous one.
    pub(crate) fn take_oob(&self) -> OobReceiver {
        let (sender, receiver) = oob::queue();
        let mut state = self.lock();
        state.wire.oob = (!state.is_over()).then_some(sender);
        receiver
    }

    /// Sets the number of additional copies of each datagram.
    pub(crate) fn set_copies(&self, copies: u8) {
        self.lock().wire.copies = copies;
    }
}
