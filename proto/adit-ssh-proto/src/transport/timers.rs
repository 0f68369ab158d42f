//! Timeouts: exchanges that take too long, and keys that are too old.

use core::time::Duration;

use adit_wire::Time;

use super::Transport;
use super::exchange::ExchangeStage;
use crate::algorithm::Cipher;
use crate::error::SshError;

/// Time for which a server withholds its KEXINIT to learn from the client's whether it may offer
/// ChaCha20. Clients send theirs immediately; the few that wait for the server's lose that cipher,
/// not the connection.
const HOLD: Duration = Duration::from_millis(200);

impl Transport {
    /// Returns the time of the next call to [`Transport::handle_timeout`]. Call it after each round
    /// of reading and sending: the transport starts its timers here.
    pub fn poll_timeout(&mut self, now: Time) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let config = &self.config;
        match &mut self.exchange {
            Some(exchange) => {
                // No limit while a user looks at the host key.
                let limit = match exchange.stage {
                    ExchangeStage::CheckingHostKey(_) => {
                        exchange.since = None;
                        return None;
                    }
                    ExchangeStage::AwaitingPeerInit if self.theirs.is_some() => HOLD,
                    _ => config.kex_timeout,
                };
                Some(*exchange.since.get_or_insert(now) + limit)
            }
            None => {
                let since = *self.keys_in_use_since.get_or_insert(now);
                let after = config.rekey_after.filter(|_| self.authenticated);
                after.map(|after| since + after)
            }
        }
    }

    /// Performs the actions due at `now`.
    ///
    /// # Errors
    /// [`SshError::Kex`] if the peer did not complete a key exchange in time.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), SshError> {
        self.check_open()?;
        if self.poll_timeout(now).is_none_or(|due| due > now) {
            return Ok(());
        }
        let due = match &self.exchange {
            Some(exchange)
                if matches!(exchange.stage, ExchangeStage::AwaitingPeerInit)
                    && self.theirs.is_some() =>
            {
                self.offered
                    .cipher
                    .retain(|c| *c != Cipher::ChaCha20Poly1305);
                self.start_exchange()
            }
            Some(_) => Err(SshError::Kex("timed out waiting for the peer")),
            None => self.start_exchange(),
        };
        due.map_err(|why| self.fail_with(why))
    }
}
