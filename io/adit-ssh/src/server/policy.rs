//! Who may come in.

use std::future::ready;
use std::net::IpAddr;

use adit_crypto::Secret;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::auth::{ServerAnswer, ServerAsk};
use adit_ssh_proto::key::{AnyKey, Presence};

use crate::BoxFuture;

/// What a client has shown of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing yet: it asks whether the key would do. Nobody gets in by that.
    None,
    /// A signature, which was verified; with what a token says of its user.
    Signature(Option<Presence>),
}

/// Decides who may come in. What is not answered is refused.
///
/// For a user who does not exist the answer is the same, after the same time, as for a wrong key or
/// password: see [`adit_ssh_proto::auth::password_eq`]. A policy is made for each connection, and may
/// know where it comes from.
pub trait AuthPolicy: Send + Sync {
    /// Where the connection comes from, if that is known. Public-key computations of all
    /// connections of a process share a few threads: there the sources take turns (the first 64
    /// bits of an IPv6 address are one), so that many connections of one address don't hold up the
    /// logins of others. All connections without a source are one source.
    fn source(&self) -> Option<IpAddr> {
        None
    }

    /// Told when the server has computed keys for the client, whoever that is. It is what a login
    /// costs most, so those who have it done and then don't log in are worth a count. May be
    /// called more than once.
    fn keys_computed(&self) {}

    /// Told of each request for authentication before it is judged, also of methods that are not
    /// offered: what a log has of a login that failed. `user` is any text of the client's.
    fn tried(&self, user: &str, method: &'static str) {
        let _ = (user, method);
    }

    /// Words for the user before anything else; `None`: those of the configuration.
    fn banner(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(ready(None))
    }

    /// Answers whatever is asked. What is provided asks the methods below; whoever wants to know
    /// more, or to offer other methods from now on, writes this one instead. `algorithm` is that of
    /// the key that was shown last.
    ///
    /// # Errors
    /// The connection ends.
    fn judge<'a>(
        &'a self,
        ask: &'a ServerAsk,
        algorithm: Option<KeyAlgorithm>,
    ) -> BoxFuture<'a, Result<ServerAnswer, SshError>> {
        let _ = algorithm;
        Box::pin(async move {
            let yes = match ask {
                ServerAsk::Nothing { user } => self.none(user).await,
                ServerAsk::KeyQuery { user, key } => self.public_key(user, key, Proof::None).await,
                ServerAsk::Key {
                    user,
                    key,
                    presence,
                } => {
                    let proof = Proof::Signature(*presence);
                    self.public_key(user, key, proof).await
                }
                ServerAsk::Password { user, password } => {
                    return Ok(self.password(user, password).await);
                }
                ServerAsk::NewPassword { user, old, new } => {
                    return Ok(self.new_password(user, old, new).await);
                }
                ServerAsk::Interactive { user, .. } => return Ok(self.questions(user).await),
                ServerAsk::Responses { user, responses } => {
                    return Ok(self.responses(user, responses).await);
                }
            };
            Ok(if yes {
                ServerAnswer::Accept
            } else {
                ServerAnswer::Reject
            })
        })
    }

    /// Whether this user needs no authentication at all. Asked only with
    /// [`ask_none`](adit_ssh_proto::auth::ServerConfig::ask_none).
    fn none<'a>(&'a self, user: &'a str) -> BoxFuture<'a, bool> {
        let _ = user;
        Box::pin(ready(false))
    }

    /// Whether the key is the user's. Of a certificate nothing but the possession of its key is
    /// known: the authority is to be checked.
    fn public_key<'a>(
        &'a self,
        user: &'a str,
        key: &'a AnyKey,
        proof: Proof,
    ) -> BoxFuture<'a, bool> {
        let _ = (user, key, proof);
        Box::pin(ready(false))
    }

    /// Whether this is the user's password; it may have to be changed first.
    fn password<'a>(
        &'a self,
        user: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, password);
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// Whether the user's password may become this one; the old one has to be right.
    fn new_password<'a>(
        &'a self,
        user: &'a str,
        old: &'a Secret<String>,
        new: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, old, new);
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// What the user is to be asked: [`ServerAnswer::Questions`], or a refusal.
    fn questions<'a>(&'a self, user: &'a str) -> BoxFuture<'a, ServerAnswer> {
        let _ = user;
        Box::pin(ready(ServerAnswer::Reject))
    }

    /// What the user has answered; there may be further questions.
    fn responses<'a>(
        &'a self,
        user: &'a str,
        responses: &'a [Secret<String>],
    ) -> BoxFuture<'a, ServerAnswer> {
        let _ = (user, responses);
        Box::pin(ready(ServerAnswer::Reject))
    }
}
