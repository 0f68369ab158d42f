//! Bytes through the input and the output of a program on the server.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use adit_interop::TempFolder;
use anyhow::{Context, Result, ensure};

use crate::figures::{
    CPU_PER_GIB, Figures, GBIT, as_float, as_gib, figures_with_sum, whole_figure,
};
use crate::load::LoadDirection;
use crate::peers::ssh_common::{self, SshUse};
use crate::peers::{PeerRole, PreparedCommand};
use crate::process_cost;
use crate::suite::rounds::{CaseFigures, RoundTurn};
use crate::topology::ProcessRig;

/// Signals that it has started, reads as many bytes as the first line says, signals that it has
/// them, and waits for the end.
const UP: &str = "printf +; read n; head -c $n >/dev/null; printf +; cat >/dev/null";
/// Signals that it has started, writes as many bytes as the first line says, and waits for the end.
const DOWN: &str = "printf +; read n; head -c $n /dev/zero; cat >/dev/null";

/// Number of bytes per read and write.
const CHUNK: usize = 128 << 10;
/// Time that a client may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures both directions, each with a separate client; the cases are `case` with the direction.
pub(super) fn measure_both(
    turn: &RoundTurn<'_>,
    suite: ssh_common::SshSuite,
    case: &str,
) -> Result<CaseFigures> {
    // No connection leads from this server to an origin.
    let rig = turn.start_rig(adit_interop::loopback_addr(9))?;
    let mut cases = CaseFigures::new();
    for direction in LoadDirection::BOTH {
        let figures = measure_direction(turn, &rig, suite, direction)
            .map_err(|why| rig.with_last_output(&why))?;
        cases.push((format!("{case}, {direction}"), figures));
    }
    Ok(cases)
}

fn measure_direction(
    turn: &RoundTurn<'_>,
    rig: &ProcessRig,
    suite: ssh_common::SshSuite,
    direction: LoadDirection,
) -> Result<Figures> {
    let server = rig.members().first().context("no server was started")?;
    let program = match direction {
        LoadDirection::Up => UP,
        LoadDirection::Down => DOWN,
    };
    let role = PeerRole::SshClient {
        suite,
        server: server.running.at(),
        what: SshUse::Exec(program),
    };
    let ready = turn.peer().context("no peer")?.command(&role)?;
    turn.note_command(ready.shown.clone());
    let bytes = turn.amounts().bytes;
    let mut client = SshClient::start(ready)?;
    client
        .wait_for_sign()
        .context("the program did not start")?;
    let (mine, its) = (process_cost::cpu_time(client.id())?, rig.cpu_times()?);
    let start = Instant::now();
    writeln!(client.input()?, "{bytes}")?;
    match direction {
        LoadDirection::Up => {
            client.send(bytes)?;
            client
                .wait_for_sign()
                .context("the program did not read all bytes")?;
        }
        LoadDirection::Down => client.receive(bytes)?,
    }
    let elapsed = start.elapsed();
    let spent = process_cost::cpu_time(client.id())?.saturating_sub(mine);
    let server = rig.cpu_since(&its)?;
    client.finish()?;
    let mut figures = vec![whole_figure(
        GBIT,
        as_float(bytes) * 8.0 / 1e9 / elapsed.as_secs_f64(),
    )];
    let gib = as_gib(bytes);
    let parts = [
        ("client", spent.as_secs_f64() / gib),
        ("server", server.iter().sum::<f64>() / gib),
    ];
    figures.extend(figures_with_sum(CPU_PER_GIB, &parts));
    Ok(figures)
}

/// A running client with its pipes; dropping it ends it.
struct SshClient {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    _folder: TempFolder,
}

impl SshClient {
    fn start(ready: PreparedCommand) -> Result<Self> {
        let PreparedCommand {
            mut command,
            folder,
            ..
        } = ready;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the client")?;
        let output = child.stdout.take().context("the client has no output")?;
        Ok(Self {
            input: child.stdin.take(),
            output,
            child,
            _folder: folder,
        })
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn input(&mut self) -> Result<&mut ChildStdin> {
        self.input.as_mut().context("the client has no input")
    }

    /// Waits for the program's signal.
    fn wait_for_sign(&mut self) -> Result<()> {
        let mut sign = [0];
        self.output.read_exact(&mut sign)?;
        ensure!(
            sign == *b"+",
            "the program sent another byte than its signal"
        );
        Ok(())
    }

    fn send(&mut self, bytes: u64) -> Result<()> {
        let chunk = vec![0x5a; CHUNK];
        let mut left = bytes;
        while left > 0 {
            let some = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            self.input()?
                .write_all(chunk.get(..some).unwrap_or_default())?;
            left -= some as u64;
        }
        Ok(())
    }

    fn receive(&mut self, bytes: u64) -> Result<()> {
        let mut chunk = vec![0; CHUNK];
        let mut left = bytes;
        while left > 0 {
            let read = self.output.read(&mut chunk)?;
            ensure!(read > 0, "{left} bytes are missing");
            let some = chunk.get(..read).unwrap_or_default();
            ensure!(
                some.iter().all(|byte| *byte == 0),
                "the client received other bytes"
            );
            left = left
                .checked_sub(read as u64)
                .context("the client received too many bytes")?;
        }
        Ok(())
    }

    /// Closes its input, after which it must exit successfully.
    fn finish(mut self) -> Result<()> {
        self.input = None;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the client ended with {status}");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        anyhow::bail!("the client did not end in time")
    }
}

impl Drop for SshClient {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
