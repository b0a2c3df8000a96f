"""Which addresses a connector may reach, whatever form they are written in."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.upstream.addresses import AddressPolicy, is_private, literal_address

URL = "https://host/v1"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
        "0.0.0.0", "0.1.2.3", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fc00::1", "fd12::1",
        "fe80::1", "fe80::1%eth0", "fec0::1", "64:ff9b:1::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_public_internet_is_private(address: str) -> None:
    assert is_private(address)
    with pytest.raises(InvalidRequest, match=r"^Remote inference host name has private ip address: host$"):
        AddressPolicy().check("host", (address,), URL)
    AddressPolicy(private_allowed=True).check("host", (address,), URL)


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_may_be_reached(address: str) -> None:
    AddressPolicy().check("host", (address,), URL)


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(InvalidRequest):
        AddressPolicy().check("host", ("8.8.8.8", "10.0.0.1"), URL)


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
        (r"^8\.8\.8\.8$", "2001:0:101:101:0:0:f7f7:f7f7"),  # Teredo
        (r"^8\.8\.8\.8$", "64:ff9b::808:808"),  # NAT64
        (r"^8\.8\.8\.8$", "::808:808"),  # IPv4-compatible
    ],
)
def test_a_restricted_address_is_refused_even_where_private_ones_are_allowed(pattern: str, address: str) -> None:
    policy = AddressPolicy(private_allowed=True, restricted=(pattern,))
    with pytest.raises(InvalidRequest, match=r"^Remote inference host name has restricted ip address: host$"):
        policy.check("host", (address,), URL)
    policy.check("host", ("9.9.9.9",), URL)


def test_with_trusted_private_endpoints_a_private_address_needs_a_url_that_matches() -> None:
    policy = AddressPolicy(private_allowed=True, trusted_private=(r"^https://host/v1$",))
    policy.check("host", ("10.0.0.1",), URL)
    policy.check("other", ("8.8.8.8",), "https://other/")
    with pytest.raises(InvalidRequest) as raised:
        policy.check("other", ("10.0.0.1",), "https://other/")
    assert raised.value.reason == (
        "Connector URL is not matching the trusted connector private endpoint regex, and its host has a private ip "
        "address: other"
    )
    with pytest.raises(InvalidRequest):
        policy.check("host", ("10.0.0.1",), "https://host/v1/more")


def test_any_of_several_restricted_patterns_refuses() -> None:
    policy = AddressPolicy(restricted=("^1\\.", "^8\\."))
    for address in ("1.1.1.1", "8.8.8.8"):
        with pytest.raises(InvalidRequest, match="restricted ip address"):
            policy.check("host", ("9.9.9.9", address), URL)


def test_any_of_several_trusted_private_endpoints_is_enough() -> None:
    policy = AddressPolicy(private_allowed=True, trusted_private=("^https://a/$", "^https://b/$"))
    policy.check("b", ("10.0.0.1",), "https://b/")
