//! `adit client --subscribe URL`: the servers of a document that a provider maintains.

use adit_admin::subscription::{
    Document, Failed, FetchError, Fetcher, Nothing, Roots, Source, Subscription,
};
use adit_cli::{Code, Done, Failure};
use adit_convert::{AllowedPlugins, sip008};

use super::{client, run};
use crate::args;

pub(super) fn client(typed: &args::Client, address: &str) -> Done {
    let source: Source = address
        .parse()
        .map_err(|why| Failure::new(Code::Usage, format!("--subscribe: {why}")))?;
    let subscription = Subscription {
        source,
        fetcher: Fetcher::new(Roots::Machine, sip008::MAX_BODY),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        folder: adit_cli::state_folder(typed.state.as_deref())?,
        every: typed.refresh,
    };
    // All requests are refused until the servers are known.
    let mut plan = client::plan(typed, "reject://")?;
    run::warn(&plan);
    adit_cli::block_on(|mut signals| async {
        let begin = async { subscription.begin().await.map_err(nothing) };
        let document = signals.unless_ended(begin).await?;
        tell(&subscription, &document);
        if let Some(route) = plan.routes.first_mut() {
            route.via = document.chain;
        }
        if typed.check {
            let check = client::check(client::keyed(&plan));
            return signals.unless_ended(check).await;
        }
        let engine = signals.unless_ended(run::start(&plan)).await?;
        let Some(route) = plan.routes.pop() else {
            return run::until_told(engine, signals).await;
        };
        tokio::select! {
            () = subscription.follow(&engine, route) => Ok(()),
            done = run::until_told(&engine, signals) => done,
        }
    })
}

/// Prints a summary of the document on standard error.
fn tell(subscription: &Subscription, document: &Document) {
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

fn nothing(why: Nothing) -> Failure {
    let (code, hint) = match &why.online {
        Failed::Fetch(FetchError::Tls { .. }) => (
            Code::Network,
            "SSL_CERT_FILE names a file with the certificates of other authorities",
        ),
        Failed::Fetch(FetchError::Status(_)) => (
            Code::Network,
            "is the URL complete, and does your provider still serve it?",
        ),
        Failed::Fetch(_) => (
            Code::Network,
            "is this machine online, and is the URL correct?",
        ),
        Failed::Unusable(_) => (
            Code::Config,
            "fetch the document with curl; `adit convert FILE` shows its contents",
        ),
    };
    Failure::new(code, why.to_string()).hint(hint)
}
