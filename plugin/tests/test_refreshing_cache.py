"""Values that are loaded once for all who ask."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import Unauthorized, Unavailable
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.refreshing_cache import AHEAD, RecentKeys, RefreshingCache


class Source:
    """A source of numbers that counts its loads and may be down."""

    def __init__(self) -> None:
        self.loads = 0
        self.down = False
        self.gone = False
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def __call__(self) -> int:
        self.loads += 1
        await self.may_go.wait()
        if self.down:
            raise Unavailable("down")
        if self.gone:
            raise Unauthorized
        return self.loads


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(refreshing_cache, "monotonic", lambda: now[0])
    return now


async def test_a_value_is_loaded_again_when_it_is_no_longer_fresh(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    assert [await values.get("a", source), await values.get("a", source)] == [1, 1]
    clock[0] += 1.0
    assert await values.get("a", source) == 2


async def test_a_stale_value_is_used_while_its_source_is_down(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    await values.get("a", source)
    source.down = True
    clock[0] += 29.0
    assert await values.get("a", source) == 1
    clock[0] += 1.0
    with pytest.raises(Unavailable):
        await values.get("a", source)


async def test_a_value_is_asked_for_again_beside_its_use_before_it_is_no_longer_fresh(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    await values.get("a", source)
    source.may_go.clear()
    clock[0] += AHEAD + 0.01
    assert values.fresh("a") is None
    assert [await values.get("a", source) for _ in range(3)] == [1, 1, 1]
    source.may_go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (values.fresh("a"), source.loads) == (2, 2)


async def test_a_source_that_is_down_is_asked_once_a_second(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    await values.get("a", source)
    source.down = True
    for loads in (2, 3):
        clock[0] += 1.0
        assert [await values.get("a", source) for _ in range(3)] == [1, 1, 1]
        await asyncio.sleep(0)
        assert source.loads == loads


async def test_values_weigh_what_they_are_said_to_and_can_be_forgotten() -> None:
    values, source = RefreshingCache[str, int](60.0, 60.0, 6, lambda value: value), Source()
    for key in ("a", "b", "c"):
        await values.get(key, source)
    assert ["a" in values, "b" in values, "c" in values] == [True, True, True]
    await values.get("d", source)  # which weighs 4: 2 + 3 + 4 are too much, and so are 3 + 4
    assert [values.held(key) for key in ("a", "b", "c", "d")] == [None, None, None, 4]
    values.forget(lambda key, value: key == "d")
    assert "d" not in values and values._weight == 0


async def test_a_value_that_was_put_is_as_one_that_was_loaded(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 2), Source()
    values.put("a", 7)
    assert (await values.get("a", source), values.fresh("a"), source.loads) == (7, 7, 0)
    values.put("b", 8)
    values.put("a", 9)
    values.put("c", 10)
    assert [values.held(key) for key in ("a", "b", "c")] == [9, None, 10]
    clock[0] += 1.0
    assert await values.get("a", source) == 1


async def test_closing_cancels_the_loads_in_flight() -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    source.may_go.clear()
    waiting = asyncio.create_task(values.get("a", source))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    values.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "a" not in values


async def test_all_who_ask_at_once_share_one_load_even_if_one_leaves() -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    source.may_go.clear()
    first, *others = [asyncio.create_task(values.get("a", source)) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()
    source.may_go.set()
    assert await asyncio.gather(*others) == [1] * 49
    assert source.loads == 1


async def test_no_more_values_are_kept_than_were_asked_for() -> None:
    values, source = RefreshingCache[str, int](60.0, 60.0, 2), Source()
    assert [await values.get(key, source) for key in ("a", "b", "c", "c", "b", "a")] == [1, 2, 3, 3, 2, 4]


async def test_an_error_that_nobody_waits_for_is_not_reported() -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    source.may_go.clear()
    waiting = asyncio.create_task(values.get("a", source))
    await asyncio.sleep(0)
    waiting.cancel()
    source.down = True
    source.may_go.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    source.down = False
    assert await values.get("a", source) == 2


async def test_a_value_that_does_not_hold_any_more_is_not_used_while_its_source_is_down(clock: list[float]) -> None:
    values, source = RefreshingCache[str, int](1.0, 30.0, 10), Source()
    await values.get("a", source)
    clock[0] += 1.0
    source.gone = True
    with pytest.raises(Unauthorized):
        await values.get("a", source)
    assert "a" not in values
    source.gone, source.down = False, True
    with pytest.raises(Unavailable):
        await values.get("a", source)


def test_a_key_counts_as_recent_for_its_time_and_the_oldest_makes_room(clock: list[float]) -> None:
    recent = RecentKeys[str](5.0, 2)
    for key in ("a", "b", "a", "c"):
        recent.add(key)
    assert [key in recent for key in ("a", "b", "c")] == [True, False, True]
    clock[0] += 5.0
    assert "c" not in recent
