//! The servers of a document that a client may use.

use adit_config::{Hop, HopKind, NamedGroup, Stage};
use adit_convert::AllowedPlugins;

/// Maximum number of simultaneous plugins, each of which is a process.
pub(super) const MAX_PLUGINS: usize = 16;
/// Maximum number of members of all stages. A request tries them in turn, so it would not reach further ones.
pub(super) const MAX_SERVERS: usize = 256;

/// Selects servers, and counts the others by the reason.
pub(super) struct ServerFilter<'p> {
    plugins: &'p AllowedPlugins,
    servers: usize,
    with_plugin: usize,
    others: usize,
    forbidden: usize,
    beyond: usize,
}

impl<'p> ServerFilter<'p> {
    pub(super) const fn new(plugins: &'p AllowedPlugins) -> Self {
        Self {
            plugins,
            servers: 0,
            with_plugin: 0,
            others: 0,
            forbidden: 0,
            beyond: 0,
        }
    }

    /// Returns the stage with its usable members; `None` without one.
    pub(super) fn filter_stage(&mut self, stage: Stage) -> Option<Stage> {
        match stage {
            Stage::Single(hop) => self.accepts(&[&hop]).then_some(Stage::Single(hop)),
            Stage::Group(mut hops) => {
                hops.retain(|hop| self.accepts(&[hop]));
                match hops.len() {
                    0 | 1 => hops.pop().map(Stage::Single),
                    _ => Some(Stage::Group(hops)),
                }
            }
            Stage::Named(group) => {
                let group = self.filter_group(*group);
                (!group.hops.is_empty()).then(|| Stage::Named(Box::new(group)))
            }
        }
    }

    fn filter_group(&mut self, mut group: NamedGroup) -> NamedGroup {
        let selected = group.member_names.get(group.selected).cloned();
        let accepted: Vec<bool> = (0..group.hops.len())
            .map(|at| self.accepts(&group.member_hops(at).collect::<Vec<_>>()))
            .collect();
        retain(&mut group.hops, &accepted);
        retain(&mut group.leads, &accepted);
        retain(&mut group.member_names, &accepted);
        let mut names = group.member_names.iter();
        group.selected = names
            .position(|name| selected.as_ref() == Some(name))
            .unwrap_or_default();
        group
    }

    /// True if a member with these hops may be used.
    fn accepts(&mut self, hops: &[&Hop]) -> bool {
        if !hops.iter().all(|hop| is_server(hop)) {
            self.others += 1;
            return false;
        }
        let mut plugins = 0;
        for hop in hops {
            let Hop::Server(server) = hop else { continue };
            if let Some(plugin) = server.kind.plugin() {
                if !self.plugins.allows(&plugin.program) {
                    self.forbidden += 1;
                    return false;
                }
                plugins += 1;
            }
        }
        if self.with_plugin + plugins > MAX_PLUGINS || self.servers == MAX_SERVERS {
            self.beyond += 1;
            return false;
        }
        self.with_plugin += plugins;
        self.servers += 1;
        true
    }

    /// Returns the reasons for what was skipped.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let counts = [
            (self.others, "not a server that a document may name"),
            (
                self.forbidden,
                "needs a plugin that --allow-plugin does not list",
            ),
            (
                self.beyond,
                "beyond the maximum number of servers or plugins",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, why)| format!("{count} skipped: {why}"))
    }
}

/// True if the hop is a server that needs nothing of this machine but the network: no key file, no agent.
fn is_server(hop: &Hop) -> bool {
    let Hop::Server(server) = hop else {
        return false;
    };
    match &server.kind {
        HopKind::Shadowsocks { .. }
        | HopKind::ShadowsocksR(_)
        | HopKind::Socks5 { .. }
        | HopKind::Http { .. } => true,
        HopKind::Ssh(ssh) => ssh.password.is_some() && ssh.keys.is_empty() && ssh.agent.is_none(),
        HopKind::Socks4a { .. } | HopKind::RemoteTarget => false,
    }
}

/// Keeps the items whose position is accepted.
fn retain<T>(items: &mut Vec<T>, accepted: &[bool]) {
    let mut accepted = accepted.iter();
    items.retain(|_| accepted.next().copied().unwrap_or_default());
}
