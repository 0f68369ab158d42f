//! SIP008 documents for users, at secret paths.
//!
//! The secret part of the path is derived from the user's name and key. Nothing is stored, and a
//! changed key changes the path.

use std::collections::HashMap;
use std::sync::PoisonError;

use adit_config::Secret;
use adit_convert::sip008::{self, Server as Entry};
use adit_crypto::{KdfContext, ct_eq};
use adit_engine::KeyedServer;
use adit_wire::substr;
use adit_wire::u64_from;
use zeroize::Zeroizing;

use super::Api;
use super::reply::{ApiResult, Refusal, Reply};

const KDF_CONTEXT: &str = "adit subscription path";

/// Returns the path of a user's document.
pub(super) fn document_path(name: &str, key: &str) -> String {
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

impl Api {
    /// Returns the servers with identity headers, and their keys. Servers with a plugin are omitted,
    /// because only the operator knows the plugin for the clients.
    fn servers_with_identity(&self) -> Vec<(KeyedServer, Secret)> {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut found = Vec::new();
        let identities = self.identities.read();
        let identities = identities.unwrap_or_else(PoisonError::into_inner);
        for server in self.engine.keyed_servers() {
            let place = seen.entry(server.listening.route.clone()).or_default();
            let keys = identities.get(&server.listening.route);
            let key = keys.and_then(|keys| keys.get(*place)?.clone());
            *place += 1;
            found.extend(key.map(|key| (server, key)));
        }
        found
    }

    /// Answers `GET /sip008/:name/:secret`: all servers that have the user with this key.
    pub(super) fn get_subscription(&self, name: &str, shown: &str) -> ApiResult {
        // Wrong names and wrong secrets get the same answer.
        let missing = || Refusal::not_found("not found");
        let Some(host) = &self.public_host else {
            return Err(missing());
        };
        let mut entries = Vec::new();
        for (server, identity) in self.servers_with_identity() {
            let users = server.user_table.users();
            let Some(user) = users.find_by_name(name) else {
                continue;
            };
            let Some(key) = users.secret_text(user.id()) else {
                continue;
            };
            if !ct_eq(
                derive_path_secret(name, key.expose()).as_bytes(),
                shown.as_bytes(),
            ) {
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
        if entries.is_empty() {
            return Err(missing());
        }
        Ok(Reply::text(
            "application/json; charset=utf-8",
            sip008::write_subscription(&entries),
        ))
    }
}

/// Returns a UUID (version 8) that is stable for a route and port, as SIP008 requires.
fn stable_uuid(route: &str, port: u16) -> String {
    let hash = adit_crypto::sha256(format!("adit server {route} {port}").as_bytes());
    let hex: String = hash.iter().take(16).map(|b| format!("{b:02x}")).collect();
    let part = |from: usize, to: usize| substr(&hex, from..to).to_owned();
    format!(
        "{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_differ_by_name_and_key() {
        let one = document_path("anna", "AAECAwQFBgcICQoLDA0ODw==");
        assert_eq!(one, document_path("anna", "AAECAwQFBgcICQoLDA0ODw=="));
        assert_eq!(one.rsplit('/').next().unwrap().len(), 32);
        assert_ne!(one, document_path("anna", "EBESExQVFhcYGRobHB0eHw=="));
        let of = |name: &str, key: &str| derive_path_secret(name, key).to_string();
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert!(document_path("a/ b", "k").starts_with("/sip008/a%2F%20b/"));
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
