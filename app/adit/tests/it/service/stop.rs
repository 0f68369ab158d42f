//! `systemctl stop` after an upgrade: both processes have the time of the configuration.

use std::time::Duration;

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::Destination;
use adit_interop::{TEST_TIMEOUT, loopback_addr};

use super::systemd_world::SystemdWorld;
use crate::reload::flows::EchoStream;
use crate::setup::{ALLOW, says};

const PORT: u16 = 1080;
/// A process that is killed ends its connections at once.
const AFTER_STOP: Duration = Duration::from_secs(1);

/// A service of systemd, with an origin that its connections reach.
struct Service {
    world: SystemdWorld,
    target: Destination,
    _origin: OriginServer,
}

impl Service {
    fn start() -> Option<Self> {
        let world = SystemdWorld::start()?;
        let config = format!(
            "[run]\ndrain = \"2m\"\n\
             [admin]\nlisten = \"/run/adit/api.sock\"\n\
             [route.proxy]\nlisten = \"mixed://127.0.0.1:{PORT}?{ALLOW}\"\n"
        );
        world.write("/etc/adit/adit.toml", &config);
        world.run(&["adit", "service", "install"]);
        let origin = world.network().run_inside(OriginServer::start).unwrap();
        Some(Self {
            target: Destination::Addr(origin.addr()),
            world,
            _origin: origin,
        })
    }

    fn connect(&self) -> EchoStream {
        let open = || EchoStream::open(loopback_addr(PORT), &self.target);
        let mut stream = self.world.network().run_inside(open).unwrap();
        stream.exchange(b"opened").unwrap();
        stream
    }

    fn property(&self, name: &str) -> String {
        let words = ["systemctl", "show", "--value", "-p", name, "adit"];
        self.world.run(&words).trim().to_owned()
    }

    fn upgrade(&self) {
        let done = self
            .world
            .run(&["adit", "upgrade", "-c", "/etc/adit/adit.toml"]);
        says(&done, &["upgraded: process "]);
    }

    fn wait_for_end_of(&self, process: &str) {
        let folder = format!("/proc/{process}");
        self.world.wait_until("the old process does not end", || {
            self.world.try_run(&["test", "-e", &folder]).code != Some(0)
        });
    }

    /// Stops the service, and asserts that these connections work until they end by themselves, and that the service
    /// has ended with them.
    #[track_caller]
    fn stop(&self, open: Vec<EchoStream>) {
        self.world.run(&["systemctl", "stop", "--no-block", "adit"]);
        if !open.is_empty() {
            std::thread::sleep(AFTER_STOP);
            assert_eq!(self.property("ActiveState"), "deactivating");
        }
        for mut stream in open {
            stream.exchange(b"still open").unwrap();
        }
        self.world.wait_until("the service does not stop", || {
            self.property("ActiveState") == "inactive"
        });
        // Of a process that is not its child, systemd knows no end.
        let ended = ["Result", "ExecMainCode", "ExecMainStatus"].map(|name| self.property(name));
        assert_eq!(ended, ["success", "1", "0"]);
    }
}

#[test]
fn connections_of_both_processes_end_by_themselves() {
    let Some(service) = Service::start() else {
        return;
    };
    for [in_old, in_new] in [[true, true], [true, false], [false, true]] {
        service.world.run(&["systemctl", "start", "adit"]);
        let first = service.property("MainPID");
        let mut open = Vec::new();
        if in_old {
            open.push(service.connect());
        }
        service.upgrade();
        assert_ne!(service.property("MainPID"), first);
        if in_new {
            open.push(service.connect());
        }
        if !in_old {
            service.wait_for_end_of(&first);
        }
        service.stop(open);
    }
}

/// A process that ends after its upgrade is replaced: systemd notices the end although it has not started it.
#[test]
fn an_upgraded_process_that_fails_is_started_again() {
    let Some(service) = Service::start() else {
        return;
    };
    let first = service.property("MainPID");
    let mut open = service.connect();
    service.upgrade();
    let second = service.property("MainPID");
    assert_ne!(first, second);
    service.world.run(&["kill", "-KILL", &second]);
    service
        .world
        .wait_until("the service does not restart", || {
            let now = service.property("MainPID");
            now != second && now != "0" && service.property("ActiveState") == "active"
        });
    // The connections of both processes have ended with the service.
    assert!(open.ends_within(TEST_TIMEOUT));
    service.connect().exchange(b"again").unwrap();
    service.stop(Vec::new());
}
