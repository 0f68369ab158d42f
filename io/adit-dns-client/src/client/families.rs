//! The addresses of both families.

use std::pin::pin;
use std::time::Duration;

use adit_dns::{CachedAnswer, ResponseCode};
use tokio::time::timeout;

/// Maximum time to wait for the second family after the first has answered with addresses.
const OTHER_FAMILY: Duration = Duration::from_secs(1);

/// Runs the lookups of the addresses of both families, and returns their outcomes: that of IPv4 first, if there is one.
///
/// When one has addresses, the other is awaited for no more than a second, since some servers never answer for IPv6. When
/// one says that the name does not exist, the other is not awaited.
pub async fn look_up_families<E>(
    v4: impl Future<Output = Result<CachedAnswer, E>>,
    v6: impl Future<Output = Result<CachedAnswer, E>>,
) -> Vec<Result<CachedAnswer, E>> {
    let (mut v4, mut v6) = (pin!(v4), pin!(v6));
    tokio::select! {
        first = &mut v4 => {
            let second = wait_for_other_family(&first, v6).await;
            [Some(first), second].into_iter().flatten().collect()
        }
        first = &mut v6 => {
            let second = wait_for_other_family(&first, v4).await;
            [second, Some(first)].into_iter().flatten().collect()
        }
    }
}

/// Waits for the second family as long as the first outcome requires.
async fn wait_for_other_family<E>(
    first: &Result<CachedAnswer, E>,
    second: impl Future<Output = Result<CachedAnswer, E>>,
) -> Option<Result<CachedAnswer, E>> {
    match first {
        Ok(found) if !found.answer.addresses().is_empty() => {
            timeout(OTHER_FAMILY, second).await.ok()
        }
        Ok(found) if found.answer.code() == ResponseCode::NXDomain => None,
        _ => Some(second.await),
    }
}
