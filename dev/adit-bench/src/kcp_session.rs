//! KCP without kcptun's layers: both ends of a measured session in this process, or a server for
//! others. The suite `kcp` starts this as a separate process, so that its whole cost is the
//! measured one.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_kcp::{Fec, KcpListener, KcpStream, Settings};
use adit_kcp_proto::Config;
use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes of the warm-up.
const WARM_UP: usize = 2 << 20;

/// The default password of the peer on kcp-go.
pub(crate) const PASSWORD: &[u8] = b"it's a secrect";

/// Bytes that a reader takes at once.
const READ_LEN: usize = 512 << 10;

/// Time after which a process ends on its own.
pub(crate) const PROCESS_LIFETIME: Duration = Duration::from_secs(600);

/// Bytes of a datagram.
pub(crate) const MTU: usize = 1400;

/// Data and parity shards of the error correction.
pub(crate) const FEC_SHARDS: (usize, usize) = (10, 3);

/// A measured session.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SpeedArgs {
    /// There and back, not only there
    #[arg(long)]
    pub(crate) echo: bool,
    pub(crate) cipher: PacketKind,
    /// Bytes per write
    pub(crate) size: NonZeroUsize,
    pub(crate) writes: u64,
}

/// Measures a session, and prints the result as a JSON object.
pub(crate) fn measure_speed(speed: &SpeedArgs) -> Result<()> {
    println!("{}", speed.measure()?);
    Ok(())
}

/// Sends back what arrives, to any client.
pub(crate) fn run_echo_server(cipher: PacketKind) -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async { timeout(PROCESS_LIFETIME, echo_sessions(cipher)).await })?
}

fn kcp_settings(cipher: PacketKind) -> Result<Settings> {
    let (data, parity) = FEC_SHARDS;
    let mut settings = Settings::new(Config {
        send_window: 1024,
        recv_window: 1024,
        ..Config::fast3()
    });
    settings.mtu = MTU;
    let key = PacketKey::new(cipher, PacketCheck::Crc32, PASSWORD)?;
    settings.key = Some(Arc::new(key));
    settings.fec = Some(Fec {
        data,
        parity,
        matrix: CodeMatrix::Vandermonde,
    });
    // All its clients are on one machine.
    settings.per_source = usize::MAX;
    Ok(settings)
}

async fn echo_sessions(cipher: PacketKind) -> Result<()> {
    let mut listener = KcpListener::bind("127.0.0.1:0".parse()?, kcp_settings(cipher)?)?;
    println!("ready {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        // Small, so that the memory of an idle session is that of the session itself.
        tokio::spawn(async move {
            let (mut reader, mut writer) = stream.into_split();
            let mut buf = [0; 16];
            while let Ok(n @ 1..) = reader.read(&mut buf).await {
                if writer
                    .write_all(buf.get(..n).unwrap_or_default())
                    .await
                    .is_err()
                {
                    break;
                }
            }
        });
    }
}

impl SpeedArgs {
    /// Measures the processor time of all threads, as the program runs; then, in a second run on
    /// one thread, the allocations.
    fn measure(&self) -> Result<serde_json::Value> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let (cpu, wall) = self.timed_run(&runtime)?;
        drop(runtime);
        let few = self.writes.div_ceil(8);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut pair = runtime.block_on(SessionPair::new(self))?;
        let mut outcome = Ok(());
        let counted =
            allocation_counter::measure(|| outcome = runtime.block_on(pair.transfer_writes(few)));
        outcome?;
        let size = u64::try_from(self.size.get())?;
        Ok(serde_json::json!({
            "bytes": self.writes * size,
            "writes": self.writes,
            "cpu_ns": u64::try_from(cpu.as_nanos())?,
            "wall_ns": u64::try_from(wall.as_nanos())?,
            "allocations": counted.count_total * self.writes / few,
        }))
    }

    fn timed_run(&self, runtime: &Runtime) -> Result<(Duration, Duration)> {
        let mut pair = runtime.block_on(SessionPair::new(self))?;
        let (cpu, start) = (process_clock(), Instant::now());
        runtime.block_on(pair.transfer_writes(self.writes))?;
        Ok((process_clock() - cpu, start.elapsed()))
    }
}

/// Returns the processor time of all threads of this process.
fn process_clock() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// The data that has arrived at the end of the path.
#[derive(Debug, Default)]
struct ArrivalCounter {
    bytes: AtomicU64,
    notify: Notify,
}

impl ArrivalCounter {
    /// Reads to the end; with `echo`, sends the data back there.
    async fn read(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut echo: Option<impl AsyncWrite + Unpin>,
    ) -> std::io::Result<()> {
        let mut buf = vec![0; READ_LEN];
        loop {
            let n = from.read(&mut buf).await?;
            if n == 0 {
                return Ok(());
            }
            if let Some(echo) = &mut echo {
                echo.write_all(buf.get(..n).unwrap_or_default()).await?;
            } else {
                self.bytes.fetch_add(n as u64, Ordering::Relaxed);
                self.notify.notify_one();
            }
        }
    }
}

/// Both ends of a session, each with its reader.
struct SessionPair {
    writer: Box<dyn AsyncWrite + Unpin>,
    arrived: Arc<ArrivalCounter>,
    payload: Vec<u8>,
    /// Number of bytes written.
    written: u64,
}

impl SessionPair {
    /// Starts a session and warms it up: windows, buffers and estimates reach their final values.
    async fn new(speed: &SpeedArgs) -> Result<Self> {
        let settings = kcp_settings(speed.cipher)?;
        let mut listener = KcpListener::bind("127.0.0.1:0".parse()?, settings.clone())?;
        let client = KcpStream::connect(listener.local_addr()?, settings).await?;
        let (reader, writer) = client.into_split();
        let arrived = Arc::new(ArrivalCounter::default());
        let (there, back) = (arrived.clone(), arrived.clone());
        let echo = speed.echo;
        tokio::spawn(async move {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            let (reader, writer) = stream.into_split();
            let _ = there.read(reader, echo.then_some(writer)).await;
        });
        if echo {
            tokio::spawn(async move {
                let nowhere = None::<tokio::io::Sink>;
                let _ = back.read(reader, nowhere).await;
            });
        }
        let mut pair = Self {
            writer: Box::new(writer),
            arrived,
            payload: (0..speed.size.get())
                .map(|at| at.to_le_bytes()[0])
                .collect(),
            written: 0,
        };
        pair.transfer_writes(u64::try_from(WARM_UP / speed.size + 1)?)
            .await?;
        Ok(pair)
    }

    /// Performs this number of writes, and waits until all data has arrived.
    async fn transfer_writes(&mut self, writes: u64) -> Result<()> {
        for _ in 0..writes {
            self.writer.write_all(&self.payload).await?;
            self.written += self.payload.len() as u64;
        }
        let all = async {
            while self.arrived.bytes.load(Ordering::Relaxed) < self.written {
                self.arrived.notify.notified().await;
            }
        };
        timeout(PROCESS_LIFETIME, all)
            .await
            .context("the data did not arrive")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_told() {
        for echo in [false, true] {
            let speed = SpeedArgs {
                echo,
                cipher: PacketKind::Aes128,
                size: NonZeroUsize::new(1 << 16).unwrap(),
                writes: 40,
            };
            let told = speed.measure().unwrap();
            let count = |key: &str| told[key].as_u64().unwrap();
            assert_eq!((count("bytes"), count("writes")), (40 << 16, 40));
            assert!(count("cpu_ns") > 0 && count("wall_ns") > 0, "{told}");
            assert!(count("allocations") < 100 * 40, "{told}");
        }
    }
}
