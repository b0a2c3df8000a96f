"""The ids that a shell offers behind `predict` or `models show`, from a sidecar in memory."""

from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.cli.model_id_completion import complete_model_id
from tests.cli.in_memory_sidecar import InMemorySidecar

HITS = [{"_id": "ab1", "_source": {"name": "chat"}}, {"_id": "ac2", "_source": {}}, {"_id": "b", "_source": {}}]


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_the_ids_that_begin_so_are_offered_with_the_models_names(sidecar: InMemorySidecar) -> None:
    sidecar.responses["POST", "/models/_search"] = {"hits": {"hits": HITS}}
    assert complete_model_id({"url": "http://h:1", "stream": False}, "a") == [("ab1", "chat"), ("ac2", "")]
    assert str(sidecar.requests[0].url).startswith("http://h:1/")
    assert sidecar.requests[0].extensions["timeout"]["read"] == 2


def test_nothing_is_offered_that_a_shell_would_run_or_a_terminal_obey(sidecar: InMemorySidecar) -> None:
    ids = ["a$(x)", "a;x", "a\x1b[2J", "a\nb", "a b", "a`x`", "a.b-C_1:2"]
    hits = [{"_id": id, "_source": {"name": "\\$(touch x)\n`y` 'z' \"\x1b]0;t\x07\x9b Ä (1)"}} for id in ids]
    sidecar.responses["POST", "/models/_search"] = {"hits": {"hits": hits}}
    assert complete_model_id({}, "a") == [("a.b-C_1:2", "(touch x) y z 0 t Ä (1)")]


@pytest.mark.parametrize("response", [httpx.ConnectError("refused"), httpx.Response(401), None])
def test_nothing_is_offered_where_the_sidecar_cannot_be_asked(sidecar: InMemorySidecar, response: object) -> None:
    sidecar.responses["POST", "/models/_search"] = response
    assert complete_model_id({}, "") == []
    assert len(sidecar.requests) == 1


@pytest.mark.parametrize("options", [{"user": "ann"}, {"user": "ann", "password": "-"}, {"api_key": "-"}, {"url": "x"}])
def test_nobody_is_asked_for_a_password(sidecar: InMemorySidecar, options: dict[str, str]) -> None:
    assert complete_model_id(options, "") == []
    assert sidecar.requests == []
