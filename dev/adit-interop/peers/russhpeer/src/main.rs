//! A client and a server on russh, with those options of OpenSSH that the benchmarks use.
//!
//! The server runs programs and opens connections for clients with the authorized key; the client
//! has `-L`, `-D` and programs. Only the list of algorithms is changed: the program shows what a
//! program gets that uses the crate as its examples do.
//!
//! For interoperation tests it also has `algorithms` and `jobs`, and its server then offers all
//! algorithms, prints `ready HOST:PORT`, and prints `keys` for each exchange with a group of its
//! choice.

mod jobs;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use russh::client::GexParams;
use russh::keys::{
    PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_public_key, load_secret_key,
};
use russh::server::{Auth, Msg, Server as _, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelMsg, Limits, Preferred, cipher, client, kex, mac, server};
use tokio::io::{
    AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional_with_sizes, copy_buf,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// Size of the buffers between a channel and a socket or a pipe, in bytes.
const BUFFER: usize = 64 << 10;

/// The command line: `server AT` or `client …`, each with options.
struct Words(Vec<String>);

impl Words {
    /// Returns the word after an option.
    fn of(&self, option: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == option)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn need(&self, option: &str) -> Result<&str> {
        self.of(option)
            .with_context(|| format!("`{option}` is missing"))
    }

    fn preferred(&self) -> Result<Preferred> {
        let mut preferred = match self.of("--offer") {
            Some("all") => jobs::all(),
            _ => Preferred::default(),
        };
        if let Some(name) = self.of("-c") {
            let name = cipher::Name::try_from(name)
                .ok()
                .context("unknown cipher")?;
            preferred.cipher = Cow::Owned(vec![name]);
        }
        if let Some(name) = self.of("-m") {
            let name = mac::Name::try_from(name).ok().context("unknown MAC")?;
            preferred.mac = Cow::Owned(vec![name]);
        }
        Ok(preferred)
    }

    /// Returns the address in a word such as `user@127.0.0.1`; names of ciphers contain no address.
    fn host(&self) -> Option<IpAddr> {
        self.0
            .iter()
            .find_map(|word| word.split_once('@')?.1.parse().ok())
    }

    /// Returns the limits of a key exchange: keys are renewed after `--rekey` bytes in either
    /// direction.
    fn limits(&self) -> Result<Limits> {
        Ok(self
            .of("--rekey")
            .map_or_else(|| Ok(Limits::default()), |bytes| bytes.parse().map(limits))?)
    }
}

fn limits(bytes: usize) -> Limits {
    Limits::new(bytes, bytes, Limits::default().rekey_time_limit)
}

#[tokio::main]
async fn main() -> Result<()> {
    let words = Words(std::env::args().skip(1).collect());
    match words.0.first().map(String::as_str) {
        Some("--version") => println!("russh 0.65.1"),
        Some("server") => serve(&words).await?,
        Some("client") => connect(&words).await?,
        Some("algorithms") => jobs::say_algorithms(),
        Some("jobs") => jobs::work(&words).await?,
        _ => bail!("`russhpeer server …`, `client …`, `algorithms` or `jobs …`"),
    }
    Ok(())
}

async fn serve(words: &Words) -> Result<()> {
    let mut config = server::Config {
        keys: vec![load_secret_key(words.need("--host-key")?, None)?],
        preferred: words.preferred()?,
        limits: words.limits()?,
        inactivity_timeout: None,
        nodelay: true,
        ..server::Config::default()
    };
    if words.of("--offer").is_some() {
        // A connection's task waits until received data fits into its buffer, and sends nothing
        // meanwhile. A program that sends back what it receives waits for that in turn, so its
        // input must hold a whole window, whatever the sizes of its packets.
        config.channel_buffer_size = 1 << 16;
    }
    let allowed = Arc::new(load_public_key(words.need("--authorized-keys")?)?);
    let listener = TcpListener::bind(words.of("--listen").unwrap_or("127.0.0.1:0")).await?;
    println!("ready {}", listener.local_addr()?);
    let mut server = Server { allowed };
    server.run_on_socket(Arc::new(config), &listener).await?;
    Ok(())
}

struct Server {
    allowed: Arc<russh::keys::PublicKey>,
}

impl server::Server for Server {
    type Handler = Guest;

    fn new_client(&mut self, _: Option<std::net::SocketAddr>) -> Guest {
        Guest {
            allowed: Arc::clone(&self.allowed),
            sessions: HashMap::new(),
        }
    }
}

/// One connection.
struct Guest {
    allowed: Arc<russh::keys::PublicKey>,
    /// Channels whose program is not yet known, each with its variables.
    sessions: HashMap<ChannelId, (Channel<Msg>, Variables)>,
}

type Variables = Vec<(String, String)>;

impl Guest {
    /// Stores variables for the program that follows.
    fn keep(&mut self, id: ChannelId, variables: Variables, session: &mut Session) -> Result<()> {
        let (_, kept) = self.sessions.get_mut(&id).context("no such channel")?;
        kept.extend(variables);
        Ok(session.channel_success(id)?)
    }
}

impl server::Handler for Guest {
    type Error = anyhow::Error;

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth> {
        if key.public_key.key_data() == self.allowed.key_data() {
            Ok(Auth::Accept)
        } else {
            Ok(Auth::reject())
        }
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: server::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<()> {
        self.sessions.insert(channel.id(), (channel, Vec::new()));
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<()> {
        self.keep(id, vec![(name.to_owned(), value.to_owned())], session)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        term: &str,
        columns: u32,
        rows: u32,
        _: u32,
        _: u32,
        _: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<()> {
        let term = ("TERM".to_owned(), term.to_owned());
        let size = ("SIZE".to_owned(), format!("{rows} {columns}"));
        self.keep(id, vec![term, size], session)
    }

    async fn lookup_dh_gex_group(
        &mut self,
        _: &GexParams,
    ) -> Result<Option<kex::dh::groups::DhGroup>> {
        println!("keys");
        Ok(Some(kex::dh::groups::DH_GROUP14.clone()))
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        program: &[u8],
        session: &mut Session,
    ) -> Result<()> {
        let (channel, variables) = self.sessions.remove(&id).context("no such channel")?;
        let program = String::from_utf8(program.to_vec())?;
        session.channel_success(id)?;
        let handle = session.handle();
        tokio::spawn(async move {
            // Dropping the stream spawns a task that closes the channel, and what is sent after
            // that never leaves: the stream is kept until the status has been sent.
            if let Ok((code, _stream)) = run(channel, &program, variables).await {
                let _ = handle.exit_status_request(id, code).await;
            }
            let _ = handle.close(id).await;
        });
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: server::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<()> {
        let to = format!("{host}:{port}");
        tokio::spawn(async move {
            let Ok(mut tcp) = TcpStream::connect(&to).await else {
                return;
            };
            let _ = tcp.set_nodelay(true);
            reply.accept().await;
            let mut stream = channel.into_stream();
            let _ = copy_bidirectional_with_sizes(&mut tcp, &mut stream, BUFFER, BUFFER).await;
        });
        Ok(())
    }
}

/// Runs a program with the channel as its input and output. Returns its exit code, and the output.
async fn run(
    channel: Channel<Msg>,
    program: &str,
    variables: Variables,
) -> Result<(u32, impl AsyncWrite)> {
    let mut child = Command::new("sh")
        .args(["-c", program])
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pipes = child.stdout.take().zip(child.stdin.take());
    let (output, mut input) = pipes.context("no pipes")?;
    let mut errors = child.stderr.take().context("no pipe")?;
    // The code of standard error in SSH (RFC 4254, section 5.2).
    let mut aside = channel.make_writer_ext(Some(1));
    let errors = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut errors, &mut aside).await;
    });
    let (from, mut to) = tokio::io::split(channel.into_stream());
    // Dropping the pipe closes it, which is how the program learns of the end.
    let feed = tokio::spawn(async move {
        let _ = copy_buf(&mut BufReader::with_capacity(BUFFER, from), &mut input).await;
    });
    let _ = copy_buf(&mut BufReader::with_capacity(BUFFER, output), &mut to).await;
    let _ = errors.await;
    let _ = to.shutdown().await;
    feed.abort();
    let code = child.wait().await?.code().unwrap_or(255);
    Ok((u32::try_from(code)?, to))
}

/// A client that trusts every host key: only for loopback.
struct Trusting;

impl client::Handler for Trusting {
    type Error = anyhow::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool> {
        Ok(true)
    }
}

async fn connect(words: &Words) -> Result<()> {
    let config = client::Config {
        preferred: words.preferred()?,
        inactivity_timeout: None,
        nodelay: true,
        ..client::Config::default()
    };
    let port: u16 = words.need("-p")?.parse()?;
    let host = words.host().unwrap_or(Ipv4Addr::LOCALHOST.into());
    let mut session = client::connect(Arc::new(config), (host, port), Trusting).await?;
    let key = Arc::new(load_secret_key(words.need("-i")?, None)?);
    let key = PrivateKeyWithHashAlg::new(key, None);
    let login = session.authenticate_publickey("user", key).await?;
    ensure!(login.success(), "the server refused the login");
    let session = Arc::new(session);
    if let Some(forward) = words.of("-L") {
        // ADDRESS:PORT:ADDRESS:PORT.
        let parts: Vec<&str> = forward.split(':').collect();
        let [from, port, host, to] = parts[..] else {
            bail!("`{forward}`");
        };
        let listener = TcpListener::bind(format!("{from}:{port}")).await?;
        let to: u32 = to.parse()?;
        let host = host.to_owned();
        loop {
            let (tcp, _) = listener.accept().await?;
            tokio::spawn(carry(Arc::clone(&session), tcp, host.clone(), to, false));
        }
    }
    if let Some(at) = words.of("-D") {
        let listener = TcpListener::bind(at).await?;
        loop {
            let (mut tcp, _) = listener.accept().await?;
            let session = Arc::clone(&session);
            tokio::spawn(async move {
                let (host, port) = socks(&mut tcp).await?;
                carry(session, tcp, host, port, true).await
            });
        }
    }
    let program = words.0.last().context("no program")?;
    exec(&session, program).await
}

async fn carry(
    session: Arc<client::Handle<Trusting>>,
    mut tcp: TcpStream,
    host: String,
    port: u32,
    socks: bool,
) -> Result<()> {
    tcp.set_nodelay(true)?;
    let channel = session
        .channel_open_direct_tcpip(host, port, "127.0.0.1", 1)
        .await?;
    if socks {
        tcp.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    }
    let mut stream = channel.into_stream();
    copy_bidirectional_with_sizes(&mut tcp, &mut stream, BUFFER, BUFFER).await?;
    Ok(())
}

/// Handles SOCKS5 CONNECT without a login, to an IPv4 address or a name. Returns the destination.
async fn socks(tcp: &mut TcpStream) -> Result<(String, u32)> {
    let version = tcp.read_u8().await?;
    let methods = tcp.read_u8().await?;
    ensure!(version == 5, "not SOCKS5");
    tcp.read_exact(&mut vec![0; methods.into()]).await?;
    tcp.write_all(&[5, 0]).await?;
    let mut head = [0; 4];
    tcp.read_exact(&mut head).await?;
    let host = match head {
        [5, 1, _, 1] => std::net::Ipv4Addr::from(tcp.read_u32().await?).to_string(),
        [5, 1, _, 3] => {
            let len = tcp.read_u8().await?;
            let mut name = vec![0; len.into()];
            tcp.read_exact(&mut name).await?;
            String::from_utf8(name)?
        }
        _ => bail!("no CONNECT to an address or a name"),
    };
    Ok((host, tcp.read_u16().await?.into()))
}

/// Runs a program on the server with the input and output of this process.
async fn exec(session: &client::Handle<Trusting>, program: &str) -> Result<()> {
    let mut channel = session.channel_open_session().await?;
    channel.exec(true, program).await?;
    let mut writer = channel.make_writer();
    tokio::spawn(async move {
        let mut input = tokio::io::stdin();
        let mut buffer = vec![0; BUFFER];
        while let Ok(read @ 1..) = input.read(&mut buffer).await {
            if writer.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    });
    let mut output = tokio::io::stdout();
    let mut code = None;
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => {
                output.write_all(&data).await?;
                output.flush().await?;
            }
            ChannelMsg::ExitStatus { exit_status } => code = Some(exit_status),
            _ => {}
        }
    }
    let code = code.context("the program ended without an exit status")?;
    // A thread that nothing wakes may be reading the input.
    std::process::exit(i32::try_from(code)?);
}
