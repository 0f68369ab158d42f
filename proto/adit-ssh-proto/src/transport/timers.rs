//! What time brings: an exchange that takes too long, keys that are old.

use core::time::Duration;

use adit_wire::Time;

use super::Transport;
use super::exchange::Stage;
use crate::algorithm::Cipher;
use crate::error::SshError;

/// How long a server waits with its lists for a client's, which would tell whether ChaCha20 may be
/// among them. Clients send theirs at once; the few that wait for ours lose that cipher, not the
/// connection.
const HOLD: Duration = Duration::from_millis(200);

impl Transport {
    /// When [`Transport::handle_timeout`] is to be called next. To be asked after each turn of
    /// reading and sending: it is from here that the transport learns when something began.
    pub fn poll_timeout(&mut self, now: Time) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let config = &self.config;
        match &mut self.exchange {
            Some(exchange) => {
                // Without a limit while a person looks at the host key.
                let limit = match exchange.stage {
                    Stage::Judging(_) => {
                        exchange.since = None;
                        return None;
                    }
                    Stage::Held if self.theirs.is_some() => HOLD,
                    _ => config.kex_timeout,
                };
                Some(*exchange.since.get_or_insert(now) + limit)
            }
            None => {
                let since = *self.keys_since.get_or_insert(now);
                let after = config.rekey_after.filter(|_| self.authenticated);
                after.map(|after| since + after)
            }
        }
    }

    /// Does what is due at `now`.
    ///
    /// # Errors
    /// [`SshError::Kex`] if the peer did not go on with a key exchange.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), SshError> {
        self.check_open()?;
        if self.poll_timeout(now).is_none_or(|due| due > now) {
            return Ok(());
        }
        let due = match &self.exchange {
            Some(exchange) if matches!(exchange.stage, Stage::Held) && self.theirs.is_some() => {
                self.offered
                    .cipher
                    .retain(|c| *c != Cipher::ChaCha20Poly1305);
                self.start_exchange()
            }
            Some(_) => Err(SshError::Kex("the peer takes too long")),
            None => self.start_exchange(),
        };
        due.map_err(|why| self.fail(why))
    }
}
