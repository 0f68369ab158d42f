fn p(words: &[&str]) {
    let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
    println!("=== {words:?}");
    match adit_config::Plan::from_words(&words) {
        Ok(plan) => {
            for w in &plan.warnings { println!("{w}"); }
            println!("{}", adit_config::explain(&plan));
        }
        Err(ps) => for p in ps { println!("{p}\n"); },
    }
}
#[test]
fn look() {
    p(&["mixed://:1080"]);
    p(&["mixed://127.0.0.1:1080?upd=true&mod=1"]);
    p(&["mixed://127.0.0.1:1080?idle=10&udp=maybe", "ss://2022-blake3-aes-128-gcm:AAEC@h:8388", "sock5://u:pw@h:1"]);
    p(&["mixed://127.0.0.1:1080", "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw==@h.example:8388", "socks5://u:p@g:1080?udp=false"]);
    p(&["mixed://127.0.0.1:1080", "ss://YWVzLTEyOC1nY206dGVzdA@192.168.100.1:8888?plugin=a%3Bb#E"]);
    p(&["ss://none:x@:8388", "http://h:1"]);
    p(&["tcp+udp://:53/8.8.8.8:53?first_wait=0ms", "http://h:1"]);
    p(&["tcp://:53/8.8.8.8:53"]);
    p(&["socks5://u:pa?ss@h:1080"]);
    p(&["http://u:p@:8080", "direct://"]);
    p(&["socks4a://h:1"]);
    p(&["ss+kcp://h:1", "ssh://me@b"]);
    p(&["ss://h:8388"]);
    p(&["ss://2022-blake3-aes-129-gcm:AAECAwQFBgcICQoLDA0ODw==@:8388?prefix=a&preferr=v4"]);
    p(&[]);
    p(&["mixed:1080"]);
    p(&["socks5://:1080?users=@/nonexistent"]);
    let t = r#"
[route.home]
listen = ["mixed://127.0.0.1:1080", "http://127.0.0.1:1080"]
via    = [["ss://aes-128-gcm:pw@a:8388", "direct://"], "socks5://c:1080"]
rules  = [{ match = ["*.lan", "10.0.0.0/8"], via = ["direct://"] }, {match="*", via="reject://"}, {match="a", via=[]}]
listenport = 8388

[route.x]
via = 3
rules = [{ mtch = "b" , via=["ss://aes-128-gcm:p\u0041w@a:8x"]}]
[rout]
"#;
    match adit_config::Plan::from_toml(t, "adit.toml") {
        Ok(plan) => println!("{}", adit_config::explain(&plan)),
        Err(ps) => for p in ps { println!("{p}\n"); },
    }
    match adit_config::Plan::from_toml(&t.replace("listenport = 8388","").replace("8x","8").replace("http://127.0.0.1:1080","http://127.0.0.1:1081").split("[route.x]").next().unwrap(), "adit.toml") {
        Ok(plan) => {for w in &plan.warnings { println!("{w}"); } println!("{}", adit_config::explain(&plan))},
        Err(ps) => for p in ps { println!("{p}\n"); },
    }
    match adit_config::Plan::from_toml("a = = 3\n[route.a\nx=\"", "adit.toml") {
        Ok(plan) => println!("{}", adit_config::explain(&plan)),
        Err(ps) => for p in ps { println!("{p}\n"); },
    }
    println!("{}", adit_config::help("ss").unwrap());
    println!("{}", adit_config::overview());
}
