//! `adit client --subscribe URL`: the servers of a document that a provider maintains.

use adit_admin::subscription::{
    Document, FetchError, Fetcher, Source, Subscription, SubscriptionError, SubscriptionStartError,
    TrustedRoots,
};
use adit_cli::{CommandResult, Failure, FailureCode};
use adit_convert::{AllowedPlugins, sip008};

use super::{client, run};
use crate::args;

pub(super) fn run_subscribed_client(typed: &args::ClientArgs, address: &str) -> CommandResult {
    let source: Source = address
        .parse()
        .map_err(|why| Failure::new(FailureCode::Usage, format!("--subscribe: {why}")))?;
    let subscription = Subscription {
        source,
        fetcher: Fetcher::new(TrustedRoots::Machine, sip008::MAX_BODY),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        folder: adit_cli::state_folder(typed.state.as_deref())?,
        every: typed.refresh,
    };
    // All requests are refused until the servers are known.
    let mut plan = client::client_plan(typed, "reject://")?;
    run::print_warnings(&plan);
    adit_cli::block_on(|mut signals| async {
        let begin = async { subscription.begin().await.map_err(to_failure) };
        let document = signals.run_until_ended(begin).await?;
        print_summary(&subscription, &document);
        if let Some(route) = plan.routes.first_mut() {
            route.via = document.chain;
        }
        if typed.check {
            let check = client::check_server(client::keyed_server(&plan), typed.clock.as_ref());
            return signals.run_until_ended(check).await;
        }
        let engine = signals.run_until_ended(run::start_engine(&plan)).await?;
        let Some(route) = plan.routes.pop() else {
            return run::serve_until_signal(engine, signals).await;
        };
        tokio::select! {
            () = subscription.follow(&engine, route) => Ok(()),
            done = run::serve_until_signal(&engine, signals) => done,
        }
    })
}

/// Prints a summary of the document on standard error.
fn print_summary(subscription: &Subscription, document: &Document) {
    let source = &subscription.source;
    for note in &document.notes {
        eprintln!("note: {note}");
    }
    let servers = match document.servers() {
        1 => "1 server".to_owned(),
        n => format!("{n} servers"),
    };
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let quota = match document.quota.map(|quota| (quota.used, quota.remaining)) {
        None => String::new(),
        Some((used, None)) => format!(", {} used", gib(used)),
        Some((used, Some(left))) => format!(", {} used, {} left", gib(used), gib(left)),
    };
    eprintln!("{source}: {servers}{quota}");
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
