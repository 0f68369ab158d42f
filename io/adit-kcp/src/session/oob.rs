//! Out-of-band datagrams of a session.

use adit_net::system;

use super::{Session, SessionState};
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
        let SessionState {
            wire, crypt, peer, ..
        } = &mut *state;
        let packet = (self.conv, payload);
        wire.send_oob(
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

    fn oob_limit(&self, state: &SessionState) -> Option<usize> {
        let sends = self.socket.settings.fec.is_some();
        sends.then(|| oob::max_payload(state.kcp.config().mtu))
    }

    /// Creates a receiver for out-of-band datagrams, which replaces the previous one.
    pub(crate) fn take_oob(&self) -> OobReceiver {
        let (sender, receiver) = oob::new_queue();
        let mut state = self.lock();
        state.wire.oob = (!state.is_over()).then_some(sender);
        receiver
    }

    /// Sets the number of additional copies of each datagram.
    pub(crate) fn set_copies(&self, copies: u8) {
        self.lock().wire.copies = copies;
    }
}
