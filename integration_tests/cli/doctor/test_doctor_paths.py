"""`doctor` of a model: what it says of the way to the sidecar, and of a proxy before it.

How it judges times is in extensions/tests/doctor/cli, by a clock of the test. The text here comes in so few parts
that it says nothing of them; those tests in which it has to are slow.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from integration_tests.cli.commands import run_command
from integration_tests.cli.doctor.faulty_proxies import (
    BufferingProxy,
    CompressingProxy,
    CuttingProxy,
    Proxy,
    RefusingProxy,
    RetryingProxy,
    TruncatingProxy,
    running_proxy,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar

FEW_TEXTS = ["Al", "ice ", "lives"]
KEY = "sk-secret-1234567890"
QUESTION = "where does Alice live"


@dataclass(frozen=True, slots=True)
class Streaming:
    """A sidecar with a model whose provider streams steadily."""

    url: str
    model_id: str
    provider: FakeProvider

    def doctor(self, *arguments: str) -> tuple[int, str]:
        """The exit code and the output of `doctor`, which must show no secret and nothing on stderr."""
        ended = run_command("doctor", self.model_id, QUESTION, "--url", self.url, *arguments)
        assert ended.stderr == "" and KEY not in ended.stdout
        return ended.returncode, ended.stdout

    def through(self, kind: type[Proxy]) -> tuple[int, dict[str, Any]]:
        """The exit code and the JSON of `doctor` with such a proxy before the sidecar."""
        with running_proxy(kind, self.url) as proxy:
            code, printed = self.doctor("--through", proxy, "--json")
        document: dict[str, Any] = json.loads(printed)
        assert document["works"] is (code == 0)
        return code, document


@pytest.fixture(scope="module")
def streaming(shared_sidecar: Sidecar) -> Iterator[Streaming]:
    with background_provider(openai_stream(FEW_TEXTS)) as provider:
        yield Streaming(shared_sidecar.url, shared_sidecar.create_model(openai(provider.url)), provider)


@pytest.fixture(scope="module")
def steadily(shared_sidecar: Sidecar) -> Iterator[Streaming]:
    """Text that comes in many parts, far enough apart that a busy machine joins few of them."""
    texts = [f"w{number} " for number in range(8)]
    with background_provider(openai_stream(texts, pause=0.1)) as provider:
        yield Streaming(shared_sidecar.url, shared_sidecar.create_model(openai(provider.url)), provider)


def findings(document: dict[str, Any]) -> list[tuple[str, str, str, list[str]]]:
    return [(one["kind"], one["place"], one["verdict"], one["formats"]) for one in document["findings"]]


def test_a_healthy_stream_works_and_so_does_a_proxy_that_passes_it_on(streaming: Streaming) -> None:
    called = len(streaming.provider.requests)
    code, document = streaming.through(Proxy)
    assert (code, document["findings"], document["advice"]) == (0, [], [])
    assert [(path["place"], path["format"], path["end"]) for path in document["paths"]] == [
        ("sidecar", "SSE", "complete"), ("sidecar", "NDJSON", "complete"),
        ("proxy", "SSE", "complete"), ("proxy", "NDJSON", "complete"),
    ]  # fmt: skip
    assert [path["received"] for path in document["paths"]] == [1, 1, 1, 1]
    assert len(streaming.provider.requests) - called == 5  # one for the steps, one for each way and format
    assert {request.json()["messages"][0]["content"] for request in streaming.provider.requests} == {QUESTION}


def test_a_text_goes_to_a_connector_that_asks_for_messages_on_every_way(shared_sidecar: Sidecar) -> None:
    connector = openai("http://127.0.0.1:1")
    del connector["parameters"]["messages"]
    with background_provider(openai_stream(["Al", "ice"])) as provider:
        connector["parameters"]["endpoint"] = provider.url
        streaming = Streaming(shared_sidecar.url, shared_sidecar.create_model(connector), provider)
        code, printed = streaming.doctor()
        assert (code, printed.splitlines()[-1]) == (0, "All works."), printed
        asked = [request.json()["messages"] for request in provider.requests]
    assert asked == [[{"role": "user", "content": QUESTION}]] * 3


def test_for_people_it_ends_with_a_line_that_says_so(streaming: Streaming) -> None:
    code, printed = streaming.doctor()
    assert code == 0
    assert [line.split()[:2] for line in printed.splitlines() if line.startswith(("ok", "skipped"))] == [
        ["ok", "document"], ["ok", "template"], ["ok", "spec"], ["ok", "resolve"], ["ok", "connect"],
        ["skipped", "TLS"], ["ok", "response"], ["ok", "first"], ["ok", "first"], ["ok", "gaps"], ["ok", "end"],
    ]  # fmt: skip
    assert "Authorization: Bearer ${credential.openAI_key}" in printed
    assert printed.endswith("is looked at with --through URL.\nAll works.\n")


def test_a_proxy_that_compresses_is_a_warning_as_long_as_the_text_arrives(streaming: Streaming) -> None:
    code, document = streaming.through(CompressingProxy)
    assert code == 0
    assert findings(document) == [("compresses", "proxy", "warning", ["SSE", "NDJSON"])]
    assert {path["headers"].get("content-encoding") for path in document["paths"]} == {None, "gzip"}


def test_a_proxy_that_cuts_is_found(streaming: Streaming) -> None:
    code, document = streaming.through(TruncatingProxy)
    assert code == 1
    assert findings(document) == [("cuts", "proxy", "failed", ["SSE", "NDJSON"])]
    assert {path["end"] for path in document["paths"] if path["place"] == "proxy"} == {"cut"}
    assert [path["received"] for path in document["paths"]] == [1, 1, 1, 1]


def test_a_proxy_that_retries_is_found(streaming: Streaming) -> None:
    code, document = streaming.through(RetryingProxy)
    assert code == 1
    assert ("retries", "proxy", "failed", ["SSE", "NDJSON"]) in findings(document)
    assert [path["received"] for path in document["paths"]] == [1, 1, 2, 2]


def test_a_proxy_with_an_error_page_is_told_with_its_status(streaming: Streaming) -> None:
    code, document = streaming.through(RefusingProxy)
    assert code == 1
    assert findings(document) == [("refuses", "proxy", "failed", ["SSE", "NDJSON"])]
    assert "responds with status 504" in document["findings"][0]["summary"]


def test_a_proxy_that_cannot_be_reached_is_found_and_said_for_people(streaming: Streaming) -> None:
    code, printed = streaming.doctor("--through", "http://127.0.0.1:1")
    assert code == 1
    assert "failed  the proxy http://127.0.0.1:1 cannot be reached" in printed
    assert "What to do\n-  the proxy http://127.0.0.1:1: Check the address" in printed


def test_an_unknown_model_is_an_error_of_the_command(streaming: Streaming) -> None:
    ended = run_command("doctor", "wrong", "--url", streaming.url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Failed to find model" in ended.stderr


@pytest.mark.slow
def test_a_proxy_that_buffers_is_found(steadily: Streaming) -> None:
    code, document = steadily.through(BufferingProxy)
    assert code == 1
    assert findings(document) == [("buffers", "proxy", "failed", ["SSE", "NDJSON"])]
    assert "holds the text back until the end" in document["findings"][0]["summary"]
    assert "proxy_buffering off" in document["advice"][0]


@pytest.mark.slow
def test_a_proxy_that_cuts_at_a_timeout_is_found(steadily: Streaming) -> None:
    code, document = steadily.through(CuttingProxy)
    assert code == 1
    assert findings(document) == [("cuts", "proxy", "failed", ["SSE", "NDJSON"])]
    assert {path["end"] for path in document["paths"] if path["place"] == "proxy"} == {"cut"}
    assert [path["received"] for path in document["paths"]] == [1, 1, 1, 1]
