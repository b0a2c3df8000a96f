"""Which addresses a connector may reach, whatever form they are written in."""

from ipaddress import ip_network

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.upstream import special_purpose_addresses
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, is_private, literal_address

RESTRICTED = r"^Remote inference host name has restricted ip address: host$"
PRIVATE = r"^Remote inference host name has private ip address: host$"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
        "0.0.0.0", "0.1.2.3", "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.8", "192.0.0.170",
        "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.7", "203.0.113.7",
        "::1", "::", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1",
        "100::1", "100:0:0:1::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1",
        "3fff:fff::1", "5f00::1", "4000::1", "a000::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:7f00:1", "::ffff:0:808:808",
        "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "64:ff9b:1:808:8:800::", "2002:7f00:1::", "2002:808:808::",
        "2001:0:101:101:0:0:f7f7:f7f7", "2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:10.0.0.1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_public_internet_is_private(address: str) -> None:
    assert is_private(address)
    with pytest.raises(InvalidRequest, match=PRIVATE):
        AddressPolicy().check("host", (address,))
    AddressPolicy(private_allowed=True).check("host", (address,))


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_a_public_address_may_be_reached(address: str) -> None:
    AddressPolicy().check("host", (address,))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254",
        "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "2002:a9fe:a9fe::",
        "::ffff:0:a9fe:a9fe", "::a9fe:a9fe", "fd00::5efe:169.254.169.254",
    ],
)  # fmt: skip
def test_what_hands_out_a_machines_credentials_is_never_reached(address: str) -> None:
    for policy in (AddressPolicy(), AddressPolicy(private_allowed=True)):
        with pytest.raises(InvalidRequest, match=RESTRICTED):
            policy.check("host", ("8.8.8.8", address))


@pytest.mark.parametrize("network", [*special_purpose_addresses.SPECIAL_IPV4, *special_purpose_addresses.SPECIAL_IPV6])
def test_the_first_and_last_address_of_each_special_network_are_private(network: object) -> None:
    block = ip_network(str(network))
    assert is_private(str(block[0])) and is_private(str(block[-1]))


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(InvalidRequest):
        AddressPolicy().check("host", ("8.8.8.8", "10.0.0.1"))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("::ffff:127.0.0.1", "::ffff:127.0.0.1"), ("::1", "::1"),
        ("api.openai.com", None), ("localhost", None), ("127.0.0.1.nip.io", None), ("a b", None),
    ],
)  # fmt: skip
def test_every_spelling_of_an_address_is_seen_as_one(host: str, address: str | None) -> None:
    literal = literal_address(host)
    assert literal == address or (address == "::ffff:127.0.0.1" and literal == "::ffff:7f00:1")


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        (r"^10\.", "10.1.2.3"),
        (r"8\.8\.8\.8", "8.8.8.8"),
        (r"^10\.", "::ffff:10.1.2.3"),
        (r"^2606:", "2606:4700::1"),
        (r"^8\.8\.8\.8$", "2002:808:808::"),  # 6to4
        (r"^8\.8\.8\.8$", "2001:0:101:101:0:0:f7f7:f7f7"),  # Teredo, its client
        (r"^1\.1\.1\.1$", "2001:0:101:101:0:0:f7f7:f7f7"),  # Teredo, its server
        (r"^8\.8\.8\.8$", "64:ff9b::808:808"),  # NAT64
        (r"^8\.8\.8\.8$", "64:ff9b:1::808:808"),
        (r"^8\.8\.8\.8$", "64:ff9b:1:808:8:800::"),  # RFC 6052, /48
        (r"^8\.8\.8\.8$", "::808:808"),  # IPv4-compatible
        (r"^8\.8\.8\.8$", "::ffff:0:808:808"),  # SIIT
        (r"^8\.8\.8\.8$", "2606:4700::5efe:808:808"),  # ISATAP
    ],
)
def test_a_restricted_address_is_refused_even_where_private_ones_are_allowed(pattern: str, address: str) -> None:
    policy = AddressPolicy(private_allowed=True, restricted=(pattern,))
    with pytest.raises(InvalidRequest, match=RESTRICTED):
        policy.check("host", (address,))
    policy.check("host", ("9.9.9.9",))


def test_with_trusted_private_endpoints_a_private_address_needs_a_url_that_matches() -> None:
    policy = AddressPolicy(private_allowed=True, trusted_private=(r"^https://host/v1$",))
    policy.for_url("https://host/v1").check("host", ("10.0.0.1",))
    policy.for_url("https://other/").check("other", ("8.8.8.8",))
    with pytest.raises(InvalidRequest) as raised:
        policy.for_url("https://other/").check("other", ("10.0.0.1",))
    assert raised.value.reason == (
        "Connector URL is not matching the trusted connector private endpoint regex, and its host has a private ip "
        "address: other"
    )
    with pytest.raises(InvalidRequest):
        policy.for_url("https://host/v1/more").check("host", ("10.0.0.1",))


def test_any_of_several_restricted_patterns_refuses() -> None:
    policy = AddressPolicy(restricted=("^1\\.", "^8\\."))
    for address in ("1.1.1.1", "8.8.8.8"):
        with pytest.raises(InvalidRequest, match="restricted ip address"):
            policy.check("host", ("9.9.9.9", address))


def test_any_of_several_trusted_private_endpoints_is_enough() -> None:
    policy = AddressPolicy(private_allowed=True, trusted_private=("^https://a/$", "^https://b/$"))
    assert policy.for_url("https://b/") is policy


def test_without_trusted_private_endpoints_one_policy_is_for_all_urls() -> None:
    policy = AddressPolicy(private_allowed=True)
    assert policy.for_url("https://anything/") is policy


@pytest.mark.parametrize("name", ["metadata.google.internal", "metadata.google.internal.", "instance-data", "metadata"])
def test_the_name_of_a_metadata_service_is_refused_without_a_look_up(name: str) -> None:
    with pytest.raises(InvalidRequest, match="restricted ip address"):
        AddressPolicy(private_allowed=True).check_name(name)


def test_a_name_of_this_machine_is_private_without_a_look_up() -> None:
    for name in ("localhost", "localhost.", "a.localhost"):
        with pytest.raises(InvalidRequest, match="private ip address"):
            AddressPolicy().check_name(name)
        AddressPolicy(private_allowed=True).check_name(name)
    AddressPolicy().check_name("localhost.example")
