"""Special-purpose networks and names, made by scripts/special_purpose_addresses.py from its CSV file.

State: the registries as of October 2025, typed in by hand, not downloaded.
"""

from ipaddress import IPv4Network, IPv6Network

SPECIAL_IPV4 = (
    IPv4Network("0.0.0.0/8"),  # This network; RFC 791 and 1122
    IPv4Network("10.0.0.0/8"),  # Private use; RFC 1918
    IPv4Network("100.64.0.0/10"),  # Shared address space; RFC 6598
    IPv4Network("127.0.0.0/8"),  # Loopback; RFC 1122
    IPv4Network("169.254.0.0/16"),  # Link local; RFC 3927
    IPv4Network("172.16.0.0/12"),  # Private use; RFC 1918
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments; RFC 6890
    IPv4Network("192.0.2.0/24"),  # Documentation (TEST-NET-1); RFC 5737
    IPv4Network("192.31.196.0/24"),  # AS112-v4; RFC 7535
    IPv4Network("192.52.193.0/24"),  # AMT; RFC 7450
    IPv4Network("192.88.99.0/24"),  # 6to4 relay anycast (deprecated); RFC 7526
    IPv4Network("192.168.0.0/16"),  # Private use; RFC 1918
    IPv4Network("192.175.48.0/24"),  # Direct delegation AS112 service; RFC 7534
    IPv4Network("198.18.0.0/15"),  # Benchmarking; RFC 2544
    IPv4Network("198.51.100.0/24"),  # Documentation (TEST-NET-2); RFC 5737
    IPv4Network("203.0.113.0/24"),  # Documentation (TEST-NET-3); RFC 5737
    IPv4Network("224.0.0.0/4"),  # Multicast; RFC 5771
    IPv4Network("240.0.0.0/4"),  # Reserved; RFC 1112
    IPv4Network("255.255.255.255/32"),  # Limited broadcast; RFC 8190
)
SPECIAL_IPV6 = (
    IPv6Network("::/8"),  # Reserved by IETF: with ::1 and IPv4-compatible and SIIT; RFC 4291
    IPv6Network("64:ff9b:1::/48"),  # IPv4-IPv6 translation for local use (NAT64); RFC 8215
    IPv6Network("100::/8"),  # Reserved by IETF: discard-only and dummy prefix; RFC 6666 and 9780
    IPv6Network("200::/7"),  # Reserved by IETF; RFC 4048
    IPv6Network("400::/6"),  # Reserved by IETF; RFC 4291
    IPv6Network("800::/5"),  # Reserved by IETF; RFC 4291
    IPv6Network("1000::/4"),  # Reserved by IETF; RFC 4291
    IPv6Network("2001::/23"),  # IETF protocol assignments: Teredo and ORCHID and benchmarking; RFC 2928
    IPv6Network("2001:db8::/32"),  # Documentation; RFC 3849
    IPv6Network("2002::/16"),  # 6to4 (deprecated); RFC 3056 and 7526
    IPv6Network("2620:4f:8000::/48"),  # Direct delegation AS112 service; RFC 7534
    IPv6Network("3fff::/20"),  # Documentation; RFC 9637
    IPv6Network("4000::/3"),  # Reserved by IETF: segment routing (5f00::/16); RFC 4291 and 9602
    IPv6Network("6000::/3"),  # Reserved by IETF; RFC 4291
    IPv6Network("8000::/3"),  # Reserved by IETF; RFC 4291
    IPv6Network("a000::/3"),  # Reserved by IETF; RFC 4291
    IPv6Network("c000::/3"),  # Reserved by IETF; RFC 4291
    IPv6Network("e000::/4"),  # Reserved by IETF; RFC 4291
    IPv6Network("f000::/5"),  # Reserved by IETF; RFC 4291
    IPv6Network("f800::/6"),  # Reserved by IETF; RFC 4291
    IPv6Network("fc00::/7"),  # Unique local unicast; RFC 4193
    IPv6Network("fe00::/9"),  # Reserved by IETF; RFC 4291
    IPv6Network("fe80::/10"),  # Link-local unicast; RFC 4291
    IPv6Network("fec0::/10"),  # Site-local unicast (deprecated); RFC 3879
    IPv6Network("ff00::/8"),  # Multicast; RFC 4291
)
TRANSLATED_IPV6 = (
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped; RFC 4291
    IPv6Network("64:ff9b::/96"),  # IPv4-IPv6 translation (NAT64); RFC 6052
)
PLATFORM_IPV4 = (
    IPv4Network("169.254.169.254/32"),  # Metadata of AWS and Azure and Google Cloud and others; their documentation
    IPv4Network("169.254.169.253/32"),  # DNS of AWS; its documentation
    IPv4Network("169.254.170.2/32"),  # Credentials of AWS ECS tasks; its documentation
    IPv4Network("169.254.170.23/32"),  # Credentials of AWS EKS pods; its documentation
    IPv4Network("169.254.0.23/32"),  # Metadata of Tencent Cloud; its documentation
    IPv4Network("168.63.129.16/32"),  # Platform of Azure (WireServer); its documentation
    IPv4Network("100.100.100.200/32"),  # Metadata of Alibaba Cloud; its documentation
    IPv4Network("192.0.0.192/32"),  # Metadata of Oracle Cloud (classic); its documentation
)
PLATFORM_IPV6 = (
    IPv6Network("fd00:ec2::254/128"),  # Metadata of AWS; its documentation
    IPv6Network("fd00:ec2::253/128"),  # DNS of AWS; its documentation
    IPv6Network("fd00:ec2::23/128"),  # Credentials of AWS EKS pods; its documentation
    IPv6Network("fd20:ce::254/128"),  # Metadata of Google Cloud; its documentation
)
SPECIAL_NAMES = (
    "localhost",  # Loopback; RFC 6761
)
PLATFORM_NAMES = (
    "metadata",  # Metadata of Google Cloud; its documentation
    "metadata.google.internal",  # Metadata of Google Cloud; its documentation
    "metadata.goog",  # Metadata of Google Cloud; its documentation
    "instance-data",  # Metadata of AWS; its documentation
    "instance-data.ec2.internal",  # Metadata of AWS; its documentation
    "metadata.tencentyun.com",  # Metadata of Tencent Cloud; its documentation
)
