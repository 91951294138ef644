//! Addresses that a redirect may lead to: those of the public Internet.
//!
//! A provider that redirects to `http://169.254.169.254/` makes the client fetch the secrets of its own machine. A
//! deny list would miss future ranges, so IPv6 uses an allow list: the global unicast block, without its special
//! parts. Names are checked by the addresses they resolve to, at the moment of connecting ([`PublicOnly`]), so a name
//! cannot change in between.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether `ip` is on the public Internet (IANA special-purpose registries, RFC 6890 and its updates).
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = match ip.octets() {
        [0 | 10 | 127, ..] => true,
        [100, 64..=127, ..] => true, // carrier-grade NAT
        [169, 254, ..] => true,      // link-local, and the metadata service of clouds
        [172, 16..=31, ..] => true,
        [192, 168, ..] => true,
        [192, 0, 0 | 2, _] => true, // protocol assignments, documentation
        [192, 88, 99, _] => true,   // relays of 6to4, given up
        [198, 18 | 19, ..] => true, // benchmarks
        [198, 51, 100, _] => true,  // documentation
        [203, 0, 113, _] => true,   // documentation
        [224..=255, ..] => true,    // multicast, reserved, broadcast
        _ => false,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (a, b) {
        // Embedded IPv4 addresses are checked as IPv4: mapped, translated (NAT64), tunneled (6to4).
        (0, 0) if (c, d, e, f) == (0, 0, 0, 0xffff) => v4(g, h),
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => v4(g, h),
        (0x2002, _) => v4(b, c),
        // Protocol assignments (Teredo embeds an IPv4 address), documentation.
        (0x2001, 0..=0x1ff | 0xdb8) => false,
        (0x3fff, 0..=0xfff) => false,
        (0x2000..=0x3fff, _) => true,
        // Loopback, link-local, unique-local, multicast, and everything unassigned.
        _ => false,
    }
}

/// A redirect target without a public address.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not an address of the public Internet")]
pub(crate) struct PrivateTarget;

/// Resolves names like the system and drops addresses that are not public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // Port 0 is replaced by the connector.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(PrivateTarget.into());
            }
            let addresses: Addrs = Box::new(public.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let public = "1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 169.253.1.1 192.0.1.1 \
            192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2001:200::1 2a00:1450::1 \
            ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1";
        let private = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 \
            198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 \
            ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1:: \
            2002:a9fe:a9fe::1 2001::1 2001:20::1 2001:db8::1 3fff::1 100::1 fc00::1 fd12::1 fe80::1 fec0::1 ff02::1 \
            5f00::1 4000::1";
        for (list, expected) in [(public, true), (private, false)] {
            for text in list.split_whitespace() {
                assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
            }
        }
    }

    #[tokio::test]
    async fn a_name_of_this_machine_does_not_resolve() {
        let result = PublicOnly.resolve("localhost".parse().unwrap()).await;
        assert!(result.is_err_and(|error| error.is::<PrivateTarget>()));
    }
}
