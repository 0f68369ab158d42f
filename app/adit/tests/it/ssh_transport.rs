//! The SSH transport without a driver: a blocking socket between it and OpenSSH.

mod client;
mod server;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use adit_interop::TEST_TIMEOUT;
use adit_net::system::ThreadRng;
use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::{
    AlgorithmPreferences, Cipher, CpuFeatures, Kex, KeyAlgorithm, Mac,
};
use adit_ssh_proto::key::Signer;
use adit_ssh_proto::transport::{Event, OpenStep, Transport, TransportConfig};
use anyhow::{Context, Result};

/// Returns the methods that the installed OpenSSH also has: the ML-KEM hybrid was added in 9.9.
fn methods(known: &str) -> Vec<Kex> {
    let known: Vec<&str> = known.lines().map(str::trim).collect();
    let both = Kex::ALL.iter().filter(|kex| known.contains(&kex.name()));
    let both: Vec<Kex> = both.copied().collect();
    assert!(both.len() >= 10, "{both:?}");
    both
}

/// Returns every cipher with each MAC that it can be combined with.
fn suites() -> Vec<(Cipher, Mac)> {
    let mut out = Vec::new();
    for cipher in Cipher::ALL {
        let macs = if cipher.is_aead() { 1 } else { Mac::ALL.len() };
        out.extend(Mac::ALL.iter().take(macs).map(|mac| (*cipher, *mac)));
    }
    out
}

/// Returns settings that leave no choice.
pub(crate) fn only(kex: Kex, host_key: KeyAlgorithm, cipher: Cipher, mac: Mac) -> TransportConfig {
    let machine = CpuFeatures {
        aes: true,
        clmul: true,
    };
    let mut names = AlgorithmPreferences::for_machine(machine);
    names.kex = vec![kex];
    names.host_key = vec![host_key];
    names.cipher = vec![cipher];
    names.mac = vec![mac];
    TransportConfig::new(names)
}

/// One side over a socket.
pub(crate) struct Talk {
    tcp: TcpStream,
    transport: Transport,
    inbox: Vec<u8>,
    /// The payload that followed the first keys immediately.
    early: Option<Vec<u8>>,
    /// The number of key exchanges.
    keys: usize,
}

impl Talk {
    pub(crate) fn client(port: u16, config: TransportConfig) -> Result<Self> {
        let tcp = TcpStream::connect(("127.0.0.1", port))?;
        Self::new(
            tcp,
            Transport::new_client(Arc::new(config), Box::new(ThreadRng))?,
        )
    }

    fn server(tcp: TcpStream, config: TransportConfig, signer: Arc<dyn Signer>) -> Result<Self> {
        let transport = Transport::new_server(Arc::new(config), signer, Box::new(ThreadRng))?;
        Self::new(tcp, transport)
    }

    fn new(tcp: TcpStream, transport: Transport) -> Result<Self> {
        tcp.set_read_timeout(Some(TEST_TIMEOUT))?;
        tcp.set_nodelay(true)?;
        Ok(Self {
            tcp,
            transport,
            inbox: Vec::new(),
            early: None,
            keys: 0,
        })
    }

    pub(crate) fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.transport.send(payload)?;
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let out = self.transport.take_output();
        self.tcp.write_all(out)?;
        out.clear();
        Ok(())
    }

    /// Waits for the next payload of the peer.
    pub(crate) fn payload(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(payload) = self.open()? {
                return Ok(payload);
            }
            anyhow::ensure!(self.read()? > 0, "the peer has closed");
        }
    }

    /// Returns the next payload, if it has arrived.
    fn payload_now(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(payload) = self.open()? {
                return Ok(Some(payload));
            }
            self.tcp.set_nonblocking(true)?;
            let read = self.read();
            self.tcp.set_nonblocking(false)?;
            match read {
                Ok(0) => anyhow::bail!("the peer has closed"),
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(why) => return Err(why.into()),
            }
        }
    }

    fn read(&mut self) -> std::io::Result<usize> {
        let mut piece = [0; 40_000];
        let n = self.tcp.read(&mut piece)?;
        self.inbox.extend_from_slice(&piece[..n]);
        Ok(n)
    }

    /// Opens packets up to a payload, and sends pending output.
    fn open(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(payload) = self.early.take() {
            return Ok(Some(payload));
        }
        loop {
            let step = match self.transport.open_next(&mut self.inbox) {
                Ok(step) => step,
                Err(why) => {
                    // The final messages, which the peer may not wait for.
                    let _ = self.flush();
                    return Err(why.into());
                }
            };
            let (consumed, payload) = match step {
                OpenStep::NeedMore { .. } => {
                    self.flush()?;
                    return Ok(None);
                }
                OpenStep::Blocked => (0, None),
                OpenStep::Consumed { consumed } => (consumed, None),
                OpenStep::Payload { consumed, payload } => {
                    let payload = self.transport.payload(&self.inbox, &payload).to_vec();
                    (consumed, Some(payload))
                }
            };
            self.inbox.drain(..consumed);
            while let Some(event) = self.transport.poll_event() {
                match event {
                    Event::HostKey { .. } => self.transport.accept_host_key()?,
                    Event::Ready(_) | Event::Rekeyed(_) => self.keys += 1,
                    _ => {}
                }
            }
            if payload.is_some() {
                return Ok(payload);
            }
        }
    }

    /// Runs the handshake until the first keys are in use.
    pub(crate) fn handshake(&mut self) -> Result<()> {
        while self.keys == 0 {
            self.early = self.open()?;
            if self.keys == 0 {
                let early = &self.early;
                anyhow::ensure!(early.is_none(), "{early:?} before the keys");
                anyhow::ensure!(self.read()? > 0, "the peer has closed");
            }
        }
        self.flush()
    }

    /// The same, with the wanted algorithms in the error.
    fn greet(&mut self, wanted: &AlgorithmPreferences) -> Result<()> {
        let named = || format!("{wanted:?}");
        self.handshake().with_context(named)?;
        let chosen = self.transport.negotiated().context("nothing agreed on")?;
        let directions = [chosen.client_to_server, chosen.server_to_client];
        let kept = wanted.kex.contains(&chosen.kex)
            && wanted.host_key.contains(&chosen.host_key)
            && directions.iter().all(|d| wanted.cipher.contains(&d.cipher))
            && directions
                .iter()
                .all(|d| d.mac.is_none_or(|mac| wanted.mac.contains(&mac)));
        anyhow::ensure!(kept, "{chosen} instead of {}", named());
        anyhow::ensure!(self.transport.is_strict(), "not strict: {}", named());
        Ok(())
    }
}

/// Returns the reason of the peer's disconnect.
pub(crate) fn reason(why: &anyhow::Error) -> Option<u32> {
    match why.downcast_ref() {
        Some(SshError::Disconnected { reason, .. }) => Some(*reason),
        _ => None,
    }
}
