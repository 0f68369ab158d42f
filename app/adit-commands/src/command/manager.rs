//! `adit manager`: servers that are added and removed by the datagrams of ss-manager.

use std::sync::Arc;

use adit_admin::manager::{Door, DoorError, Manager, Mode, Settings};
use adit_cli::{Code, Done, Failure};
use adit_config::Plan;
use adit_convert::AllowedPlugins;
use adit_engine::Engine;
use adit_wire::Host;
use zeroize::Zeroizing;

use super::{run, tools};
use crate::args;

pub(super) fn manager(typed: &args::Manager) -> Done {
    let opened = Opened {
        address: &typed.manager_address,
        exposed: typed.manager_insecure,
        nofile: None,
        first: Vec::new(),
    };
    serve(settings(typed)?, opened, || Ok(()))
}

/// The address of a manager and its first servers.
pub(super) struct Opened<'a> {
    /// The address at which commands are received.
    pub(super) address: &'a str,
    /// True if other machines may reach the address.
    pub(super) exposed: bool,
    /// Maximum number of file descriptors.
    pub(super) nofile: Option<u64>,
    /// Ports and passwords of the first servers.
    pub(super) first: Vec<(u16, Zeroizing<String>)>,
}

/// Serves commands. Calls `begun` once the first servers listen.
pub(super) fn serve(settings: Settings, opened: Opened<'_>, begun: impl FnOnce() -> Done) -> Done {
    settings.check()?;
    adit_cli::block_on_within(opened.nofile, |mut signals| async {
        let door = Door::open(opened.address, opened.exposed);
        let door = async { door.await.map_err(refused) };
        let door = signals.unless_ended(door).await?;
        // There are no servers yet: each is added by a datagram.
        let nothing = Plan {
            routes: Vec::new(),
            warnings: Vec::new(),
        };
        let engine = Arc::new(Engine::start(&nothing).await?);
        let mut manager = Manager::new(engine.clone(), settings);
        for (port, password) in &opened.first {
            let add = serde_json::json!({ "server_port": port, "password": &**password });
            let add = Zeroizing::new(format!("add: {add}"));
            let answer = manager.handle(add.as_bytes()).await.concat();
            if answer != "ok" {
                let what = format!("port {port}: {answer}");
                return Err(Failure::new(Code::Failure, what));
            }
        }
        eprintln!("manager listening on {door}");
        begun()?;
        tokio::select! {
            () = door.serve(&mut manager) => Ok(()),
            done = run::until_told(engine, signals) => done,
        }
    })
}

/// Parses the addresses to listen on. No address means all of them.
pub(super) fn hosts(texts: &[String]) -> Result<Vec<Option<Host>>, Failure> {
    let mut hosts = Vec::with_capacity(texts.len());
    for text in texts {
        let host = Host::parse(text.trim_start_matches('[').trim_end_matches(']'));
        hosts.push(Some(host.map_err(|e| {
            Failure::new(Code::Usage, format!("-s {text}: {e}"))
        })?));
    }
    if hosts.is_empty() {
        hosts.push(None);
    }
    Ok(hosts)
}

fn settings(typed: &args::Manager) -> Result<Settings, Failure> {
    let plugin = typed.plugin.clone();
    Ok(Settings {
        hosts: hosts(&typed.host)?,
        method: tools::method(&typed.method)?,
        mode: match typed.mode {
            args::Carried::TcpOnly => Mode::TcpOnly,
            args::Carried::UdpOnly => Mode::UdpOnly,
            args::Carried::TcpAndUdp => Mode::TcpAndUdp,
        },
        plugin: plugin.map(|name| (name, typed.plugin_opts.clone().unwrap_or_default())),
        plugins: AllowedPlugins::only(typed.allow_plugin.clone()),
        private: typed.allow_private.clone(),
    })
}

fn refused(why: DoorError) -> Failure {
    match &why {
        DoorError::Exposed(_) => Failure::new(Code::Config, why.to_string()).hint(
            "use a loopback port (--manager-address 127.0.0.1:6001) or a path; \
             --manager-insecure allows it",
        ),
        DoorError::Socket { .. } => Failure::new(Code::Network, why.to_string()),
    }
}
