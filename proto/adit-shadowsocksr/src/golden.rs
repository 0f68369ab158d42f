//! The golden vectors, for unit tests.

mod again;
mod tcp;
mod udp;

use adit_wire::UnixTime;
use serde_json::Value;

use crate::{ClientParam, ProtocolClient, ProtocolKind, ProtocolServer, ReplayStore, ServerParam};

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../vectors/", $name, ".json"))
    };
}

/// Returns the entries of one file.
pub(crate) fn vectors(name: &str) -> Vec<Value> {
    let text = match name {
        "fast_mac" => file!("fast_mac"),
        "plains" => file!("plains"),
        "tcp_verify" => file!("tcp_verify"),
        "tcp_sha1" => file!("tcp_sha1"),
        "tcp_aes128" => file!("tcp_aes128"),
        "tcp_chain" => file!("tcp_chain"),
        "udp" => file!("udp"),
        "full_stack" => file!("full_stack"),
        other => panic!("no vectors named {other}"),
    };
    let all: Value = serde_json::from_str(text).unwrap();
    all.as_array().unwrap().clone()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let digit = |c: u8| u8::try_from((c as char).to_digit(16).unwrap()).unwrap();
    let pairs = text(value).as_bytes().chunks(2);
    pairs.map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
}

/// One exchange over TCP.
pub(crate) struct Exchange {
    pub(crate) kind: ProtocolKind,
    pub(crate) key: Vec<u8>,
    pub(crate) iv: Vec<u8>,
    pub(crate) client_param: String,
    pub(crate) server_param: String,
    pub(crate) now: UnixTime,
    pub(crate) requests: Vec<Write>,
    pub(crate) answers: Vec<Write>,
}

/// The bytes of one write by one side.
pub(crate) struct Write {
    pub(crate) plain: Vec<u8>,
    pub(crate) wire: Vec<u8>,
}

impl Exchange {
    pub(crate) fn all() -> Vec<Self> {
        let plains = vectors("plains");
        let files = ["tcp_verify", "tcp_sha1", "tcp_aes128", "tcp_chain"];
        let all: Vec<Self> = files
            .iter()
            .flat_map(|file| vectors(file))
            .map(|case| Self::read(&case, &plains))
            .collect();
        assert_eq!(all.len(), 24);
        all
    }

    fn read(case: &Value, plains: &[Value]) -> Self {
        let writes = |dir: &str| {
            let steps = case["steps"].as_array().unwrap().iter();
            let steps = steps.filter(|step| step["dir"] == dir);
            let plain = |step: &Value| usize::try_from(step["plain"].as_u64().unwrap()).unwrap();
            steps
                .map(|step| Write {
                    plain: hex(&plains[plain(step)]),
                    wire: hex(&step["wire"]),
                })
                .collect()
        };
        Self {
            kind: text(&case["name"]).parse().unwrap(),
            key: hex(&case["key"]),
            iv: hex(&case["client_iv"]),
            client_param: text(&case["client_protocol_param"]).to_owned(),
            server_param: text(&case["server_protocol_param"]).to_owned(),
            now: UnixTime(case["time"].as_u64().unwrap()),
            requests: writes("c2s"),
            answers: writes("s2c"),
        }
    }

    pub(crate) fn client(&self) -> ProtocolClient {
        let param = ClientParam::parse(self.kind, &self.client_param).unwrap();
        ProtocolClient::new(self.kind, &self.key, param, 0)
    }

    pub(crate) fn server(&self) -> std::sync::Arc<ProtocolServer> {
        let param = ServerParam::parse(self.kind, &self.server_param).unwrap();
        let replays = std::sync::Arc::new(ReplayStore::new([7; 16], self.now));
        ProtocolServer::new(self.kind.into(), &self.key, &param, 0, replays).into()
    }
}

pub(crate) fn wires(writes: &[Write]) -> Vec<u8> {
    writes.iter().flat_map(|w| w.wire.clone()).collect()
}

pub(crate) fn plains(writes: &[Write]) -> Vec<u8> {
    writes.iter().flat_map(|w| w.plain.clone()).collect()
}
