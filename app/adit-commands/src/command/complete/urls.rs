//! URLs: schemes with their carriers, methods, and the keys behind `?` with their words.

use adit_config::Scheme;
use clap_complete::engine::CompletionCandidate;

use super::values::{beginning, methods, words_of};

/// Schemes whose first part is a method.
const WITH_METHOD: [&str; 1] = ["ss"];

/// Returns how a URL may go on.
pub(super) fn complete(typed: &str) -> Vec<CompletionCandidate> {
    let Some((name, rest)) = typed.split_once("://") else {
        return schemes(typed);
    };
    let base = name.split('+').next().unwrap_or(name);
    let Ok(scheme) = Scheme::find_by_name(base) else {
        return Vec::new();
    };
    if let Some((before, query)) = rest.rsplit_once(['?', '&'])
        && rest.contains('?')
    {
        let mark = rest.get(before.len()..=before.len()).unwrap_or("?");
        let front = format!("{name}://{before}{mark}");
        return prefixed(keys(scheme, name, query), &front);
    }
    if WITH_METHOD.contains(&scheme.name) && !rest.contains([':', '@', '/']) {
        let named = beginning(methods(), rest).into_iter();
        let named = named.map(|one| {
            let mut value = one.get_value().to_owned();
            value.push(":");
            CompletionCandidate::new(value)
        });
        return prefixed(named.collect(), &format!("{name}://"));
    }
    Vec::new()
}

/// Schemes, and with a `+` their carriers, each with what it is.
fn schemes(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = Vec::new();
    for scheme in adit_config::schemes() {
        let mut add = |name: String, doc: &str| {
            if name.starts_with(typed) {
                let help = doc.lines().next().unwrap_or_default().to_owned();
                found.push(CompletionCandidate::new(name).help(Some(help.into())));
            }
        };
        add(format!("{}://", scheme.name), scheme.doc);
        // Many, and rarely meant: only once the plus is typed.
        for carrier in scheme.carriers.iter().filter(|_| typed.contains('+')) {
            add(format!("{}+{}://", scheme.name, carrier.name), carrier.doc);
        }
    }
    found
}

/// The keys of a scheme and its carrier, or the words of one of them.
fn keys(scheme: &Scheme, name: &str, typed: &str) -> Vec<CompletionCandidate> {
    if let Some((key, value)) = typed.split_once('=') {
        return prefixed(beginning(words_of(key), value), &format!("{key}="));
    }
    let carrier = name.split_once('+').map_or("", |(_, carrier)| carrier);
    let carriers = scheme.carriers.iter().filter(|one| one.name == carrier);
    let params = scheme
        .params
        .iter()
        .chain(carriers.flat_map(|carrier| carrier.params));
    let own = params.filter(|param| param.setting.name().starts_with(typed));
    own.map(|param| {
        let setting = param.setting;
        let help = setting.doc().lines().next().unwrap_or_default().to_owned();
        CompletionCandidate::new(format!("{}=", setting.name())).help(Some(help.into()))
    })
    .collect()
}

/// The candidates behind what was typed before them.
pub(super) fn prefixed(
    candidates: Vec<CompletionCandidate>,
    front: &str,
) -> Vec<CompletionCandidate> {
    let candidates = candidates.into_iter();
    candidates.map(|one| one.add_prefix(front)).collect()
}
