"""The benchmark's provider and load generator of whole requests, and its provider of streams behind TLS."""

import json
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.relays.systems import openai_target
from bench.traffic import provider as stream_provider
from bench.traffic import whole_provider
from bench.traffic.certificate import write_certificate
from bench.traffic.request_load import RequestPlan, measure
from bench.traffic.stream_plan import MARKER, StreamPlan
from bench.traffic.whole_bodies import (
    CHAT,
    EMBEDDING,
    EMBEDDING_8,
    TEXT,
    chat_response,
    documents,
    embeddings_response,
    holds,
    vector,
)
from integration_tests.support.fake_provider import Act, FakeProvider, Script, Step
from integration_tests.support.stores import free_port


def plan_for(port: int, what: str, **fields: Any) -> RequestPlan:
    ask = openai_target(port).asks[what]
    return replace(RequestPlan(port, ask.path, ask.body, what, 1, timeout=50), **fields)


@pytest.mark.parametrize("what", [CHAT, EMBEDDING, EMBEDDING_8])
async def test_every_request_gets_the_response_that_is_expected(what: str) -> None:
    async with whole_provider.serving(0) as server:
        port = server.sockets[0].getsockname()[1]
        report = await measure(plan_for(port, what, connections=3, requests=20))
    assert (report["errors"], report["requests"]) == ({}, 20)
    assert report["took_ms"]["p50"] > 0  # type: ignore[index]


async def test_a_load_of_some_seconds_ends_after_them() -> None:
    async with whole_provider.serving(0) as server:
        report = await measure(plan_for(server.sockets[0].getsockname()[1], CHAT, connections=2, seconds=0.1))
    assert report["requests"] > 0  # type: ignore[operator]
    assert report["seconds"] >= 0.1  # type: ignore[operator]


async def test_the_provider_makes_each_document_its_own_embedding() -> None:
    async with whole_provider.serving(0) as server, httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for texts, numbers in ((["a 1"], [1]), (["a 3", "b 1", "a 3"], [3, 1, 3]), (["a 1"], [1]), ("a 2", [2])):
            response = await client.post(f"{url}/v1/embeddings", json={"input": texts})
            assert [each["embedding"] for each in response.json()["data"]] == [vector(number) for number in numbers]
        assert (await client.get(f"{url}/health")).status_code == 200


def _response(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


RIGHT, WRONG = _response(chat_response()), _response(chat_response().replace(b"engine", b"motors"))


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (WRONG, "wrong body"),
        (_response(b"", b"503 Service Unavailable"), "status 503"),
        (_response(chat_response()[:-1]), "wrong body"),
        (b"SSH-2.0\r\n\r\n", "not HTTP"),
        (Act.CLOSE, "connection closed early"),
    ],
)
async def test_a_response_that_is_not_right_counts_as_failed_and_the_load_goes_on(step: Step, error: str) -> None:
    scripts: list[Script] = [[RIGHT], [RIGHT], [step], [RIGHT]]
    async with FakeProvider(lambda _: scripts.pop(0)) as provider:
        report = await measure(plan_for(provider.port, CHAT, requests=4))
    assert (report["errors"], report["requests"]) == ({error: 1}, 3)


async def test_a_response_may_come_in_pieces_and_differ_from_the_one_before() -> None:
    other = _response(json.dumps({"id": 2, "text": TEXT}).encode())
    scripts: list[Script] = [[RIGHT], [RIGHT[:50], 0.01, RIGHT[50:]], [other], [RIGHT[:-9], 0.01, RIGHT[-9:]]]
    async with FakeProvider(lambda _: scripts.pop(0)) as provider:
        report = await measure(plan_for(provider.port, CHAT, requests=4))
    assert (report["errors"], report["requests"]) == ({}, 4)


def test_a_body_of_any_form_is_right_if_it_holds_what_the_provider_sent() -> None:
    tensors = [{"output": [{"shape": [1536], "data": vector(number)}]} for number in range(8)]
    assert holds(EMBEDDING_8, json.dumps({"inference_results": tensors}).encode())
    flat = [value for number in range(8) for value in vector(number)]
    assert holds(EMBEDDING_8, json.dumps({"outputs": [{"data": flat}]}).encode())
    assert holds(CHAT, json.dumps([{"dataAsMap": {"content": TEXT}}]).encode())


def test_a_body_with_other_text_or_floats_is_wrong() -> None:
    assert not holds(CHAT, b'{"content": "OpenSearch is a"}')
    assert not holds(CHAT, chat_response()[:-1])
    assert not holds(EMBEDDING, embeddings_response(documents(EMBEDDING_8)))
    assert not holds(EMBEDDING_8, embeddings_response(documents(EMBEDDING_8)[::-1]))
    assert not holds(EMBEDDING, json.dumps({"data": [vector(0)[:-1]]}).encode())
    assert not holds(EMBEDDING, json.dumps({"data": [[*vector(0)[:-1], 0.5]]}).encode())


@pytest.mark.parametrize(
    "stream",
    [StreamPlan(3000), StreamPlan(5, every=0.002), StreamPlan(2, text=200_000)],
    ids=["bulk", "paced", "large"],
)
async def test_every_chunk_comes_once_from_a_provider_behind_tls(stream: StreamPlan, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)
    port = free_port()
    async with stream_provider.serving(0, port, served) as server, httpx.AsyncClient(verify=trusting) as client:
        response = await client.post(f"https://127.0.0.1:{port}/", content=stream.prompt().encode())
        plain = server.sockets[0].getsockname()[1]
        counts = (await client.get(f"http://127.0.0.1:{plain}/stats")).json()
    assert [int(match[1]) for match in MARKER.finditer(response.content)] == list(range(stream.chunks))
    assert counts["chunks"] == stream.chunks
    assert counts["finished"] == counts["started"] == 1
