//! `adit manager`: servers that come and go by the datagrams of ss-manager.

use std::sync::Arc;

use adit_admin::manager::{Door, DoorError, Manager, Mode, Settings};
use adit_config::Plan;
use adit_config::foreign::AllowedPlugins;
use adit_engine::Engine;
use adit_wire::Host;

use super::{Done, run, tools};
use crate::args;
use crate::report::{Code, Failure};

pub(super) fn manager(typed: &args::Manager) -> Done {
    let settings = settings(typed)?;
    settings.check()?;
    run::block_on(|mut signals| async {
        let opened = Door::open(&typed.manager_address, typed.manager_insecure);
        let opened = async { opened.await.map_err(refused) };
        let door = signals.unless_ended(opened).await?;
        // No server yet: each comes with its datagram.
        let nothing = Plan {
            routes: Vec::new(),
            warnings: Vec::new(),
        };
        let engine = Arc::new(Engine::start(&nothing).await?);
        let mut manager = Manager::new(engine.clone(), settings);
        eprintln!("manager listening on {door}");
        tokio::select! {
            () = door.serve(&mut manager) => Ok(()),
            done = run::until_told(engine, signals) => done,
        }
    })
}

fn settings(typed: &args::Manager) -> Result<Settings, Failure> {
    let mut hosts = Vec::with_capacity(typed.host.len());
    for text in &typed.host {
        let host = Host::parse(text.trim_start_matches('[').trim_end_matches(']'));
        hosts.push(Some(host.map_err(|e| {
            Failure::new(Code::Usage, format!("-s {text}: {e}"))
        })?));
    }
    if hosts.is_empty() {
        hosts.push(None);
    }
    let plugin = typed.plugin.clone();
    Ok(Settings {
        hosts,
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
            "take a port of this machine (--manager-address 127.0.0.1:6001) or a path; \
             --manager-insecure insists",
        ),
        DoorError::Socket { .. } => Failure::new(Code::Network, why.to_string()),
    }
}
