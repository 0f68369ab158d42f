//! The destinations that a listener may reach (SEC-E2).
//!
//! The check applies to the resolved address that is then connected to, so that neither a spelling nor a
//! second lookup can evade it. Addresses that embed an IPv4 address are checked as that address.

mod local_name;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use adit_config::PrivateAccess;
use adit_net::names::LookupOrigin;
use adit_rules::SharedRuleSet;
use adit_shadowsocks::uot;
use adit_wire::{Host, Target, unmap_ipv4};
use ipnet::IpNet;

use self::local_name::NameMeaning;

/// The access rule of one listener.
#[derive(Debug, Clone)]
pub struct AccessRule {
    private: PrivateAccess,
    /// Networks that are never reached, whatever `private` allows. Each association of datagrams has a copy of
    /// the rule, so this is shared.
    denied: Option<Arc<DeniedNetworks>>,
    allows_smtp: bool,
    /// True if targets come from the configuration and not from clients.
    is_configured: bool,
}

/// Networks that rules reject.
#[derive(Debug)]
struct DeniedNetworks {
    nets: Vec<IpNet>,
    sets: Vec<SharedRuleSet>,
}

impl DeniedNetworks {
    fn check(&self, ip: IpAddr) -> Result<(), String> {
        let inside = match ip {
            IpAddr::V6(v6) => embedded_v4(v6).map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        let is_in = |net: &&IpNet| net.contains(&ip) || inside.is_some_and(|v4| net.contains(&v4));
        if let Some(net) = self.nets.iter().find(is_in) {
            return Err(format!("{ip} is in {net}, which a rule rejects"));
        }
        let has = |set: &SharedRuleSet| {
            set.contains_address(ip) || inside.is_some_and(|v4| set.contains_address(v4))
        };
        if self.sets.iter().any(has) {
            return Err(format!("{ip} is in a rule set that a rule rejects"));
        }
        Ok(())
    }
}

impl AccessRule {
    /// The rule without restrictions: for the servers of hops, which the configuration names.
    pub const UNRESTRICTED: Self = Self {
        private: PrivateAccess::All,
        denied: None,
        allows_smtp: true,
        is_configured: true,
    };

    /// Creates the rule for targets that clients of a listener request. `public` listeners do not reach
    /// port 25 either.
    #[must_use]
    pub const fn new(private: PrivateAccess, public: bool) -> Self {
        Self {
            private,
            denied: None,
            allows_smtp: !public,
            is_configured: false,
        }
    }

    /// Returns the same rule, which also denies the networks `denied` and those of `sets`.
    #[must_use]
    pub(crate) fn denying_networks(mut self, denied: Vec<IpNet>, sets: Vec<SharedRuleSet>) -> Self {
        if !(denied.is_empty() && sets.is_empty()) {
            self.denied = Some(Arc::new(DeniedNetworks { nets: denied, sets }));
        }
        self
    }

    fn check_denied(&self, ip: IpAddr) -> Result<(), String> {
        self.denied
            .as_ref()
            .map_or(Ok(()), |denied| denied.check(ip))
    }

    /// Returns the owner that lookups under this rule are counted against.
    pub(crate) fn lookup_owner(&self) -> LookupOrigin {
        match self.is_configured {
            true => LookupOrigin::Configuration,
            false => LookupOrigin::current(),
        }
    }

    /// Checks that `addr` may be reached.
    ///
    /// # Errors
    ///
    /// Returns the reason if it may not.
    pub fn check_addr(&self, addr: SocketAddr) -> Result<(), String> {
        if !self.allows_smtp && addr.port() == 25 {
            return Err("port 25 (mail) is not reachable from a public listener".to_owned());
        }
        let ip = unmap_ipv4(addr.ip());
        self.check_denied(ip)?;
        if self.allows_private(ip) || !(is_private(ip) || is_local_addr(ip)) {
            Ok(())
        } else {
            Err(format!(
                "{ip} is a private address or this machine's own; the listener's `allow_private` does \
                 not list it"
            ))
        }
    }

    /// Checks that a client may request `target` from hops, as far as this can be decided without a lookup:
    /// the last hop resolves the name, and may find a different address than this machine would.
    pub(crate) fn check_target(&self, target: &Target) -> Result<(), String> {
        if let Host::Ip(ip) = target.host {
            self.check_denied(unmap_ipv4(ip))?;
        }
        if matches!(self.private, PrivateAccess::All) {
            return Ok(());
        }
        let meaning = match &target.host {
            Host::Ip(ip) => NameMeaning::Address(*ip),
            Host::Name(name) => local_name::classify_name(name.as_str()),
        };
        match meaning {
            NameMeaning::Address(ip) if is_private(ip) && !self.allows_private(unmap_ipv4(ip)) => {}
            // The name does not show which of the networks it belongs to.
            NameMeaning::LocalNetwork if !matches!(self.private, PrivateAccess::Nets(_)) => {}
            // UDP-over-TCP datagrams contain their own destinations, which only the hop reads.
            _ if uot::requested_version(target).is_some() => {
                return Err("UDP over TCP is for the listener itself, not for a hop".to_owned());
            }
            _ => return Ok(()),
        }
        Err(format!(
            "{} is in a private network; the listener's `allow_private` does not list it",
            target.host
        ))
    }

    /// Returns true if `allow_private` lists `ip`.
    fn allows_private(&self, ip: IpAddr) -> bool {
        match &self.private {
            PrivateAccess::All => true,
            PrivateAccess::Nets(nets) => nets.iter().any(|net| net.contains(&ip)),
            PrivateAccess::Deny => false,
        }
    }

    /// Returns true if nothing is restricted.
    pub(crate) const fn is_unrestricted(&self) -> bool {
        matches!(self.private, PrivateAccess::All) && self.denied.is_none()
    }
}

/// Returns true if `ip` belongs to an interface of this machine, that is, if a socket can be bound to it.
///
/// Without this check, a server's public address would lead to services that it only offers locally.
fn is_local_addr(ip: IpAddr) -> bool {
    use std::sync::OnceLock;
    /// False if `ip_nonlocal_bind` is set: then every address can be bound, and the check proves nothing.
    static BIND_IS_PROOF: OnceLock<bool> = OnceLock::new();
    let tells = || !may_be_local_addr(Ipv4Addr::new(192, 0, 2, 1).into());
    *BIND_IS_PROOF.get_or_init(tells) && may_be_local_addr(ip)
}

/// Does the same as [`is_local_addr`], but returns true where the check proves nothing.
pub(crate) fn may_be_local_addr(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// Returns true if `ip` is not a public unicast address.
#[must_use]
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => match embedded_v4(v6) {
            Some(v4) => is_private_v4(v4),
            None => is_private_v6(v6),
        },
    }
}

/// Blocks of the IANA special-purpose registry, and the only public cloud metadata address.
const PRIVATE_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

const PRIVATE_V6: &[([u16; 8], u8)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 96),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

fn is_private_v4(ip: Ipv4Addr) -> bool {
    PRIVATE_V4.iter().any(|(net, bits)| {
        let shift = 32 - u32::from(*bits);
        (u32::from(ip) ^ u32::from(*net)) >> shift == 0
    })
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    PRIVATE_V6.iter().any(|(net, bits)| {
        let shift = 128 - u32::from(*bits);
        (u128::from(ip) ^ u128::from(Ipv6Addr::from(*net))) >> shift == 0
    })
}

/// Returns the IPv4 address embedded in a mapped, NAT64 or 6to4 address.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let pair = |a: u16, b: u16| Ipv4Addr::from((u32::from(a) << 16) | u32::from(b));
    match s {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(pair(a, b)),
        [0x2002, a, b, ..] => Some(pair(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use adit_rules::{Condition, RuleSet};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A rule that hops are not wrapped for must really allow everything.
    #[test]
    fn a_rejected_network_or_set_is_a_restriction() {
        let set = |net: &str| {
            let condition = Condition::Network(net.parse().unwrap());
            SharedRuleSet::from(RuleSet::compile([condition]).unwrap())
        };
        let all = || AccessRule::new(PrivateAccess::All, false);
        assert!(all().denying_networks(vec![], vec![]).is_unrestricted());
        let net: IpNet = "192.0.2.0/24".parse().unwrap();
        for rule in [
            all().denying_networks(vec![net], vec![]),
            all().denying_networks(vec![], vec![set("192.0.2.0/24")]),
        ] {
            assert!(!rule.is_unrestricted());
            for denied in [
                "192.0.2.1:80",
                "[::ffff:192.0.2.1]:80",
                "[64:ff9b::c000:201]:80",
            ] {
                assert!(
                    rule.check_addr(denied.parse().unwrap()).is_err(),
                    "{denied}"
                );
            }
            assert_eq!(rule.check_addr("198.51.100.1:80".parse().unwrap()), Ok(()));
        }
    }

    #[test]
    fn private_and_public() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.31.0.1",
            "192.168.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "fec0::1",
            "3fff::1",
            "5f00::1",
        ] {
            assert!(is_private(ip(private)), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "168.63.129.17",
            "223.255.255.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::",
            "::ffff:1.1.1.1",
            "2a00::1",
        ] {
            assert!(!is_private(ip(public)), "{public}");
        }
    }

    #[test]
    fn holes_are_exact() {
        let nets = PrivateAccess::Nets(vec!["127.0.0.0/8".parse().unwrap()]);
        let access = AccessRule::new(nets, true);
        assert!(access.check_addr("127.0.0.1:80".parse().unwrap()).is_ok());
        assert!(
            access
                .check_addr("[::ffff:127.0.0.1]:80".parse().unwrap())
                .is_ok()
        );
        assert!(access.check_addr("10.0.0.1:80".parse().unwrap()).is_err());
        assert!(
            access.check_addr("1.1.1.1:25".parse().unwrap()).is_err(),
            "mail from a public listener"
        );
        assert!(
            AccessRule::UNRESTRICTED
                .check_addr("10.0.0.1:25".parse().unwrap())
                .is_ok()
        );
        assert!(
            AccessRule::new(PrivateAccess::Deny, true)
                .check_addr("1.1.1.1:443".parse().unwrap())
                .is_ok()
        );
    }
}
