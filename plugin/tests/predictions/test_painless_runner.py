"""Scripts against a fake of the store's Painless: how often it is called, and with what."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.connectors.predict.painless import PainlessCall
from opensearch_ml_stream.plugin.predictions import painless_runner
from opensearch_ml_stream.plugin.predictions.painless_runner import MAX_PARALLEL_RUNS, PainlessRunner

SOURCE = "return params.text"


class Painless:
    """Runs `return params.text`, alone or combined; refuses combined sources if told so."""

    def __init__(self, *, combines: bool = True, fails_on: str | None = None) -> None:
        self.combines = combines
        self.fails_on = fails_on
        self.runs: list[Mapping[str, Any]] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        self.runs.append(params)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        if "inputs" not in params:
            return self._text(params)
        if not self.combines:
            raise InvalidRequest("Painless script: compile error")
        texts = [self._text(inner) for inner in params["inputs"]]
        return "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)

    def _text(self, params: Mapping[str, Any]) -> str | None:
        text: str | None = params["text"]
        if text is not None and text == self.fails_on:
            raise InvalidRequest("Painless script: runtime error")
        return text


def calls(*texts: str | None, source: str = SOURCE) -> list[PainlessCall]:
    return [PainlessCall(source, {"text": text}) for text in texts]


async def test_without_calls_nothing_is_run() -> None:
    store = Painless()
    assert await PainlessRunner(store.run_painless).run([]) == []
    assert store.runs == []


async def test_one_call_is_run_as_it_is() -> None:
    store = Painless()
    assert await PainlessRunner(store.run_painless).run(calls("a")) == ["a"]
    assert store.runs == [{"text": "a"}]


async def test_several_calls_are_one_run_with_results_in_order() -> None:
    store = Painless()
    assert await PainlessRunner(store.run_painless).run(calls("b", None, "", "a")) == ["b", None, "", "a"]
    assert store.runs == [{"inputs": [{"text": "b"}, {"text": None}, {"text": ""}, {"text": "a"}]}]


async def test_equal_calls_are_run_once() -> None:
    store = Painless()
    runner = PainlessRunner(store.run_painless)
    assert await runner.run(calls("a", "a", "a")) == ["a", "a", "a"]
    assert await runner.run(calls("a", "b", "a")) == ["a", "b", "a"]
    assert store.runs == [{"text": "a"}, {"inputs": [{"text": "a"}, {"text": "b"}]}]


async def test_a_source_that_cannot_be_combined_is_run_for_each_input_and_not_combined_again() -> None:
    store = Painless(combines=False)
    runner = PainlessRunner(store.run_painless)
    assert await runner.run(calls("a", "b")) == ["a", "b"]
    assert len(store.runs) == 3
    assert await runner.run(calls("c", "d")) == ["c", "d"]
    assert store.runs[3:] == [{"text": "c"}, {"text": "d"}]


async def test_inputs_that_are_run_apart_are_run_a_few_at_a_time() -> None:
    store = Painless(combines=False)
    texts = [str(number) for number in range(10)]
    assert await PainlessRunner(store.run_painless).run(calls(*texts)) == texts
    assert store.most_in_flight == MAX_PARALLEL_RUNS


async def test_one_bad_input_has_its_own_error() -> None:
    store = Painless(fails_on="bad")
    runner = PainlessRunner(store.run_painless)
    with pytest.raises(InvalidRequest, match=r"^Painless script: runtime error$"):
        await runner.run(calls("good", "bad"))
    assert {"text": "bad"} in store.runs
    assert await runner.run(calls("good", "fine")) == ["good", "fine"]
    assert store.runs[-1] == {"inputs": [{"text": "good"}, {"text": "fine"}]}


async def test_a_store_that_is_down_is_not_asked_again_for_each_input() -> None:
    class Down:
        runs = 0

        async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
            self.runs += 1
            raise Unavailable("down")

    store = Down()
    with pytest.raises(Unavailable):
        await PainlessRunner(store.run_painless).run(calls("a", "b"))
    assert store.runs == 1


async def test_only_so_many_sources_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(painless_runner, "MAX_REMEMBERED", 2)
    store = Painless(combines=False)
    runner = PainlessRunner(store.run_painless)
    for _ in range(2):
        store.runs.clear()
        for number in range(3):
            await runner.run(calls("a", "b", source=f"return {number}"))
    combined = [params for params in store.runs if "inputs" in params]
    assert len(combined) == 1
