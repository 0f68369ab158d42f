//! shadowsocks-go.

use adit_config::text::MemorySources;
use adit_config::{Condition, Stage};
use adit_convert::Format;

use crate::conversion::{body, convert, convert_as, notes, plan, problems};

#[test]
fn a_server_with_users_reads_its_store() {
    let text = r#"{"servers":[{"name":"ss 2022","protocol":"2022-blake3-aes-128-gcm",
  "tcpListeners":[{"network":"tcp","address":":20220","fastOpen":true}],
  "udpListeners":[{"network":"udp","address":":20220","natTimeout":"5m0s"}],
  "mtu":1500,"psk":"AAECAwQFBgcICQoLDA0ODw==","uPSKStorePath":"upsks.json",
  "rejectPolicy":"ForceReset"}],
 "clients":[{"name":"direct","protocol":"direct","enableTCP":true,"enableUDP":true,"mtu":1500}]}"#;
    let store = r#"{"alice":"EBESExQVFhcYGRobHB0eHw==","a.b":"ICEiIyQlJicoKSorLC0uLw=="}"#;
    let folder = MemorySources::default().with_file("etc/upsks.json", store);
    let converted = convert_as(text, None, &folder).unwrap();
    assert_eq!(converted.format, Format::Go);
    assert_eq!(
        body(&converted),
        "\
[route.ss-2022]
listen = [\"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@:20220/?reject=reset&udp_idle=5m\"]

[route.ss-2022.users]
alice = \"EBESExQVFhcYGRobHB0eHw==\"
\"a.b\" = \"ICEiIyQlJicoKSorLC0uLw==\"
"
    );
    assert!(
        notes(&converted)
            .join("\n")
            .contains("servers[0].tcpListeners[0].fastOpen")
    );
    for store in ["{}", "[]", "{\"a\":1}", "{"] {
        let folder = MemorySources::default().with_file("etc/upsks.json", store);
        problems(convert_as(text, None, &folder));
    }
    let absent = problems(convert_as(text, None, &MemorySources::default()));
    assert!(
        absent.contains("`servers[0].uPSKStorePath`: cannot read"),
        "{absent}"
    );
}

#[test]
fn a_client_with_a_router_becomes_routes() {
    let converted = convert(
        r#"{"servers":[
  {"name":"socks","protocol":"socks5","listen":"127.0.0.1:1080","enableTCP":true,"enableUDP":true,"mtu":1500},
  {"name":"web","protocol":"http","tcpListeners":[{"network":"tcp","address":"[::1]:8080"}]},
  {"name":"dns","protocol":"direct","listen":"127.0.0.1:53","enableTCP":true,"enableUDP":true,
   "tunnelRemoteAddress":"9.9.9.9:53","natTimeoutSec":60},
  {"name":"tp","protocol":"tproxy","listen":"[::1]:1","enableTCP":true}],
 "clients":[
  {"name":"ss","protocol":"2022-blake3-aes-128-gcm","endpoint":"a.example:20220","enableTCP":true,"enableUDP":true,
   "psk":"AAECAwQFBgcICQoLDA0ODw==","mtu":1500},
  {"name":"out","protocol":"direct","enableTCP":true,"enableUDP":true},
  {"name":"up","protocol":"socks5","endpoint":"[2001:db8::1]:1080","enableTCP":true,
   "socks5":{"enableUserPassAuth":true,"username":"me","password":"pass"}}],
 "router":{"defaultTCPClientName":"ss","defaultUDPClientName":"ss","routes":[
  {"name":"lan","toDomains":["nas.lan"],"toPrefixes":["10.0.0.0/8"],"client":"out"},
  {"name":"mail","toPorts":[25],"toPortRanges":"6000-6063","client":"reject"},
  {"name":"both","toPorts":[80],"toDomains":["x"],"client":"out"},
  {"name":"country","toGeoIPCountries":["XX"],"client":"out"},
  {"name":"web","fromServers":["web"],"client":"up"}]},
 "stats":{"enabled":true}}"#,
    );
    assert_eq!(
        body(&converted),
        "\
[route.socks]
listen = [\"socks5://127.0.0.1:1080\"]
via = [\"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@a.example:20220\"]
rules = [
  { match = [\"nas.lan\", \"10.0.0.0/8\"], via = [\"direct://\"] },
  { match = [\":25\", \":6000-6063\"], via = [\"reject://\"] },
]

[route.web]
listen = [\"http://[::1]:8080\"]
via = [\"socks5://me:pass@[2001:db8::1]:1080?udp=false\"]
rules = [
  { match = [\"nas.lan\", \"10.0.0.0/8\"], via = [\"direct://\"] },
  { match = [\":25\", \":6000-6063\"], via = [\"reject://\"] },
]

[route.dns]
listen = [\"tcp+udp://127.0.0.1:53/9.9.9.9:53?udp_idle=1m\"]
via = [\"ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@a.example:20220\"]
rules = [
  { match = [\"nas.lan\", \"10.0.0.0/8\"], via = [\"direct://\"] },
  { match = [\":25\", \":6000-6063\"], via = [\"reject://\"] },
]
"
    );
    let notes = notes(&converted).join("\n");
    for said in [
        "`router.routes[2]`: rules do not know ports together",
        "`router.routes[3]`: rules do not know `toGeoIPCountries`",
        "`servers[3]`: protocol `tproxy`",
        "`stats`: has no equivalent",
    ] {
        assert!(notes.contains(said), "{said}\n{notes}");
    }
    let plan = plan(&converted);
    assert_eq!(plan.routes.len(), 3);
    assert!(matches!(&plan.routes[0].via.stages[..], [Stage::Single(_)]));
    assert_eq!(
        plan.routes[0].rules[1].matches[0],
        Condition::Ports(25..=25).into()
    );
}

#[test]
fn identity_keys_are_joined() {
    let converted = convert(
        r#"{"servers":[{"name":"t","protocol":"direct","listen":"127.0.0.1:1","enableTCP":true,"tunnelRemoteAddress":"a.example:2"}],
 "clients":[{"name":"ss","protocol":"2022-blake3-aes-128-gcm","endpoint":"127.0.0.1:3","enableTCP":true,
  "psk":"UPSK","iPSKs":["I1","I2"]}]}"#,
    );
    assert!(
        body(&converted).contains("2022-blake3-aes-128-gcm:I1%3AI2%3AUPSK@127.0.0.1:3/?udp=false")
    );
    assert!(body(&converted).contains("listen = [\"tcp://127.0.0.1:1/a.example:2\"]"));
}

#[test]
fn no_default_refuses_as_before() {
    let two = r#"{"servers":[{"name":"s","protocol":"socks5","listen":"127.0.0.1:1","enableTCP":true}],
 "clients":[{"name":"a","protocol":"direct","enableTCP":true},{"name":"b","protocol":"direct","enableTCP":true}]ROUTER}"#;
    let converted = convert(&two.replace("ROUTER", ""));
    assert!(
        body(&converted).contains("via = [\"reject://\"]"),
        "{}",
        body(&converted)
    );
    plan(&converted);
    let router = r#","router":{"defaultTCPClientName":"c"}"#;
    let said = problems(convert_as(
        &two.replace("ROUTER", router),
        None,
        &MemorySources::default(),
    ));
    assert!(
        said.contains("`router.defaultTCPClientName` names `c`"),
        "{said}"
    );
}

#[test]
fn proxies_keep_their_users_and_are_never_without_tls_by_mistake() {
    let with = |more: &str| {
        format!(
            r#"{{"servers":[{{"name":"s","protocol":"http","listen":":8080","enableTCP":true,"http":{{{more}}}}}],
 "clients":[{{"name":"a","protocol":"direct","enableTCP":true}}]}}"#
        )
    };
    let users = r#""enableBasicAuth":true,"users":[{"username":"me","password":"p"}]"#;
    let converted = convert(&with(users));
    assert!(
        body(&converted).contains("listen = [\"http://me:p@:8080\"]"),
        "{}",
        body(&converted)
    );
    plan(&converted);
    let tls = with(r#""enableTLS":true"#);
    let said = problems(convert_as(&tls, None, &MemorySources::default()));
    assert!(said.contains("nothing in"), "{said}");
    let open = convert(&with(""));
    assert!(body(&open).contains("http://:8080?allow_open_proxy=true"));
    plan(&open);
}
