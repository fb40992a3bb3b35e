//! The addresses that a host name may resolve to.
//!
//! Only addresses that IANA's registries list as global unicast, except for those that serve cloud
//! credentials. An IPv6 address that embeds IPv4 is judged by the IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use ipnet::IpNet as Block;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 blocks that are not global unicast.
///
/// Source: <https://www.iana.org/assignments/iana-ipv4-special-registry>; multicast:
/// <https://www.iana.org/assignments/ipv4-address-space>.
const SPECIAL_V4: [(Ipv4Addr, u8); 16] = [
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
    // Azure serves the certificates of a machine at this address, although it is public:
    // https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// The loopback addresses.
///
/// Source: RFC 6890, and RFC 4291, 2.5.3.
pub(crate) const LOOPBACK: [Block; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];

/// The only global unicast block of IPv6.
///
/// Source: <https://www.iana.org/assignments/ipv6-address-space>.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Parts of the global block that are not global unicast.
///
/// Source: <https://www.iana.org/assignments/iana-ipv6-special-registry>.
const SPECIAL_V6: [(Ipv6Addr, u8); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns true if an address is on the public internet, which every grant of a host name permits.
/// An IPv6 address that embeds IPv4 is global if all embedded addresses are.
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Embedded::Nothing => is_global_v6(address),
            Embedded::One(embedded) => is_global_v4(embedded),
            Embedded::Two(server, client) => is_global_v4(server) && is_global_v4(client),
        },
    }
}

/// Returns true if one of the blocks contains an address. An IPv6 address that embeds IPv4 is
/// contained if the blocks contain the address itself or all embedded addresses.
pub fn is_within(address: IpAddr, blocks: &[IpNet]) -> bool {
    let within = |address: IpAddr| blocks.iter().any(|block| block.contains(&address));
    let within_v4 = |address: Ipv4Addr| within(address.into());
    within(address)
        || match address {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => match embedded(address) {
                Embedded::Nothing => false,
                Embedded::One(embedded) => within_v4(embedded),
                Embedded::Two(server, client) => within_v4(server) && within_v4(client),
            },
        }
}

/// Returns true if a block contains only IPv4-mapped IPv6 addresses, which are judged as IPv4.
pub fn is_ipv4_within_ipv6(block: Block) -> bool {
    let mapped = Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
    match block {
        IpNet::V4(_) => false,
        IpNet::V6(block) => mapped.contains(&block),
    }
}

/// Converts an IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) to IPv4.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The IPv4 addresses embedded in an IPv6 address.
enum Embedded {
    Nothing,
    One(Ipv4Addr),
    /// Teredo: the server and the client.
    Two(Ipv4Addr, Ipv4Addr),
}

fn embedded(address: Ipv6Addr) -> Embedded {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // `::` and `::1` embed nothing: RFC 4291, 2.5.2 and 2.5.3.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Embedded::Nothing,
        // IPv4-compatible: RFC 4291, 2.5.5.1; IPv4-mapped: 2.5.5.2; NAT64: RFC 6052.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Embedded::One(v4(high, low))
        }
        // 6to4: RFC 3056.
        [0x2002, high, low, ..] => Embedded::One(v4(high, low)),
        // Teredo, with the client inverted: RFC 4380.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            Embedded::Two(v4(server_high, server_low), v4(!high, !low))
        }
        // ISATAP: RFC 5214, 6.1.
        [.., 0 | 0x200, 0x5efe, high, low] => Embedded::One(v4(high, low)),
        _ => Embedded::Nothing,
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let within =
        |&(block, length): &(Ipv4Addr, u8)| Ipv4Net::new_assert(block, length).contains(&address);
    !SPECIAL_V4.iter().any(within)
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let within =
        |&(block, length): &(Ipv6Addr, u8)| Ipv6Net::new_assert(block, length).contains(&address);
    within(&GLOBAL_V6) && !SPECIAL_V6.iter().any(within)
}
