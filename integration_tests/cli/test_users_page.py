"""docs/users.md, pasted as it stands: from the first user to the first answer, with curl, Python and the commands."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from integration_tests.cli.commands import environment
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

PAGE = (Path(__file__).parents[2] / "docs" / "users.md").read_text()
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines()) for block in re.findall(r"(?:(?:^ {4}.*|^)\n)+", PAGE, re.M)
]
COLUMNS = 80
PASSWORD = "correct horse"


@dataclass
class Reader:
    """Someone who pastes the page's blocks, one after the other, into a shell in their own folder."""

    folder: Path
    sidecar: Sidecar
    model_id: str
    pasted: list[str] = field(default_factory=list)

    def paste(self, words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """The block with these words, run by a shell, which must succeed; `typed` is what the reader is asked for."""
        ended = self.run(["bash", "-euo", "pipefail", "-c", self.block(words)], typed)
        assert ended.returncode == 0, ended.stderr
        return ended

    def block(self, words: str) -> str:
        (block,) = [block.strip("\n") for block in BLOCKS if words in block]
        self.pasted.append(block)
        return block.replace("http://127.0.0.1:9510", self.sidecar.url).replace(":9200", ":1")

    def run(self, command: list[str], typed: str = "") -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "MLSTREAM_URL": self.sidecar.url,
            "MLSTREAM_STORE": f"sqlite:///{self.folder}/store.db",
            "MODEL": self.model_id,
        }
        return subprocess.run(
            command, env=environment(**variables), input=typed, capture_output=True, text=True, timeout=60,
            cwd=self.folder,
        )  # fmt: skip


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with background_provider(openai_stream(["Ray", "leigh"])) as provider, running_sidecar(tmp_path) as sidecar:
        yield Reader(tmp_path, sidecar, sidecar.create_model(openai(provider.url)))


@pytest.mark.programs("curl")
@pytest.mark.timeout(180)  # of which a busy machine may need most to start the processes
def test_the_story_of_the_page_runs_from_its_first_line_to_its_last(reader: Reader) -> None:
    added = reader.paste("users add ann", f"{PASSWORD}\n")
    assert "Added the user ann with the role ml_full_access" in added.stderr
    reader.paste("keys create app")
    assert (reader.folder / "app.key").stat().st_mode & 0o777 == 0o600
    eventually(lambda: reader.sidecar.client.get("/").status_code == 401)
    # Each of the two commands reads standard input: the first its login, the second nothing.
    listed = reader.paste("opensearch-ml-stream login\n", f"ann\n{PASSWORD}\n")
    assert "Logged in to" in listed.stderr and reader.model_id in listed.stdout
    assert reader.paste("MLSTREAM_API_KEY=$(cat app.key)").stdout == "Rayleigh\n"
    streamed = reader.paste("curl -sN").stdout
    assert ('"response":"Ray"' in streamed, streamed.count('"is_last":true')) == (True, 1)
    (reader.folder / "ask.py").write_text(reader.block("from opensearchpy"))
    asked = reader.run([sys.executable, "ask.py", reader.model_id])
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "Rayleigh", "")
    ended = reader.paste("keys revoke")
    assert "app\tml_predict_access" in ended.stdout and "Forgot the login for" in ended.stderr
    headers = {"x-api-key": (reader.folder / "app.key").read_text().strip()}
    eventually(lambda: reader.sidecar.client.get("/", headers=headers).status_code == 401)
    assert "RequestRefused" in reader.run([sys.executable, "ask.py", reader.model_id]).stderr
    log = reader.sidecar.log.read_text()
    assert PASSWORD not in log and "mls_" not in log
    assert reader.pasted == [block.strip("\n") for block in BLOCKS if block.strip()]


def test_lines_to_be_pasted_fit_a_terminal() -> None:
    assert [line for block in BLOCKS for line in block.splitlines() if len(line) > COLUMNS] == []
