//! We start a plugin and keep it running.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use adit_net::ambient::SystemChance;
use adit_wire::Entropy;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::error::ending;
use super::life::{Birth, Life};
use super::{Mode, PluginError, Side, Spec};

/// The back-off before the first restart.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// The longest back-off.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// A plugin that lived so long was healthy.
const HEALTHY: Duration = Duration::from_secs(60);

/// A plugin that runs, and is started anew when it dies.
///
/// Dropping it ends the plugin in the background: SIGTERM to its process group, SIGKILL after
/// 2 s; at once, if the runtime ends before. [`stop`](Self::stop) waits for that.
#[derive(Debug)]
pub struct Host {
    local: Local,
    mode: Mode,
    /// Dropped to stop.
    running: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The loopback side; its port changes when a client's plugin is started anew.
#[derive(Debug, Clone)]
struct Local {
    ip: IpAddr,
    port: Arc<AtomicU16>,
}

impl Host {
    /// Starts the plugin and waits, at most 10 s, until it accepts connections.
    ///
    /// Its environment is what SIP003 names, `PATH` and the locale. It is no shell command: every
    /// character of program and options is itself. What it prints goes to the log.
    pub async fn start(spec: Spec, side: Side) -> Result<Self, PluginError> {
        let mode = spec.mode;
        let birth = Birth::new(spec, side)?;
        let life = birth.life().await?;
        let local = Local {
            ip: life.local.ip(),
            port: Arc::new(AtomicU16::new(life.local.port())),
        };
        let (running, told) = oneshot::channel();
        let task = tokio::spawn(keep_running(birth, life, local.clone(), told));
        Ok(Self {
            mode,
            local,
            running,
            task,
        })
    }

    /// The loopback side: on a client where to connect to, on a server where the plugin connects
    /// to. To be asked for each connection: a client's plugin has another port in its next life.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local.ip, self.local.port.load(Ordering::Relaxed))
    }

    /// What it carries.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Ends the plugin and waits until it is gone, about 2 s if it does not want to go.
    pub async fn stop(self) {
        drop(self.running);
        // A panic of the task has killed the plugin too.
        let _ = self.task.await;
    }
}

/// Starts the plugin anew whenever it dies, until the other end of `stop` is dropped.
async fn keep_running(birth: Birth, mut life: Life, local: Local, mut stop: oneshot::Receiver<()>) {
    let name = birth.name();
    let mut back_off = BackOff::default();
    loop {
        let born = Instant::now();
        let status = tokio::select! {
            status = life.ended() => status,
            _ = &mut stop => return life.stop().await,
        };
        if born.elapsed() >= HEALTHY {
            back_off = BackOff::default();
        }
        let mut complaint = format!("plugin {name} {}", ending(&status));
        life = loop {
            let pause = back_off.next(&mut SystemChance);
            warn!(
                "{complaint}; starting it again in {:.1} s",
                pause.as_secs_f32()
            );
            let again = async {
                sleep(pause).await;
                birth.life().await
            };
            // Who is stopped before he is ready is killed: nothing passes through him yet.
            let again = tokio::select! {
                again = again => again,
                _ = &mut stop => return,
            };
            match again {
                Ok(life) => break life,
                Err(why) => complaint = why.to_string(),
            }
        };
        local.port.store(life.local.port(), Ordering::Relaxed);
        info!("plugin {name} runs again");
    }
}

/// Exponential back-off with full jitter.
#[derive(Debug)]
struct BackOff {
    most: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { most: BACK_OFF_MIN }
    }
}

impl BackOff {
    /// The next pause: anything up to 1 s, 2 s, 4 s … 60 s.
    fn next(&mut self, chance: &mut dyn Entropy) -> Duration {
        let mut bytes = [0; 4];
        chance.fill(&mut bytes);
        let share = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
        let pause = self.most.mul_f64(share);
        self.most = (self.most * 2).min(BACK_OFF_MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Same(u8);

    impl Entropy for Same {
        fn fill(&mut self, out: &mut [u8]) {
            out.fill(self.0);
        }
    }

    #[test]
    fn pauses_grow_to_a_minute_and_are_spread_from_zero() {
        let pauses = |chance: u8| {
            let mut back_off = BackOff::default();
            (0..8)
                .map(|_| back_off.next(&mut Same(chance)).as_secs_f64().round())
                .collect::<Vec<_>>()
        };
        assert_eq!(pauses(255), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        assert_eq!(pauses(0), [0.0; 8]);
    }
}
