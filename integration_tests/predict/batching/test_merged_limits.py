"""Limits and budgets of callers whose requests share calls of the provider, and batches of several workers."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from integration_tests.predict.batching.embedding_callers import callers_of, lengths, refusing, statuses
from integration_tests.predict.generate_stream.tutorial import Tutorial
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.store.open_store import open_store

PER_USER = {"window": "300d", "per": "user"}  # which ends in no test
PRICES = {"input": 1_000_000, "output": 0}  # a token costs 1


@dataclass(frozen=True)
class Server:
    """A sidecar, and the keys of two of its users."""

    sidecar: Sidecar
    ann: str
    bob: str


def counted(sidecar: Sidecar, sample: str) -> float:
    """A metric, by its name and labels."""
    lines = [line.rpartition(" ") for line in sidecar.client.get("/metrics").text.splitlines()]
    return sum(float(value) for name, _, value in lines if name == sample)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("users")
    store = f"sqlite:///{folder}/store.db"

    async def new_keys() -> list[str]:
        async with open_store(store) as opened:
            roles = {"ops": "ml_full_access", "ann": "ml_predict_access", "bob": "ml_predict_access"}
            return [(await create_key(opened, name, role, 1)).value for name, role in roles.items()]

    ops, ann, bob = asyncio.run(new_keys())
    with running_sidecar(
        folder,
        store,
    ) as sidecar:
        sidecar.client.headers["x-api-key"] = ops
        yield Server(sidecar, ann, bob)


async def test_each_worker_merges_what_comes_to_it(tutorial: Tutorial) -> None:
    async with callers_of(tutorial.sidecar, 20) as callers:
        words = ["x" * number for number in range(1, 41)]
        responses = await asyncio.gather(*[callers.start(word) for word in words])
        assert [lengths(response) for response in responses] == [[len(word)] for word in words]
        assert len(callers.texts) < 40
        sample = f'mlstream_predictions_total{{model_id="{callers.model_id}",status="200"}}'
        assert counted(tutorial.sidecar, sample) == 40


async def test_a_rate_limit_counts_each_callers_request(tutorial: Tutorial) -> None:
    limiter = {"limit": "12", "unit": "DAYS"}
    async with callers_of(tutorial.sidecar, 6, rate_limiter=limiter) as callers:
        responses = await asyncio.gather(*[callers.start("x") for _ in range(20)])
        assert statuses(responses) == [200] * 12 + [429] * 8
        assert sum(map(len, callers.texts)) == 12
        assert len(callers.texts) < 12


async def test_a_cap_on_predictions_in_flight_counts_who_waits_for_a_call(server: Server) -> None:
    async with callers_of(server.sidecar, 6, _sidecar={"limits": {"max_streams_per_user": 3}}) as callers:
        anns = [callers.start("a", key=server.ann) for _ in range(3)]
        bobs = [callers.start("b", key=server.bob) for _ in range(3)]
        assert statuses(await asyncio.gather(*anns, *bobs)) == [200] * 6
        assert len(callers.texts) == 1


async def test_each_user_pays_its_own_share(server: Server) -> None:
    """The provider counts 1,000 tokens of one call, of which 900 are Ann's: all that she has."""
    budgets = {"budgets": [{"tokens": 900, **PER_USER}], "prices": PRICES}
    async with callers_of(server.sidecar, 2, _sidecar=budgets) as callers:
        anns, bobs = {"key": server.ann}, {"key": server.bob}
        merged = await asyncio.gather(callers.start("a" * 900, **anns), callers.start("b" * 100, **bobs))
        assert [lengths(response) for response in merged] == [[900], [100]]
        assert len(callers.texts) == 1
        assert counted(server.sidecar, f'mlstream_cost_total{{model_id="{callers.model_id}"}}') == 1000
        refused, served = await asyncio.gather(callers.start("a", **anns), callers.start("b", **bobs))
        assert refused.json()["error"]["type"] == "budget_exceeded_exception"
        assert lengths(served) == [1]
        assert callers.texts[1:] == [["b"]]


async def test_a_call_that_failed_costs_only_those_who_were_served_after_it(server: Server) -> None:
    budgets = {"budgets": [{"tokens": 10_000, **PER_USER}], "prices": PRICES}
    async with callers_of(server.sidecar, 2, refusing(422), _sidecar=budgets) as callers:
        responses = await asyncio.gather(
            callers.start("bad" * 30, key=server.ann), callers.start("b" * 100, key=server.bob)
        )
        assert [response.status_code for response in responses] == [400, 200]
        assert counted(server.sidecar, f'mlstream_cost_total{{model_id="{callers.model_id}"}}') == 100
