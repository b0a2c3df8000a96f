"""Endpoints are added and removed without more private addresses than they need."""

import pytest

from opensearch_ml_stream.plugin.settings.endpoint_patterns import compile_endpoint
from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions, origin_pattern

DEFAULTS = EndpointPermissions(("a",), (), private_allowed=False)
OWN = r"^http://10\.0\.0\.5:8000/.*$"


@pytest.mark.parametrize("origin", ["http://10.0.0.5:8000", "https://my-host.example", "http://[::1]:80"])
def test_the_pattern_of_an_origin_allows_it_and_nothing_else(origin: str) -> None:
    pattern = compile_endpoint(origin_pattern(origin))
    assert pattern.matches(origin, "/v1/chat?x=1")
    assert not pattern.matches(origin + "0", "/v1")
    assert not pattern.matches(origin.replace(".", "x").replace("::", "2::"), "/v1")


def test_a_public_endpoint_changes_nothing_about_private_addresses() -> None:
    assert DEFAULTS.with_pattern("b", is_private=False) == EndpointPermissions(("a", "b"), (), private_allowed=False)


def test_a_private_endpoint_is_allowed_alone() -> None:
    after = DEFAULTS.with_pattern(OWN, is_private=True)
    assert after == EndpointPermissions(("a", OWN), (OWN,), private_allowed=True)
    assert (after.allows_private(OWN), after.allows_private("a")) == (True, False)


def test_private_patterns_that_are_not_in_force_do_not_come_into_force() -> None:
    before = EndpointPermissions(("a",), ("forgotten",), private_allowed=False)
    assert before.with_pattern(OWN, is_private=True).private_patterns == (OWN,)


def test_where_all_private_addresses_are_allowed_they_stay_so() -> None:
    before = EndpointPermissions(("a",), (), private_allowed=True)
    assert before.with_pattern(OWN, is_private=True) == EndpointPermissions(("a", OWN), (), private_allowed=True)
    assert before.allows_private("a")
    assert before.without_pattern("a").private_allowed


def test_the_last_private_endpoint_takes_private_addresses_with_it() -> None:
    """An empty list would allow all of them."""
    after = DEFAULTS.with_pattern(OWN, is_private=True).without_pattern(OWN)
    assert after == DEFAULTS


def test_what_is_there_already_is_not_added_again() -> None:
    after = DEFAULTS.with_pattern(OWN, is_private=True)
    assert after.with_pattern(OWN, is_private=True) == after
