//! Users of a server: listing, adding, changing and removing them.

use std::fmt;
use std::sync::Arc;

use adit_engine::{KeyedServer, Usage, UserTable};
use adit_shadowsocks::{UserRef, Users};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::keep::{self, Change};
use super::reply::{Answer, Refusal, Reply};
use super::stats::Numbers;
use super::{Api, subscription};
use crate::remote::is_user_name;

/// A user as the API writes it.
#[derive(Serialize)]
struct Credential<'a> {
    username: &'a str,
    #[serde(rename = "uPSK", skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The path of the user's SIP008 document.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscription: Option<String>,
    #[serde(flatten)]
    numbers: Option<Numbers>,
}

#[derive(Deserialize)]
struct NewUser {
    username: String,
    #[serde(rename = "uPSK")]
    key: String,
}

#[derive(Deserialize)]
struct NewKey {
    #[serde(rename = "uPSK")]
    key: String,
}

/// Returns the users of a server that has named users.
fn named(roster: &UserTable) -> Result<Arc<Users>, Refusal> {
    let users = roster.users();
    if users.has_names() {
        Ok(users)
    } else {
        Err(Refusal::missing(
            "this server has a single key and no users",
        ))
    }
}

fn find(users: &Users, name: &str) -> Result<UserRef, Refusal> {
    users
        .find_by_name(name)
        .ok_or_else(|| Refusal::missing("no such user"))
}

impl Api {
    /// Answers `GET /users`: names, and keys with `reveal`.
    pub(super) fn users(&self, server: &KeyedServer, reveal: bool) -> Answer {
        let users = named(&server.roster)?;
        let all: Vec<(UserRef, Option<_>)> = users
            .iter()
            .map(|user| {
                let key = reveal.then(|| users.secret_text(user.id())).flatten();
                (user, key)
            })
            .collect();
        let list: Vec<Credential<'_>> = all
            .iter()
            .map(|(user, key)| Credential {
                username: user.name(),
                key: key.as_ref().map(|key| key.expose().as_str()),
                subscription: None,
                numbers: None,
            })
            .collect();
        #[derive(Serialize)]
        struct List<'a> {
            users: Vec<Credential<'a>>,
        }
        Ok(Reply::ok(&List { users: list }))
    }

    /// Answers `GET /users/:name`: the user's traffic, and with `reveal` the user's secrets.
    pub(super) fn user(&self, server: &KeyedServer, name: &str, reveal: bool) -> Answer {
        let users = named(&server.roster)?;
        let user = find(&users, name)?;
        let used: Usage = server.roster.usage_of(user.id(), false);
        let key = reveal.then(|| users.secret_text(user.id())).flatten();
        let text = key.as_ref().map(|key| key.expose().as_str());
        Ok(Reply::ok(&Credential {
            username: user.name(),
            key: text,
            subscription: text.map(|key| subscription::path(user.name(), key)),
            numbers: Some(used.into()),
        }))
    }

    /// Answers `POST /users`: adds a user.
    pub(super) async fn add_user(&self, server: &KeyedServer, body: &[u8]) -> Answer {
        let new: NewUser = serde_json::from_slice(body).map_err(|_| Refusal::bad(NEW_USER))?;
        let key = Zeroizing::new(new.key);
        if !is_user_name(&new.username) {
            return Err(Refusal::bad(
                "a username has 1 to 255 bytes and no control characters",
            ));
        }
        let _alone = self.changing.lock().await;
        if named(&server.roster)?.find_by_name(&new.username).is_some() {
            return Err(Refusal::bad("a user with this name exists"));
        }
        let change = Change::Put(new.username.clone(), key);
        self.change(server, change).await?;
        Ok(Reply::json(
            StatusCode::CREATED,
            &Credential {
                username: &new.username,
                key: None,
                subscription: None,
                numbers: None,
            },
        ))
    }

    /// Answers `PATCH /users/:name`: changes the key and closes the user's sessions.
    pub(super) async fn change_user(
        &self,
        server: &KeyedServer,
        name: &str,
        body: &[u8],
    ) -> Answer {
        let new: NewKey = serde_json::from_slice(body).map_err(|_| Refusal::bad(NEW_KEY))?;
        let key = Zeroizing::new(new.key);
        let _alone = self.changing.lock().await;
        find(&*named(&server.roster)?, name)?;
        self.change(server, Change::Put(name.to_owned(), key))
            .await?;
        Ok(Reply::done())
    }

    /// Answers `DELETE /users/:name`: removes the user and closes the user's sessions.
    pub(super) async fn remove_user(&self, server: &KeyedServer, name: &str) -> Answer {
        let _alone = self.changing.lock().await;
        find(&*named(&server.roster)?, name)?;
        self.change(server, Change::Remove(name.to_owned())).await?;
        Ok(Reply::done())
    }

    /// Applies a change: checks it, then writes the file, then updates the users.
    async fn change(&self, server: &KeyedServer, change: Change) -> Result<(), Refusal> {
        let bad = |why: &dyn fmt::Display| Refusal::bad(why.to_string());
        let roster = &server.roster;
        let change = Arc::new(change);
        let (remove, put) = match &*change {
            Change::Put(name, key) => (None, Some((name.as_str(), key.as_str()))),
            Change::Remove(name) => (Some(name.as_str()), None),
        };
        let (remove, put) = (remove.as_slice(), put.as_slice());
        let users = roster.users();
        users.with_changes(remove, put).map_err(|e| bad(&e))?;
        if let Some(path) = roster.file() {
            let (path, method, change) = (path.to_owned(), users.method(), change.clone());
            let work = move || keep::write(&path, method, &change);
            let written = tokio::task::spawn_blocking(work).await;
            let written = written.unwrap_or_else(|e| Err(e.to_string()));
            written.map_err(|why| Refusal::new(StatusCode::CONFLICT, why))?;
        }
        roster.change_users(remove, put).map_err(|e| bad(&e))
    }
}

const NEW_USER: &str = "expected {\"username\": \"NAME\", \"uPSK\": \"KEY\"}";
const NEW_KEY: &str = "expected {\"uPSK\": \"KEY\"}";
