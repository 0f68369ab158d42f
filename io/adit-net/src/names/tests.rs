//! Tests of the whole resolver with a server whose behaviour depends on the name.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;

use super::*;

const ANSWER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

type Asked = Arc<Mutex<HashMap<String, usize>>>;

/// Delay of answers to names that begin with "late".
const LATE: Duration = Duration::from_millis(1500);

/// A resolver with its own files, and the server they name. The first label of a name selects the server's
/// behaviour.
struct World {
    resolver: Arc<Resolver>,
    asked: Asked,
    folder: PathBuf,
}

impl World {
    async fn new(resolv_conf: &str) -> Self {
        // A port that is free for both protocols.
        let (udp, tcp, at) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let at = udp.local_addr().unwrap();
            if let Ok(tcp) = TcpListener::bind(at).await {
                break (udp, tcp, at);
            }
        };
        let asked = Asked::default();
        tokio::spawn(answer_datagrams(udp, asked.clone()));
        tokio::spawn(answer_streams(tcp, asked.clone()));
        let folder = std::env::temp_dir().join(format!("adit-names-{}", at.port()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = ResolverFiles {
            resolv_conf: folder.join("resolv.conf"),
            hosts: folder.join("hosts"),
            nsswitch: folder.join("nsswitch.conf"),
            port: at.port(),
        };
        std::fs::write(&files.resolv_conf, resolv_conf).unwrap();
        Self {
            resolver: Arc::new(Resolver::new(files)),
            asked,
            folder,
        }
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.join(name), content).unwrap();
    }

    async fn ask(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = self.resolver.look_up(name, client(1)).await?;
        Ok(found.iter().map(SocketAddr::ip).collect())
    }

    async fn refusal(&self, name: &str) -> String {
        let why = self.ask(name).await.unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::HostUnreachable);
        why.to_string()
    }

    /// Returns how often the server was queried for the address of a name.
    fn asked(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.get(name).copied().unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn client(user: u64) -> LookupOrigin {
    let source = [192, 0, 2, 1].into();
    LookupOrigin::Client { user, source }
}

async fn answer_datagrams(socket: UdpSocket, asked: Asked) {
    let mut room = [0; 2048];
    let socket = Arc::new(socket);
    while let Ok((len, from)) = socket.recv_from(&mut room).await {
        let answers = answers(&room[..len], &asked, false);
        let wait = match &room[12..len] {
            [4, b'l', b'a', b't', b'e', ..] => LATE,
            _ => Duration::ZERO,
        };
        let socket = socket.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            for answer in answers {
                // The client may have gone.
                let _ = socket.send_to(&answer, from).await;
            }
        });
    }
}

async fn answer_streams(listener: TcpListener, asked: Asked) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut bytes = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut bytes).await.unwrap();
        for answer in answers(&bytes, &asked, true) {
            stream
                .write_u16(answer.len().try_into().unwrap())
                .await
                .unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    }
}

fn answers(bytes: &[u8], asked: &Asked, by_tcp: bool) -> Vec<Vec<u8>> {
    let query = Message::from_vec(bytes).unwrap();
    let question = query.queries[0].clone();
    let (name, wants_v4) = (
        question.name().clone(),
        question.query_type() == RecordType::A,
    );
    if wants_v4 {
        *asked.lock().unwrap().entry(name.to_ascii()).or_default() += 1;
    }
    let mut answer = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
    answer.add_query(question);
    let address = |name: &Name| Record::from_rdata(name.clone(), 60, RData::A(A(ANSWER)));
    let alias = |from: &Name, to: &str| {
        let to = CNAME(Name::from_ascii(to).unwrap());
        Record::from_rdata(from.clone(), 60, RData::CNAME(to))
    };
    match name.to_ascii().split('.').next().unwrap() {
        label if label.starts_with("dead") => return Vec::new(),
        "none" => {
            let root = Name::root();
            let soa = SOA::new(root.clone(), root.clone(), 1, 2, 3, 4, 600);
            answer.add_authority(Record::from_rdata(root, 600, RData::SOA(soa)));
            answer.metadata.response_code = ResponseCode::NXDomain;
        }
        "broken" => answer.metadata.response_code = ResponseCode::ServFail,
        "big" if !by_tcp => answer.metadata.truncation = true,
        "silent6" if !wants_v4 => return Vec::new(),
        "alias" if wants_v4 => {
            answer.add_answer(alias(&name, "b.alias."));
            answer.add_answer(address(&Name::from_ascii("b.alias.").unwrap()));
        }
        "loop" => {
            answer.add_answer(alias(&name, "b.loop."));
            answer.add_answer(alias(
                &Name::from_ascii("b.loop.").unwrap(),
                &name.to_ascii(),
            ));
        }
        "forged" => {
            // Noise, another ID, another question, then the answer.
            let good = {
                answer.add_answer(address(&name));
                answer.to_vec().unwrap()
            };
            let mut other = good.clone();
            other[0] ^= 1;
            answer.queries[0].set_name(Name::from_ascii("x.").unwrap());
            let cut = good[..good.len() - 3].to_vec();
            return vec![vec![0; 3], other, answer.to_vec().unwrap(), cut, good];
        }
        _ if wants_v4 => {
            answer.add_answer(address(&name));
        }
        _ => {}
    }
    vec![answer.to_vec().unwrap()]
}

#[tokio::test]
async fn one_name_is_asked_for_once_and_kept() {
    let world = World::new("nameserver 127.0.0.1").await;
    let all = (0..50).map(|user| {
        let resolver = world.resolver.clone();
        tokio::spawn(async move { resolver.look_up("Good.Example", client(user)).await })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap().unwrap()[0].ip(), ANSWER);
    }
    world.ask("good.example").await.unwrap();
    assert_eq!(world.asked("good.example."), 1);
    for _ in 0..3 {
        let why = world.refusal("none.example").await;
        assert!(why.contains("NXDOMAIN"), "{why}");
    }
    assert_eq!(
        world.asked("none.example."),
        1,
        "that there is nothing is kept as well"
    );
    assert_eq!(world.resolver.limiter.running(), 0);
}

#[tokio::test]
async fn dead_names_of_one_party_stop_nobody_else() {
    let world = World::new("nameserver 127.0.0.1").await;
    let mut greedy = Vec::new();
    for n in 0..400 {
        let resolver = world.resolver.clone();
        greedy.push(tokio::spawn(async move {
            resolver
                .look_up(&format!("dead{n}.example"), client(7))
                .await
        }));
    }
    // 256 may wait; the others are refused immediately and not at their deadline.
    let refused = async {
        let is_over = tokio::task::JoinHandle::is_finished;
        while greedy.iter().filter(|lookup| is_over(lookup)).count() < 144 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(4), refused).await;
    in_time.expect("too many are refused immediately");
    for n in 0..100 {
        let name = format!("good{n}.example");
        let good = timeout(Duration::from_secs(2), world.ask(&name)).await;
        assert_eq!(good.expect("waits for another origin").unwrap(), [ANSWER]);
    }
    let running = world.resolver.limiter.running();
    assert_eq!(running, 64, "of one origin");
    // Dropping a lookup frees its slot immediately.
    greedy.iter().for_each(tokio::task::JoinHandle::abort);
    let free = async {
        while world.resolver.limiter.running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(2), free)
        .await
        .expect("a place is kept");
    assert!(world.resolver.lock_state().running.is_empty());
}

#[tokio::test]
async fn files_that_change_are_read_again() {
    let world = World::new("nameserver 127.0.0.1\nsearch one.example").await;
    world.write("hosts", "192.0.2.9 here\n");
    assert_eq!(
        world.ask("HERE").await.unwrap(),
        [IpAddr::from([192, 0, 2, 9])]
    );
    assert_eq!(world.ask("host").await.unwrap(), [ANSWER]);
    assert_eq!(
        (world.asked("host.one.example."), world.asked("host.")),
        (1, 0)
    );
    world.write("hosts", "192.0.2.10 here host\n");
    for name in ["here", "host"] {
        assert_eq!(
            world.ask(name).await.unwrap(),
            [IpAddr::from([192, 0, 2, 10])],
            "{name}"
        );
    }
    world.write("hosts", "");
    world.write(
        "resolv.conf",
        "nameserver 127.0.0.1\nsearch second.example\n",
    );
    assert_eq!(world.ask("host").await.unwrap(), [ANSWER]);
    assert_eq!(world.asked("host.second.example."), 1);
    // Search domains are tried in order; the position of the bare name depends on its dots.
    world.write(
        "resolv.conf",
        "nameserver 127.0.0.1\nsearch x.none second.example\noptions ndots:2\n",
    );
    assert_eq!(
        world.ask("none").await.unwrap_err().kind(),
        io::ErrorKind::HostUnreachable
    );
    assert_eq!(
        (world.asked("none.second.example."), world.asked("none.")),
        (1, 1)
    );
}

#[tokio::test]
async fn names_of_the_machine_itself_leave_it_never() {
    let world = World::new("nameserver 127.0.0.1\nsearch one.example").await;
    for name in ["localhost", "LOCALHOST", "a.localhost", "localhost."] {
        let found = world.ask(name).await.unwrap();
        assert!(
            found.iter().all(IpAddr::is_loopback) && !found.is_empty(),
            "{name}: {found:?}"
        );
    }
    for address in ["127.1", "0x7f000001", "2130706433", "127.0.0.1"] {
        assert_eq!(
            world.ask(address).await.unwrap(),
            [IpAddr::from([127, 0, 0, 1])],
            "{address}"
        );
    }
    assert!(world.asked.lock().unwrap().is_empty(), "a server was asked");
}

#[tokio::test]
async fn strange_answers_are_understood_or_refused() {
    let world = World::new("nameserver 127.0.0.1\noptions edns0").await;
    for name in [
        "big.example",
        "alias.example",
        "forged.example",
        "silent6.example",
    ] {
        assert_eq!(world.ask(name).await.unwrap(), [ANSWER], "{name}");
    }
    for (name, says) in [
        ("loop.example", "form a loop"),
        ("broken.example", "SERVFAIL"),
        ("none.example", "NXDOMAIN"),
        ("a b", "not a host name"),
    ] {
        let why = world.refusal(name).await;
        assert!(why.contains(says), "{name}: {why}");
    }
}

#[tokio::test]
async fn failures_are_kept_for_a_moment() {
    let world = World::new("nameserver 127.0.0.1\noptions timeout:1 attempts:1").await;
    for name in ["broken.example", "dead.example"] {
        let first = world.refusal(name).await;
        let asked = world.asked(&format!("{name}."));
        assert!(asked > 0);
        let begin = Instant::now();
        for _ in 0..50 {
            assert_eq!(world.refusal(name).await, first);
        }
        // A pause has at least a second.
        let pauses = usize::try_from(begin.elapsed().as_secs()).unwrap();
        let now = world.asked(&format!("{name}."));
        assert!(now <= asked * (1 + pauses), "{name}: {now} queries");
    }
    tokio::time::sleep(Duration::from_millis(1100)).await;
    world.refusal("broken.example").await;
    assert!(world.asked("broken.example.") > 1);
}

#[tokio::test]
async fn a_silent_server_is_named_and_the_next_one_asked() {
    let world = World::new("nameserver 127.0.0.1\noptions timeout:1 attempts:1").await;
    let why = world.refusal("dead.example").await;
    let server = format!("no answer from 127.0.0.1:{}", world.resolver.files.port);
    assert!(why.contains(&server), "{why}");
    // No process listens at the first server: the system reports an error, or nothing arrives.
    world.write(
        "resolv.conf",
        "nameserver 127.0.0.2\nnameserver 127.0.0.1\n",
    );
    assert_eq!(world.ask("good.example").await.unwrap(), [ANSWER]);
}

#[tokio::test]
async fn an_error_names_a_configuration_without_servers() {
    let world = World::new("search example").await;
    let why = world.refusal("broken.example").await;
    assert!(why.ends_with("; resolv.conf names no server"), "{why}");
    let file = &world.resolver.files.resolv_conf;
    std::fs::remove_file(file).unwrap();
    let why = world.refusal("broken.example").await;
    let end = format!("; {} is missing", file.display());
    assert!(why.ends_with(&end), "{why}");
}

/// The query is sent again after a second; the answer to the first one arrives later.
#[tokio::test]
async fn a_late_answer_of_the_only_server_counts() {
    let world = World::new("nameserver 127.0.0.1\noptions timeout:1 attempts:2").await;
    assert_eq!(world.ask("late.example").await.unwrap(), [ANSWER]);
    assert_eq!(world.asked("late.example."), 2);
    // A server that does not answer is not queried for longer than the configuration says: 2 s.
    let began = Instant::now();
    world.refusal("dead.example").await;
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn names_of_other_sources_are_asked_of_the_c_library() {
    let world = World::new("nameserver 127.0.0.1").await;
    world.write("nsswitch.conf", "hosts: files nis dns\n");
    // Whatever the answer, the configured server was not queried.
    let _ = timeout(Duration::from_secs(8), world.ask("good.invalid")).await;
    assert!(world.asked.lock().unwrap().is_empty());
}
