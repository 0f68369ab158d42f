//! The machine's resolver configuration: `resolv.conf`, `hosts`, `nsswitch.conf`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use adit_dns::check_name;
use adit_wire::usize_from;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use resolv_conf::ScopedIp;

use super::hosts::{self, HostsFile};
use super::platform;

/// Maximum length read of `resolv.conf` and `nsswitch.conf`, in bytes.
const MAX_LEN: u64 = 64 << 10;
/// Maximum number of servers, as in other resolvers.
const MAX_SERVERS: usize = 3;
/// Maximum number of search domains; other resolvers use 6 or have no limit.
const MAX_SEARCH: usize = 16;

/// Paths of the configuration files, and the port of the servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResolverFiles {
    /// Servers and search domains.
    pub resolv_conf: PathBuf,
    /// Names that are not looked up on a server.
    pub hosts: PathBuf,
    /// The sources of names.
    pub nsswitch: PathBuf,
    /// The port of the servers.
    pub port: u16,
}

impl Default for ResolverFiles {
    fn default() -> Self {
        let [resolv_conf, hosts, nsswitch] = platform::files();
        Self {
            resolv_conf,
            hosts,
            nsswitch,
            port: 53,
        }
    }
}

/// The identification of the current version of each file.
pub(super) type ResolverFilesVersion = [Option<platform::FileVersion>; 3];

impl ResolverFiles {
    /// Returns the current version. It takes three system calls, as cheap as what the C library does for
    /// each lookup.
    pub(super) fn current_version(&self) -> ResolverFilesVersion {
        [&self.resolv_conf, &self.hosts, &self.nsswitch].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some(platform::file_version(&metadata))
        })
    }

    /// Reads the files. Missing files count as empty.
    pub(super) fn read_config(&self) -> ResolverConfig {
        let nsswitch = read_bounded(&self.nsswitch, MAX_LEN).unwrap_or_default();
        let resolv_conf = read_bounded(&self.resolv_conf, MAX_LEN).unwrap_or_default();
        let hosts = read_bounded(&self.hosts, hosts::MAX_LEN).unwrap_or_default();
        let mut config = ResolverConfig::parse(&resolv_conf, self.port);
        if config.no_servers.is_some() && !self.resolv_conf.exists() {
            config.no_servers = Some(format!("{} is missing", self.resolv_conf.display()));
        }
        config.sources = SystemSources::parse(&String::from_utf8_lossy(&nsswitch), &config.servers);
        if config.needs_c_library || is_set_by_environment() {
            config.sources = SystemSources::all_from_system();
        }
        config.hosts = HostsFile::parse(&hosts);
        config
    }
}

fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns true if environment variables set servers or names for this process alone.
fn is_set_by_environment() -> bool {
    ["RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// The parsed configuration.
#[derive(Debug)]
pub(super) struct ResolverConfig {
    pub(super) servers: Vec<SocketAddr>,
    /// The reason why the servers are those of this machine, for errors; `None` if the file names servers.
    pub(super) no_servers: Option<String>,
    /// Domains in ASCII without the dot at their end; the root is empty.
    pub(super) search: Vec<String>,
    pub(super) ndots: usize,
    /// Time for one server to answer.
    pub(super) timeout: Duration,
    /// Number of queries to each server.
    pub(super) attempts: u32,
    pub(super) edns: bool,
    pub(super) tcp_only: bool,
    pub(super) rotate: bool,
    pub(super) ask_v6: bool,
    pub(super) hosts: HostsFile,
    pub(super) sources: SystemSources,
    /// True if the files contain something that only the C library supports.
    needs_c_library: bool,
}

impl ResolverConfig {
    fn parse(resolv_conf: &[u8], port: u16) -> Self {
        // Unreadable lines are skipped, as other resolvers do.
        let (parsed, _) = resolv_conf::Config::parse_with_errors(resolv_conf);
        let mut needs_c_library = !parsed.sortlist.is_empty();
        let mut servers = Vec::new();
        for server in parsed.get_nameservers_or_local().iter().take(MAX_SERVERS) {
            servers.push(match server {
                ScopedIp::V4(ip) => SocketAddr::new(IpAddr::V4(*ip), port),
                ScopedIp::V6(ip, None) => SocketAddr::new(IpAddr::V6(*ip), port),
                ScopedIp::V6(ip, Some(scope)) => match scope.parse() {
                    Ok(scope) => SocketAddrV6::new(*ip, port, 0, scope).into(),
                    // The scope is an interface name.
                    Err(_) => {
                        needs_c_library = true;
                        continue;
                    }
                },
            });
        }
        let mut search: Vec<String> = parsed.get_last_search_or_domain().cloned().collect();
        if search.is_empty() {
            search.extend(parsed.get_system_domain());
        }
        let search = search.iter().take(MAX_SEARCH);
        let search = search.filter_map(|domain| parse_name(domain).ok());
        let no_servers = parsed.nameservers.is_empty();
        Self {
            servers,
            no_servers: no_servers.then(|| "resolv.conf names no server".to_owned()),
            search: search.collect(),
            ndots: usize_from(parsed.ndots.min(15)),
            timeout: Duration::from_secs(u64::from(parsed.timeout.clamp(1, 30))),
            attempts: parsed.attempts.clamp(1, 5),
            edns: parsed.edns0,
            tcp_only: parsed.use_vc,
            rotate: parsed.rotate,
            ask_v6: !parsed.no_aaaa,
            hosts: HostsFile::default(),
            sources: SystemSources::default(),
            needs_c_library,
        }
    }

    /// Returns the names to look up in ASCII without the dot at their end, in order: a name with few dots may belong to
    /// a search domain.
    pub(super) fn candidates(&self, text: &str) -> io::Result<Vec<String>> {
        let absolute = parse_name(text)?;
        if text.ends_with('.') {
            return Ok(vec![absolute]);
        }
        let searched = self.search.iter().map(|domain| match domain.as_str() {
            "" => absolute.clone(),
            domain => format!("{absolute}.{domain}"),
        });
        let mut all: Vec<String> = searched.filter(|name| check_name(name).is_ok()).collect();
        let has_dots = text.bytes().filter(|byte| *byte == b'.').count() >= self.ndots;
        all.insert(if has_dots { 0 } else { all.len() }, absolute);
        Ok(all)
    }
}

/// Parses a host name into the form used in queries: ASCII without the dot at its end.
pub(super) fn parse_name(text: &str) -> io::Result<String> {
    let bad = || super::no_address(format!("`{}` is not a host name", text.escape_debug()));
    // The characters of host names.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') || !c.is_ascii();
    if !text.chars().all(fits) {
        return Err(bad());
    }
    let mut name = String::with_capacity(text.len());
    for label in text.strip_suffix('.').unwrap_or(text).split('.') {
        if !name.is_empty() {
            name.push('.');
        }
        if label.is_ascii() {
            name.push_str(label);
            continue;
        }
        let ascii = Uts46::new().to_ascii(
            label.as_bytes(),
            AsciiDenyList::STD3,
            Hyphens::Allow,
            DnsLength::Ignore,
        );
        name.push_str(&ascii.map_err(|_| bad())?);
    }
    check_name(&name).map_err(|_| bad())?;
    Ok(name)
}

/// Converts `text` to the ASCII form used in queries; returns `None` if it is not a host name.
#[must_use]
pub fn to_ascii_name(text: &str) -> Option<String> {
    // Dots of other scripts separate labels as well (RFC 3490 section 3.1).
    let dots = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];
    let text = text.replace(dots, ".");
    let mut name = parse_name(&text).ok()?.to_ascii_lowercase();
    if text.ends_with('.') {
        name.push('.');
    }
    Some(name)
}

/// The sources of names besides `hosts` and DNS, which only the C library can query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemSources {
    /// All names.
    everything: bool,
    /// Names below `local` (multicast DNS).
    multicast_names: bool,
    /// The machine's own name, and those of its gateways.
    own_names: bool,
    /// Names without a dot (containers).
    single_labels: bool,
}

impl SystemSources {
    fn all_from_system() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    /// Parses the `hosts:` line of `nsswitch.conf`.
    fn parse(nsswitch: &str, servers: &[SocketAddr]) -> Self {
        if !cfg!(target_os = "linux") {
            return Self::all_from_system();
        }
        let mut lines = nsswitch
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""));
        let Some(line) = lines.find_map(|line| line.trim().strip_prefix("hosts:")) else {
            return Self::default();
        };
        let line = line.replace('[', " [").replace(']', "] ");
        let (mut sources, mut last) = (Self::default(), "");
        let mut dns = false;
        // The stub of systemd-resolved answers over DNS what the module answers by other means.
        let has_stub = servers.iter().any(|server| {
            let ip = server.ip();
            ip == IpAddr::from([127, 0, 0, 53]) || ip == IpAddr::from([127, 0, 0, 54])
        });
        for word in line.split_ascii_whitespace() {
            let known = match word {
                "files" => !dns,
                "dns" => {
                    dns = true;
                    true
                }
                "resolve" => {
                    (dns, sources.own_names) = (true, true);
                    has_stub
                }
                "myhostname" => {
                    sources.own_names = true;
                    true
                }
                "mymachines" => {
                    sources.single_labels = true;
                    true
                }
                "mdns_minimal" | "mdns4_minimal" | "mdns6_minimal" => {
                    sources.multicast_names = true;
                    true
                }
                // The actions that follow the modules above in the files of distributions.
                "[NOTFOUND=return]" => last.ends_with("_minimal"),
                "[!UNAVAIL=return]" => last == "resolve",
                _ => false,
            };
            if !known {
                return Self::all_from_system();
            }
            last = word;
        }
        if !dns {
            // No server may be queried then.
            return Self::all_from_system();
        }
        sources
    }

    /// Returns true if the C library has to be called for `name`, in lower case.
    pub(super) fn needs_system(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        self.everything
            // The name of an interface after an address.
            || name.contains('%')
            || (self.multicast_names && name.ends_with(".local"))
            || (self.single_labels && !name.contains('.'))
            || (self.own_names && (matches!(name, "_gateway" | "_outbound") || is_own_host_name(name)))
    }
}

/// Returns the host name of this machine at the first call; empty if it has none.
#[must_use]
pub fn own_host_name() -> &'static str {
    // This is called for datagrams as well: avoid a system call for each.
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(platform::host_name)
}

/// Returns true if `name` was the host name of this machine at the first call.
#[must_use]
pub fn is_own_host_name(name: &str) -> bool {
    let own = own_host_name();
    !own.is_empty() && own.eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ResolverConfig {
        ResolverConfig::parse(text.as_bytes(), 53)
    }

    #[test]
    fn search_domains_and_dots() {
        let config = config("nameserver 10.0.0.1\nsearch a.example b.example\noptions ndots:2");
        let asked = |name: &str| -> Vec<String> { config.candidates(name).unwrap() };
        assert_eq!(asked("x"), ["x.a.example", "x.b.example", "x"]);
        assert_eq!(asked("x.y"), ["x.y.a.example", "x.y.b.example", "x.y"]);
        assert_eq!(asked("x.y.z")[0], "x.y.z");
        assert_eq!(asked("x."), ["x"]);
        assert_eq!(asked("bücher.example.")[0], "xn--bcher-kva.example");
        for bad in ["a b", "a\\.b", "a..b", "a/b", &"x".repeat(64)] {
            assert!(config.candidates(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn servers_and_options() {
        let config = config(
            "# mine\nnameserver 10.0.0.1\nnameserver ::1\nnonsense\nnameserver fe80::1%3\n\
             nameserver 10.0.0.4\noptions timeout:1 attempts:4 edns0 use-vc rotate no-aaaa\n",
        );
        let servers: Vec<String> = config.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[::1]:53", "[fe80::1%3]:53"]);
        assert_eq!(
            (config.timeout, config.attempts),
            (Duration::from_secs(1), 4)
        );
        assert!(config.edns && config.tcp_only && config.rotate && !config.ask_v6);
        let none = ResolverConfig::parse(b"", 53);
        assert_eq!(none.servers[0].to_string(), "127.0.0.1:53");
    }

    /// On other systems, all names are asked there.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_only_the_c_library_knows_is_asked_there() {
        let stub = ["127.0.0.53:53".parse().unwrap()];
        let sources =
            |line: &str| SystemSources::parse(&format!("passwd: files\nhosts: {line}\n"), &stub);
        for plain in ["files dns", "dns", "files dns # x"] {
            assert_eq!(sources(plain), SystemSources::default(), "{plain}");
        }
        assert_eq!(SystemSources::parse("", &[]), SystemSources::default());
        for foreign in [
            "files",
            "dns files",
            "files nis dns",
            "files mdns4 dns",
            "files [NOTFOUND=return] dns",
            "files dns [!UNAVAIL=return]",
            "files winbind dns",
            "files sss dns",
        ] {
            assert!(sources(foreign).needs_system("example.com"), "{foreign}");
        }
        let desktop = sources("files mdns4_minimal [NOTFOUND=return] dns mymachines");
        assert!(desktop.needs_system("printer.local") && desktop.needs_system("container"));
        assert!(!desktop.needs_system("example.com"));
        let fedora = "files myhostname resolve [!UNAVAIL=return] dns";
        let with_stub = sources(fedora);
        assert!(with_stub.needs_system("_gateway") && !with_stub.needs_system("example.com"));
        assert!(SystemSources::parse(&format!("hosts:{fedora}"), &[]).needs_system("example.com"));
        assert!(SystemSources::default().needs_system("fe80::1%eth0"));
    }
}
