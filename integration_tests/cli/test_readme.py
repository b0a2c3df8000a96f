"""The README's first steps, pasted as they stand: against a demo, but for what needs another's key or cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.cli.commands import environment, run_command
from integration_tests.cli.demo_process import Demo
from integration_tests.cli.guarded import Guarded

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = [block.strip("\n") for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", README, re.MULTILINE) if block.strip()]
COLUMNS = 80
MAX_LINES = 150


def block_with(words: str) -> str:
    """The one block that holds these words, without its indentation."""
    (block,) = [block for block in BLOCKS if words in block]
    return "\n".join(line[4:] for line in block.splitlines())


# What runs here, by words of its block; each has a test below.
RUN = (
    "MODEL=$(opensearch-ml-stream models list",
    "MODEL=$(opensearch-ml-stream models create",
    "endpoints allow",
    "from opensearchpy import OpenSearch",
    "keys create app",
)
# What cannot run here, with the reason.
NOT_RUN = {
    "git clone": "this checkout is the clone, and the demo of these tests is what `make run` starts",
    "serve --store https://user@host:9200": "needs a cluster",
    "serve --models models": "the test of docs/runtimes.md pastes it, with a folder of models",
    "The meaning of life is a question": "output",
    "env 'Demo of openai-chat'": "the test of docs/openai-and-anthropic-apis.md pastes it",
}


def shell(script: str, demo: Demo, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script of the README run by a shell, with the port of the demo for the default one."""
    programs = str(Path(sys.executable).parent)
    path = f"{programs}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("http://127.0.0.1:9510", demo.url)],
        env=environment(**{"PATH": path, "MLSTREAM_URL": demo.url, **variables}),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )


def test_the_readme_is_short_and_counts_the_blueprints_rightly() -> None:
    assert len(README.splitlines()) <= MAX_LINES
    assert f"all {len(list((ROOT / 'blueprints').glob('*.json')))} [blueprints]" in README


def test_every_block_of_the_readme_runs_here_or_has_a_reason() -> None:
    unknown = [block for block in BLOCKS if not any(words in block for words in (*RUN, *NOT_RUN))]
    assert unknown == []


@pytest.mark.programs("curl", "jq")
def test_the_first_curl_line_shows_the_response_and_shows_errors_too(demo: Demo) -> None:
    script = block_with(RUN[0])
    ended = shell(script, demo)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("The meaning of life is a question people have answered in many ways:")
    wrong = shell(script.replace("models/$MODEL", "models/wrong"), demo)
    assert wrong.stdout.startswith("Failed to find model")


def test_a_model_is_made_and_asked_in_two_commands(demo: Demo) -> None:
    script = block_with(RUN[1])
    trusted = run_command("endpoints", "list", "--url", demo.url).stdout.replace("\\", "")
    provider = re.search(r"http://127\.0\.0\.1:[0-9]+", trusted)
    assert provider is not None
    script = script.replace("--set model=gpt-4o", f"--set model=gpt-4o --set endpoint={provider[0]}")
    ended = shell(script, demo, OPENAI_API_KEY="demo")
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout) > 20


def test_a_model_server_of_ones_own_takes_one_command_before(demo: Demo) -> None:
    ended = shell(block_with(RUN[2]), demo)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("allowed: http://127.0.0.1:8000, which has a private address\n")
    removed = run_command("endpoints", "remove", "http://127.0.0.1:8000", "--url", demo.url)
    assert removed.returncode == 0  # other pages' tests share the demo


def test_the_python_program_runs_with_the_client_of_a_cluster_that_is_elsewhere(demo: Demo, tmp_path: Path) -> None:
    program = tmp_path / "ask.py"
    program.write_text(block_with(RUN[3]).replace("http://127.0.0.1:9510", demo.url).replace(":9200", ":1"))
    model = run_command("models", "list", "--url", demo.url).stdout.split("\t")[0]
    ended = subprocess.run(
        [sys.executable, str(program), model], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(ended.stdout) > 20


@pytest.mark.programs("curl")
def test_a_key_is_made_and_used_in_two_commands(demo: Demo, guarded: Guarded) -> None:
    script = block_with(RUN[4]).replace("http://127.0.0.1:9510", guarded.url)
    ended = shell(script, demo, MLSTREAM_STORE=guarded.store)
    assert ended.returncode == 0, ended.stderr
    assert '"name":"opensearch-ml-stream"' in ended.stdout


@pytest.mark.parametrize("words", [*RUN, "serve --store https://user@host:9200", "git clone"])
def test_lines_to_be_pasted_fit_a_terminal(words: str) -> None:
    lines = [line for block in BLOCKS if words in block for line in block.splitlines()]
    assert [line for line in lines if len(line) - 4 > COLUMNS] == []


COMMANDS = (
    "", "serve", "demo", "predict", "models create", "endpoints", "endpoints allow", "blueprints list", "users add",
    "keys create", "env", "login", "logout", "doctor", "record", "replay",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal_and_says_what_the_command_is_for(command: str) -> None:
    shown = run_command(*command.split(), "--help", COLUMNS=str(COLUMNS), TERMINAL_WIDTH=str(COLUMNS)).stdout
    assert "Usage:" in shown
    assert [line for line in shown.splitlines() if len(line) > COLUMNS] == []


def test_the_options_of_commands_that_cannot_run_here_exist() -> None:
    shown = run_command("serve", "--help").stdout
    options = re.findall(r"--[a-z-]+", block_with("serve --store https://user@host:9200"))
    assert options and all(option in shown for option in options)
