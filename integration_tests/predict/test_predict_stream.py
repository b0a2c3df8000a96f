"""`_predict/stream` as its users meet it: a real sidecar, real sockets, scripted providers."""

import asyncio
import json
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse
from integration_tests.support import connector_bodies as connectors
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Script,
    anthropic_stream,
    chunk,
    chunked_stream,
    json_answer,
    openai_delta,
    openai_stream,
    sse_event,
)
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar, running_sidecar

QUESTION = {"parameters": {"inputs": "What is the meaning of life?"}}


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {
        "opensearch_ml_stream.heartbeat_seconds": "0.3",
        "opensearch_ml_stream.first_event_wait_seconds": "0.5",
    }
    with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=settings) as running:
        yield running


@pytest.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=10) as opened:
        yield opened


def stream_path(model_id: str, query: str = "") -> str:
    return f"/_plugins/_ml/models/{model_id}/_predict/stream{query}"


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line]


def data_as_map(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["inference_results"][0]["output"][0]["dataAsMap"]
    return found


async def ask(client: httpx.AsyncClient, sidecar: Sidecar, script: Script, query: str = "") -> httpx.Response:
    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        return await client.post(stream_path(model_id, query), json=QUESTION)


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_a_model_of_a_shipped_blueprint_answers_the_rfcs_own_request(
    client: httpx.AsyncClient, sidecar: Sidecar, interface: str
) -> None:
    script = {"openai": openai_stream, "anthropic": anthropic_stream}[interface](["For", "ty", "-two"])
    async with FakeProvider(script) as provider:
        connector = getattr(connectors, interface)(provider.url)
        model_id = await asyncio.to_thread(sidecar.create_model, connector)
        answer = await client.post(stream_path(model_id), json=QUESTION)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    *chunks, last = lines(answer.text)
    assert chunks[0] == {
        "inference_results": [{"output": [{"name": "response", "dataAsMap": {"response": "For"}}], "status_code": 200}]
    }
    assert [data_as_map(one)["response"] for one in chunks] == ["For", "ty", "-two"]
    end = data_as_map(last)
    assert (end["response"], end["is_last"], end["finish_reason"]) == ("", True, "stop")
    assert end["usage"] == {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    assert end["model"] in ("gpt-fake", "claude-fake")
    assert provider.requests[0].json()["stream"] is True
    assert provider.requests[0].json()["messages"][0]["content"] == "What is the meaning of life?"


async def test_server_sent_events_come_in_the_shape_of_ml_commons(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    answer = await ask(client, sidecar, openai_stream(["Hello", ' "wörld"']), "?format=sse")
    assert answer.headers["content-type"] == "text/event-stream"
    first, second, last = answer.text.removesuffix("\n\n").split("\n\n")
    assert first == (
        'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":{"content":"Hello","is_last":false}}]}]}'
    )
    assert data_as_map(json.loads(second[6:])) == {"content": ' "wörld"', "is_last": False}
    assert data_as_map(json.loads(last[6:]))["is_last"] is True


@pytest.mark.parametrize(
    ("headers", "query", "parameters", "kind"),
    [
        ({}, "", {}, "application/x-ndjson"),
        ({"accept": "text/event-stream"}, "", {}, "text/event-stream"),
        ({"accept": "text/event-stream"}, "?format=json", {}, "application/x-ndjson"),
        ({}, "", {"_llm_interface": "openai/v1/chat/completions"}, "text/event-stream"),
        ({}, "?stream=false", {}, "application/json; charset=UTF-8"),
        ({"accept": "application/json"}, "", {}, "application/json; charset=UTF-8"),
        ({"accept": "application/json"}, "?format=sse", {}, "text/event-stream"),
    ],
)
async def test_the_asker_chooses_the_format(
    client: httpx.AsyncClient, sidecar: Sidecar, headers: dict[str, str], query: str, parameters: Any, kind: str
) -> None:
    def script(request: Any) -> Script:
        return openai_stream(["Hi"]) if request.json().get("stream") else json_answer({"choices": []})

    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        body = {"parameters": {"inputs": "x", **parameters}}
        answer = await client.post(stream_path(model_id, query), json=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)


async def test_an_unknown_format_is_refused(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    answer = await ask(client, sidecar, [], "?format=xml")
    assert answer.status_code == 400
    assert answer.json()["error"]["reason"] == "Unknown format [xml]; use sse or json"


async def test_reasoning_and_tool_calls_stay_out_of_the_text(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    def call(index: int, **function: str) -> bytes:
        fragment = {"index": index, "function": function} | ({"id": f"call_{index}"} if "name" in function else {})
        return sse_event({"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}}]})

    pieces = [
        sse_event({"choices": [{"index": 0, "delta": {"reasoning_content": "hmm"}}]}),
        openai_delta("Let me look"),
        call(0, name="weather", arguments=""),
        call(1, name="time", arguments=""),
        call(0, arguments='{"city":'),
        call(1, arguments="{}"),
        call(0, arguments='"Rome"}'),
        sse_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        b"data: [DONE]\n\n",
    ]
    *chunks, last = map(data_as_map, lines((await ask(client, sidecar, chunked_stream(pieces))).text))
    assert "".join(one["response"] for one in chunks) == "Let me look"
    assert "".join(one.get("reasoning", "") for one in chunks) == "hmm"
    arguments = {0: "", 1: ""}
    for one in chunks:
        for fragment in one.get("tool_calls", []):
            arguments[fragment["index"]] += fragment["arguments"]
    assert arguments == {0: '{"city":"Rome"}', 1: "{}"}
    assert last["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(("status", "seen"), [(400, 400), (422, 400), (401, 424), (404, 424), (429, 429), (503, 424)])
async def test_a_provider_that_refuses_gives_a_status_and_its_own_words(
    client: httpx.AsyncClient, sidecar: Sidecar, status: int, seen: int
) -> None:
    script = json_answer({"error": {"message": "no sk-secret-1234567890 today"}}, status, retry_after="7")
    answer = await ask(client, sidecar, script)
    assert answer.status_code == seen
    error = answer.json()["error"]
    assert error["provider_status"] == status
    assert "today" in error["reason"]
    assert "sk-secret" not in answer.text
    assert answer.headers.get("retry-after") == "7"


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ([Act.RESET], "stream_truncated_exception"),
        ([b"0\r\n\r\n"], "stream_truncated_exception"),
        ([chunk(sse_event({"error": {"message": 'say "no"\n'}}))], "status_exception"),
    ],
)
@pytest.mark.parametrize("query", ["", "?format=sse"])
async def test_an_answer_that_breaks_off_ends_with_one_error_object(
    client: httpx.AsyncClient, sidecar: Sidecar, end: list[Any], kind: str, query: str
) -> None:
    answer = await ask(client, sidecar, [SSE_HEAD, chunk(openai_delta("Hel")), 0.05, *end], query)
    assert answer.status_code == 200
    texts = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert len(texts) == 2
    error = json.loads(texts[1])
    assert error["status"] == 424
    assert (error["error"]["type"] if not query else error["type"]) == kind
    assert isinstance(error["error"], str) == bool(query)


async def test_a_provider_that_closes_before_its_first_event_is_a_424(
    client: httpx.AsyncClient, sidecar: Sidecar
) -> None:
    answer = await ask(client, sidecar, [SSE_HEAD, b"0\r\n\r\n"])
    assert answer.status_code == 424
    assert answer.json()["error"]["type"] == "stream_truncated_exception"


async def test_a_provider_that_does_not_stream_is_named(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    answer = await ask(client, sidecar, json_answer({"choices": []}))
    assert answer.status_code == 424
    assert "application/json" in answer.json()["error"]["reason"]


async def test_a_slow_beginning_is_bridged_by_heartbeats(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    slow: Script = [SSE_HEAD, 1.2, chunk(openai_delta("Hi")), chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n"]
    plain = await ask(client, sidecar, slow)
    assert plain.text.startswith("\n\n")
    assert [data_as_map(one)["response"] for one in lines(plain.text)] == ["Hi", ""]
    events = await ask(client, sidecar, slow, "?format=sse")
    assert events.text.startswith(": ping\n: ping\n")
    assert events.text.count("data: ") == 2


async def test_an_error_after_a_slow_beginning_is_the_terminal_object(
    client: httpx.AsyncClient, sidecar: Sidecar
) -> None:
    answer = await ask(client, sidecar, [0.8, *json_answer({"error": "busy"}, 503)])
    assert answer.status_code == 200
    (error,) = lines(answer.text)
    assert error["status"] == 424


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([Act.WAIT], id="before the head"),
        pytest.param([SSE_HEAD, Act.WAIT], id="before the first token"),
        pytest.param([SSE_HEAD, chunk(openai_delta("Hel")), Act.WAIT], id="in the middle, silent"),
        pytest.param([SSE_HEAD, *[chunk(openai_delta("x")), 0.01] * 500], id="in the middle, talking"),
    ],
)
async def test_a_client_that_leaves_frees_the_provider_within_a_second(
    client: httpx.AsyncClient, sidecar: Sidecar, script: Script
) -> None:
    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        with pytest.raises(httpx.ReadTimeout):
            async with client.stream("POST", stream_path(model_id), json=QUESTION, timeout=0.3) as answer:
                async for _ in answer.aiter_raw():
                    if script[-1] is not Act.WAIT:
                        raise httpx.ReadTimeout("enough")
                raise AssertionError("the stream ended")
        left = time.monotonic()
        await asyncio.wait_for(provider.left.wait(), 1)
        assert time.monotonic() - left < 1


async def test_a_client_of_predict_that_leaves_frees_the_provider(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider([Act.WAIT]) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        with pytest.raises(httpx.ReadTimeout):
            await client.post(f"/_plugins/_ml/models/{model_id}/_predict", json=QUESTION, timeout=0.3)
        await asyncio.wait_for(provider.left.wait(), 1)


async def test_a_reader_that_stops_reading_stops_the_reading_of_the_provider(sidecar: Sidecar) -> None:
    offered, taken, left = 50_000_000, 0, asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        await reader.readuntil(b"\r\n\r\n")
        piece = chunk(openai_delta("x" * 10_000))
        writer.write(SSE_HEAD)
        try:
            while taken < offered:
                writer.write(piece)
                taken += len(piece)
                await writer.drain()
        except ConnectionError:
            left.set()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as provider:
        url = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}"
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(url))
        _, writer = await connected(sidecar)
        writer.write(predict_request(model_id, "go on"))
        await asyncio.sleep(1)
        stalled_at = taken
        await asyncio.sleep(0.3)
        # What was taken lies in the sockets' buffers (a few MiB each, the kernel's choice) and in two of 64 KiB.
        assert 0 < taken == stalled_at < offered / 2
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 1)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_body_in_any_number_of_pieces_is_one_request(
    client: httpx.AsyncClient, sidecar: Sidecar, size: int
) -> None:
    prompt = "ünï " * (20 if size == 1 else 20_000)
    body = json.dumps({"parameters": {"inputs": prompt}}, ensure_ascii=False).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    async with FakeProvider(openai_stream(["ok"])) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        headers = {"content-type": "application/json"}
        answer = await client.post(stream_path(model_id), content=pieces(), headers=headers)
    assert answer.status_code == 200
    assert provider.requests[0].json()["messages"][0]["content"] == prompt


async def test_a_body_over_the_limit_is_a_413(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    answer = await client.post(stream_path("m"), content=b" " * (10 * 1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["status"] == 413


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "parse_exception"),
        (b'{"parameters": {', "json_e_o_f_exception"),
        (b'{"parameters": 7}', "illegal_argument_exception"),
        (b'{"parameters": {"a": 1, "a": 2}}', "json_parse_exception"),
        (b"\xff", "parse_exception"),
    ],
)
async def test_a_body_that_is_no_request_is_a_400(
    client: httpx.AsyncClient, sidecar: Sidecar, body: bytes, kind: str
) -> None:
    answer = await client.post(stream_path("m"), content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == kind


async def test_an_unknown_model_is_a_404_before_the_stream(client: httpx.AsyncClient) -> None:
    answer = await client.post(stream_path("nope"), json=QUESTION)
    assert answer.status_code == 404
    assert answer.json()["error"]["reason"] == "Failed to find model"


async def test_a_missing_parameter_is_named_and_the_prompt_is_not(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider([]) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        answer = await client.post(stream_path(model_id), json={"parameters": {"question": "my secret prompt"}})
    assert answer.status_code == 400
    assert "inputs" in answer.json()["error"]["reason"]
    assert "secret" not in answer.text
    assert provider.requests == []


async def test_a_disabled_model_is_a_403(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider([]) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url), is_enabled=False)
        answer = await client.post(stream_path(model_id), json=QUESTION)
    assert answer.status_code == 403
    assert answer.json()["error"]["reason"] == "Model is disabled."


async def test_a_rate_limit_is_a_429_with_the_time_to_wait(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["ok"])) as provider:
        limiter = {"limit": "2", "unit": "HOURS"}
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url), rate_limiter=limiter)
        answers = [await client.post(stream_path(model_id), json=QUESTION) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1700 < int(answers[2].headers["retry-after"]) <= 1800


async def test_curl_and_jq_print_the_text_as_it_comes(sidecar: Sidecar) -> None:
    assert shutil.which("curl") and shutil.which("jq"), "this test needs curl and jq"
    async with FakeProvider(openai_stream(["For", "ty", "-two"], pause=0.15)) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
        url = sidecar.url + stream_path(model_id)
        command = (
            f"curl -sN '{url}' -H 'Content-Type: application/json' -d '{json.dumps(QUESTION)}' | "
            "jq --unbuffered -rj '.inference_results[0].output[0].dataAsMap.response'"
        )
        process = await asyncio.create_subprocess_shell(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        arrivals = []
        while text := await process.stdout.read(100):
            arrivals.append((text, time.monotonic()))
        await process.wait()
    assert b"".join(text for text, _ in arrivals) == b"Forty-two"
    assert len(arrivals) == 3
    assert arrivals[-1][1] - arrivals[0][1] > 0.2


async def test_httpx_sse_reads_the_events(sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["For", "ty"])) as provider:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))

        def read() -> list[dict[str, Any]]:
            with connect_sse(sidecar.client, "POST", stream_path(model_id), json=QUESTION) as source:
                return [event.json() for event in source.iter_sse()]

        events = await asyncio.to_thread(read)
    assert [data_as_map(event)["content"] for event in events] == ["For", "ty", ""]


async def test_a_changed_connector_is_in_force_within_two_seconds(client: httpx.AsyncClient, sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["old"])) as old, FakeProvider(openai_stream(["new"])) as new:
        model_id = await asyncio.to_thread(sidecar.create_model, connectors.openai(old.url))
        connector_id = (await client.get(f"/_plugins/_ml/models/{model_id}")).json()["connector_id"]
        assert "old" in (await client.post(stream_path(model_id), json=QUESTION)).text
        await client.post(f"/_plugins/_ml/models/{model_id}/_undeploy")
        change = await client.put(
            f"/_plugins/_ml/connectors/{connector_id}", json={"parameters": {"endpoint": new.url}}
        )
        assert change.status_code == 200, change.text
        deadline = time.monotonic() + 2
        while "new" not in (await client.post(stream_path(model_id), json=QUESTION)).text:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_a_stop_lets_streams_end_and_cuts_the_rest_with_an_error_object(tmp_path: Path) -> None:
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "1"}
    with running_sidecar(tmp_path, settings=settings) as sidecar:
        short = openai_stream(["a"] * 5, pause=0.1)
        async with (
            FakeProvider(short) as quick,
            FakeProvider([SSE_HEAD, chunk(openai_delta("Hel")), Act.WAIT]) as silent,
            httpx.AsyncClient(base_url=sidecar.url, timeout=20) as client,
        ):
            models = [
                await asyncio.to_thread(sidecar.create_model, connectors.openai(provider.url))
                for provider in (quick, silent)
            ]
            asked = [asyncio.create_task(client.post(stream_path(model), json=QUESTION)) for model in models]
            async with asyncio.timeout(5):
                await asyncio.gather(quick.called.wait(), silent.called.wait())
            await asyncio.sleep(0.1)
            sidecar.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.2)
            with pytest.raises(httpx.ConnectError):
                await client.get("/_health/live")
            finished, cut = await asyncio.gather(*asked)
            assert data_as_map(lines(finished.text)[-1])["is_last"] is True
            *_, error = lines(cut.text)
            assert error["status"] == 503
            await asyncio.wait_for(silent.left.wait(), 1)
        assert await asyncio.to_thread(sidecar.process.wait, 10) == 0
