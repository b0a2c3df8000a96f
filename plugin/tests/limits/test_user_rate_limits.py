"""The limits of a model's users beside the model's own, in virtual time."""

from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Throttled
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit, RateLimits
from tests.limits.virtual_clock import Clock

BY_USER = (
    "Request is throttled at user level. If you think there's an issue, please contact your cluster admin.",
    "user_rate",
)
BY_MODEL = ("Request is throttled at model level.", "model_rate")
THREE, TWO, ONE = (RateLimit(limit, 60) for limit in (3, 2, 1))


@pytest.fixture
def limits(tmp_path: Path, clock: Clock) -> RateLimits:
    return RateLimits(tmp_path, clock=clock)


def refusal(
    limits: RateLimits, of_model: RateLimit | None, user: str, of_user: RateLimit | None
) -> tuple[tuple[str, str | None], str | None]:
    """Which limit refuses a call, and its Retry-After."""
    with pytest.raises(Throttled) as raised:
        limits.acquire("m", of_model, user, of_user)
    return (raised.value.reason, raised.value.limit), raised.value.retry_after


def test_each_user_has_a_limit_of_their_own_for_each_model(limits: RateLimits) -> None:
    limits.acquire("m", None, "ann", ONE)
    assert refusal(limits, None, "ann", ONE) == (BY_USER, "60")
    limits.acquire("m", None, "bob", ONE)
    limits.acquire("other", None, "ann", ONE)
    limits.acquire("m", None, "carl", TWO)
    limits.acquire("m", ONE, "ann", None)


def test_names_that_look_alike_share_no_bucket(limits: RateLimits) -> None:
    limits.acquire("b", None, "a", ONE)
    limits.acquire("m", None, "a b", ONE)
    limits.acquire("b m", None, "a", ONE)
    limits.acquire("1 a b", ONE)
    limits.acquire("m", None, "\udc80", ONE)
    assert refusal(limits, None, "a b", ONE) == (BY_USER, "60")


def test_a_call_that_the_users_limit_refuses_costs_the_model_nothing(limits: RateLimits) -> None:
    limits.acquire("m", TWO, "ann", ONE)
    for _ in range(5):
        assert refusal(limits, TWO, "ann", ONE) == (BY_USER, "60")
    limits.acquire("m", TWO, "bob", ONE)
    assert refusal(limits, TWO, "bob", THREE) == (BY_MODEL, "30")


def test_a_call_that_the_models_limit_refuses_costs_the_user_nothing(clock: Clock, limits: RateLimits) -> None:
    limits.acquire("m", ONE, "ann", TWO)
    for _ in range(5):
        assert refusal(limits, ONE, "ann", TWO) == (BY_MODEL, "60")
    limits.acquire("m", None, "ann", TWO)
    assert refusal(limits, None, "ann", TWO) == (BY_USER, "30")


def test_the_models_limit_is_looked_at_first(limits: RateLimits) -> None:
    limits.acquire("m", ONE, "ann", ONE)
    assert refusal(limits, ONE, "ann", ONE) == (BY_MODEL, "60")


def test_a_user_who_may_not_call_at_all_takes_no_token_of_the_model(limits: RateLimits) -> None:
    assert refusal(limits, ONE, "ann", RateLimit(0, 60)) == (BY_USER, None)
    limits.acquire("m", ONE, "bob", TWO)


def test_a_refused_call_leaves_the_model_what_came_back_meanwhile(clock: Clock, limits: RateLimits) -> None:
    limits.acquire("m", ONE, "ann", RateLimit(1, 600))
    clock.now += 30
    assert refusal(limits, ONE, "ann", RateLimit(1, 600)) == (BY_MODEL, "30")
    clock.now += 29
    assert refusal(limits, ONE, "ann", RateLimit(1, 600)) == (BY_MODEL, "1")
    clock.now += 1
    assert refusal(limits, ONE, "ann", RateLimit(1, 600)) == (BY_USER, "540")
    limits.acquire("m", ONE, "bob", RateLimit(1, 600))
