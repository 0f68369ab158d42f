//! Client: further attempts in the same connection, for callers that decide on one at a time.

use super::client::{ClientAuth, ClientAuthState, ClientStep};
use super::config::ClientAuthConfig;
use crate::error::SshError;

impl ClientAuth {
    /// True if the server accepted the last attempt as one of several required methods.
    #[must_use]
    pub const fn was_partial(&self) -> bool {
        self.partial
    }

    /// Continues after [`ClientStep::Failed`] with other methods, identities, or another user. Each
    /// of the methods is tried, regardless of the list that the server sent: it may differ for
    /// another user.
    ///
    /// # Errors
    /// [`SshError::Policy`] if no attempt has failed yet, or if the user is authenticated.
    pub fn retry_with(&mut self, config: ClientAuthConfig) -> Result<ClientStep, SshError> {
        if self.state != ClientAuthState::Failed {
            return Err(SshError::Policy(
                "another authentication attempt is still running",
            ));
        }
        self.allowed = config.methods.iter().map(|m| m.name().to_owned()).collect();
        self.tried_identities = vec![false; config.identities.len()];
        self.accepted_identities = Vec::new();
        (self.passwords, self.interactives, self.partial) = (0, 0, false);
        self.config = config;
        Ok(self.next_try())
    }
}

#[cfg(test)]
mod tests {
    use adit_crypto::Secret;

    use super::super::{AuthMethod, ClientAnswer, ClientAuthQuery};
    use super::*;
    use crate::msg;
    use crate::wire::SshBufMut;

    fn config(user: &str, methods: &[AuthMethod]) -> ClientAuthConfig {
        let mut config = ClientAuthConfig::new(user);
        config.methods = methods.to_vec();
        config.prompts = 1;
        config
    }

    fn failure(partial: bool) -> Vec<u8> {
        let mut out = vec![msg::USERAUTH_FAILURE];
        out.put_string(b"publickey,password");
        out.put_bool(partial);
        out
    }

    fn accepted() -> Vec<u8> {
        let mut out = vec![msg::SERVICE_ACCEPT];
        out.put_string(b"ssh-userauth");
        out
    }

    fn password(step: ClientStep, auth: &mut ClientAuth) {
        assert!(matches!(
            step,
            ClientStep::Query(ClientAuthQuery::Password { failed: 0 })
        ));
        let answer = ClientAnswer::Password(Secret::new("wrong".to_owned()));
        assert!(matches!(auth.answer_query(answer), Ok(ClientStep::Wait)));
    }

    #[test]
    fn one_try_after_the_other() {
        let mut auth = ClientAuth::new(config("a", &[]), b"session", b"host");
        assert!(auth.retry_with(config("a", &[])).is_err());
        assert!(matches!(
            auth.handle_input(&accepted()),
            Ok(ClientStep::Wait)
        ));
        let step = auth.handle_input(&failure(false)).unwrap();
        assert!(matches!(step, ClientStep::Failed { .. }));
        while auth.poll_output().is_some() {}

        // Another user, and a method that no server has listed for that user.
        let step = auth
            .retry_with(config("b", &[AuthMethod::Password]))
            .unwrap();
        password(step, &mut auth);
        let sent = auth.poll_output().unwrap();
        assert_eq!(sent.payload.expose().get(5..6), Some(&b"b"[..]));
        let step = auth.handle_input(&failure(false)).unwrap();
        assert!(matches!(step, ClientStep::Failed { .. }) && !auth.was_partial());

        let step = auth
            .retry_with(config("b", &[AuthMethod::Password]))
            .unwrap();
        password(step, &mut auth);
        let step = auth.handle_input(&failure(true)).unwrap();
        assert!(auth.was_partial());
        // The password is asked for again as a second step; there is none.
        assert!(matches!(
            step,
            ClientStep::Query(ClientAuthQuery::Password { failed: 0 })
        ));
        let step = auth.answer_query(ClientAnswer::Decline).unwrap();
        assert!(matches!(step, ClientStep::Failed { methods } if methods.len() == 2));
        assert!(auth.was_partial());
    }
}
