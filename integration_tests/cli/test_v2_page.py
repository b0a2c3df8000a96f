"""docs/v2.md, pasted as it stands into a shell beside a demo."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from integration_tests.cli.commands import environment
from integration_tests.cli.demo_process import Demo
from integration_tests.server.v2.v2_calls import events, texts

PAGE = (Path(__file__).parents[2] / "docs" / "v2.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.strip("\n").splitlines())
    for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.MULTILINE)
    if block.strip()
]
OUTPUT = 'data: {"model_name"'


def paste(demo: Demo, words: str) -> str:
    """The output of the block with these words."""
    (block,) = [block for block in BLOCKS if words in block]
    model = re.search(r"models/(\S+)/_predict", demo.output)
    assert model is not None
    variables = {"PATH": os.environ["PATH"], "URL": demo.url, "MODEL": model[1]}
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace("http://127.0.0.1:9510", demo.url)],
        env=environment(**variables), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_every_block_of_the_page_is_run_or_is_output() -> None:
    run = ("infer_stream -H", "generate -H", "health/ready")
    assert [block for block in BLOCKS if not any(words in block for words in (*run, OUTPUT))] == []
    assert [sum(words in block for block in BLOCKS) for words in run] == [1, 1, 1]


@pytest.mark.programs("curl")
def test_the_stream_is_as_the_page_shows_it(demo: Demo) -> None:
    responses = events(paste(demo, "infer_stream -H"))
    assert "".join(texts(responses)).startswith("The meaning of life is a question people have answered")
    (shown,) = (json.loads(block.removeprefix("data: ")) for block in BLOCKS if OUTPUT in block)
    assert responses[0].keys() == shown.keys()
    assert {**responses[0]["outputs"][0], "data": ""} == {**shown["outputs"][0], "data": ""}
    assert responses[-1]["parameters"]["finish_reason"] == "stop"


@pytest.mark.programs("curl")
def test_the_text_of_the_generate_extension_comes_back_whole(demo: Demo) -> None:
    response = json.loads(paste(demo, "generate -H"))
    assert response["text_output"].startswith("The meaning of life is a question people have answered")


@pytest.mark.programs("curl")
def test_the_server_tells_of_its_models(demo: Demo) -> None:
    printed = paste(demo, "health/ready")
    decoder = json.JSONDecoder()
    ready, end = decoder.raw_decode(printed)
    assert ready == {"ready": True}
    metadata, end = decoder.raw_decode(printed, end)
    assert metadata["platform"]
    demos = {"Demo of anthropic-messages", "Demo of openai-chat"}  # pages that came before may have made others
    assert demos <= {model["name"] for model in json.loads(printed[end:])}
