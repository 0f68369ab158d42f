//! A path to the store that loses replies, is cut, or stops forwarding.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use adit_interop::TempFolder;
use adit_link::SplitMix64;
use anyhow::Result;

/// Interval at which a quiet direction looks whether the path is cut.
const LOOK: Duration = Duration::from_millis(20);

/// A Unix socket whose connections lead to that of a store. A reply is lost by closing its connection after the store
/// has carried out the request.
#[derive(Debug)]
pub struct StoreProxy {
    folder: TempFolder,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    to: PathBuf,
    /// Replies that are lost, in thousandths.
    lost: u16,
    is_cut: AtomicBool,
    is_silent: AtomicBool,
    lost_count: AtomicU64,
}

impl StoreProxy {
    /// Starts a path to the store at `to`, which loses this many of a thousand replies.
    pub fn start(to: &Path, lost: u16, seed: u64) -> Result<Self> {
        let folder = TempFolder::new("proxy")?;
        let listener = UnixListener::bind(folder.path().join("store.sock"))?;
        let shared = Arc::new(Shared {
            to: to.to_owned(),
            lost,
            is_cut: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            lost_count: AtomicU64::new(0),
        });
        let own = shared.clone();
        thread::spawn(move || {
            let mut rng = SplitMix64::new(seed);
            for client in listener.incoming().flatten() {
                let (shared, rng) = (own.clone(), SplitMix64::new(rng.next_number()));
                if shared.is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                // A store that does not run refuses, and the client sees a closed connection.
                thread::spawn(move || forward(&shared, &client, rng));
            }
        });
        Ok(Self { folder, shared })
    }

    /// Returns the URL of the socket.
    #[must_use]
    pub fn url(&self) -> String {
        let socket = self.folder.path().join("store.sock");
        format!("unix://{}", socket.display())
    }

    /// Closes all connections and refuses others, or ends this.
    pub fn set_cut(&self, is_cut: bool) {
        self.shared.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Forwards nothing while connections stay open and others are accepted, as a network that loses all packets, or ends
    /// this: what was sent meanwhile arrives then.
    pub fn set_silent(&self, is_silent: bool) {
        self.shared.is_silent.store(is_silent, Ordering::SeqCst);
    }

    /// Returns the number of replies that were lost.
    #[must_use]
    pub fn lost_count(&self) -> u64 {
        self.shared.lost_count.load(Ordering::SeqCst)
    }
}

fn forward(shared: &Arc<Shared>, client: &UnixStream, mut rng: SplitMix64) -> io::Result<()> {
    let store = UnixStream::connect(&shared.to)?;
    for stream in [client, &store] {
        stream.set_read_timeout(Some(LOOK))?;
    }
    let (from, to) = (client.try_clone()?, store.try_clone()?);
    let own = shared.clone();
    thread::spawn(move || copy(&own, &from, &to, || false));
    copy(shared, &store, client, || {
        let is_lost = rng.roll_per_mille(shared.lost);
        shared
            .lost_count
            .fetch_add(is_lost.into(), Ordering::SeqCst);
        is_lost
    })
}

/// Copies until the end, the cut of the path, or a loss; then both directions end.
fn copy(
    shared: &Shared,
    mut from: &UnixStream,
    mut to: &UnixStream,
    mut is_lost: impl FnMut() -> bool,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let outcome = loop {
        if shared.is_cut.load(Ordering::SeqCst) {
            break Ok(());
        }
        if shared.is_silent.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
            continue;
        }
        match from.read(&mut bytes) {
            Ok(0) => break Ok(()),
            Ok(_) if is_lost() => break Ok(()),
            Ok(n) => match bytes.get(..n).map(|bytes| to.write_all(bytes)) {
                Some(Err(why)) => break Err(why),
                _ => continue,
            },
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => continue,
            Err(why) => break Err(why),
        }
    };
    for stream in [from, to] {
        // It may be closed already.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use adit_interop::store_server::StoreServer;

    use super::*;

    fn ping(proxy: &StoreProxy) -> io::Result<[u8; 7]> {
        let mut stream = UnixStream::connect(proxy.folder.path().join("store.sock"))?;
        stream.set_read_timeout(Some(adit_interop::TEST_TIMEOUT))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        Ok(reply)
    }

    #[test]
    fn replies_are_lost_and_the_path_is_cut() {
        let store = StoreServer::start().unwrap();
        let proxy = StoreProxy::start(&store.socket(), 500, 1).unwrap();
        let answered = (0..100).filter(|_| ping(&proxy).is_ok()).count();
        assert!((30..70).contains(&answered), "{answered}");
        assert_eq!(proxy.lost_count(), 100 - answered as u64);
        let whole = StoreProxy::start(&store.socket(), 0, 1).unwrap();
        assert_eq!(&ping(&whole).unwrap(), b"+PONG\r\n");
        whole.set_cut(true);
        ping(&whole).unwrap_err();
        whole.set_cut(false);
        assert_eq!(&ping(&whole).unwrap(), b"+PONG\r\n");
        whole.set_silent(true);
        thread::scope(|scope| {
            let late = scope.spawn(|| ping(&whole));
            thread::sleep(10 * LOOK);
            assert!(!late.is_finished(), "it was forwarded");
            whole.set_silent(false);
            assert_eq!(&late.join().unwrap().unwrap(), b"+PONG\r\n");
        });
    }
}
