//! A server's key exchange computations do not delay other sessions.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use adit_ssh::client::{Client, Login, Session};
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{KeySet, Signer};
use tokio::time::{sleep, timeout};

use crate::ours::{config, pair};
use crate::server::{key, serve, settings};
use crate::world::dial;

const SOON: Duration = Duration::from_secs(20);
/// Maximum time that a signature waits for its permission.
const LIMIT: Duration = Duration::from_secs(5);

/// A host key that signs only with permission.
struct Held {
    keys: KeySet,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: bool,
    /// Number of signatures that are permitted.
    permits: u32,
    /// True if a signature was made without permission, after the time limit.
    late: bool,
}

impl Signer for Held {
    fn algorithms(&self) -> Vec<KeyAlgorithm> {
        self.keys.algorithms()
    }

    fn public_blob(&self, algorithm: KeyAlgorithm) -> Vec<u8> {
        self.keys.public_blob(algorithm)
    }

    fn sign_data(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError> {
        let mut state = self.state.lock().unwrap();
        state.waiting = true;
        let waits = |state: &mut State| state.permits == 0;
        let waited = self.changed.wait_timeout_while(state, LIMIT, waits);
        let (mut state, timed) = waited.unwrap();
        state.late |= timed.timed_out();
        state.waiting = false;
        state.permits = state.permits.saturating_sub(1);
        drop(state);
        self.keys.sign_data(algorithm, data)
    }
}

impl Held {
    /// Waits until a signature waits, lets `other` do something meanwhile, and permits the signature.
    async fn meanwhile(&self, other: &Session) {
        let since = Instant::now();
        while !self.state.lock().unwrap().waiting {
            assert!(since.elapsed() < SOON, "nothing is signed");
            sleep(Duration::from_millis(2)).await;
        }
        let output = other
            .open_session()
            .await
            .unwrap()
            .collect_output("both 7")
            .await;
        assert_eq!(output.unwrap().stdout, b"out\n");
        let mut state = self.state.lock().unwrap();
        state.permits += 1;
        self.changed.notify_all();
    }
}

/// Runs on one thread: a computation on it would delay the other session's answer.
#[tokio::test]
async fn a_key_exchange_holds_up_nobody_else() {
    let other = pair(|_| {}, |_| {}).await;
    let (mut settings, _) = settings();
    let (host, id) = (key(), key());
    let public = host.public_key().clone();
    let held = Arc::new(Held {
        keys: KeySet::from(vec![host]),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    settings.host_keys = Arc::clone(&held) as _;
    settings.announce_host_keys = false;
    let port = serve(settings, id.public_key().clone()).await;
    let config = config(public, Login::new("me").with_key(id));
    let below = dial(port).await;
    let both = async {
        let near = tokio::spawn(async move { Client::connect(below, config).await });
        held.meanwhile(&other).await;
        let session = near.await.unwrap().unwrap();
        // The same for an authenticated user, whose own bytes wait for the new keys.
        session.rekey().unwrap();
        held.meanwhile(&other).await;
        let output = session
            .open_session()
            .await
            .unwrap()
            .collect_output("both 3")
            .await;
        assert_eq!(output.unwrap().stdout, b"out\n");
    };
    timeout(SOON, both).await.unwrap();
    assert!(!held.state.lock().unwrap().late, "the thread was held up");
}
