//! The host of a plugin: starts it and keeps it running.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use adit_net::system::SystemRng;
use adit_wire::Entropy;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::plugin_process::{PluginCommand, PluginProcess};
use super::system::describe_exit;
use super::{PluginError, PluginSide, PluginSpec, PluginTransports};

/// Delay before the first restart.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// Maximum delay before a restart.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// Uptime after which a plugin counts as healthy.
const HEALTHY_UPTIME: Duration = Duration::from_secs(60);

/// A running plugin, which is restarted when it ends.
///
/// Dropping it ends the plugin in the background: SIGTERM to its process group, then SIGKILL after
/// 2 s, or immediately if the runtime ends earlier. [`Self::stop_plugin`] waits for the end.
#[derive(Debug)]
pub struct PluginHost {
    local: LoopbackAddr,
    mode: PluginTransports,
    /// Dropped to stop the plugin.
    running: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The loopback address. Its port changes when a client's plugin is restarted.
#[derive(Debug, Clone)]
struct LoopbackAddr {
    ip: IpAddr,
    port: Arc<AtomicU16>,
}

impl PluginHost {
    /// Starts the plugin and waits up to 10 s until it accepts connections.
    ///
    /// Its environment consists of the variables of SIP003, `PATH` and the locale. No shell is involved:
    /// program and options are used literally. Its output goes to the log.
    ///
    /// # Errors
    ///
    /// Returns a [`PluginError`] if the plugin cannot be found or started, or is not ready in time.
    pub async fn start_plugin(spec: PluginSpec, side: PluginSide) -> Result<Self, PluginError> {
        let mode = spec.mode;
        let birth = PluginCommand::new(spec, side)?;
        let life = birth.start_and_wait().await?;
        let local = LoopbackAddr {
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

    /// Returns the loopback address: on a client the one to connect to, on a server the one that the plugin
    /// connects to. Call this for each connection, because a restarted client's plugin has another port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.local.ip, self.local.port.load(Ordering::Relaxed))
    }

    /// Returns the transports that it carries.
    #[must_use]
    pub const fn mode(&self) -> PluginTransports {
        self.mode
    }

    /// Ends the plugin and waits for its end, about 2 s if it ignores SIGTERM.
    pub async fn stop_plugin(self) {
        drop(self.running);
        // If the task panicked, the plugin was killed by its drop.
        let _ = self.task.await;
    }
}

/// Restarts the plugin whenever it ends, until the sender of `stop` is dropped.
async fn keep_running(
    birth: PluginCommand,
    mut life: PluginProcess,
    local: LoopbackAddr,
    mut stop: oneshot::Receiver<()>,
) {
    let name = birth.name();
    let mut back_off = BackOff::default();
    loop {
        let born = Instant::now();
        let status = tokio::select! {
            status = life.wait_for_exit() => status,
            _ = &mut stop => return life.terminate().await,
        };
        if born.elapsed() >= HEALTHY_UPTIME {
            back_off = BackOff::default();
        }
        let mut complaint = format!("plugin {name} {}", describe_exit(&status));
        life = loop {
            let pause = back_off.next_delay(&mut SystemRng);
            warn!("{complaint}; restarting in {:.1} s", pause.as_secs_f32());
            let again = async {
                sleep(pause).await;
                birth.start_and_wait().await
            };
            // When stopped before it is ready, it is killed: no traffic passes through it yet.
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
        info!("plugin {name} was restarted");
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
    /// Returns the next delay: a random time up to 1 s, 2 s, 4 s … 60 s.
    fn next_delay(&mut self, rng: &mut dyn Entropy) -> Duration {
        let mut bytes = [0; 4];
        rng.fill(&mut bytes);
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
        let pauses = |rng: u8| {
            let mut back_off = BackOff::default();
            (0..8)
                .map(|_| back_off.next_delay(&mut Same(rng)).as_secs_f64().round())
                .collect::<Vec<_>>()
        };
        assert_eq!(pauses(255), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        assert_eq!(pauses(0), [0.0; 8]);
    }
}
