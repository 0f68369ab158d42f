//! Completions of URLs: schemes with their carriers, methods, and parameters with their words.

use adit_config::Scheme;
use clap_complete::engine::CompletionCandidate;

use super::completers::{candidates_starting_with, method_names, param_words};

/// Schemes whose URLs start with a method.
const WITH_METHOD: [&str; 1] = ["ss"];

/// Returns the completions of a URL.
pub(super) fn complete_url(typed: &str) -> Vec<CompletionCandidate> {
    let Some((name, rest)) = typed.split_once("://") else {
        return complete_scheme(typed);
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
        return add_prefix(complete_param(scheme, name, query), &front);
    }
    if WITH_METHOD.contains(&scheme.name) && !rest.contains([':', '@', '/']) {
        let named = candidates_starting_with(method_names(), rest).into_iter();
        let named = named.map(|one| {
            let mut value = one.get_value().to_owned();
            value.push(":");
            CompletionCandidate::new(value)
        });
        return add_prefix(named.collect(), &format!("{name}://"));
    }
    Vec::new()
}

/// Returns the schemes that start with `typed`, and their carriers once it contains `+`, with their
/// descriptions.
fn complete_scheme(typed: &str) -> Vec<CompletionCandidate> {
    let mut found = Vec::new();
    for scheme in adit_config::schemes() {
        let mut add = |name: String, doc: &str| {
            if name.starts_with(typed) {
                let help = doc.lines().next().unwrap_or_default().to_owned();
                found.push(CompletionCandidate::new(name).help(Some(help.into())));
            }
        };
        add(format!("{}://", scheme.name), scheme.doc);
        // There are many carriers, and they are rarely used: only after a typed `+`.
        for carrier in scheme.carriers.iter().filter(|_| typed.contains('+')) {
            add(format!("{}+{}://", scheme.name, carrier.name), carrier.doc);
        }
    }
    found
}

/// Returns the parameters of a scheme and its carrier, or the words of one parameter.
fn complete_param(scheme: &Scheme, name: &str, typed: &str) -> Vec<CompletionCandidate> {
    if let Some((key, value)) = typed.split_once('=') {
        return add_prefix(
            candidates_starting_with(param_words(key), value),
            &format!("{key}="),
        );
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

/// Returns the candidates, each with the text typed before it.
pub(super) fn add_prefix(
    candidates: Vec<CompletionCandidate>,
    front: &str,
) -> Vec<CompletionCandidate> {
    let candidates = candidates.into_iter();
    candidates.map(|one| one.add_prefix(front)).collect()
}
