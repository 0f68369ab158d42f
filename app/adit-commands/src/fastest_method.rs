//! Choice of the method for a new server: the fastest secure one on this CPU.

use std::time::{Duration, Instant};

use adit_crypto::{AeadKey, AeadKind};
use adit_shadowsocks::Method;

/// Time per candidate; three candidates take less than half a second.
const PATIENCE: Duration = Duration::from_millis(80);
/// Size of a record, in bytes.
const RECORD: usize = 16 << 10;

/// A method and the speed of its sealing, in bytes per second.
pub(crate) struct MeasuredMethod {
    pub(crate) method: Method,
    pub(crate) speed: f64,
}

/// Measures the methods that all current peers support, and returns them in order, fastest first.
pub(crate) fn measure_methods() -> Vec<MeasuredMethod> {
    let mut picks: Vec<MeasuredMethod> = [
        (Method::Blake3Aes128Gcm, AeadKind::Aes128Gcm),
        (Method::Blake3Aes256Gcm, AeadKind::Aes256Gcm),
        (Method::Blake3ChaCha20Poly1305, AeadKind::ChaCha20Poly1305),
    ]
    .into_iter()
    .map(|(method, kind)| MeasuredMethod {
        method,
        speed: measure_speed(kind, method.key_len()),
    })
    .collect();
    picks.sort_by(|a, b| b.speed.total_cmp(&a.speed));
    picks
}

fn measure_speed(kind: AeadKind, key_len: usize) -> f64 {
    let Ok(key) = AeadKey::new(kind, &vec![7; key_len]) else {
        return 0.0;
    };
    let mut record = vec![0; RECORD];
    let mut nonce = [0u8; 12];
    let mut sealed = 0usize;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        for _ in 0..16 {
            nonce[0] = nonce[0].wrapping_add(1);
            if key.seal_in_place(&nonce, &mut record).is_err() {
                return 0.0;
            }
            sealed += RECORD;
        }
    }
    sealed as f64 / start.elapsed().as_secs_f64()
}
