//! A client of the part of the API that is about users: `/accounts`.

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::account_import::{ImportReply, ImportRequest};
use super::client::{ApiClient, ApiRequestError};
use super::given_secrets::GivenSecrets;

/// A user of the process, with their limits and usage. Amounts are in bytes, times in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountInfo {
    /// The name.
    pub name: String,
    /// The state, such as `active` or `over-quota`.
    pub state: String,
    /// Bytes of both directions in each period.
    pub quota: Option<u64>,
    /// The period of the quota: `total`, `day`, `week` or `month`.
    pub period: String,
    /// The time from which on the user is refused.
    pub expires: Option<u64>,
    /// Bytes per second, in each direction.
    pub rate: Option<u64>,
    /// Maximum number of sessions at once.
    pub sessions: Option<u32>,
    /// Maximum number of client addresses at once.
    pub devices: Option<u32>,
    /// Bytes from the user in this period.
    pub used_up: u64,
    /// Bytes to the user in this period.
    pub used_down: u64,
    /// Bytes from the user.
    pub total_up: u64,
    /// Bytes to the user.
    pub total_down: u64,
    /// Number of open sessions.
    pub sessions_open: u32,
    /// Number of client addresses with an open session.
    pub devices_open: u32,
    /// The listeners that have the user; only if a single user was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listeners: Option<Vec<String>>,
    /// True if the limits survive the process; only if a single user was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_last: Option<bool>,
    /// The credentials; only if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Vec<IssuedCredential>>,
}

/// The users of a process.
#[derive(Debug, Serialize, Deserialize)]
pub struct AccountList {
    /// The users, by name.
    pub accounts: Vec<AccountInfo>,
}

/// The credentials of a user at one listener.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCredential {
    /// The listener.
    pub listener: String,
    /// The key or password.
    pub secret: String,
    /// The URL for a client, if it can be known.
    pub url: Option<String>,
    /// The path of the document with the user's servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// A remark for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The new credentials of a user.
#[derive(Debug, Serialize, Deserialize)]
pub struct IssuedCredentials {
    /// The name of the user.
    pub name: String,
    /// The credentials, one for each listener.
    pub credentials: Vec<IssuedCredential>,
}

impl std::fmt::Debug for IssuedCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedCredential")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// A user to add.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// The name.
    pub name: String,
    /// The listeners; empty for all that have users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<String>,
    /// The host in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// The secrets that the user has already; listeners that none of them fits get new ones.
    #[serde(default, skip_serializing_if = "GivenSecrets::is_empty")]
    pub secrets: GivenSecrets,
}

/// The changes of a user's limits: outside, `None` changes nothing; inside, `None` removes the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LimitsPatch {
    /// Bytes of both directions in each period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Option<u64>>,
    /// The period of the quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<&'static str>,
    /// The time from which on the user is refused, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Option<u64>>,
    /// Bytes per second, in each direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<u64>>,
    /// Maximum number of sessions at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Option<u32>>,
    /// Maximum number of client addresses at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<Option<u32>>,
}

impl LimitsPatch {
    /// Returns true if nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the object of a request.
    #[must_use]
    pub fn to_json(&self) -> Value {
        // Numbers and names alone: nothing of it can fail.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Requests about users.
impl ApiClient {
    /// Returns all users.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses.
    pub async fn accounts(&self) -> Result<AccountList, ApiRequestError> {
        self.call(Method::GET, "/accounts", None).await
    }

    /// Returns one user: with `reveal`, the credentials too, whose URLs contain `host`.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses: there is no such user, or the token must not read keys.
    pub async fn account(
        &self,
        name: &str,
        reveal: bool,
        host: Option<&str>,
    ) -> Result<AccountInfo, ApiRequestError> {
        let mut path = account_path(name, "");
        if reveal {
            path.push_str("?reveal=1");
            if let Some(host) = host {
                path.push_str(&format!("&host={}", encode(host)));
            }
        }
        self.call(Method::GET, &path, None).await
    }

    /// Adds a user.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses: nothing has changed.
    pub async fn add_account(
        &self,
        new: &NewAccount,
    ) -> Result<IssuedCredentials, ApiRequestError> {
        let body = serde_json::to_value(new).unwrap_or_default();
        self.call(Method::POST, "/accounts", Some(&body)).await
    }

    /// Makes users what the request says; a user who is like that already is left alone.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses the request as a whole: nothing has changed. That a user could not be
    /// imported is in the reply.
    pub async fn import_accounts(
        &self,
        request: &ImportRequest,
    ) -> Result<ImportReply, ApiRequestError> {
        let body = serde_json::to_value(request).unwrap_or_default();
        self.call(Method::POST, "/v1/import", Some(&body)).await
    }

    /// Creates new keys and passwords for a user at these listeners; at all, if there is none.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses: nothing has changed.
    pub async fn rotate_account(
        &self,
        name: &str,
        listeners: &[String],
        host: Option<&str>,
    ) -> Result<IssuedCredentials, ApiRequestError> {
        let mut body = serde_json::json!({ "listeners": listeners });
        if let (Some(host), Value::Object(fields)) = (host, &mut body) {
            fields.insert("host".to_owned(), host.into());
        }
        let path = account_path(name, "/rotate");
        self.call(Method::POST, &path, Some(&body)).await
    }

    /// Removes a user from a listener; from all, without one.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses.
    pub async fn remove_account(
        &self,
        name: &str,
        listener: Option<&str>,
    ) -> Result<(), ApiRequestError> {
        let mut path = account_path(name, "");
        if let Some(listener) = listener {
            path.push_str(&format!("?listener={}", encode(listener)));
        }
        self.delete(&path).await
    }

    /// Changes limits, and returns the user.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses: nothing has changed.
    pub async fn set_account_limits(
        &self,
        name: &str,
        changes: &LimitsPatch,
    ) -> Result<AccountInfo, ApiRequestError> {
        let path = account_path(name, "/limits");
        self.call(Method::PUT, &path, Some(&changes.to_json()))
            .await
    }

    /// Starts to count a user's period from zero.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses.
    pub async fn reset_account(&self, name: &str) -> Result<(), ApiRequestError> {
        let (path, body) = (account_path(name, "/reset"), serde_json::json!({}));
        self.send_without_answer(Method::POST, &path, Some(&body))
            .await
    }
}

fn account_path(name: &str, rest: &str) -> String {
    format!("/accounts/{}{rest}", encode(name))
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
