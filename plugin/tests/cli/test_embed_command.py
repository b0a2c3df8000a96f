"""`embed` against a sidecar in memory: an embedding a line."""

import json
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.connectors.rendering.template import UnfilledPlaceholders
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar


def outputs(*rows: object) -> dict[str, Any]:
    return {"inference_results": [{"output": [{"name": "sentence_embedding", "data": row} for row in rows]}]}


def test_each_text_gets_a_line_with_its_embedding(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/m%2F1/_predict"] = outputs([1, 0.5], [2, -0.25])
    ended = run("embed", "m/1", "one text", "another")
    assert (ended.code, ended.stdout) == (0, "[1,0.5]\n[2,-0.25]\n")
    assert sidecar.sent(0) == {"text_docs": ["one text", "another"]}


def test_texts_may_come_from_stdin_a_line_each(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/m1/_predict"] = outputs([1], [2], [3])
    assert run("embed", "m1", "first", "-", stdin="a\nb\n").stdout == "[1]\n[2]\n[3]\n"
    assert sidecar.sent(0) == {"text_docs": ["first", "a", "b"]}
    assert run("embed", "m1", "-").code == 2


def test_as_json_it_is_the_response(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/m1/_predict"] = outputs([1])
    assert json.loads(run("embed", "m1", "a", "--json").stdout) == outputs([1])


def test_a_chat_model_is_an_error_that_asks_for_a_model_for_embeddings(run: Run, sidecar: InMemorySidecar) -> None:
    reason = UnfilledPlaceholders(["inputs"]).reason
    sidecar.responses["POST", "/models/m1/_predict"] = httpx.Response(
        400, json={"error": {"reason": reason}, "status": 400}
    )
    ended = run("embed", "m1", "a")
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == f"opensearch-ml-stream: {reason} (status 400); is it a model for embeddings?\n"


def test_no_text_gets_the_embedding_of_another(run: Run, sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/m1/_predict"] = outputs([1])
    ended = run("embed", "m1", "a", "b")
    assert (ended.code, ended.stdout) == (1, "")
    assert "holds 1 embeddings for 2 texts" in ended.stderr


@pytest.mark.parametrize("response", [{}, {"inference_results": []}, {"inference_results": [{"output": [{}]}]}])
def test_a_response_without_embeddings_is_an_error(run: Run, sidecar: InMemorySidecar, response: object) -> None:
    sidecar.responses["POST", "/models/m1/_predict"] = response
    ended = run("embed", "m1", "a")
    assert (ended.code, ended.stdout) == (1, "")
    assert "holds no embeddings; --json shows it" in ended.stderr
