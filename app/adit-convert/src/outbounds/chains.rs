//! The hops of each outbound: its own, after those that it is reached through.

use adit_config::text::Problem;
use zeroize::Zeroizing;

use super::{Named, OutboundList};
use crate::conversion_context::ConversionContext;

/// Maximum number of hops of an outbound.
const MAX_HOPS: usize = 16;

/// The hops in the order in which they are passed.
pub(super) type Hops = Vec<Zeroizing<String>>;

/// The chains of all outbounds, by their position; `None` if one cannot be used.
pub(super) fn resolve(list: &OutboundList, clerk: &mut ConversionContext<'_>) -> Vec<Option<Hops>> {
    (0..list.outbounds.len())
        .map(|at| match chain_of(list, at) {
            Ok(hops) => Some(hops),
            Err(ChainError::Cycle(other)) => {
                let name = list.outbounds.get(at).map_or("", |one| &one.name);
                clerk.add_problem(Problem::without_place(
                    format!("outbound `{name}` is reached through itself, by way of `{other}`"),
                    "remove `dialer-proxy`, `detour` or `proxySettings` from one of them",
                ));
                None
            }
            Err(ChainError::Unusable(why)) => {
                let name = list.outbounds.get(at).map_or("", |one| &one.name);
                clerk.add_note("", format!("`{name}` is skipped: {why}"));
                None
            }
        })
        .collect()
}

enum ChainError {
    /// The name of the last outbound before the first one again.
    Cycle(String),
    Unusable(String),
}

fn chain_of(list: &OutboundList, at: usize) -> Result<Hops, ChainError> {
    let mut hops = Vec::new();
    let mut passed = Vec::new();
    let mut next = Some(at);
    while let Some(at) = next.take() {
        let Some(outbound) = list.outbounds.get(at) else {
            break;
        };
        if passed.contains(&at) {
            let last = passed.last().and_then(|at| list.outbounds.get(*at));
            let last = last.map_or_else(String::new, |one| one.name.clone());
            return Err(ChainError::Cycle(last));
        }
        if passed.len() == MAX_HOPS {
            let why = format!("it is reached through more than {MAX_HOPS} others");
            return Err(ChainError::Unusable(why));
        }
        passed.push(at);
        if outbound.is_direct && !hops.is_empty() {
            break;
        }
        hops.push(outbound.url.clone());
        let Some(before) = outbound.before.as_ref().filter(|_| !outbound.is_direct) else {
            break;
        };
        next = match list.names.get(before) {
            Some(Named::Outbound(at)) => Some(*at),
            Some(Named::Group(_)) => {
                let why = format!("it is reached through the group `{before}`");
                return Err(ChainError::Unusable(why));
            }
            Some(Named::Skipped) | None => {
                let why = format!("it is reached through `{before}`, which is not available");
                return Err(ChainError::Unusable(why));
            }
        };
    }
    hops.reverse();
    Ok(hops)
}
