"""docs/doctor.md, pasted as it stands: the commands run, and print what the page shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import COMMAND, environment
from integration_tests.cli.doctor.faulty_proxies import BufferingProxy, running_proxy
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import PATIENCE_SECONDS
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import LOOPBACK, Sidecar

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "doctor.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines()).strip("\n")
    for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.M)
    if block.strip()
]
SETTINGS = {"MLSTREAM_SETTING__" + name.upper().replace(".", "__"): value for name, value in LOOPBACK.items()}


class Reader:
    """Someone who pastes the page's blocks into a shell, beside a running sidecar with a model."""

    def __init__(self, folder: Path, sidecar: Sidecar, provider_url: str) -> None:
        self.folder = folder
        self.sidecar = sidecar
        self.provider_url = provider_url
        self.model_id = sidecar.create_model(openai(provider_url))

    def paste(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {
            "PATH": programs,
            "MLSTREAM_URL": self.sidecar.url,
            "MODEL": self.model_id,
            "OPENAI_API_KEY": "none",
            "COLUMNS": "200",
        }
        every = environment(**{**own, **SETTINGS, **variables})
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], env=every, capture_output=True, text=True, timeout=100,
            cwd=self.folder,
        )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "blueprints").symlink_to(ROOT / "blueprints")
    return folder


@pytest.fixture(scope="module")
def reader(folder: Path, shared_sidecar: Sidecar) -> Iterator[Reader]:
    """Of text in so few parts that `doctor` says nothing of their times."""
    with background_provider(openai_stream(["Al", "ice"])) as provider:
        yield Reader(folder, shared_sidecar, provider.url)


@pytest.fixture
def patient_reader(folder: Path, shared_sidecar: Sidecar) -> Iterator[Reader]:
    texts = [f"w{number} " for number in range(8)]
    with background_provider(openai_stream(texts, pause=0.1)) as provider:
        yield Reader(folder, shared_sidecar, provider.url)


def block(words: str) -> str:
    (found,) = [one for one in BLOCKS if words in f"{one}\n"]
    return found


def shape(output: str) -> list[str]:
    """The lines of an output without its measures, ports and ids; lines that only go on are left out."""
    output = re.sub(r" (chunk|read)\b", r" \1s", output)  # as many come at once as the machine likes
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("  ")]
    return [re.sub(r"[ ,]+", " ", re.sub(r"[0-9][0-9.,]*|model m\b", "N", line)).strip() for line in lines]


def test_the_first_command_prints_what_the_page_shows(reader: Reader) -> None:
    ended = reader.paste(block('doctor "$MODEL"\n').strip())
    assert (ended.returncode, ended.stderr) == (0, "")
    assert shape(ended.stdout) == shape(block("ok       document"))


@pytest.mark.slow
def test_a_buffering_proxy_ends_the_output_as_shown(patient_reader: Reader) -> None:
    with running_proxy(BufferingProxy, patient_reader.sidecar.url) as proxy:
        ended = patient_reader.paste(block('--through "$PROXY"'), PROXY=proxy)
    assert (ended.returncode, ended.stderr) == (1, "")
    shown = shape(block("proxy http"))
    assert [line[:40] for line in shape(ended.stdout)[-len(shown) :]] == [line[:40] for line in shown]


@pytest.mark.programs("jq")
def test_a_connectors_file_is_diagnosed_without_a_sidecar(reader: Reader) -> None:
    endpoint = f'.connector | .parameters.endpoint = "{reader.provider_url}" |'
    ended = reader.paste(block("jq").replace(".connector |", endpoint), MLSTREAM_URL="http://127.0.0.1:1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("All works.\n")


def test_a_recording_is_made_and_played(reader: Reader) -> None:
    record, replay = block("record stream.jsonl").splitlines()
    ended = reader.paste(record)
    assert (ended.returncode, ended.stdout) == (0, "") and ended.stderr.startswith("Recorded ")
    words = [word.replace("9600", "0") for word in replay.split()[1:]]
    command = [*COMMAND, *words]
    with subprocess.Popen(command, cwd=reader.folder, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"http://127.0.0.1:")
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def test_every_block_of_the_page_is_pasted_or_compared() -> None:
    known = ('doctor "$MODEL"', "ok       document", "proxy http", "jq ", "record stream.jsonl")
    assert [one for one in BLOCKS if not any(words in one for words in known)] == []
