//! Documents with the servers of a user, at secret paths: SIP008, and the formats of other programs.
//!
//! The secret part of the path is derived from the user's name and key. Nothing is stored, and a
//! changed key changes the path.

use std::collections::HashMap;
use std::sync::PoisonError;

use adit_convert::sip008::Server as Entry;
use adit_convert::{DocumentFormat, QuotaUsage, write_document};
use adit_crypto::{KdfContext, ct_eq};
use adit_engine::{ByteCounts, KeyedServer, UserLimits};
use adit_wire::u64_from;
use hyper::StatusCode;
use zeroize::Zeroizing;

use super::reply::{ApiResult, Refusal, Reply};
use super::server_uuid::stable_uuid;
use super::{Api, ServerSettings};

const KDF_CONTEXT: &str = "adit subscription path";

/// Returns the path of a user's document in the API: `key` is the user's key, or one of the keys of a user of a
/// [fleet](super::SubscriptionServers).
#[must_use]
pub fn subscription_path(name: &str, key: &str) -> String {
    let name_in_path =
        percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    format!(
        "/sip008/{name_in_path}/{}",
        derive_path_secret(name, key).as_str()
    )
}

/// Derives the secret of a path: 128 bits, in hexadecimal.
fn derive_path_secret(name: &str, key: &str) -> Zeroizing<String> {
    let mut bits = Zeroizing::new([0u8; 16]);
    let len = u64_from(name.len()).to_le_bytes();
    KdfContext::new(KDF_CONTEXT).derive_key(&[&len, name.as_bytes(), key.as_bytes()], &mut *bits);
    Zeroizing::new(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The request for a document.
pub(super) struct DocumentRequest<'a> {
    pub(super) name: &'a str,
    /// The secret of the path.
    pub(super) secret: &'a str,
    /// The value of `?format=`.
    pub(super) format: Option<&'a str>,
    pub(super) user_agent: &'a str,
}

impl DocumentRequest<'_> {
    fn format(&self) -> Result<DocumentFormat, Refusal> {
        let Some(name) = self.format else {
            return Ok(DocumentFormat::of_client(self.user_agent));
        };
        DocumentFormat::from_name(name).ok_or_else(|| {
            let known = DocumentFormat::ALL.map(DocumentFormat::name).join(", ");
            Refusal::bad_request(format!("`format` must be one of {known}"))
        })
    }
}

impl Api {
    /// Returns the servers of the process with their settings.
    pub(super) fn servers_with_settings(&self) -> Vec<(KeyedServer, ServerSettings)> {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut found = Vec::new();
        let settings = self.servers.read();
        let settings = settings.unwrap_or_else(PoisonError::into_inner);
        for server in self.engine.keyed_servers() {
            let place = seen.entry(server.listening.route.clone()).or_default();
            let of_route = settings.get(&server.listening.route);
            let settings = of_route.and_then(|all| all.get(*place).cloned());
            *place += 1;
            found.extend(settings.map(|settings| (server, settings)));
        }
        found
    }

    /// Answers `GET /sip008/:name/:secret`: all servers that have the user with this key.
    pub(super) async fn get_subscription(&self, request: &DocumentRequest<'_>) -> ApiResult {
        let is_key = |key: &str| {
            let secret = derive_path_secret(request.name, key);
            ct_eq(secret.as_bytes(), request.secret.as_bytes())
        };
        // The key of a user of the fleet is the same at all of its listeners, so that this process has no others.
        let offer = match &self.fleet_servers {
            Some(fleet) => fleet.offer(request.name, &is_key).await,
            None => None,
        };
        let (entries, used, limits) = match offer {
            Some(offer) if offer.servers.is_empty() => {
                let why = "no node of the fleet accepts connections now: try again later";
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why));
            }
            Some(offer) => {
                let entries = offer.servers.into_iter().map(Entry::from).collect();
                (entries, offer.usage, offer.limits)
            }
            None => {
                let entries = self.own_servers(request.name, &is_key);
                let report = self.engine.user_registry().report(request.name);
                let used = report.as_ref().map(|report| report.used_in_period);
                let limits = report.map(|report| report.limits);
                (
                    entries,
                    used.unwrap_or_default(),
                    limits.unwrap_or_default(),
                )
            }
        };
        if entries.is_empty() {
            // Wrong names and wrong secrets get the same answer.
            return Err(Refusal::not_found("not found"));
        }
        let format = request.format()?;
        let usage = limits.quota.map(|quota| QuotaUsage {
            used: used.sum(),
            remaining: quota.saturating_sub(used.sum()),
        });
        let text = write_document(format, &entries, usage);
        Ok(Reply::text(format.media_type(), text).with_usage(&usage_header(used, limits)))
    }

    /// Returns the servers of this process that have a user with this name and a key for which `is_key` is true.
    fn own_servers(&self, name: &str, is_key: &dyn Fn(&str) -> bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        let Some(host) = &self.public_host else {
            return entries;
        };
        for (server, settings) in self.servers_with_settings() {
            let (Some(identity), true) = (settings.identity, settings.is_plain) else {
                continue;
            };
            let users = server.user_table.users();
            let Some(user) = users.find_by_name(name) else {
                continue;
            };
            let Some(key) = users.secret_text(user.id()) else {
                continue;
            };
            if !is_key(key.expose()) {
                continue;
            }
            let route = &server.listening.route;
            let port = server.listening.addr.port();
            let key = key.expose().as_str();
            let password = Zeroizing::new(format!("{}:{key}", identity.expose()));
            entries.push(Entry {
                id: stable_uuid(route, port),
                remarks: route.clone(),
                server: host.clone(),
                server_port: port,
                password: password.as_str().into(),
                method: users.method().name().to_owned(),
                plugin: None,
            });
        }
        entries
    }
}

/// Returns the value of `subscription-userinfo`: bytes, and seconds since 1970.
fn usage_header(used: ByteCounts, limits: UserLimits) -> String {
    let mut text = format!("upload={}; download={}", used.up, used.down);
    if let Some(quota) = limits.quota {
        text.push_str(&format!("; total={quota}"));
    }
    if let Some(expires) = limits.expires {
        text.push_str(&format!("; expire={}", expires.0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_differ_by_name_and_key() {
        let one = subscription_path("anna", "AAECAwQFBgcICQoLDA0ODw==");
        assert_eq!(one, subscription_path("anna", "AAECAwQFBgcICQoLDA0ODw=="));
        assert_eq!(one.rsplit('/').next().unwrap().len(), 32);
        assert_ne!(one, subscription_path("anna", "EBESExQVFhcYGRobHB0eHw=="));
        let of = |name: &str, key: &str| derive_path_secret(name, key).to_string();
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert!(subscription_path("a/ b", "k").starts_with("/sip008/a%2F%20b/"));
    }

    #[test]
    fn the_usage_has_the_limits_that_exist() {
        let used = ByteCounts { up: 1, down: 2 };
        let mut limits = UserLimits::default();
        assert_eq!(usage_header(used, limits), "upload=1; download=2");
        limits.quota = Some(9);
        limits.expires = Some(adit_wire::UnixTime(1_798_761_600));
        assert_eq!(
            usage_header(used, limits),
            "upload=1; download=2; total=9; expire=1798761600"
        );
    }

    #[test]
    fn ids_look_like_uuids_and_stay() {
        let one = stable_uuid("main", 8388);
        assert_eq!(one, stable_uuid("main", 8388));
        assert_ne!(one, stable_uuid("main", 8389));
        let lens: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lens, [8, 4, 4, 4, 12]);
    }
}
