//! `adit client https://…`: the servers of a document that a provider maintains, or of a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use adit_admin::subscription::{
    self, Document, FetchError, Fetcher, MAX_DOCUMENT, Source, Subscription, SubscriptionError,
    SubscriptionStartError, TrustedRoots,
};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_config::text::format_size;
use adit_convert::AllowedPlugins;
use adit_wire::u64_from;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::client::report;
use super::{client, run};
use crate::args;

/// Returns true if a URL names a document, and not a server. Over `http://` it would be a proxy.
pub(super) fn is_document_url(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["https", "ssconf"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns the URL of a document, which is formatted without its secret path.
pub(super) fn document_url(url: &str) -> Option<Source> {
    is_document_url(url).then(|| url.parse().ok()).flatten()
}

/// Runs a client with the servers of a file, which is read once.
pub(super) fn run_client_of_file(typed: &args::ClientArgs, path: &Path) -> CommandResult {
    if typed.save.is_some() {
        let what = "--save stores URLs, not files";
        return Err(Failure::new(FailureCode::Usage, what));
    }
    let shown = path.display();
    let failed = |why: String| Failure::new(FailureCode::Config, format!("{shown}: {why}"));
    let text = read_document(path).map_err(|why| failed(why.to_string()))?;
    let plugins = AllowedPlugins::only(typed.allow_plugin.clone());
    let document = subscription::read(&text, &plugins, typed.select.as_deref())
        .map_err(|why| failed(why.to_string()))?;
    let mut plan = client::client_plan(typed, "reject://")?;
    report::print_warnings(typed, &plan);
    let about = summarize(typed, &shown.to_string(), &document);
    if let Some(route) = plan.routes.first_mut() {
        route.via = document.chain;
    }
    adit_cli::block_on(|mut signals| async {
        if typed.check {
            let check = report::check(typed, client::keyed_server(&plan), Some(about));
            return signals.run_until_ended(check).await;
        }
        let engine = signals.run_until_ended(run::start_engine(&plan)).await?;
        report::print_start(typed, &plan, &engine, Some(about));
        run::serve_until_signal(&engine, signals).await
    })
}

/// Reads one byte more than the maximum, so that the parser reports a text that is too long.
fn read_document(path: &Path) -> std::io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let limit = u64_from(MAX_DOCUMENT) + 1;
    File::open(path)?.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn run_subscribed_client(typed: &args::ClientArgs, address: &str) -> CommandResult {
    let source: Source = address
        .parse()
        .map_err(|why| Failure::new(FailureCode::Usage, format!("subscription: {why}")))?;
    let subscription = Subscription {
        source,
        fetcher: Fetcher::new(TrustedRoots::Machine, MAX_DOCUMENT),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        select: typed.select.clone(),
        folder: adit_cli::state_folder(typed.state.as_deref())?,
        every: typed.refresh,
    };
    // All requests are refused until the servers are known.
    let mut plan = client::client_plan(typed, "reject://")?;
    report::print_warnings(typed, &plan);
    adit_cli::block_on(|mut signals| async {
        let begin = async { subscription.begin().await.map_err(to_failure) };
        let document = signals.run_until_ended(begin).await?;
        let about = summarize(typed, &subscription.source.to_string(), &document);
        if let Some(route) = plan.routes.first_mut() {
            route.via = document.chain;
        }
        if typed.check {
            let check = report::check(typed, client::keyed_server(&plan), Some(about));
            return signals.run_until_ended(check).await;
        }
        let engine = signals.run_until_ended(run::start_engine(&plan)).await?;
        report::print_start(typed, &plan, &engine, Some(about));
        let Some(route) = plan.routes.pop() else {
            return run::serve_until_signal(engine, signals).await;
        };
        tokio::select! {
            () = subscription.follow(&engine, route) => Ok(()),
            done = run::serve_until_signal(&engine, signals) => done,
        }
    })
}

/// Prints a summary of the document on standard error, unless the output is JSON, and returns it for that.
fn summarize(typed: &args::ClientArgs, source: &str, document: &Document) -> Value {
    let quota = document.quota.map(|quota| (quota.used, quota.remaining));
    if !typed.json.json {
        for note in &document.notes {
            eprintln!("note: {note}");
        }
        let servers = match document.servers() {
            1 => "1 server".to_owned(),
            n => format!("{n} servers"),
        };
        let quota = match quota {
            None => String::new(),
            Some((used, None)) => format!(", {} used", format_size(used)),
            Some((used, Some(left))) => {
                format!(", {} used, {} left", format_size(used), format_size(left))
            }
        };
        eprintln!("{source}: {servers}{quota}");
    }
    let notes: Vec<String> = document.notes.iter().map(ToString::to_string).collect();
    json!({
        "source": source,
        "servers": document.servers(),
        "usedBytes": quota.map(|(used, _)| used),
        "remainingBytes": quota.and_then(|(_, remaining)| remaining),
        "notes": notes,
    })
}

fn to_failure(why: SubscriptionStartError) -> Failure {
    let (code, hint) = match &why.online {
        SubscriptionError::Fetch(FetchError::Tls { .. }) => (
            FailureCode::Network,
            "SSL_CERT_FILE names a file with the certificates of other authorities; with a wrong clock, valid \
             certificates are refused too (`date -u`)",
        ),
        SubscriptionError::Fetch(FetchError::Status(_)) => (
            FailureCode::Network,
            "is the URL complete, and does your provider still serve it?",
        ),
        SubscriptionError::Fetch(_) => (
            FailureCode::Network,
            "is this machine online, and is the URL correct?",
        ),
        SubscriptionError::Document(_) => (
            FailureCode::Config,
            "fetch the document with curl; `adit convert FILE` shows its contents",
        ),
    };
    Failure::new(code, why.to_string()).with_hint(hint)
}
