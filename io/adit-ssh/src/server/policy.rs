//! Authentication policies.

use std::future::ready;
use std::net::IpAddr;

use adit_crypto::Secret;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{ServerAnswer, ServerAuthQuery};
use adit_ssh_proto::key::{AnyKey, UserPresence};

use crate::BoxFuture;

/// A client's proof that it has a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyProof {
    /// None yet: the client asks whether the key is acceptable. Accepting does not log the user in.
    None,
    /// A verified signature, with the user presence and verification that a security token reports.
    Signature(Option<UserPresence>),
}

/// A policy that decides which users may log in. Methods that are not implemented refuse.
///
/// For a user who does not exist, return the same answer after the same time as for a wrong key or
/// password: see [`adit_ssh_proto::auth::passwords_equal`]. A policy is created for each connection, so it
/// may store the client's address.
pub trait AuthPolicy: Send + Sync {
    /// Returns the client's address, if known. Public-key computations of all connections of a process
    /// share a few threads, where sources take turns (the first 64 bits of an IPv6 address are one
    /// source). This number of connections from one address do not delay the logins of others. All connections
    /// without an address are one source.
    fn client_address(&self) -> Option<IpAddr> {
        None
    }

    /// Called when the server has computed keys for the client, before authentication. This is the most
    /// expensive part of a login, so count the peers that cause it and then do not log in. May be
    /// called more than once.
    fn on_keys_computed(&self) {}

    /// Called for each authentication request before it is decided, including methods that are not
    /// offered, so that you can log failed logins. `user` is arbitrary text from the client.
    fn on_attempt(&self, user: &str, method: &'static str) {
        let _ = (user, method);
    }

    /// Returns a banner for the user; `None` means that of the configuration.
    fn banner(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(ready(None))
    }

    /// Answers any authentication request. The provided implementation calls the methods below;
    /// implement this one instead to see more details or to change the offered methods. `algorithm` is
    /// that of the key that was presented last.
    ///
    /// # Errors
    /// An error ends the connection.
    fn answer_auth_request<'a>(
        &'a self,
        ask: &'a ServerAuthQuery,
        algorithm: Option<KeyAlgorithm>,
    ) -> BoxFuture<'a, Result<ServerAnswer, SshError>> {
        let _ = algorithm;
        Box::pin(async move {
            let yes = match ask {
                ServerAuthQuery::NoAuthentication { user } => self.allow_without_auth(user).await,
                ServerAuthQuery::KeyQuery { user, key } => {
                    self.check_public_key(user, key, KeyProof::None).await
                }
                ServerAuthQuery::Key {
                    user,
                    key,
                    presence,
                } => {
                    let proof = KeyProof::Signature(*presence);
                    self.check_public_key(user, key, proof).await
                }
                ServerAuthQuery::Password { user, password } => {
                    return Ok(self.check_password(user, password).await);
                }
                ServerAuthQuery::NewPassword { user, old, new } => {
                    return Ok(self.change_password(user, old, new).await);
                }
                ServerAuthQuery::Interactive { user, .. } => {
                    return Ok(self.prompt_user(user).await);
                }
                ServerAuthQuery::Responses { user, responses } => {
                    return Ok(self.check_responses(user, responses).await);
                }
            };
            Ok(if yes {
                ServerAnswer::Accept
            } else {
                ServerAnswer::Reject
            })
        })
    }

    /// Returns true if this user needs no authentication at all. Only called with
    /// [`ask_none`](adit_ssh_proto::auth::ServerAuthConfig::ask_none).
    fn allow_without_auth<'a>(&'a self, user: &'a str) -> BoxFuture<'a, bool> {
        let _ = user;
        Box::pin(ready(false))
    }

    /// Returns true if the key is the user's. For a certificate only possession of its key is proved:
    /// check the certificate and its authority.
    fn check_public_key<'a>(
        &'a self,
        user: &'a str,
        key: &'a AnyKey,
        proof: KeyProof,
    ) -> BoxFuture<'a, bool> {
        let _ = (user, key, proof);
        Box::pin(ready(false))
    }

    /// Checks the user's password, which the answer may require to be changed first.
    fn check_password<'a>(
        &'a self,
        user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, password);
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// Changes the user's password; check the old one first.
    fn change_password<'a>(
        &'a self,
        user: &'a str,
        old: &'a Secret<String>,
        new: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, old, new);
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// Returns the prompts for the user ([`ServerAnswer::Questions`]) or a refusal.
    fn prompt_user<'a>(&'a self, user: &'a str) -> BoxFuture<'a, ServerAnswer> {
        let _ = user;
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// Checks the user's responses; the answer may be further prompts.
    fn check_responses<'a>(
        &'a self,
        user: &'a str,
        responses: &'a [Secret<String>],
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, responses);
        Box::pin(ready(ServerAnswer::Reject))
    }
}
