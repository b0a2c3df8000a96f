"""Charges of calls: what is reserved, refused, paid and told."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, Unavailable, UpstreamError
from opensearch_ml_stream.connectors.model_options import SidecarSettings, read_sidecar_settings
from opensearch_ml_stream.connectors.token_spending import TokenCount
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.limits.budgets import Budgets, open_budgets
from opensearch_ml_stream.plugin.limits.replica_leases import server_id
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.store import Document, Index
from tests.limits.budget_servers import END, Clock, FaultyStore, server

BODY = b"x" * 40  # 10 tokens
PRICES = {"input": 1_000_000, "output": 2_000_000}  # 1 and 2 a token


class Stream:
    """A provider's stream that has ended, or not (None)."""

    def __init__(self, outcome: Ending | MLStreamError | None, chunks: int) -> None:
        self.outcome = outcome
        self.chunks = chunks


@pytest.fixture
async def store() -> AsyncIterator[FaultyStore]:
    store = FaultyStore()
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def budgets(tmp_path: Path, store: FaultyStore, clock: Clock, metrics: Metrics) -> Budgets:
    return Budgets(server(tmp_path, store, clock, "one"), metrics.count_cost, clock)


def settings(*budgets: dict[str, Any], **others: Any) -> SidecarSettings:
    return read_sidecar_settings({"budgets": [{"window": "1m", **budget} for budget in budgets], **others})


async def pay(budgets: Budgets, of: SidecarSettings, tokens: int, user: str = "ann") -> dict[str, Any]:
    """What the caller is told of a call that spent so many tokens of output."""
    with await budgets.charge("m", of, user, b"") as charge:
        charge.pay(TokenCount(0, tokens))
    return charge.terminal_fields()


async def refused(budgets: Budgets, of: SidecarSettings, user: str = "ann") -> Throttled:
    with pytest.raises(Throttled) as raised:
        await budgets.charge("m", of, user, BODY)
    return raised.value


async def spent(budgets: Budgets, of: SidecarSettings, user: str = "ann") -> float:
    """What is spent of the first budget, of tokens."""
    [told, *_] = (await pay(budgets, of, 0, user))["budgets"]
    return float(told["tokens"] - told["left"])


async def test_a_hard_budget_refuses_when_it_is_spent_and_says_whose_and_until_when(budgets: Budgets) -> None:
    hundred = settings({"tokens": 100})
    await pay(budgets, hundred, 99)
    await pay(budgets, hundred, 50)
    error = await refused(budgets, hundred)
    assert (error.status, error.type, error.retry_after) == (429, "budget_exceeded_exception", "40")
    assert error.limit == "model_budget"
    assert error.reason == ("The budget of model [m] is spent: 100 tokens in 1m. It renews at 2001-09-09T01:48:00Z")


async def test_a_refused_call_costs_nothing(budgets: Budgets) -> None:
    soft, hard = settings({"tokens": 100, "enforcement": "soft"}), settings({"tokens": 100})
    await pay(budgets, soft, 100)
    for _ in range(3):
        await refused(budgets, hard)
    assert await spent(budgets, settings({"tokens": 1000})) == 100


async def test_a_budget_renews_with_its_window(budgets: Budgets, clock: Clock) -> None:
    hundred = settings({"tokens": 100})
    await pay(budgets, hundred, 100)
    clock.now = END - 1
    assert (await refused(budgets, hundred)).retry_after == "1"
    clock.now = END
    assert (await pay(budgets, hundred, 30))["budgets"][0]["left"] == 70


async def test_users_have_budgets_of_their_own(budgets: Budgets) -> None:
    each = settings({"tokens": 100, "per": "user"})
    await pay(budgets, each, 100, "ann")
    assert (await refused(budgets, each, "ann")).reason.startswith("The budget of user [ann] for model [m] is spent")
    await pay(budgets, each, 100, "")
    assert (await refused(budgets, each, "ann")).limit == "user_budget"
    assert "of callers who do not log in for model [m]" in (await refused(budgets, each, "")).reason
    assert (await pay(budgets, each, 1, "bob"))["budgets"][0]["left"] == 99


async def test_of_two_spent_budgets_the_one_that_renews_last_is_named(budgets: Budgets) -> None:
    both = settings({"tokens": 100}, {"tokens": 200, "window": "1h"})
    await pay(budgets, settings({"tokens": 1000}, {"tokens": 1000, "window": "1h"}), 300)
    assert "200 tokens in 1h" in (await refused(budgets, both)).reason


async def test_the_wait_for_a_long_window_is_a_day_at_most(budgets: Budgets) -> None:
    year = settings({"tokens": 0, "window": "366d"})
    assert (await refused(budgets, year)).retry_after == "86400"


async def test_money_is_counted_by_prices(budgets: Budgets, metrics: Metrics) -> None:
    fifty = settings({"cost": 50}, prices=PRICES)
    with await budgets.charge("m", fifty, "", BODY) as charge:
        charge.pay(TokenCount(10, 15))
    told = charge.terminal_fields()
    assert told["spent"] == {"tokens": 25, "cost": 40}
    assert told["budgets"] == [{"per": "model", "window": "1m", "cost": 50, "left": 10, "renews_at": END}]
    await pay(budgets, fifty, 10)
    assert "is spent: a cost of 50 in 1m" in (await refused(budgets, fifty)).reason
    assert 'mlstream_cost_total{model_id="m"} 60.0' in metrics.text().decode()


async def test_prices_without_budgets_are_a_metric_alone(budgets: Budgets, metrics: Metrics, tmp_path: Path) -> None:
    assert await pay(budgets, settings(prices=PRICES), 5) == {}
    assert 'mlstream_cost_total{model_id="m"} 10.0' in metrics.text().decode()
    assert list((tmp_path / "one").iterdir()) == []


async def test_a_soft_budget_says_that_it_is_exceeded_and_refuses_nothing(budgets: Budgets) -> None:
    soft = settings({"tokens": 100, "enforcement": "soft"})
    assert "exceeded" not in (await pay(budgets, soft, 99))["budgets"][0]
    for _ in range(2):
        [told] = (await pay(budgets, soft, 60))["budgets"]
        assert (told["left"], told["exceeded"]) == (0, True)


async def test_budgets_of_one_window_share_what_is_counted(budgets: Budgets, tmp_path: Path) -> None:
    both = settings(
        {"tokens": 100}, {"tokens": 80, "enforcement": "soft", "window": "60s"}, {"cost": 99}, prices=PRICES
    )
    told = (await pay(budgets, both, 30))["budgets"]
    assert [budget["left"] for budget in told] == [70, 50, 39]


async def test_the_input_of_calls_in_flight_counts_by_estimate(budgets: Budgets) -> None:
    fifteen = settings({"tokens": 15})
    with await budgets.charge("m", fifteen, "", BODY):
        with await budgets.charge("m", fifteen, "", BODY) as second:
            await refused(budgets, fifteen)
            second.pay(TokenCount(1, 1))
        assert await spent(budgets, settings({"tokens": 100})) == 12


@pytest.mark.parametrize(
    ("outcome", "chunks", "tokens", "is_estimated"),
    [
        (Ending(usage=Usage(5, 7)), 3, 12, False),
        (Ending(), 3, 13, True),
        (None, 3, 13, True),
        (None, 0, 10, True),
        (UpstreamError("cut off"), 3, 13, True),
        (UpstreamError("no stream"), 0, 0, False),
    ],
)
async def test_a_stream_is_paid_by_its_ending_or_else_by_its_chunks(
    budgets: Budgets, outcome: Ending | MLStreamError | None, chunks: int, tokens: int, is_estimated: bool
) -> None:
    hundred = settings({"tokens": 100})
    with await budgets.charge("m", hundred, "", BODY) as charge:
        charge.stream = Stream(outcome, chunks)
    told = charge.terminal_fields()
    assert told["spent"] == {"tokens": tokens} | ({"estimated": True} if is_estimated else {})
    assert told["budgets"][0]["left"] == 100 - tokens
    assert charge.stream is None


async def test_an_error_before_the_response_costs_nothing_and_a_client_that_leaves_costs_its_input(
    budgets: Budgets,
) -> None:
    hundred = settings({"tokens": 100})
    with pytest.raises(UpstreamError), await budgets.charge("m", hundred, "", BODY):
        raise UpstreamError("unreachable")
    assert await spent(budgets, hundred) == 0
    with pytest.raises(KeyboardInterrupt), await budgets.charge("m", hundred, "", BODY):
        raise KeyboardInterrupt
    assert await spent(budgets, hundred) == 10


async def test_a_call_is_paid_once(budgets: Budgets) -> None:
    hundred = settings({"tokens": 100})
    with await budgets.charge("m", hundred, "", BODY) as charge:
        charge.pay_stream(Ending(usage=Usage(5, 7)), 3)
        charge.stream = Stream(Ending(usage=Usage(50, 7)), 3)
    assert await spent(budgets, hundred) == 12


async def test_a_call_that_ends_in_another_window_pays_the_rest_there(budgets: Budgets, clock: Clock) -> None:
    hundred = settings({"tokens": 100})
    with await budgets.charge("m", hundred, "", BODY) as charge:
        clock.now = END
        charge.pay(TokenCount(10, 20))
    assert charge.terminal_fields()["budgets"][0] == {
        "per": "model", "window": "1m", "tokens": 100, "left": 80, "renews_at": END + 60_000,
    }  # fmt: skip


async def test_a_call_that_fails_takes_nothing_from_a_window_that_began_while_it_was_reserved(
    tmp_path: Path, clock: Clock
) -> None:
    class SlowStore(FaultyStore):
        async def get(self, index: Index, id: str) -> Document | None:
            clock.now = END
            return await super().get(index, id)

    store = SlowStore()
    try:
        budgets = Budgets(server(tmp_path, store, clock, "one"), print, clock)
        both = settings({"tokens": 100}, {"tokens": 100, "per": "user"})
        with pytest.raises(UpstreamError), await budgets.charge("m", both, "ann", BODY):
            raise UpstreamError("refused")
        assert [told["left"] for told in (await pay(budgets, both, 30))["budgets"]] == [70, 70]
    finally:
        await store.close()


async def test_a_new_server_refuses_what_was_spent_before_it_started(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    hundred = settings({"tokens": 100})
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    async with open_budgets(tmp_path / "first", store, print, clock, BackgroundTasks()) as before:
        await pay(before, hundred, 100)
    async with open_budgets(tmp_path / "second", store, print, clock, BackgroundTasks()) as after:
        await refused(after, hundred)


async def test_workers_of_a_server_spend_under_its_id(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    async with (
        open_budgets(tmp_path, store, print, clock, BackgroundTasks()) as one,
        open_budgets(tmp_path, store, print, clock, BackgroundTasks()) as other,
    ):
        await pay(one, settings({"tokens": 100}), 10)
        assert await spent(other, settings({"tokens": 100})) == 10
    [hit] = (await store.search(Index.SPENDING, {}))["hits"]["hits"]
    assert list(hit["_source"]["servers"]) == [server_id(tmp_path)]


async def test_while_the_store_is_down_calls_go_on(budgets: Budgets, store: FaultyStore) -> None:
    store.is_down = True
    hundred = settings({"tokens": 100})
    assert (await pay(budgets, hundred, 100))["budgets"][0]["left"] == 0
    await refused(budgets, hundred)


async def test_a_budget_that_cannot_be_counted_lets_nothing_through(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    shared = server(tmp_path, store, clock, "gone")
    (tmp_path / "gone").rmdir()
    (tmp_path / "gone").touch()
    with pytest.raises(Unavailable, match=r"cannot be counted \(Not a directory\)"):
        await Budgets(shared, print, clock).charge("m", settings({"tokens": 1}), "", BODY)


async def test_a_check_counts_nothing(budgets: Budgets) -> None:
    hundred = settings({"tokens": 100})
    await budgets.check("m", hundred, "ann")
    assert await spent(budgets, hundred) == 0
    await pay(budgets, hundred, 100)
    with pytest.raises(Throttled):
        await budgets.check("m", hundred, "ann")
