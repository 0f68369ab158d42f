//! Receivers of events: ones that work, fail, hang, lose their answers, or are gone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adit_admin::subscription::TrustedRoots;
use adit_admin::webhook::{WebhookContext, WebhookHub, WebhookTiming, sign};
use adit_config::{Secret, WebhookEventKind, WebhookSettings};
use adit_engine::{ByteCounts, NameResolver, StoredUser, Usage, UserLimits, UserRegistry};
use adit_wire::{QuotaPeriod, UnixTime};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const SECRET: &str = "0123456789abcdef0123";
const LIMIT: Duration = Duration::from_secs(20);

/// A request that a receiver has read.
#[derive(Debug, Clone)]
struct Received {
    head: String,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines();
        let mut pairs = lines.filter_map(|line| line.split_once(": "));
        let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .unwrap_or_else(|| panic!("no {name}: {}", self.head))
            .1
    }

    fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The reaction of a receiver to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answer(u16),
    /// Reads the request, and closes the connection.
    LoseAnswer,
    /// Reads the request, and keeps the connection open.
    Hang,
}

/// A receiver that treats its first requests in some manners, and answers 200 from then on.
struct Receiver {
    at: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start(manners: &[Manner]) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), manners).await
    }

    async fn at(at: SocketAddr, manners: &[Manner]) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let at = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (requests, mut manners) = (received.clone(), manners.to_vec());
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let manner = match manners.is_empty() {
                    true => Manner::Answer(200),
                    false => manners.remove(0),
                };
                let Some(request) = read_request(&mut stream).await else {
                    continue;
                };
                requests.lock().unwrap().push(request);
                match manner {
                    Manner::Answer(status) => {
                        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                        let _ = stream.write_all(answer.as_bytes()).await;
                        let _ = stream.shutdown().await;
                    }
                    Manner::LoseAnswer => {}
                    Manner::Hang => kept.push(stream),
                }
            }
        });
        Self { at, received }
    }

    fn settings(&self, events: &[WebhookEventKind]) -> WebhookSettings {
        settings(&format!("http://{}/hook?key=s3cret", self.at), events)
    }

    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for at least this number of requests.
    async fn wait_for(&self, count: usize) -> Vec<Received> {
        let wait = async {
            while self.all().len() < count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let done = timeout(LIMIT, wait).await;
        assert!(done.is_ok(), "{} of {count} requests", self.all().len());
        self.all()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut request = Received {
        head,
        body: String::new(),
    };
    let len: usize = request.header("content-length").parse().unwrap();
    while bytes.len() < end + 4 + len {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    request.body = String::from_utf8(bytes[end + 4..].to_vec()).unwrap();
    Some(request)
}

fn settings(url: &str, events: &[WebhookEventKind]) -> WebhookSettings {
    WebhookSettings {
        url: Secret::from(url),
        secret: Secret::from(SECRET),
        events: events.to_vec(),
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-webhook-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn hub(folder: Option<&Folder>) -> WebhookHub {
    WebhookHub::new(WebhookContext {
        node: "node-a".to_owned(),
        folder: folder.map(|folder| folder.0.clone()),
        names: NameResolver::system(),
        roots: TrustedRoots::Machine,
        timing: WebhookTiming {
            request: Duration::from_millis(300),
            first_wait: Duration::from_millis(10),
            longest_wait: Duration::from_millis(40),
            watch: Duration::from_millis(10),
            ..WebhookTiming::default()
        },
    })
}

fn all_events() -> Vec<WebhookEventKind> {
    WebhookEventKind::all().collect()
}

#[tokio::test]
async fn events_are_signed_and_in_order() {
    let all = Receiver::start(&[]).await;
    let some = Receiver::start(&[]).await;
    let hub = hub(None);
    let set = [
        all.settings(&all_events()),
        some.settings(&[WebhookEventKind::UserRemoved]),
    ];
    hub.set_receivers(&set).unwrap();
    hub.emit(WebhookEventKind::UserAdded, &json!({"user": "anna"}));
    hub.emit(WebhookEventKind::UserRemoved, &json!({"user": "bob"}));
    let received = all.wait_for(2).await;
    let first = received[0].event();
    assert_eq!(
        (&first["type"], &first["node"], &first["data"]["user"]),
        (&json!("user.added"), &json!("node-a"), &json!("anna"))
    );
    assert_eq!(received[1].event()["type"], "user.removed");
    assert_eq!(some.wait_for(1).await.len(), 1);
    for request in &received {
        assert!(
            request.head.starts_with("POST /hook?key=s3cret HTTP/1.1"),
            "{}",
            request.head
        );
        assert_eq!(request.header("content-type"), "application/json");
        let event = request.event();
        assert_eq!(request.header("x-adit-event"), event["type"]);
        assert_eq!(request.header("x-adit-delivery"), event["id"]);
        let signature = request.header("x-adit-signature");
        let time = signature
            .strip_prefix("t=")
            .unwrap()
            .split(',')
            .next()
            .unwrap();
        let body = request.body.as_bytes();
        assert_eq!(
            signature,
            sign(SECRET.as_bytes(), time.parse().unwrap(), body)
        );
        assert!(!request.head.contains(SECRET) && !request.body.contains(SECRET));
    }
    assert_ne!(received[0].event()["id"], received[1].event()["id"]);
    assert!(!format!("{:?}", hub.counts()).contains("s3cret"));
}

/// An event is sent until it is confirmed, always with the same identifier, and the next one follows then.
#[tokio::test]
async fn an_event_is_repeated_until_it_is_confirmed() {
    let manners = [
        Manner::Answer(500),
        Manner::LoseAnswer,
        Manner::Hang,
        Manner::Answer(301),
    ];
    let receiver = Receiver::start(&manners).await;
    let hub = hub(None);
    hub.set_receivers(&[receiver.settings(&all_events())])
        .unwrap();
    hub.emit(WebhookEventKind::UserAdded, &json!({"user": "anna"}));
    hub.emit(WebhookEventKind::UserAdded, &json!({"user": "bob"}));
    let received = receiver.wait_for(6).await;
    let users: Vec<Value> = received
        .iter()
        .map(|it| it.event()["data"]["user"].clone())
        .collect();
    assert_eq!(users, ["anna", "anna", "anna", "anna", "anna", "bob"]);
    let ids = received[..5].iter().map(|it| it.event()["id"].clone());
    assert!(ids.clone().all(|id| id == received[0].event()["id"]));
    timeout(LIMIT, async {
        while hub.counts()[0].queued > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    let counts = &hub.counts()[0];
    assert_eq!((counts.delivered, counts.failed, counts.dropped), (2, 4, 0));
}

/// A receiver that is gone, and one that hangs, delay nothing of another.
#[tokio::test]
async fn a_dead_receiver_affects_no_other() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone_at = gone.local_addr().unwrap();
    drop(gone);
    let hangs = Receiver::start(&[Manner::Hang; 1000]).await;
    let works = Receiver::start(&[]).await;
    let hub = hub(None);
    hub.set_receivers(&[
        settings(&format!("http://{gone_at}/"), &all_events()),
        hangs.settings(&all_events()),
        works.settings(&all_events()),
    ])
    .unwrap();
    for n in 0..50 {
        hub.emit(WebhookEventKind::UserAdded, &json!({ "user": n }));
    }
    let received = works.wait_for(50).await;
    let users: Vec<Value> = received
        .iter()
        .map(|it| it.event()["data"]["user"].clone())
        .collect();
    assert_eq!(users, (0..50).map(Value::from).collect::<Vec<_>>());
    let counts = hub.counts();
    assert_eq!((counts[0].queued, counts[1].queued), (50, 50));
    assert!(counts[0].delivered == 0 && counts[1].delivered == 0);
}

#[tokio::test]
async fn events_outlive_the_process() {
    let folder = Folder::new();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = gone.local_addr().unwrap();
    drop(gone);
    let set = [settings(&format!("http://{at}/"), &all_events())];
    let first = hub(Some(&folder));
    first.set_receivers(&set).unwrap();
    first.emit(WebhookEventKind::UserAdded, &json!({"user": "anna"}));
    first.emit(WebhookEventKind::UserAdded, &json!({"user": "bob"}));
    first.close().await;
    // Nothing is taken any more: another process has the queue.
    first.emit(WebhookEventKind::UserAdded, &json!({"user": "eve"}));
    drop(first);
    let stored = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(stored, 1);

    let second = hub(Some(&folder));
    second.set_receivers(&set).unwrap();
    let receiver = Receiver::at(at, &[]).await;
    let received = receiver.wait_for(2).await;
    let users: Vec<Value> = received
        .iter()
        .map(|it| it.event()["data"]["user"].clone())
        .collect();
    assert_eq!(users, ["anna", "bob"]);
    second.close().await;
    drop(second);
    let third = hub(Some(&folder));
    third.set_receivers(&set).unwrap();
    assert_eq!(third.counts()[0].queued, 0);

    // A process that goes on after all delivers what it had.
    third.close().await;
    third.reopen(Arc::new(UserRegistry::default()));
    third.emit(WebhookEventKind::UserAdded, &json!({"user": "carol"}));
    let received = receiver.wait_for(3).await;
    assert_eq!(received[2].event()["data"]["user"], "carol");
}

/// A change of settings keeps the events of a receiver.
#[tokio::test]
async fn settings_change_while_events_wait() {
    let folder = Folder::new();
    let receiver = Receiver::start(&[Manner::Answer(500); 3]).await;
    let hub = hub(Some(&folder));
    hub.set_receivers(&[receiver.settings(&all_events())])
        .unwrap();
    hub.emit(WebhookEventKind::UserAdded, &json!({"user": "anna"}));
    hub.set_receivers(&[receiver.settings(&[WebhookEventKind::UserAdded])])
        .unwrap();
    let received = receiver.wait_for(4).await;
    assert_eq!(received[3].event()["data"]["user"], "anna");
    hub.set_receivers(&[]).unwrap();
    hub.emit(WebhookEventKind::UserAdded, &json!({"user": "bob"}));
    assert_eq!(hub.counts(), []);
    let why = hub.set_receivers(&[settings("http://192.0.2.1/", &all_events())]);
    assert!(why.unwrap_err().to_string().contains("must be https"));
}

fn stored(name: &str, limits: UserLimits, used: u64) -> StoredUser {
    StoredUser {
        name: name.to_owned(),
        limits,
        period_start: UnixTime(0),
        before_period: ByteCounts::default(),
        total: Usage {
            down: used,
            ..Usage::default()
        },
    }
}

#[tokio::test]
async fn users_who_are_blocked_are_reported_once() {
    let folder = Folder::new();
    let receiver = Receiver::start(&[]).await;
    let set = [receiver.settings(&all_events())];
    let registry = Arc::new(UserRegistry::default());
    let quota = UserLimits {
        quota: Some(10),
        period: QuotaPeriod::Total,
        ..UserLimits::default()
    };
    let expired = UserLimits {
        expires: Some(UnixTime(5)),
        ..UserLimits::default()
    };
    // Blocked before there were receivers: no news.
    registry.restore(&[stored("old", expired, 0)]);
    let first = hub(Some(&folder));
    first.set_receivers(&set).unwrap();
    first.watch_users(registry.clone());
    sleep(Duration::from_millis(100)).await;
    registry.restore(&[stored("anna", quota, 12)]);
    registry.set_limits("bob", expired);
    let mut received = receiver.wait_for(2).await;
    received.sort_by_key(|it| it.event()["data"]["user"].to_string());
    let (anna, bob) = (received[0].event(), received[1].event());
    assert_eq!(anna["type"], "user.quota");
    assert_eq!(
        anna["data"],
        json!({"user": "anna", "quota": 10, "period": "total", "used": 12, "expires": null})
    );
    assert_eq!(
        (&bob["type"], &bob["data"]["expires"]),
        (&json!("user.expired"), &json!(5))
    );
    sleep(Duration::from_millis(100)).await;
    first.close().await;
    drop(first);

    // A restart repeats nothing, and misses nothing.
    registry.set_limits("carol", expired);
    let second = hub(Some(&folder));
    second.set_receivers(&set).unwrap();
    second.watch_users(registry.clone());
    let received = receiver.wait_for(3).await;
    assert_eq!(received[2].event()["data"]["user"], "carol");
    // Allowed again, and blocked again.
    registry.set_limits(
        "anna",
        UserLimits {
            quota: Some(100),
            ..quota
        },
    );
    sleep(Duration::from_millis(100)).await;
    registry.set_limits("anna", quota);
    let received = receiver.wait_for(4).await;
    assert_eq!(received[3].event()["data"]["user"], "anna");
    sleep(Duration::from_millis(100)).await;
    assert_eq!(receiver.all().len(), 4);
}
