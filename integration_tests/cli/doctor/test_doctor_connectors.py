"""`doctor`, `record` and `replay` of a connector's file: against providers that are healthy, or broken in one way."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.cli.commands import COMMAND, Ended, environment, run_command
from integration_tests.support.background_provider import background_provider
from integration_tests.support.certificates import new_authority
from integration_tests.support.conditions import PATIENCE_SECONDS
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import SSE_HEAD, Act, chunk, json_response, openai_delta, openai_stream

KEY = "sk-secret-1234567890"
PROMPT = "where in all of Rome does Alice live"
TRUSTED = {
    "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__TRUSTED_CONNECTOR_ENDPOINTS_REGEX": '["^https?://(127\\\\.0\\\\.0\\\\.1|localhost)(:[0-9]+)?/.*$"]',
    "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__CONNECTOR__PRIVATE_IP_ENABLED": "true",
}


class Desk:
    """Someone at a shell with a connector's file for a provider."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = dict(TRUSTED)

    def run(self, command: str, url: str, *arguments: str, **client_config: int) -> Ended:
        """A command with the file of a connector to `url`; neither output may show its credential."""
        file = self.folder / "connector.json"
        file.write_text(json.dumps(openai(url, **({"client_config": client_config} if client_config else {}))))
        ended = run_command(command, *arguments, "--connector", str(file), **self.variables)
        assert KEY not in ended.stdout + ended.stderr
        return ended

    def doctor(self, url: str, **client_config: int) -> dict[str, Any]:
        """The JSON of a diagnosis that must find a fault."""
        ended = self.run("doctor", url, PROMPT, "--json", **client_config)
        assert (ended.returncode, ended.stderr) == (1, "")
        document: dict[str, Any] = json.loads(ended.stdout)
        assert document["works"] is False
        return document


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def failed(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["name"], step["summary"]) for step in document["steps"] if step["verdict"] == "failed"]


def test_a_healthy_provider_works(desk: Desk) -> None:
    with background_provider(openai_stream(["a", "b"])) as provider:
        ended = desk.run("doctor", provider.url, PROMPT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith("All works.\n")
    assert provider.requests[0].json()["messages"] == [{"role": "user", "content": PROMPT}]


def test_an_expired_certificate_is_told_with_its_end(desk: Desk) -> None:
    authority = new_authority()
    trusted = desk.folder / "authority.pem"
    trusted.write_text(authority.certificate_pem)
    desk.variables["SSL_CERT_FILE"] = str(trusted)
    certificate = authority.issue("localhost", valid_days=-1)
    with background_provider(openai_stream(["a"]), certificate.server_context(desk.folder)) as provider:
        document = desk.doctor(provider.url)
    ((name, summary),) = failed(document)
    assert name == "tls" and "expired" in summary
    assert document["advice"][0].startswith("TLS: ")


def test_a_refused_credential_is_told_with_what_to_do(desk: Desk) -> None:
    with background_provider(json_response({"error": {"message": f"Incorrect API key {KEY}"}}, 401)) as provider:
        document = desk.doctor(provider.url)
    ((name, summary),) = failed(document)
    assert name == "response" and "401" in summary
    assert "credential" in document["advice"][0]


def test_a_provider_that_says_nothing_is_told_after_the_read_timeout(desk: Desk) -> None:
    with background_provider([Act.WAIT]) as provider:
        document = desk.doctor(provider.url, read_timeout=1)
    assert [name for name, _ in failed(document)] == ["response"]
    assert document["advice"]


def test_a_stream_that_breaks_is_recorded_and_plays_as_it_was(desk: Desk) -> None:
    with background_provider([SSE_HEAD, chunk(openai_delta("part")), Act.CLOSE]) as provider:
        recorded = desk.run("record", provider.url, str(desk.folder / "broken.jsonl"), PROMPT)
    assert recorded.returncode == 0 and "with the broken connection at its end" in recorded.stderr
    with replaying(desk.folder / "broken.jsonl") as url:
        assert [name for name, _ in failed(desk.doctor(url))] == ["end"]


def test_a_recording_has_neither_credential_nor_prompt_and_plays_again(desk: Desk) -> None:
    file = desk.folder / "stream.jsonl"
    with background_provider(openai_stream(["You asked: ", PROMPT, f" with {KEY}", "!"])) as provider:
        recorded = desk.run("record", provider.url, str(file), PROMPT)
    assert (recorded.returncode, recorded.stdout) == (0, "")
    assert recorded.stderr.startswith("Recorded ") and recorded.stderr.endswith(f" to {file}\n")
    assert "You asked: " in file.read_text()
    assert "Alice" not in file.read_text() and KEY not in file.read_text()
    with replaying(file, "--speed", "0") as url:
        assert desk.run("doctor", url).returncode == 0
        played = httpx.post(f"{url}/any/path", json={})
        assert (played.status_code, played.headers["content-type"]) == (200, "text/event-stream")
        assert "You asked: " in played.text


def test_a_port_in_use_is_told(desk: Desk) -> None:
    file = desk.folder / "stream.jsonl"
    with background_provider(openai_stream(["a"])) as provider:
        assert desk.run("record", provider.url, str(file), PROMPT).returncode == 0
        ended = run_command("replay", str(file), "--port", str(provider.port))
    assert ended.returncode == 1 and f"Cannot listen on port {provider.port}" in ended.stderr


@contextmanager
def replaying(file: Path, *arguments: str) -> Iterator[str]:
    """The URL of `replay` in a process of its own, which Ctrl-C must end."""
    command = [*COMMAND, "replay", str(file), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            yield process.stdout.readline().decode().strip()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 130
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()
