"""docs/generate-stream.md, pasted as it stands, against a demo."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.cli.commands import environment
from integration_tests.cli.demo_process import Demo
from integration_tests.support.conditions import eventually

PAGE = (Path(__file__).parents[2] / "docs" / "generate-stream.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.M)
]


def paste(words: str, demo: Demo) -> str:
    """What the block with these words writes in a shell."""
    (block,) = [block.strip("\n") for block in BLOCKS if words in block]
    assert [line for line in block.splitlines() if len(line) > 80] == []
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace("http://127.0.0.1:9510", demo.url)],
        env=environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", MLSTREAM_URL=demo.url),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.programs("curl")
def test_a_model_is_named_and_answers_as_the_page_says(demo: Demo) -> None:
    assert "generate_stream_model" in paste("curl -X PUT", demo)
    eventually(lambda: paste("curl -sN", demo).startswith('data: {"text": "The'))  # cut as the demo cuts its words
    *events, done, end = paste("curl -sN", demo).split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    assert events[-1].startswith('data: {"text": "The meaning of life is')


def test_the_page_has_no_other_commands() -> None:
    commands = [block for block in BLOCKS if "curl" in block or "opensearch-ml-stream " in block]
    assert len(commands) == 2
