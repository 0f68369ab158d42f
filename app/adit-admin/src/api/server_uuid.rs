//! The UUIDs of servers in documents.

use adit_wire::substr;

/// Returns a UUID (version 8) that is stable for a route and port, as SIP008 requires.
pub(super) fn stable_uuid(route: &str, port: u16) -> String {
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
