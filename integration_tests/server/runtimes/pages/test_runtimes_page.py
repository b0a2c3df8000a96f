"""docs/runtimes.md, pasted as it stands: a model from its first line to its own environment."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.server.runtimes.faulty_models import is_ready, texts
from integration_tests.server.runtimes.pages.pasted_pages import Reader, blocks_of
from integration_tests.server.v2.v2_calls import events
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar

pytestmark = [pytest.mark.timeout(180), pytest.mark.programs("curl")]
PAGE = "runtimes.md"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    reader = Reader(tmp_path, PAGE)
    reader.paste("class Words(MLModel)")
    return reader


@pytest.fixture
def sidecar(reader: Reader) -> Iterator[Sidecar]:
    serve = reader.block("serve --models").split()
    with running_sidecar(reader.folder, arguments=(serve[2], str(reader.folder / serve[3]))) as running:
        reader.replaced |= {
            "http://127.0.0.1:9510": running.url,
            "python3 -m venv": "python3 -m venv --without-pip",  # which would take seconds
        }
        eventually(lambda: is_ready(running, "words"))
        yield running


def test_the_story_of_the_page_runs_from_its_first_line_to_its_last(reader: Reader, sidecar: Sidecar) -> None:
    lines = [json.loads(line) for line in reader.paste("runtime-words/_predict/stream").split("\n") if line]
    assert lines[0] == json.loads(reader.block('{"inference_results"'))
    assert texts(lines) == "You said: good morning "
    assert lines[-1]["inference_results"][0]["output"][0]["dataAsMap"]["is_last"]

    responses = events(reader.paste("curl -sN"))
    (shown,) = events(reader.block("data: {"))
    assert {**responses[0], "id": ""} == {**shown, "id": ""}
    assert len(responses) == 4

    (model,) = json.loads(reader.paste("repository/index"))
    assert (model["name"], model["state"]) == ("words", "READY")
    reader.paste("words/unload")
    assert is_ready(sidecar, "words")  # and loaded again
    reader.paste("python3 -m venv")
    assert "environment_path" in (reader.folder / "models/words/model-settings.json").read_text()
    assert len(events(reader.run(reader.block("curl -sN")))) == 4
    assert set(reader.pasted) == set(blocks_of(PAGE))
