//! adit's client with adit's server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use adit_crypto::Secret;
use adit_ssh::client::{Client, ClientConfig, Exit, Login, Output, PinnedKeys, Session};
use adit_ssh::server::{AuthPolicy, Connection, Incoming, Server, ServerConfig};
use adit_ssh::{BoxFuture, Channel};
use adit_ssh_proto::algorithm::Compression;
use adit_ssh_proto::auth::{AuthMethod, ServerAnswer};
use adit_ssh_proto::key::{AnyKey, PublicKey};
use adit_stream::{BoxStream, Stream, Tcp, fill_to};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::server::{OneKey, key, serve, settings};
use crate::world::{BULK, a_connection_goes_through, dial, drain, pour};

/// Connects both ends, with changes to their configurations.
pub(crate) async fn pair(
    client: impl FnOnce(&mut ClientConfig),
    server: impl FnOnce(&mut ServerConfig),
) -> Session {
    let (mut settings, host) = settings();
    let id = key();
    server(&mut settings);
    let port = serve(settings, id.public_key().clone()).await;
    let mut config = config(host, Login::new("me").with_key(id));
    client(&mut config);
    Client::connect(dial(port).await, config).await.unwrap()
}

/// Returns both ends, with changes to the client's configuration.
pub(crate) async fn both(client: impl FnOnce(&mut ClientConfig)) -> (Session, Connection) {
    let (settings, host) = settings();
    let id = key();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let policy = OneKey(id.public_key().clone());
    let mut config = config(host, Login::new("me").with_key(id));
    client(&mut config);
    let near = async { Client::connect(dial(port).await, config).await };
    let far = async {
        let (socket, _) = listener.accept().await.unwrap();
        // Like a listener that detects protocols by their first bytes.
        let mut io: BoxStream = Box::new(Tcp::new(socket));
        fill_to(&mut *io, 4).await.unwrap();
        assert!(io.filled().starts_with(b"SSH-"));
        Server::accept(io, &settings, &policy).await
    };
    let (near, far) = tokio::join!(near, far);
    (near.unwrap(), far.unwrap())
}

pub(crate) fn config(host: PublicKey, login: Login) -> ClientConfig {
    ClientConfig::new(Arc::new(PinnedKeys(vec![AnyKey::Plain(host)])), login)
}

#[tokio::test]
async fn programs_run() {
    let session = pair(|_| {}, |_| {}).await;
    let output = session
        .open_session()
        .await
        .unwrap()
        .collect_output("both 7")
        .await;
    let output = output.unwrap();
    assert_eq!(
        (&*output.stdout, &*output.stderr),
        (&b"out\n"[..], &b"err\n"[..])
    );
    assert_eq!(output.exit, Some(Exit::Status(7)));
    let output = session
        .open_session()
        .await
        .unwrap()
        .collect_output("kill")
        .await;
    let exit = output.unwrap().exit;
    assert!(matches!(exit, Some(Exit::Signal { name, .. }) if name == "TERM"));
    let shell = session.open_session().await.unwrap();
    shell.start_shell().await.unwrap_err();
    assert!(session.ping().await.unwrap() < Duration::from_secs(5));
}

/// The server receives the request for a program, writes `out`, sends `status`, closes the channel, and
/// replies only then. Returns the client's result.
async fn late_answer(out: &[u8], status: Option<u32>) -> std::io::Result<Output> {
    let (session, mut connection) = both(|_| {}).await;
    let server = async {
        let Some(Incoming::Session(opening)) = connection.accept().await else {
            panic!("no session");
        };
        let asked = opening.accept().unwrap();
        let request = asked.next_request().await.unwrap();
        let (control, mut channel, _) = asked.into_parts();
        channel.write_all(out).await.unwrap();
        if let Some(status) = status {
            control.send_exit_status(status);
        }
        request
    };
    let client = async {
        session
            .open_session()
            .await
            .unwrap()
            .collect_output("quick")
            .await
    };
    let (output, request) = tokio::join!(client, server);
    request.reply.grant();
    output
}

#[tokio::test]
async fn a_program_is_quicker_than_the_answer_to_its_request() {
    let output = late_answer(b"out", Some(3)).await.unwrap();
    let exit = Some(Exit::Status(3));
    assert_eq!((&*output.stdout, output.exit), (&b"out"[..], exit));
    let output = late_answer(b"", Some(4)).await.unwrap();
    assert_eq!(output.exit, Some(Exit::Status(4)));
    let output = late_answer(b"out", None).await.unwrap();
    assert_eq!((&*output.stdout, output.exit), (&b"out"[..], None));
}

#[tokio::test]
async fn a_channel_that_closes_without_a_word_has_run_nothing() {
    late_answer(b"", None).await.unwrap_err();
}

/// Each end waits for space while the other does.
#[tokio::test]
async fn two_tasks_write_the_two_streams_of_a_program() {
    const MUCH: usize = 8 << 20;
    let (session, mut connection) = both(|_| {}).await;
    let server = async {
        let Some(Incoming::Session(opening)) = connection.accept().await else {
            panic!("no session");
        };
        let asked = opening.accept().unwrap();
        asked.next_request().await.unwrap().reply.grant();
        let (control, mut channel, mut stderr) = asked.into_parts();
        let out = tokio::spawn(async move {
            pour(&mut channel, MUCH, 1).await;
            channel
        });
        let err = tokio::spawn(async move {
            pour(&mut stderr, MUCH, 2).await;
            stderr
        });
        let ends = tokio::try_join!(out, err).unwrap();
        control.send_exit_status(0);
        drop(ends);
    };
    let client = async {
        session
            .open_session()
            .await
            .unwrap()
            .collect_output("loud")
            .await
    };
    let both = async { tokio::join!(client, server) };
    let (output, ()) = timeout(Duration::from_secs(60), both).await.unwrap();
    let output = output.unwrap();
    assert_eq!((output.stdout.len(), output.stderr.len()), (MUCH, MUCH));
}

#[tokio::test]
async fn much_goes_up_and_comes_down() {
    let session = pair(|_| {}, |_| {}).await;
    let program = session.open_session().await.unwrap();
    program.exec("echo").await.unwrap();
    let (control, channel, _) = program.into_parts();
    let (mut reader, mut writer) = channel.into_split();
    let up = async {
        let sum = pour(&mut writer, BULK, 1).await;
        writer.shutdown().await.unwrap();
        sum
    };
    let (sent, got) = tokio::join!(up, drain(&mut reader));
    assert_eq!(got, (BULK, sent));
    assert_eq!(control.wait_exit().await, Some(Exit::Status(0)));
}

#[tokio::test]
async fn keys_are_renewed_under_load() {
    for who in 0..2 {
        let small = Some(1 << 20);
        let session = pair(
            |client| client.transport.rekey_bytes = small.filter(|_| who == 0),
            |server| server.transport.rekey_bytes = small.filter(|_| who == 1),
        )
        .await;
        let program = session.open_session().await.unwrap();
        program.exec("echo").await.unwrap();
        let (mut reader, mut writer) = program.into_channel().into_split();
        let up = async {
            let sum = pour(&mut writer, BULK / 8, 1).await;
            writer.shutdown().await.unwrap();
            sum
        };
        let (sent, got) = tokio::join!(up, drain(&mut reader));
        assert_eq!(got, (BULK / 8, sent));
    }
}

#[tokio::test]
async fn connections_go_both_ways() {
    let session = pair(|_| {}, |_| {}).await;
    a_connection_goes_through(&session).await;

    let mut forwarded = session.forward_tcpip("localhost", 0).await.unwrap();
    let port = forwarded.port().unwrap();
    let far = async {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        socket.write_all(b"hello").await.unwrap();
        socket.shutdown().await.unwrap();
        let mut got = Vec::new();
        socket.read_to_end(&mut got).await.unwrap();
        got
    };
    let near = async {
        let opening = forwarded.accept().await.unwrap();
        assert_eq!(opening.originator().unwrap().0, "127.0.0.1");
        let mut channel = opening.accept().unwrap();
        let mut got = Vec::new();
        channel.read_to_end(&mut got).await.unwrap();
        channel.write_all(b"bye").await.unwrap();
        channel.shutdown().await.unwrap();
        got
    };
    let got = tokio::join!(far, near);
    assert_eq!(got, (b"bye".to_vec(), b"hello".to_vec()));
    drop(forwarded);
    // The server stops listening.
    let gone = async { while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    timeout(Duration::from_secs(10), gone).await.unwrap();
}

/// A policy that accepts any password.
struct Open;

impl AuthPolicy for Open {
    fn check_password<'a>(
        &'a self,
        _: &'a str,
        _: &'a Secret<String>,
    ) -> BoxFuture<'a, ServerAnswer> {
        Box::pin(std::future::ready(ServerAnswer::Accept))
    }
}

/// The padding that hides a password's length is not taken for the first compressed packet.
#[tokio::test]
async fn a_password_goes_before_compression() {
    let (mut settings, host) = settings();
    settings.auth.methods = vec![AuthMethod::Password];
    let mut config = config(host, Login::new("me").with_password("any"));
    config.transport.preferred.compression = vec![Compression::ZlibDelayed];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let far = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let entered = Server::accept(Box::new(Tcp::new(socket)), &settings, &Open).await;
        entered.unwrap().wait_closed().await
    });
    let session = Client::connect(dial(port).await, config).await.unwrap();
    session.ping().await.unwrap();
    session.disconnect("done");
    let end = far.await.unwrap().to_string();
    assert!(end.contains("done"), "{end}");
}

/// Returns a channel, and the connection at its other end.
async fn a_channel_to(session: &Session, target: &TcpListener) -> (Channel, TcpStream) {
    let port = target.local_addr().unwrap().port();
    let channel = session.open_direct_tcpip("127.0.0.1", port, Default::default());
    let (channel, accepted) = tokio::join!(channel, target.accept());
    (channel.unwrap(), accepted.unwrap().0)
}

/// A low-water mark on the socket holds bulk data back until it is worth a wakeup. With a second
/// channel it would hold back that one's small messages too.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_of_one_channel_holds_back_no_other() {
    use adit_net::watermark::{receive_mark, unsent_limit};
    use std::os::fd::AsFd;

    let (settings, host) = settings();
    let id = key();
    let port = serve(settings, id.public_key().clone()).await;
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let below = socket.as_fd().try_clone_to_owned().unwrap();
    let config = config(host, Login::new("me").with_key(id));
    let session = Client::connect(Box::new(Tcp::new(socket)), config)
        .await
        .unwrap();

    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = || a_channel_to(&session, &target);
    let (mut bulk, mut source) = open().await;
    let pouring =
        tokio::spawn(async move { while source.write_all(&[7; 1 << 18]).await.is_ok() {} });
    let mut buf = vec![0; 1 << 18];
    let mut marked = false;
    // On a very slow machine there is none.
    for _ in 0..4096 {
        bulk.read_exact(&mut buf).await.unwrap();
        marked = receive_mark(&below).unwrap() > 1;
        if marked {
            break;
        }
    }
    assert_eq!(unsent_limit(&below).unwrap(), 0, "for one channel");
    let (mut other, mut echo) = open().await;
    for number in 0..200u8 {
        bulk.read_exact(&mut buf).await.unwrap();
        echo.write_all(&[number]).await.unwrap();
        assert_eq!(other.read_u8().await.unwrap(), number);
        let mark = receive_mark(&below).unwrap();
        assert_eq!(
            mark, 1,
            "message {number}; one channel alone had a mark: {marked}"
        );
        assert!((1..1 << 20).contains(&unsent_limit(&below).unwrap()));
    }
    pouring.abort();
}

/// The amount of data that a server has sealed or passed to the kernel before it answers a request on
/// another channel.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_overtakes_what_is_not_sealed_yet() {
    // The receiver's buffer, so that the data that the server has sent is in its own queue.
    const ROOM: u32 = 128 << 10;
    // 0.8 to 1 MB were measured; it is more if the kernel's whole queue is filled.
    const MOST: usize = 2 << 20;
    const A_WHILE: Duration = Duration::from_millis(300);

    let (settings, host) = settings();
    let id = key();
    let port = serve(settings, id.public_key().clone()).await;
    let below = TcpSocket::new_v4().unwrap();
    below.set_recv_buffer_size(ROOM).unwrap();
    let below = below.connect(([127, 0, 0, 1], port).into()).await.unwrap();
    let (mut from_server, mut to_server) = below.into_split();
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = dial(between.local_addr().unwrap().port()).await;
    let (mut from_client, mut to_client) = between.accept().await.unwrap().0.into_split();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    });
    let (stop, mut stopped) = oneshot::channel::<()>();
    let flowing = tokio::spawn(async move {
        let mut buf = vec![0; 64 << 10];
        loop {
            let n = tokio::select! {
                n = from_server.read(&mut buf) => n.unwrap(),
                _ = &mut stopped => return (from_server, to_client),
            };
            to_client.write_all(&buf[..n]).await.unwrap();
        }
    });
    let config = config(host, Login::new("me").with_key(id));
    let session = Client::connect(near, config).await.unwrap();

    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = || a_channel_to(&session, &target);
    let came = Arc::new(AtomicU64::new(0));
    for _ in 0..4 {
        let (mut channel, mut source) = open().await;
        tasks.spawn(async move { while source.write_all(&[7; 1 << 18]).await.is_ok() {} });
        let came = came.clone();
        tasks.spawn(async move {
            let mut buf = vec![0; 1 << 18];
            while let Ok(n @ 1..) = channel.read(&mut buf).await {
                came.fetch_add(n as u64, Ordering::Relaxed);
            }
        });
    }
    let (mut asks, mut answers) = open().await;
    tasks.spawn(async move {
        while let Ok(word) = answers.read_u8().await {
            answers.write_u8(word).await.unwrap();
        }
    });
    // Buffers have grown by then.
    while came.load(Ordering::Relaxed) < 16 << 20 {
        sleep(Duration::from_millis(10)).await;
    }
    stop.send(()).unwrap();
    let (mut from_server, mut to_client) = flowing.await.unwrap();
    sleep(A_WHILE).await;
    asks.write_u8(9).await.unwrap();
    asks.flush().await.unwrap();
    sleep(A_WHILE).await;
    let (mut passed, mut buf) = (0, vec![0; 64 << 10]);
    loop {
        let n = from_server.read(&mut buf).await.unwrap();
        to_client.write_all(&buf[..n]).await.unwrap();
        passed += n;
        assert!(passed < MOST, "{passed} bytes before the answer");
        if let Ok(word) = timeout(Duration::from_millis(20), asks.read_u8()).await {
            assert_eq!(word.unwrap(), 9);
            break;
        }
    }
}
