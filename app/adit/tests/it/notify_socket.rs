//! The socket at which systemd learns the state of a service.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use adit_interop::{TEST_TIMEOUT, TempFolder};

/// A service manager that reads what a process reports.
pub(crate) struct NotifySocket {
    folder: TempFolder,
    socket: UnixDatagram,
}

impl NotifySocket {
    /// Listens in a folder of this name.
    pub(crate) fn new(name: &str) -> Self {
        let folder = TempFolder::new(name).unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self { folder, socket }
    }

    /// Has the process of a command report here.
    pub(crate) fn supervise(&self, command: &mut Command) {
        command.env("NOTIFY_SOCKET", self.folder.path().join("notify"));
    }

    /// Waits for the next report.
    #[track_caller]
    pub(crate) fn next_report(&self) -> String {
        let mut text = [0; 256];
        let len = self.socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..len]).into_owned()
    }
}
