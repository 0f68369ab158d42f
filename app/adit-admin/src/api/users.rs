//! Users of a server: listing, adding, changing and removing them.

use std::fmt;
use std::sync::Arc;

use adit_engine::{KeyedServer, Usage, UserTable};
use adit_shadowsocks::{UserRef, Users};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::reply::{ApiResult, Refusal, Reply};
use super::stats::TrafficCounters;
use super::users_file::{self, UserChange};
use super::{Api, subscription};
use crate::untrusted_text::is_user_name;

/// A user as the API writes it.
#[derive(Serialize)]
struct UserEntry<'a> {
    username: &'a str,
    #[serde(rename = "uPSK", skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// The path of the user's SIP008 document.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscription: Option<String>,
    #[serde(flatten)]
    numbers: Option<TrafficCounters>,
}

#[derive(Deserialize)]
struct AddUserRequest {
    username: String,
    #[serde(rename = "uPSK")]
    key: String,
}

#[derive(Deserialize)]
struct ChangeKeyRequest {
    #[serde(rename = "uPSK")]
    key: String,
}

/// Returns the users of a server that has named users.
fn named_users(user_table: &UserTable) -> Result<Arc<Users>, Refusal> {
    let users = user_table.users();
    if users.has_names() {
        Ok(users)
    } else {
        Err(Refusal::not_found(
            "this server has a single key and no users",
        ))
    }
}

fn find_user(users: &Users, name: &str) -> Result<UserRef, Refusal> {
    users
        .find_by_name(name)
        .ok_or_else(|| Refusal::not_found("no such user"))
}

impl Api {
    /// Answers `GET /users`: names, and keys with `reveal`.
    pub(super) fn list_users(&self, server: &KeyedServer, reveal: bool) -> ApiResult {
        let users = named_users(&server.user_table)?;
        let all: Vec<(UserRef, Option<_>)> = users
            .iter()
            .map(|user| {
                let key = reveal.then(|| users.secret_text(user.id())).flatten();
                (user, key)
            })
            .collect();
        let list: Vec<UserEntry<'_>> = all
            .iter()
            .map(|(user, key)| UserEntry {
                username: user.name(),
                key: key.as_ref().map(|key| key.expose().as_str()),
                subscription: None,
                numbers: None,
            })
            .collect();
        #[derive(Serialize)]
        struct List<'a> {
            users: Vec<UserEntry<'a>>,
        }
        Ok(Reply::ok(&List { users: list }))
    }

    /// Answers `GET /users/:name`: the user's traffic, and with `reveal` the user's secrets.
    pub(super) fn get_user(&self, server: &KeyedServer, name: &str, reveal: bool) -> ApiResult {
        let users = named_users(&server.user_table)?;
        let user = find_user(&users, name)?;
        let used: Usage = server.user_table.usage_of(user.id(), false);
        let key = reveal.then(|| users.secret_text(user.id())).flatten();
        let text = key.as_ref().map(|key| key.expose().as_str());
        Ok(Reply::ok(&UserEntry {
            username: user.name(),
            key: text,
            subscription: text.map(|key| subscription::subscription_path(user.name(), key)),
            numbers: Some(used.into()),
        }))
    }

    /// Answers `POST /users`: adds a user.
    pub(super) async fn add_user(&self, server: &KeyedServer, body: &[u8]) -> ApiResult {
        let new: AddUserRequest =
            serde_json::from_slice(body).map_err(|_| Refusal::bad_request(NEW_USER))?;
        let key = Zeroizing::new(new.key);
        if !is_user_name(&new.username) {
            return Err(Refusal::bad_request(
                "a username has 1 to 255 bytes and no control characters",
            ));
        }
        let _alone = self.change_lock.lock().await;
        if named_users(&server.user_table)?
            .find_by_name(&new.username)
            .is_some()
        {
            return Err(Refusal::bad_request("a user with this name exists"));
        }
        let change = UserChange::Put(new.username.clone(), key);
        self.apply_change(server, change).await?;
        self.announce_added(&new.username);
        Ok(Reply::json(
            StatusCode::CREATED,
            &UserEntry {
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
    ) -> ApiResult {
        let new: ChangeKeyRequest =
            serde_json::from_slice(body).map_err(|_| Refusal::bad_request(NEW_KEY))?;
        let key = Zeroizing::new(new.key);
        let _alone = self.change_lock.lock().await;
        find_user(&*named_users(&server.user_table)?, name)?;
        self.apply_change(server, UserChange::Put(name.to_owned(), key))
            .await?;
        Ok(Reply::no_content())
    }

    /// Answers `DELETE /users/:name`: removes the user and closes the user's sessions.
    pub(super) async fn remove_user(&self, server: &KeyedServer, name: &str) -> ApiResult {
        let _alone = self.change_lock.lock().await;
        find_user(&*named_users(&server.user_table)?, name)?;
        self.apply_change(server, UserChange::Remove(name.to_owned()))
            .await?;
        self.announce_removed(name);
        Ok(Reply::no_content())
    }

    /// Applies a change: checks it, then writes the file, then updates the users.
    pub(super) async fn apply_change(
        &self,
        server: &KeyedServer,
        change: UserChange,
    ) -> Result<(), Refusal> {
        let bad = |why: &dyn fmt::Display| Refusal::bad_request(why.to_string());
        let user_table = &server.user_table;
        let change = Arc::new(change);
        let users = user_table.users();
        let (remove, put) = change.parts();
        let remove = remove.as_slice();
        users.with_changes(remove, &put).map_err(|e| bad(&e))?;
        let Some(path) = user_table.file() else {
            return user_table.change_users(remove, &put).map_err(|e| bad(&e));
        };
        let (method, table, change) = (users.method(), user_table.clone(), change.clone());
        let work = move || {
            table.with_file(|| {
                let conflict = |why| Refusal::new(StatusCode::CONFLICT, why);
                users_file::write_change(&path, method, &change).map_err(conflict)?;
                let (remove, put) = change.parts();
                let changed = table.change_users(remove.as_slice(), &put);
                changed.map_err(|why| Refusal::bad_request(why.to_string()))
            })
        };
        let changed = tokio::task::spawn_blocking(work).await;
        changed.unwrap_or_else(|why| Err(Refusal::new(StatusCode::CONFLICT, why.to_string())))
    }
}

const NEW_USER: &str = "expected {\"username\": \"NAME\", \"uPSK\": \"KEY\"}";
const NEW_KEY: &str = "expected {\"uPSK\": \"KEY\"}";
