"""Guardrails over a fake of what percolates and a fake guard model: what passes, and what counts as triggered."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.connectors.predict.guardrails.configuration import Guard, LocalGuard, ModelGuard, StopWords
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.plugin.predictions import guardrail_checks
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

TRIGGERED = "guardrails triggered for user input"
STOP_WORDS = LocalGuard((), (StopWords("words", ("title", "query")),))
ACCEPTS = ModelGuard("guard", None, ".*accept.*")


class Percolator(SQLiteStore):
    """Finds the text `bad` in any index; keeps what it was given."""

    def __init__(self, *, down: bool = False, hangs: bool = False) -> None:
        super().__init__(":memory:")
        self.down = down
        self.hangs = hangs
        self.percolated: list[tuple[str, Mapping[str, Any]]] = []

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        self.percolated.append((index_name, document))
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise Unavailable("OpenSearch cannot be reached")
        return "bad" in document.values()


async def nobody(guard: ModelGuard, text: str) -> Any:
    raise AssertionError("no guard model is needed")


async def refusal(guard: Guard | None, text: str, store: SQLiteStore | None = None, call: Any = nobody) -> str | None:
    """Why the text may not pass, None if it may."""
    store = store or Percolator()
    try:
        await GuardrailChecks(store, call).check(guard, text, TRIGGERED)
    except InvalidRequest as error:
        return error.reason
    finally:
        await store.close()
    return None


async def test_without_a_guard_everything_passes() -> None:
    assert await refusal(None, "bad") is None


async def test_a_regular_expression_refuses_the_whole_text_it_matches() -> None:
    guard = LocalGuard((GuardPattern.compile("x"), GuardPattern.compile("secret.*")))
    assert await refusal(guard, "secret things") == f"{TRIGGERED} by regex[1]"
    assert await refusal(guard, "my secret things") is None


async def test_stop_words_are_looked_for_in_every_source_field() -> None:
    store = Percolator()
    assert await refusal(STOP_WORDS, "good", store) is None
    assert store.percolated == [("words", {"title": "good", "query": "good"})]
    assert await refusal(STOP_WORDS, "bad") == f"{TRIGGERED} by stop words in index [words]"


async def test_every_index_of_stop_words_is_searched_until_one_matches() -> None:
    guard = LocalGuard((), (StopWords("one", ("q",)), StopWords("two", ("q",))))
    store = Percolator()
    assert await refusal(guard, "good", store) is None
    assert [index for index, _ in store.percolated] == ["one", "two"]
    store = Percolator()
    assert await refusal(guard, "bad", store) == f"{TRIGGERED} by stop words in index [one]"
    assert [index for index, _ in store.percolated] == ["one"]


async def test_a_text_that_a_regular_expression_refuses_is_not_searched_for() -> None:
    store = Percolator()
    guard = LocalGuard((GuardPattern.compile("bad"),), STOP_WORDS.stop_words)
    assert await refusal(guard, "bad", store) == f"{TRIGGERED} by regex[0]"
    assert store.percolated == []


async def test_stop_words_that_cannot_be_searched_refuse_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    where = f"{TRIGGERED}: its stop words in index [words]"
    down = await refusal(STOP_WORDS, "good", Percolator(down=True))
    assert down == f"{where} cannot be searched: OpenSearch cannot be reached"
    embedded = await refusal(STOP_WORDS, "good", SQLiteStore(":memory:"))
    assert embedded is not None and embedded.startswith(f"{where} cannot be searched: Stop words are searched by Open")
    assert await refusal(LocalGuard((), (StopWords("words", ()),)), "good") == f"{where} need source_fields"
    monkeypatch.setattr(guardrail_checks, "STOP_WORDS_SECONDS", 0.01)
    hanging = await refusal(STOP_WORDS, "good", Percolator(hangs=True))
    assert hanging == f"{where} cannot be searched: no response within 0.01 s"


async def test_a_guard_model_decides_by_its_response() -> None:
    asked: list[tuple[str, str]] = []

    async def call(guard: ModelGuard, text: str) -> Any:
        asked.append((guard.model_id, text))
        return "I accept this" if text == "good" else "I reject this"

    assert await refusal(ACCEPTS, "good", call=call) is None
    assert await refusal(ACCEPTS, "bad", call=call) == f"{TRIGGERED} by guard model [guard]"
    assert asked == [("guard", "good"), ("guard", "bad")]


async def test_a_response_without_the_filtered_value_refuses() -> None:
    async def call(guard: ModelGuard, text: str) -> Any:
        return {"verdict": "accepted"}

    assert await refusal(ModelGuard("guard", "$.verdict", "accepted"), "x", call=call) is None
    assert (
        await refusal(ModelGuard("guard", "$.other", "accepted"), "x", call=call)
        == f"{TRIGGERED} by guard model [guard]"
    )


async def test_a_guard_model_that_cannot_be_called_refuses_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(guard: ModelGuard, text: str) -> Any:
        raise Unavailable("the store is down")

    async def hangs(guard: ModelGuard, text: str) -> Any:
        await asyncio.Event().wait()

    where = f"{TRIGGERED}: its guard model [guard] cannot be called"
    assert await refusal(ACCEPTS, "good", call=fails) == f"{where}: the store is down"
    monkeypatch.setattr(guardrail_checks, "GUARD_MODEL_SECONDS", 0.01)
    assert await refusal(ACCEPTS, "good", call=hangs) == f"{where}: no response within 0.01 s"


async def test_stop_words_and_guard_models_are_given_what_a_payload_hides_in_plain_text() -> None:
    payload = '{"content": [{"text": "\\u0062a"}, {"text": "d"}]}'
    readable = f"{payload}\nba\nbad"
    asked: list[str] = []

    async def call(guard: ModelGuard, text: str) -> Any:
        asked.append(text)
        return "accept"

    store = Percolator()
    assert await refusal(STOP_WORDS, payload, store) is None
    assert store.percolated == [("words", {"title": readable, "query": readable})]
    assert await refusal(ACCEPTS, payload, call=call) is None
    assert asked == [readable]


async def test_a_payload_that_cannot_be_read_is_refused_and_the_reason_says_so() -> None:
    guard = LocalGuard((GuardPattern.compile(".*bad.*"),))
    reason = await refusal(guard, "[" * 100_000)
    assert reason == f"{TRIGGERED}: the payload is nested too deeply to be checked"


async def test_other_requests_go_on_while_a_large_payload_is_checked() -> None:
    other_request = threading.Event()

    class Core:
        """A compiled pattern whose search ends once another request has gone on."""

        def search(self, text: bytes) -> None:
            assert other_request.wait(30)

    pattern = GuardPattern(".*bad.*", None, Core())
    asyncio.get_running_loop().call_soon(other_request.set)
    assert await refusal(LocalGuard((pattern,)), '"' + "x" * 100_000 + '"') is None
