"""Concurrent embedding requests share calls of the provider: rows, errors and disconnects over real sockets."""

import asyncio

import pytest
from integration_tests.predict.batching.embedding_callers import (
    MODEL,
    callers_of,
    embedding_connector,
    lengths,
    predict_path,
    refusing,
    statuses,
)
from integration_tests.server.grpc_port.grpc_clients import grpc_address, infer_request, inference_client
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import Act, Request, Script, json_response
from integration_tests.support.sidecars import Sidecar

WORDS = ["x" * number for number in range(1, 21)]


async def test_twenty_callers_make_few_calls_and_get_their_own_rows(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 40) as callers:
        responses = await asyncio.gather(*[callers.start(word, word * 2) for word in WORDS])
        assert [lengths(response) for response in responses] == [[len(word), 2 * len(word)] for word in WORDS]
        assert len(callers.texts) < 20
        assert sorted(text for texts in callers.texts for text in texts) == sorted([*WORDS, *(w * 2 for w in WORDS)])


async def test_a_response_is_the_same_as_without_batching(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 2) as merged, callers_of(sidecar, 2, _sidecar={"batching": None}) as alone:
        first, second = await asyncio.gather(merged.start("a"), merged.start("bb"))
        assert merged.texts in ([["a", "bb"]], [["bb", "a"]])
        assert [first.text, second.text] == [(await alone.embed("a")).text, (await alone.embed("bb")).text]
        assert len(alone.texts) == 2


async def test_calls_hold_no_more_than_max_docs(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 5) as callers:
        responses = await asyncio.gather(*[callers.start(word) for word in WORDS], callers.start(*"seven of"))
        assert [lengths(response) for response in responses[:-1]] == [[len(word)] for word in WORDS]
        assert lengths(responses[-1]) == [1] * 8
        assert [len(texts) for texts in callers.texts if len(texts) > 5] == [8]


async def test_only_the_caller_of_a_bad_text_gets_its_error(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 4, refusing(400)) as callers:
        texts = [*WORDS[:3], "bad"]
        responses = await asyncio.gather(*[callers.start(text) for text in texts])
        assert [lengths(response) for response in responses[:-1]] == [[len(word)] for word in WORDS[:3]]
        error = responses[-1].json()
        assert (responses[-1].status_code, error["error"]["provider_status"]) == (400, 400)
        assert "cannot embed ['bad']" in error["error"]["reason"]
        assert len(callers.texts) == 5
        assert sorted(callers.texts[1:]) == sorted([text] for text in texts)


@pytest.mark.parametrize(("status", "ours"), [(500, 424), (429, 429)])
async def test_another_error_is_that_of_all_and_says_nothing_of_others(
    sidecar: Sidecar, status: int, ours: int
) -> None:
    async with callers_of(sidecar, 3, refusing(status, retry_after="9")) as callers:
        responses = await asyncio.gather(*[callers.start(text) for text in ("a secret", "bad", "other")])
        assert statuses(responses) == [ours] * 3
        for response in responses:
            assert response.json()["error"]["provider_status"] == status
            assert response.headers["retry-after"] == "9"
            assert "secret" not in response.text
        assert len(callers.texts) == 1


async def test_too_few_rows_are_an_error_of_all_that_says_so(sidecar: Sidecar) -> None:
    one_row = json_response({"data": [{"embedding": [1.5]}]})
    async with callers_of(sidecar, 2, one_row) as callers:
        responses = await asyncio.gather(callers.start("a"), callers.start("b"))
        assert statuses(responses) == [424, 424]
        assert "to 2 texts, which _sidecar.batching has merged from 2 requests, has 1 embeddings" in responses[0].text


async def test_a_sent_call_is_broken_off_when_nobody_waits(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 2, [Act.WAIT]) as callers:
        waiting = [callers.start("a"), callers.start("b")]
        await eventually_async(lambda: len(callers.texts) == 1)
        for one in waiting:
            one.cancel()
        await eventually_async(lambda: callers.provider.disconnects == 1)


async def test_predict_v2_and_grpc_share_a_call(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 4) as callers:
        tensor = {"name": "t", "datatype": "BYTES", "shape": [2], "data": ["bb", "ccc"]}
        async with inference_client(grpc_address(sidecar)) as grpc:
            plain, v2, by_grpc = await asyncio.gather(
                callers.start("a"),
                callers.post(f"/v2/models/{callers.model_id}/infer", {"inputs": [tensor]}),
                grpc.call("ModelInfer", infer_request("dddd", callers.model_id)),
            )
        assert [sorted(texts) for texts in callers.texts] == [["a", "bb", "ccc", "dddd"]]
        assert lengths(plain) == [1]
        assert v2.json()["outputs"][0]["data"] == [2, 0.5, 3, 0.5]
        assert list(by_grpc.outputs[0].contents.fp32_contents) == [4, 0.5]


async def test_each_caller_falls_back_by_itself(sidecar: Sidecar) -> None:
    async with callers_of(sidecar, 6) as other:
        settings = {"fallback_model_ids": [other.model_id]}
        async with callers_of(sidecar, 6, json_response({}, 500), _sidecar=settings) as callers:
            responses = await asyncio.gather(*[callers.start(word) for word in WORDS[:6]])
            assert [lengths(response) for response in responses] == [[len(word)] for word in WORDS[:6]]
            assert {response.json()["model_id"] for response in responses} == {other.model_id}
            assert len(callers.texts) < 6
            assert len(other.texts) < 6


async def test_a_guardrail_stops_the_caller_whose_text_it_is_about(sidecar: Sidecar) -> None:
    guardrails = {"type": "local_regex", "input_guardrail": {"regex": [".*bomb.*"]}}
    async with callers_of(sidecar, 2, guardrails=guardrails) as callers:
        responses = await asyncio.gather(callers.start("a bomb"), callers.start("cake"), callers.start("tea"))
        assert [response.status_code for response in responses] == [400, 200, 200]
        assert [lengths(response) for response in responses[1:]] == [[4], [3]]
        assert "a bomb" not in [text for texts in callers.texts for text in texts]


async def test_an_interface_is_about_each_callers_own_texts(sidecar: Sidecar) -> None:
    texts = {"type": "array", "maxItems": 2}
    interface = {"input": {"type": "object", "properties": {"text_docs": texts}, "required": ["text_docs"]}}
    async with callers_of(sidecar, 3, interface=interface) as callers:
        responses = await asyncio.gather(callers.start("a"), callers.start("b", "c"), callers.start("d", "e", "f"))
        assert [response.status_code for response in responses] == [200, 200, 400]


async def test_a_change_of_the_model_mixes_nothing_and_loses_nobody(sidecar: Sidecar) -> None:
    def respond(request: Request) -> Script:
        body = request.json()
        rows = [{"embedding": [len(text), len(body["model"])]} for text in body["input"]]
        return json_response({"data": rows})

    async with callers_of(sidecar, 64, respond, max_wait_ms=50) as callers:
        batching = {"batching": {"max_docs": 64, "max_wait_ms": 50}}
        body = {"name": "m", "function_name": "remote", "connector": embedding_connector(callers.provider)}
        created = await asyncio.to_thread(sidecar.post, "/models/_register", {**body, "_sidecar": batching})
        callers.model_id = created["model_id"]
        changed = asyncio.Event()

        async def keep_asking(text: str) -> list[int]:
            seen: list[int] = []
            while not changed.is_set() or seen[-1] == len(MODEL):
                response = await callers.embed(text)
                assert lengths(response) == [len(text)]
                seen.append(int(response.json()["inference_results"][0]["output"][0]["data"][1]))
            return seen

        asking = [asyncio.create_task(keep_asking(word)) for word in WORDS[:8]]
        await eventually_async(lambda: len(callers.texts) > 3)
        path = predict_path(callers.model_id).removesuffix("/_predict")
        change = {"connector": {"parameters": {"endpoint": callers.provider.url, "model": "changed"}}}
        assert (await asyncio.to_thread(sidecar.client.put, path, json=change)).status_code == 200
        changed.set()
        for seen in await asyncio.gather(*asking):
            assert seen == sorted(seen, reverse=True)
            assert set(seen) == {len(MODEL), len("changed")}
