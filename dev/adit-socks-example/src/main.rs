//! A SOCKS5 server for one user, with nothing but adit-socks and the standard library.
//!
//! ```sh
//! cargo run -p adit-socks-example -- 127.0.0.1:1080 ann secret
//! curl -x socks5h://ann:secret@127.0.0.1:1080 https://example.com/
//! ```
//!
//! It connects wherever its user wants, private networks included: a server for others has to judge
//! the resolved address before it dials.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use adit_socks::server::{Credentials, Socks5, encode_reply};
use adit_socks::{Command, Reply, Request};
use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress};

/// Time from the first byte to the complete request.
const PATIENCE: Duration = Duration::from_secs(10);

/// One user and the password.
struct Login {
    user: String,
    password: String,
}

impl Credentials for Login {
    fn is_required(&self) -> bool {
        true
    }

    /// Looks at every byte, however many are right.
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool {
        let same = |a: &[u8], b: &[u8]| {
            let differs = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
            a.len() == b.len() && differs == 0
        };
        same(self.user.as_bytes(), user) & same(self.password.as_bytes(), password)
    }
}

/// Leads the dialogue; returns the request and what came behind it.
fn request(client: &mut TcpStream, login: &Login) -> io::Result<(Request, Vec<u8>)> {
    let mut dialogue = Socks5::new(login);
    let mut received = Vec::new();
    loop {
        let mut answer = Vec::new();
        let mut rx = HandshakeInput::new(&mut received);
        let step = dialogue.step(&mut rx, &mut HandshakeOutput::new(&mut answer));
        let eaten = rx.consumed();
        received.drain(..eaten);
        // A refusal has its answer, too.
        client.write_all(&answer)?;
        match step.map_err(|why| io::Error::other(why.to_string()))? {
            HandshakeProgress::Done(request) => return Ok((request, received)),
            HandshakeProgress::NeedMore { total } => {
                let mut more = vec![0; total - received.len()];
                let n = client.read(&mut more)?;
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                received.extend_from_slice(more.get(..n).unwrap_or_default());
            }
        }
    }
}

fn connect(request: &Request) -> Result<TcpStream, Reply> {
    if request.command != Command::Connect {
        return Err(Reply::CommandNotSupported);
    }
    let target = &request.target;
    let found = (target.host.to_string(), target.port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|_| Reply::HostUnreachable)?.collect();
    TcpStream::connect(&*found).map_err(|why| match why.kind() {
        io::ErrorKind::ConnectionRefused => Reply::ConnectionRefused,
        io::ErrorKind::TimedOut => Reply::TtlExpired,
        io::ErrorKind::NetworkUnreachable => Reply::NetworkUnreachable,
        _ => Reply::HostUnreachable,
    })
}

fn serve(mut client: TcpStream, login: &Login) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let (request, first) = request(&mut client, login)?;
    let mut target = match connect(&request) {
        Ok(target) => target,
        Err(why) => return client.write_all(&encode_reply(request.version, why, None)),
    };
    let bound = target.local_addr().ok();
    client.write_all(&encode_reply(request.version, Reply::Succeeded, bound))?;
    client.set_read_timeout(None)?;
    target.write_all(&first)?;
    let (mut from_client, mut to_target) = (client.try_clone()?, target.try_clone()?);
    let up = thread::spawn(move || {
        let done = io::copy(&mut from_client, &mut to_target);
        to_target.shutdown(Shutdown::Write).and(done)
    });
    let down = io::copy(&mut target, &mut client);
    client.shutdown(Shutdown::Write)?;
    up.join()
        .map_err(|_| io::Error::other("a thread ended"))??;
    down.map(drop)
}

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(at), Some(user), Some(password)) = (words.next(), words.next(), words.next()) else {
        return Err(io::Error::other("usage: server ADDRESS:PORT USER PASSWORD"));
    };
    let listener = TcpListener::bind(&*at)?;
    println!("listening on {}", listener.local_addr()?);
    let login = Login { user, password };
    thread::scope(|scope| {
        for client in listener.incoming() {
            let (client, login) = (client?, &login);
            scope.spawn(move || {
                if let Err(why) = serve(client, login) {
                    eprintln!("{why}");
                }
            });
        }
        Ok(())
    })
}
