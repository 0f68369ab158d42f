//! The algorithms of the peer, and the jobs that interoperation tests give its client.
//!
//! A job is a kind with options, `echo,bytes=100,cipher=aes128-ctr`, and has a connection of its
//! own. The client prints a line for each finished job.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use russh::keys::{PrivateKeyWithHashAlg, load_secret_key};
use russh::{ChannelMsg, Preferred, cipher, client, kex, mac};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{BUFFER, Trusting, Words, limits};

type Connection = client::Handle<Trusting>;

/// Returns all algorithms of the crate that encrypt and authenticate and are not obsolete.
pub(crate) fn all() -> Preferred {
    let relic = |name: &str| {
        name == "none"
            || name == "clear"
            || name.contains("cbc")
            || name.ends_with("-sha1") && name.starts_with("diffie")
    };
    let ciphers = cipher::ALL_CIPHERS.iter().map(|name| **name);
    let macs = mac::ALL_MAC_ALGORITHMS.iter().map(|name| **name);
    let kex = kex::ALL_KEX_ALGORITHMS.iter().map(|name| **name);
    Preferred {
        cipher: ciphers.filter(|name| !relic(name.as_ref())).collect(),
        mac: macs.filter(|name| !relic(name.as_ref())).collect(),
        kex: kex
            .filter(|name| !relic(name.as_ref()))
            .chain(MARKERS)
            .collect(),
        ..Preferred::default()
    }
}

/// Names in the list of key exchange methods that are not methods.
const MARKERS: [kex::Name; 4] = [
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

pub(crate) fn say_algorithms() {
    let all = all();
    all.cipher
        .iter()
        .for_each(|name| println!("cipher {}", name.as_ref()));
    all.mac
        .iter()
        .for_each(|name| println!("mac {}", name.as_ref()));
    all.kex
        .iter()
        .for_each(|name| println!("kex {}", name.as_ref()));
}

/// One connection, and what happens on it.
struct Job<'a> {
    text: &'a str,
    kind: &'a str,
    options: HashMap<&'a str, &'a str>,
}

impl<'a> Job<'a> {
    fn new(text: &'a str) -> Self {
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        let options = rest.split(',').filter_map(|option| option.split_once('='));
        Self {
            text,
            kind,
            options: options.collect(),
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.options.get(name).copied()
    }

    fn number(&self, name: &str) -> Result<usize> {
        Ok(self.get(name).context("the job lacks a number")?.parse()?)
    }

    fn config(&self) -> Result<client::Config> {
        let mut config = client::Config {
            preferred: all(),
            // A window of small packets fits, as in the server.
            channel_buffer_size: 1 << 16,
            nodelay: true,
            ..client::Config::default()
        };
        let preferred = &mut config.preferred;
        if let Some(name) = self.get("cipher") {
            let name = cipher::Name::try_from(name).ok().context("cipher")?;
            preferred.cipher = Cow::Owned(vec![name]);
        }
        if let Some(name) = self.get("mac") {
            let name = mac::Name::try_from(name).ok().context("MAC")?;
            preferred.mac = Cow::Owned(vec![name]);
        }
        if let Some(name) = self.get("kex") {
            let name = kex::Name::try_from(name).ok().context("kex")?;
            preferred.kex = std::iter::once(name).chain(MARKERS).collect();
        }
        if self.get("rekey").is_some() {
            config.limits = limits(self.number("rekey")?);
        }
        Ok(config)
    }

    fn same(&self, got: &[u8], wanted: &[u8]) -> Result<()> {
        let shown = String::from_utf8_lossy(got.get(..100).unwrap_or(got));
        ensure!(got == wanted, "{}: {} bytes: {shown}", self.text, got.len());
        Ok(())
    }
}

pub(crate) async fn work(words: &Words) -> Result<()> {
    let port: u16 = words.need("--port")?.parse()?;
    let key = Arc::new(load_secret_key(words.need("--key")?, None)?);
    let user = words.need("--user")?;
    // The words before the jobs are the role and three options.
    for text in words.0.iter().skip(7) {
        let job = Job::new(text);
        let config = Arc::new(job.config()?);
        let mut connection = client::connect(config, ("127.0.0.1", port), Trusting).await?;
        let key = PrivateKeyWithHashAlg::new(Arc::clone(&key), None);
        let login = connection.authenticate_publickey(user, key).await?;
        ensure!(login.success(), "the server refused the login");
        let done = match job.kind {
            "echo" => echo(&connection, &job).await,
            "terminal" => terminal(&connection, &job).await,
            "connection" => forwarded(&connection, &job).await,
            _ => bail!("unknown job `{text}`"),
        };
        done.with_context(|| text.clone())?;
        println!("done {text}");
    }
    Ok(())
}

/// Returns bytes that look random, the same each time.
fn pattern(count: usize) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    };
    std::iter::repeat_n((), count)
        .scan(7, |state, ()| step(state))
        .collect()
}

async fn echo(connection: &Connection, job: &Job<'_>) -> Result<()> {
    let sent = pattern(job.number("bytes")?);
    let mut channel = connection.channel_open_session().await?;
    channel
        .exec(true, job.get("program").context("program")?)
        .await?;
    let (mut writer, bytes) = (channel.make_writer(), sent.clone());
    let feed = tokio::spawn(async move {
        for piece in bytes.chunks(BUFFER) {
            writer.write_all(piece).await?;
        }
        writer.shutdown().await
    });
    let (mut got, mut status) = (Vec::new(), None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => got.extend_from_slice(&data),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    feed.await??;
    job.same(&got, &sent)?;
    ensure!(status == Some(0), "{}: {status:?}", job.text);
    Ok(())
}

async fn terminal(connection: &Connection, job: &Job<'_>) -> Result<()> {
    let mut channel = connection.channel_open_session().await?;
    channel
        .request_pty(true, "xterm-peer", 97, 31, 0, 0, &[])
        .await?;
    channel.set_env(true, "LC_PEER", "one two").await?;
    channel.exec(true, "terminal 7").await?;
    let (mut got, mut errors, mut status) = (Vec::new(), Vec::new(), None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => got.extend_from_slice(&data),
            ChannelMsg::ExtendedData { data, ext: 1 } => errors.extend_from_slice(&data),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    job.same(&got, b"xterm-peer 97x31 LC_PEER=one two\n")?;
    job.same(&errors, b"err\n")?;
    ensure!(status == Some(7), "{}: {status:?}", job.text);
    Ok(())
}

async fn forwarded(connection: &Connection, job: &Job<'_>) -> Result<()> {
    let port = u32::try_from(job.number("port")?)?;
    let channel = connection
        .channel_open_direct_tcpip("127.0.0.1", port, "127.0.0.1", 1)
        .await?;
    let (mut stream, mut got) = (channel.into_stream(), Vec::new());
    stream.write_all(b"ping").await?;
    stream.shutdown().await?;
    stream.read_to_end(&mut got).await?;
    job.same(&got, b"pong")
}
