//! The pages of the documentation, followed from top to bottom: every command runs on the machine that the page
//! means, against the peers that it needs.
//!
//! A walkthrough takes the commands of its page in their order and checks what each does. A command that a page has
//! and no walkthrough takes is a failure. Those that build, measure or check the repository are run by `cargo xtask
//! test` itself (`dev/xtask/src/documented.rs`).

mod clients;
mod fleet;
mod gateway;
mod hosts;
mod kcp;
mod kernel;
mod libraries;
mod migration;
pub(crate) mod page;
mod servers;
mod service;
mod ssh;
mod ssr;

use std::collections::VecDeque;

use adit_doc_commands::PageCommand;

use crate::netns::separate;
use crate::service::systemd_world::SystemdWorld;

use hosts::Hosts;

/// The commands of a page that are left.
#[derive(Debug)]
struct Walk {
    page: &'static str,
    left: VecDeque<PageCommand>,
}

impl Walk {
    fn start(page: &'static str) -> Self {
        Self {
            page,
            left: commands_to_run(page).into(),
        }
    }

    /// Returns the next command, which begins with these words, with values in the place of placeholders.
    fn next(&mut self, begins: &str) -> String {
        let page = self.page;
        let command = self.left.pop_front();
        let command = command.unwrap_or_else(|| panic!("{page} ends before `{begins}`"));
        let PageCommand { line, text, .. } = &command;
        assert!(
            text.starts_with(begins),
            "{page}:{line}: `{text}` instead of `{begins}`"
        );
        page::fill(text)
    }

    /// Returns the next commands, as a script; the first begins with these words.
    fn take(&mut self, count: usize, begins: &str) -> String {
        let mut script = self.next(begins);
        for _ in 1..count {
            script.push('\n');
            script.push_str(&self.next(""));
        }
        script
    }

    fn finish(self) {
        let page = self.page;
        assert!(self.left.is_empty(), "{page}: not run: {:#?}", self.left);
    }
}

fn commands_to_run(page: &str) -> Vec<PageCommand> {
    let mut commands = page::commands_of(page);
    commands.retain(|command| !command.is_for_repository());
    commands
}

/// Follows a page in namespaces of its own.
fn follow(test: &str, page: &'static str, walkthrough: fn(&Hosts, &mut Walk)) {
    if separate(test) {
        let hosts = Hosts::create();
        let mut walk = Walk::start(page);
        walkthrough(&hosts, &mut walk);
        walk.finish();
    }
}

/// Defines a test for each page.
macro_rules! walkthroughs {
    ($($test:ident $page:literal $walkthrough:path;)*) => {
        const FOLLOWED: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                follow(concat!("walkthrough::", stringify!($test)), $page, $walkthrough);
            }
        )*
    };
}

walkthroughs! {
    readme "README.md" clients::readme;
    book_start "docs/book/start.md" clients::start;
    book_install "docs/book/install.md" clients::install;
    book_platforms "docs/book/platforms.md" clients::platforms;
    releasing "RELEASING.md" clients::releasing;
    book_vps "docs/book/vps.md" clients::vps;
    guide_first "docs/guides/first.md" clients::first;
    guide_subscription "docs/guides/subscription.md" clients::subscription;
    guide_dns "docs/guides/dns.md" clients::dns;
    book_troubleshooting "docs/book/troubleshooting.md" clients::troubleshooting;
    book_how_it_works "docs/book/how-it-works.md" ssh::how_it_works;
    book_ssh_only "docs/book/ssh-only.md" ssh::ssh_only;
    guide_ssh "docs/guides/ssh.md" ssh::ssh;
    guide_ssh_copy "docs/guides/ssh-copy.md" ssh::copy;
    guide_ssh_tunnel "docs/guides/ssh-tunnel.md" ssh::tunnel;
    guide_sshd "docs/guides/sshd.md" ssh::sshd;
    from_openssh "docs/book/migrate/openssh.md" ssh::from_openssh;
    book_performance "docs/book/performance.md" ssh::performance;
    book_games "docs/book/games.md" kcp::games;
    guide_kcp "docs/guides/kcp.md" kcp::kcp;
    guide_kcp_carrier "docs/guides/kcp-carrier.md" kcp::carrier;
    book_ssr "docs/book/ssr.md" ssr::book;
    guide_ssr "docs/guides/ssr.md" ssr::guide;
    from_ssr "docs/book/migrate/shadowsocksr.md" ssr::from_ssr;
    book_operator "docs/book/operator.md" servers::operator;
    guide_api "docs/guides/api.md" servers::api;
    guide_manager "docs/guides/manager.md" servers::manager;
    guide_plugin "docs/guides/plugin.md" servers::plugin;
    reference_config "docs/reference/config.md" servers::config;
    guide_transparent "docs/guides/transparent.md" gateway::transparent;
    guide_migrate "docs/guides/migrate.md" migration::migrate;
    from_libev "docs/book/migrate/shadowsocks-libev.md" migration::libev;
    from_rust "docs/book/migrate/shadowsocks-rust.md" migration::rust;
    from_go "docs/book/migrate/shadowsocks-go.md" migration::go;
    from_sing_box "docs/book/migrate/sing-box.md" migration::sing_box;
    from_outline "docs/book/migrate/outline.md" migration::outline;
    book_libraries "docs/book/libraries.md" libraries::book;
    examples "examples/README.md" libraries::examples;
    fleet "docs/fleet.md" fleet::fleet;
    fleet_runbook "docs/fleet-runbook.md" fleet::runbook;
}

/// The page whose machine has systemd as process 1.
const SERVICE_PAGE: &str = "docs/book/service.md";

#[test]
fn book_service() {
    let Some(world) = SystemdWorld::start() else {
        return;
    };
    let mut walk = Walk::start(SERVICE_PAGE);
    service::book(&world, &mut walk);
    walk.finish();
}

#[test]
fn every_page_with_commands_is_followed() {
    let mut run = 0;
    for page in page::pages() {
        let commands = commands_to_run(&page);
        let followed = FOLLOWED.contains(&page.as_str()) || page == SERVICE_PAGE;
        assert_eq!(
            followed,
            !commands.is_empty(),
            "{page} and its walkthrough: {commands:#?}"
        );
        run += commands.len();
    }
    println!("{run} commands");
    assert!(run > 150, "{run} commands");
}
