"""Embedding requests that come within a short time share a call; rows, errors and cancellations are kept apart."""

import asyncio
import gc
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled, UpstreamError
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.plugin.predictions import embedding_batches
from tests.predictions.batching.embedding_calls import Callers, EmbeddingCalls, embedded, embedding_model


def callers(max_docs: int = 64, *, waits: bool = False, max_wait_ms: int = 5, **connector: Any) -> Callers:
    return Callers(EmbeddingCalls(waits=waits), embedding_model(max_docs, max_wait_ms, **connector))


def lengths(response: Any) -> list[float]:
    return [row["embedding"][0] for row in response["data"]]


async def test_callers_within_the_wait_share_a_call_and_get_their_own_rows() -> None:
    given = callers()
    responses = await asyncio.gather(given.start("a", "bbb"), given.start("cc"), given.start("dddd"))
    assert given.calls.texts == [["a", "bbb", "cc", "dddd"]]
    assert [lengths(response) for response in responses] == [[1, 3], [2], [4]]
    assert [response["usage"]["total_tokens"] for response in responses] == [4, 2, 4]


async def test_a_caller_alone_sends_its_own_request() -> None:
    given = callers(max_wait_ms=1)
    assert await given.start("a", "bb") == orjson.loads(embedded(["a", "bb"]))
    assert await given.start("c") == orjson.loads(embedded(["c"]))
    assert given.calls.texts == [["a", "bb"], ["c"]]


async def test_a_full_batch_does_not_wait() -> None:
    given = callers(3, max_wait_ms=1000)
    began = asyncio.get_running_loop().time()
    await asyncio.gather(given.start("a"), given.start("b", "c"))
    assert asyncio.get_running_loop().time() - began < 0.5
    assert given.calls.texts == [["a", "b", "c"]]


async def test_texts_of_one_request_are_never_split() -> None:
    given = callers(4)
    await asyncio.gather(given.start("a", "b", "c"), given.start("d", "e"), given.start("f"))
    assert given.calls.texts == [["a", "b", "c"], ["d", "e", "f"]]


async def test_a_request_that_fills_a_call_goes_alone_and_at_once() -> None:
    given = callers(2, max_wait_ms=1000)
    async with asyncio.timeout(0.5):
        await given.start("a", "b", "c")
    assert given.calls.texts == [["a", "b", "c"]]


async def test_a_step_size_of_the_connector_bounds_a_call_too() -> None:
    given = callers(parameters={"input_docs_processed_step_size": "2"})
    await asyncio.gather(*[given.start(text) for text in "abcd"])
    assert given.calls.texts == [["a", "b"], ["c", "d"]]


async def test_a_call_has_no_more_bytes_than_a_prediction_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_batches, "MAX_REQUEST_BYTES", 60)
    given = callers()
    await asyncio.gather(*[given.start(text * 10) for text in "abcd"], given.start("e" * 60))
    assert sorted(given.calls.texts) == [["a" * 10, "b" * 10], ["c" * 10, "d" * 10], ["e" * 60]]


async def test_requests_that_render_differently_are_not_merged() -> None:
    given = callers()
    kinds: list[dict[str, str]] = [{}, {"d": "1"}, {"d": JsonText("1")}, {"d": "2"}]
    await asyncio.gather(*[given.start(text, parameters=kind) for kind in kinds for text in "ab"])
    assert given.calls.texts == [["a", "b"]] * 4


async def test_another_version_of_the_model_has_a_batch_of_its_own() -> None:
    given = callers()
    changed = embedding_model()
    await asyncio.gather(given.start("a"), given.start("b"), given.start("c", model=changed))
    assert sorted(given.calls.texts) == [["a", "b"], ["c"]]


async def test_other_inputs_and_scripts_go_alone_and_at_once() -> None:
    given = callers(max_wait_ms=1000)
    request = given.model.action().render({"input": '["a"]'})
    async with asyncio.timeout(0.5):
        await given.batches.fetch(given.model, RemoteInput({"input": '["a"]'}), request)
    assert given.calls.texts == [["a"]]


async def test_a_caller_that_disconnects_before_the_call_takes_its_texts_along() -> None:
    given = callers(max_wait_ms=30)
    stays, leaves, other = given.start("a"), given.start("bb"), given.start("ccc")
    await asyncio.sleep(0)
    leaves.cancel()
    assert [lengths(response) for response in await asyncio.gather(stays, other)] == [[1], [3]]
    assert given.calls.texts == [["a", "ccc"]]


async def test_a_batch_that_everybody_has_left_is_not_sent() -> None:
    given = callers(max_wait_ms=5)
    waiting = [given.start("a"), given.start("b")]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.02)
    assert given.calls.calls == []


async def test_a_caller_who_comes_when_all_others_have_left_opens_a_batch() -> None:
    given = callers(max_wait_ms=20)
    first = given.start("a")
    await asyncio.sleep(0)
    first.cancel()
    assert lengths(await given.start("bb")) == [2]


async def test_a_batch_that_is_full_in_the_moment_of_a_disconnect_goes_without_its_texts() -> None:
    given = callers(3, max_wait_ms=1000)
    leaves, stays = given.start("a"), given.start("bb")
    await asyncio.sleep(0)
    last = given.start("ccc")
    leaves.cancel()  # `last` runs before `leaves` hears of it
    assert [lengths(response) for response in await asyncio.gather(stays, last)] == [[2], [3]]
    assert given.calls.texts == [["bb", "ccc"]]


async def test_a_sent_call_goes_on_for_who_still_waits() -> None:
    given = callers(2, waits=True)
    leaves, stays = given.start("a"), given.start("bb")
    call = await given.calls.next()
    leaves.cancel()
    await asyncio.wait([leaves])
    call.response.set_result(embedded(call.texts))
    assert lengths(await stays) == [2]
    assert given.calls.cancelled == 0


async def test_a_sent_call_is_broken_off_when_nobody_waits() -> None:
    given = callers(2, waits=True)
    waiting = [given.start("a"), given.start("b")]
    await given.calls.next()
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    assert given.calls.cancelled == 0
    waiting[1].cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.01)
    assert given.calls.cancelled == 1


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_where_texts_may_be_the_fault_each_caller_asks_alone(status: int) -> None:
    given = callers(waits=True, max_wait_ms=1)
    good, bad, other = given.start("good"), given.start("bad"), given.start("other one")
    call = await given.calls.next()
    call.response.set_exception(UpstreamError("bad text", provider_status=status))
    for call in [await given.calls.next() for _ in range(3)]:
        if call.texts == ["bad"]:
            call.response.set_exception(UpstreamError("bad text", provider_status=status))
        else:
            call.response.set_result(embedded(call.texts))
    assert [lengths(await good), lengths(await other)] == [[4], [9]]
    with pytest.raises(UpstreamError, match="bad text"):
        await bad
    assert given.calls.texts == [["good", "bad", "other one"], ["good"], ["bad"], ["other one"]]


async def test_an_error_under_a_good_status_may_be_about_the_text_of_one_who_then_asks_alone() -> None:
    given = callers(waits=True, max_wait_ms=1)
    good, bad = given.start("good"), given.start("bad")
    error = orjson.dumps({"error": {"message": "cannot embed [bad]"}})
    (await given.calls.next()).response.set_result(error)
    for call in [await given.calls.next() for _ in range(2)]:
        call.response.set_result(error if call.texts == ["bad"] else embedded(call.texts))
    assert lengths(await good) == [4]
    assert (await bad)["error"] == {"message": "cannot embed [bad]"}


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_other_errors_are_each_callers_own_without_the_words_about_all(status: int) -> None:
    given = callers()
    given.calls.error = UpstreamError("cannot embed [secret]", type="t", retry_after="7", provider_status=status)
    outcomes = await asyncio.gather(given.start("a"), given.start("secret"), return_exceptions=True)
    assert outcomes[0] is not outcomes[1]
    for error in outcomes:
        assert isinstance(error, UpstreamError)
        assert (
            error.reason
            == str(error)
            == (
                f"Error from remote service: status {status}. Its message is left out, since the call was merged from "
                "2 requests (_sidecar.batching)"
            )
        )
        assert (error.type, error.retry_after, error.provider_status) == ("t", "7", status)
    assert len(given.calls.calls) == 1


@pytest.mark.parametrize(
    "error", [UpstreamError("no connection", type="timeout_exception"), Throttled("busy", retry_after="1", limit="x")]
)
async def test_errors_without_words_of_the_provider_are_as_they_are(error: UpstreamError | Throttled) -> None:
    given = callers()
    given.calls.error = error
    outcomes = await asyncio.gather(given.start("a"), given.start("b"), return_exceptions=True)
    for outcome in outcomes:
        assert type(outcome) is type(error) and outcome is not error
        assert vars(outcome) == vars(error)
    assert outcomes[0] is not outcomes[1]


async def test_a_request_that_cannot_be_sent_is_sent_alone_by_each() -> None:
    given = callers()
    given.calls.error = InvalidRequest("The URL is not trusted")
    outcomes = await asyncio.gather(given.start("a"), given.start("b"), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["The URL is not trusted"] * 2
    assert given.calls.texts == [["a", "b"], ["a"], ["b"]]


async def test_another_number_of_embeddings_is_an_error_of_all() -> None:
    given = callers(waits=True, max_wait_ms=1)
    waiting = [given.start("a"), given.start("b")]
    call = await given.calls.next()
    call.response.set_result(embedded(["a"]))
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == [
        "The provider's response to 2 texts, which _sidecar.batching has merged from 2 requests, has 1 embeddings at "
        "[$.data[*].embedding]"
    ] * 2


async def test_a_fault_of_ours_reaches_all_who_wait() -> None:
    given = callers()
    given.calls.error = ZeroDivisionError()
    outcomes = await asyncio.gather(given.start("a"), given.start("b"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 2


async def test_nothing_of_a_batch_stays_behind() -> None:
    given = callers(max_wait_ms=1)
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    given.calls.error = UpstreamError("broken", provider_status=500)
    waiting = [given.start(text) for text in "abcd"]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert [type(task.exception()) for task in waiting[1:]] == [UpstreamError] * 3
    assert vars(given.batches)["_open"] == {}
    assert len(asyncio.all_tasks()) == 1
    del waiting
    gc.collect()
    assert faults == []
