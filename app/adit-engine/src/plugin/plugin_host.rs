//! The host of a plugin: starts it, keeps it running, and hands it over to another process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use adit_net::system::SystemRng;
use adit_wire::Entropy;
use tokio::sync::mpsc;
#[cfg(target_os = "linux")]
use tokio::sync::{mpsc::error::TrySendError, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

#[cfg(target_os = "linux")]
use super::handed_over::HandedOverPlugin;
use super::plugin_process::{PluginCommand, PluginProcess};
use super::system::describe_exit;
use super::{PluginError, PluginSide, PluginSpec, PluginTransports};
use crate::dns::NameResolver;

/// Delay before the first restart.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
/// Maximum delay before a restart.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// Uptime after which a plugin counts as healthy.
const HEALTHY_UPTIME: Duration = Duration::from_secs(60);

/// Maximum number of requests that wait for the task of a host: an upgrade makes two, one after the other.
#[cfg(target_os = "linux")]
const MAX_REQUESTS: usize = 4;
#[cfg(not(target_os = "linux"))]
const MAX_REQUESTS: usize = 1;

/// A running plugin, which is restarted when it ends.
///
/// Dropping it ends the plugin in the background: SIGTERM to its process group, then SIGKILL after
/// 2 s, or immediately if the runtime ends earlier. [`Self::stop_plugin`] waits for the end.
#[derive(Debug)]
pub struct PluginHost {
    local: LoopbackAddr,
    mode: PluginTransports,
    /// Dropped to stop the plugin.
    requests: mpsc::Sender<HostRequest>,
    task: JoinHandle<()>,
}

/// The loopback address. Its port changes when a client's plugin is restarted.
#[derive(Debug, Clone)]
struct LoopbackAddr {
    ip: IpAddr,
    port: Arc<AtomicU16>,
}

impl LoopbackAddr {
    fn new(addr: SocketAddr) -> Self {
        Self {
            ip: addr.ip(),
            port: Arc::new(AtomicU16::new(addr.port())),
        }
    }
}

/// A request to the task of a host.
#[derive(Debug)]
enum HostRequest {
    /// Return the plugin for another process, if it runs, and do not restart it until [`Self::Resume`].
    #[cfg(target_os = "linux")]
    HandOver(oneshot::Sender<HandOverResult>),
    /// Supervise the plugin.
    #[cfg(target_os = "linux")]
    Resume,
    /// Leave the plugin to the other process.
    #[cfg(target_os = "linux")]
    Release,
}

impl HostRequest {
    /// Returns true if this process supervises the plugin after it.
    const fn continues_here(&self) -> bool {
        #[cfg(target_os = "linux")]
        match self {
            Self::HandOver(_) | Self::Resume => true,
            Self::Release => false,
        }
        #[cfg(not(target_os = "linux"))]
        match *self {}
    }
}

/// The plugin for another process; `None` if it is about to be restarted.
#[cfg(target_os = "linux")]
type HandOverResult = std::io::Result<Option<HandedOverPlugin>>;

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
        Self::start_with_resolver(spec, side, NameResolver::system()).await
    }

    /// Does the same, and looks the name of a client's server up with `names`. Unless that is the system's resolver, the
    /// plugin is given an address instead of the name, and is restarted when the name has other addresses. If the lookup
    /// fails, it is started in the background later, because the network may not be up yet.
    ///
    /// # Errors
    ///
    /// As for [`start_plugin`](Self::start_plugin).
    pub async fn start_with_resolver(
        spec: PluginSpec,
        side: PluginSide,
        names: NameResolver,
    ) -> Result<Self, PluginError> {
        let mode = spec.mode;
        let birth = PluginCommand::new(spec, side, names)?;
        // Nothing can be connected to at port 0.
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (life, addr) = match birth.start_and_wait().await {
            Ok(process) => {
                let addr = process.local;
                (PluginLife::Running(process), addr)
            }
            Err(why @ PluginError::Lookup { .. }) => {
                (PluginLife::Ended(Some(why.to_string())), unknown)
            }
            Err(why) => return Err(why),
        };
        let local = LoopbackAddr::new(addr);
        let (requests, received) = mpsc::channel(MAX_REQUESTS);
        let supervisor = Supervisor {
            birth,
            local: local.clone(),
            requests: received,
        };
        let task = tokio::spawn(supervisor.keep_running(life));
        Ok(Self {
            mode,
            local,
            requests,
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
        drop(self.requests);
        // If the task panicked, the plugin was killed by its drop.
        let _ = self.task.await;
    }
}

/// The handover to another process.
#[cfg(target_os = "linux")]
impl PluginHost {
    /// Creates the host of a plugin that another process still supervises. [`Self::resume`] takes it over: if its
    /// program, its options or its addresses are others, it is replaced then. Dropping the host before that has no
    /// effect on the plugin.
    ///
    /// # Errors
    ///
    /// Returns a [`PluginError`] if the plugin cannot be started again when it ends.
    pub(crate) fn continue_plugin(
        spec: PluginSpec,
        side: PluginSide,
        plugin: HandedOverPlugin,
    ) -> Result<Self, PluginError> {
        let mode = spec.mode;
        let local = LoopbackAddr::new(plugin.local);
        // The plugin of a listener looks no server up.
        let birth = PluginCommand::new(spec, side, NameResolver::system())?;
        let (requests, received) = mpsc::channel(MAX_REQUESTS);
        let supervisor = Supervisor {
            birth,
            local: local.clone(),
            requests: received,
        };
        let task = tokio::spawn(supervisor.take_over(plugin));
        Ok(Self {
            mode,
            local,
            requests,
            task,
        })
    }

    /// Returns the plugin for another process; `None` if it does not run at the moment. It is not restarted until
    /// [`Self::resume`] or [`Self::release`].
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) fn hand_over(&self) -> impl Future<Output = HandOverResult> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        self.request(HostRequest::HandOver(reply));
        async { answer.await.unwrap_or(Ok(None)) }
    }

    fn request(&self, request: HostRequest) {
        // A closed channel means that the task has ended.
        let sent = self.requests.try_send(request);
        debug_assert!(!matches!(sent, Err(TrySendError::Full(_))), "requests wait");
    }

    /// Supervises the plugin again after [`Self::hand_over`], or takes it over after [`Self::continue_plugin`].
    pub(crate) fn resume(&self) {
        self.request(HostRequest::Resume);
    }

    /// Leaves the plugin to the process that it was handed over to. Wait for the future: if the runtime ended before the
    /// task of the host has released the plugin, its drop would kill it.
    pub(crate) fn release(self) -> impl Future<Output = ()> + Send + use<> {
        self.request(HostRequest::Release);
        async {
            // If the task panicked, the plugin was killed by its drop.
            let _ = self.task.await;
        }
    }
}

/// The task of a host.
struct Supervisor {
    birth: PluginCommand,
    local: LoopbackAddr,
    requests: mpsc::Receiver<HostRequest>,
}

/// The plugin of a host.
enum PluginLife {
    Running(PluginProcess),
    /// It has to be started, after a pause if there is a reason.
    Ended(Option<String>),
}

/// The reaction of a host to a request.
enum HostDecision {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux has requests")
    )]
    Continue(Box<PluginLife>),
    Stop,
}

impl Supervisor {
    /// Restarts the plugin whenever it ends, until the sender of the requests is dropped.
    async fn keep_running(mut self, mut life: PluginLife) {
        let mut back_off = BackOff::default();
        loop {
            life = match life {
                PluginLife::Running(mut process) => {
                    let born = Instant::now();
                    let server = process.server;
                    tokio::select! {
                        () = self.birth.wait_for_other_address(server) => {
                            process.terminate().await;
                            let name = self.birth.name();
                            let how = format!("the server of plugin {name} has another address");
                            PluginLife::Ended(Some(how))
                        }
                        status = process.wait_for_exit() => {
                            if born.elapsed() >= HEALTHY_UPTIME {
                                back_off = BackOff::default();
                            }
                            let how = describe_exit(&status);
                            PluginLife::Ended(Some(format!("plugin {} {how}", self.birth.name())))
                        }
                        request = self.requests.recv() => {
                            let life = PluginLife::Running(process);
                            match self.decide(request, life).await {
                                HostDecision::Continue(life) => *life,
                                HostDecision::Stop => return,
                            }
                        }
                    }
                }
                PluginLife::Ended(complaint) => {
                    let pause = match &complaint {
                        None => Duration::ZERO,
                        Some(complaint) => {
                            let pause = back_off.next_delay(&mut SystemRng);
                            warn!("{complaint}; restarting in {:.1} s", pause.as_secs_f32());
                            pause
                        }
                    };
                    tokio::select! {
                        () = sleep(pause) => {
                            match self.start_again().await {
                                Some(life) => life,
                                None => return,
                            }
                        }
                        request = self.requests.recv() => {
                            match self.decide(request, PluginLife::Ended(complaint)).await {
                                HostDecision::Continue(life) => *life,
                                HostDecision::Stop => return,
                            }
                        }
                    }
                }
            };
        }
    }

    /// Starts the plugin after it has ended; returns `None` if the host has to stop.
    ///
    /// A request to hand it over waits until it is ready: ending it at that moment would leave its port to nothing, and
    /// perhaps occupied for the other process. When the host stops first, the plugin is killed, as no traffic passes
    /// through it yet.
    async fn start_again(&mut self) -> Option<PluginLife> {
        let mut waiting = None;
        let started = {
            let mut start = pin!(self.birth.start_and_wait());
            loop {
                tokio::select! {
                    started = &mut start => break started,
                    request = self.requests.recv() => match request {
                        // One that waits already is answered by its drop: there is no plugin.
                        Some(request) if request.continues_here() => waiting = Some(request),
                        Some(_) | None => return None,
                    },
                }
            }
        };
        let life = match started {
            Ok(process) => {
                let port = process.local.port();
                self.local.port.store(port, Ordering::Relaxed);
                info!("plugin {} was restarted", self.birth.name());
                PluginLife::Running(process)
            }
            Err(why) => PluginLife::Ended(Some(why.to_string())),
        };
        match waiting {
            None => Some(life),
            Some(request) => match self.decide(Some(request), life).await {
                HostDecision::Continue(life) => Some(*life),
                HostDecision::Stop => None,
            },
        }
    }

    /// Handles a request; `None` is the one to stop.
    #[cfg(target_os = "linux")]
    async fn decide(
        &mut self,
        mut request: Option<HostRequest>,
        mut life: PluginLife,
    ) -> HostDecision {
        loop {
            match request {
                Some(HostRequest::HandOver(reply)) => {
                    // The one that has asked may have gone.
                    let _ = reply.send(self.hand_over(&mut life).await);
                }
                Some(HostRequest::Resume) => {
                    if let PluginLife::Running(process) = &mut life {
                        process.resume();
                    }
                    return HostDecision::Continue(Box::new(life));
                }
                Some(HostRequest::Release) => {
                    if let PluginLife::Running(process) = life {
                        process.release();
                    }
                    return HostDecision::Stop;
                }
                None => return stop(life).await,
            }
            request = self.requests.recv().await;
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn decide(&mut self, request: Option<HostRequest>, life: PluginLife) -> HostDecision {
        match request {
            Some(request) => match request {},
            None => stop(life).await,
        }
    }

    /// Returns the plugin for another process, which also starts it again if it is about to be restarted.
    #[cfg(target_os = "linux")]
    async fn hand_over(&self, life: &mut PluginLife) -> HandOverResult {
        let (PluginLife::Running(process), PluginSide::Server { public, local }) =
            (life, self.birth.side())
        else {
            return Ok(None);
        };
        match process.hand_over().await {
            Ok(process) => Ok(Some(HandedOverPlugin {
                spec: self.birth.spec().clone(),
                public: *public,
                local: *local,
                process,
            })),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Waits until the plugin of another process is to be taken over, and supervises it from then on.
    #[cfg(target_os = "linux")]
    async fn take_over(mut self, plugin: HandedOverPlugin) {
        match self.requests.recv().await {
            Some(HostRequest::Resume) => {}
            // It is not handed over before it was taken over.
            Some(HostRequest::HandOver(_) | HostRequest::Release) | None => return,
        }
        let is_same = plugin.is_the_same(self.birth.spec(), self.birth.side());
        let name = self.birth.name().to_owned();
        let life = match plugin.supervise() {
            Ok(process) if is_same => PluginLife::Running(process),
            Ok(process) => {
                info!("plugin {name} has other settings: it is restarted");
                process.terminate().await;
                PluginLife::Ended(None)
            }
            Err(why) => PluginLife::Ended(Some(format!("cannot take over plugin {name}: {why}"))),
        };
        self.keep_running(life).await;
    }
}

/// Ends the plugin.
async fn stop(life: PluginLife) -> HostDecision {
    if let PluginLife::Running(process) = life {
        process.terminate().await;
    }
    HostDecision::Stop
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

    /// The process that has handed a plugin over may end at once, and its runtime with it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_released_plugin_survives_the_end_of_the_runtime() {
        use adit_interop::plugin::{PluginScript, is_running};

        let script = PluginScript::new("plugin", "note $$\nexec sleep 600\n").unwrap();
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().build().unwrap()
        };
        let before = runtime();
        let handed_over = before.block_on(async {
            let spec = PluginSpec {
                program: script.path().display().to_string(),
                options: String::new(),
                mode: PluginTransports::Udp,
            };
            let side = PluginSide::Server {
                public: adit_interop::loopback_addr(adit_interop::free_port()),
                local: adit_interop::loopback_addr(adit_interop::free_port()),
            };
            let host = PluginHost::start_plugin(spec, side).await.unwrap();
            let handed_over = host.hand_over().await.unwrap().unwrap();
            host.release().await;
            handed_over
        });
        drop(before);
        let id = script.wait_for_pids(1).unwrap()[0];
        std::thread::sleep(Duration::from_millis(100));
        assert!(is_running(id));
        runtime().block_on(handed_over.end());
        assert!(!is_running(id));
    }
}
