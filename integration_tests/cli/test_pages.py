"""docs/api.md, providers.md, operations.md, settings.md: commands pasted as they stand, and what they show compared."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.cli.commands import environment, run_command
from integration_tests.cli.demo_process import Demo
from integration_tests.server.runtimes.pages.pasted_pages import blocks_of

from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.stream_parameter import FRAMINGS, read_stream_spec

PAGES = ("api.md", "providers.md", "operations.md", "settings.md")
DOCS = Path(__file__).parents[2] / "docs"
# Every block, by words of it; each has a test below.
TESTED = (
    '"dataAsMap":{"response":"The meaning"}',
    'data: {"inference_results"',
    "blueprints list",
    '"_stream"',
    "${parameters.tools:-null}",
    "endpoints allow",
    "serve --workers",
    "opensearch-ml-stream settings",
    # By integration_tests/faults/processes/test_failures_inside.py:
    "The background task",
    # By integration_tests/upstream/test_proxies.py:
    "HTTPS_PROXY=",
    # By plugin/tests/client/test_docstring_examples.py:
    "import StreamingMLClient",
    "StreamingMLClient(client)",
)
BASE = "/_plugins/_ml"
PREFIXES_OF_EXTENSIONS = ("/generate-stream", "/_ui", "/v1", "/v2")  # which have pages of their own


def block_with(words: str) -> str:
    (block,) = [block for page in PAGES for block in blocks_of(page) if words in block]
    return block


def paste(words: str, demo: Demo) -> str:
    """What the block with these words writes in a shell."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block_with(words)],
        env=environment(PATH=path, MLSTREAM_URL=demo.url), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def streamed(demo: Demo, **query: str) -> list[str]:
    """The lines that a stream of the demo's OpenAI model consists of."""
    listed = run_command("models", "list", "--url", demo.url).stdout
    (model,) = [line.split("\t")[0] for line in listed.splitlines() if "openai-chat" in line][:1]
    body = {"parameters": {"inputs": "What is the meaning of life?"}}
    url = f"{demo.url}{BASE}/models/{model}/_predict/stream"
    with httpx.stream("POST", url, params=query, json=body) as response:
        return [line for line in response.iter_lines() if line]


def shape(value: Any) -> Any:
    """The names in a JSON value, with the types of what they name."""
    if isinstance(value, Mapping):
        return {name: shape(member) for name, member in value.items()}
    return [shape(member) for member in value] if isinstance(value, list) else type(value)


def test_every_block_of_the_pages_has_a_test() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    assert [block for block in blocks if not any(words in block for words in TESTED)] == []


def test_a_stream_of_json_objects_is_as_the_page_shows_it(demo: Demo) -> None:
    shown = [json.loads(line) for line in block_with(TESTED[0]).splitlines()]
    objects = [json.loads(line) for line in streamed(demo)]
    assert [shape(objects[0]), shape(objects[-1])] == [shape(shown[0]), shape(shown[-1])]


def test_a_stream_of_server_sent_events_is_as_the_page_shows_it(demo: Demo) -> None:
    shown = json.loads(block_with(TESTED[1]).removeprefix("data: "))
    first, *_ = streamed(demo, format="sse")
    assert shape(json.loads(first.removeprefix("data: "))) == shape(shown)


def routes_of_the_page() -> Iterator[tuple[str, str]]:
    """Method and path of each row, with `{}` for each parameter; an optional part both there and left out."""
    table = (DOCS / "api.md").read_text("utf-8").partition("\n## Routes\n")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE):
        for named in re.findall(r"`(\w[^`]+|/[^`]+)`", row):
            words, _, path = named.rpartition(" ")
            methods = words.split(", ") if words else ["GET"]
            path = re.sub(r"\{\w+\}", "{}", path)
            with_optional, without = path.replace("[", "").replace("]", ""), re.sub(r"\[.*?\]", "", path)
            base = "" if "(not under the prefix)" in row else BASE
            yield from ((method, base + one) for one in (with_optional, without) for method in methods)


def test_the_page_has_every_route_and_no_other(demo: Demo) -> None:
    paths = httpx.get(f"{demo.url}{BASE}/openapi.json").json()["paths"]
    there = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path))
        for path, operations in paths.items()
        for method in operations
        if method in ("get", "post", "put", "delete")
    }
    core = {route for route in there if not route[1].startswith(PREFIXES_OF_EXTENSIONS)}
    shown = {route for route in routes_of_the_page() if not route[1].startswith(PREFIXES_OF_EXTENSIONS)}
    assert (sorted(core - shown), sorted(shown - core)) == ([], [])


def test_blueprints_are_listed_and_shown(demo: Demo) -> None:
    printed = paste("blueprints list", demo)
    assert "openai-chat" in printed and '"credential"' in printed


def test_a_model_server_of_ones_own_is_allowed_and_forgotten_again(demo: Demo) -> None:
    printed = paste("endpoints allow", demo)
    assert printed.startswith("allowed: http://127.0.0.1:8000, which has a private address\n")
    assert "8000" not in run_command("endpoints", "list", "--url", demo.url).stdout


def test_the_stream_that_the_page_describes_is_read() -> None:
    parameters = json.loads("{" + block_with('"_stream"') + "}")["parameters"]
    assert read_stream_spec(parameters["_stream"]).enable.body == {"stream": True}


def test_a_member_with_the_default_null_is_there_only_if_its_parameter_is() -> None:
    template = Template.compile(block_with("${parameters.tools:-null}"))
    filled = [
        json.loads(template.render_json(Parameters(ConnectorParameters.compile({"model": "m"}), request)))
        for request in ({}, {"tools": "[1]"})
    ]
    assert filled == [{"model": "m"}, {"model": "m", "tools": [1]}]


def test_the_page_names_every_framing() -> None:
    page = (DOCS / "providers.md").read_text("utf-8")
    assert f"| `framing` | {', '.join(f'`{name}`' for name in FRAMINGS)} |" in page


def test_the_command_that_needs_a_cluster_has_options_that_exist() -> None:
    shown = run_command("serve", "--help").stdout
    options = re.findall(r"--[a-z-]+", block_with("serve --workers"))
    assert options and all(option in shown for option in options)


def test_the_settings_are_listed(demo: Demo) -> None:
    assert "opensearch_ml_stream.port" in paste("opensearch-ml-stream settings", demo)


@pytest.mark.parametrize("words", ["blueprints list", "endpoints allow"])
def test_lines_to_be_pasted_fit_a_terminal(words: str) -> None:
    assert [line for line in block_with(words).splitlines() if len(line) > 80] == []
