"""`endpoints`: what is sent to the sidecar, and what is said of it."""

import json
import socket
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.settings.endpoint_permissions import PATTERNS, PRIVATE_ALLOWED, PRIVATE_PATTERNS
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar

GET = ("GET", "/_settings?include_defaults=true&flat_settings=true")
PUT = ("PUT", "/_settings")
OPENAI = r"^https://api\.openai\.com/.*$"
OWN = r"^http://10\.0\.0\.5:8000/.*$"


def settings(sidecar: InMemorySidecar, *patterns: str, private: tuple[str, ...] = (), allowed: str = "false") -> None:
    values: dict[str, Any] = {PATTERNS: [OPENAI, *patterns], PRIVATE_PATTERNS: list(private), PRIVATE_ALLOWED: allowed}
    sidecar.responses[GET] = {"persistent": {}, "defaults": values}
    sidecar.responses[PUT] = {"acknowledged": True}


def test_a_private_server_is_allowed_with_its_address_alone(run: Run, sidecar: InMemorySidecar) -> None:
    settings(sidecar)
    ended = run("endpoints", "allow", "http://10.0.0.5:8000/v1/chat")
    assert (ended.code, ended.stdout) == (0, "allowed: http://10.0.0.5:8000, which has a private address\n")
    assert f"{PRIVATE_ALLOWED} is true now, for this server alone" in ended.stderr
    assert "2 patterns are trusted now; see opensearch-ml-stream endpoints list" in ended.stderr
    changes = {PATTERNS: [OPENAI, OWN], PRIVATE_PATTERNS: [OWN], PRIVATE_ALLOWED: True}
    assert sidecar.sent(1) == {"persistent": changes}


@pytest.mark.parametrize("command", ["allow", "remove"])
@pytest.mark.parametrize("url", ["10.0.0.5:8000", "localhost:8000", "gpu"])
def test_a_server_without_a_scheme_is_refused_with_the_form_of_a_url(
    run: Run, sidecar: InMemorySidecar, command: str, url: str
) -> None:
    settings(sidecar)
    ended = run("endpoints", command, url)
    assert ended.code == 2
    assert "a URL begins with its scheme, such as http://10.0.0.5:8000" in ended.stderr


@pytest.mark.parametrize(
    ("url", "address", "is_private"),
    [
        ("https://ml.example.com", "93.184.216.34", False),
        ("https://ml.example.com", "192.168.1.2", True),
        ("https://ml.example.com", None, False),
        ("http://ollama:11434", None, True),
        ("http://localhost:1", None, True),
        ("http://gpu.internal", None, True),
        ("http://8.8.8.8", None, False),
        ("http://[fd00::1]:80", None, True),
    ],
)
def test_whether_an_address_is_private_is_seen_from_here(
    run: Run, sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch, url: str, address: str | None, is_private: bool
) -> None:
    def resolve(host: str, port: None) -> list[Any]:
        if address is None:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    settings(sidecar)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert run("endpoints", "allow", url).code == 0
    assert sidecar.sent(1)["persistent"][PRIVATE_ALLOWED] is is_private


@pytest.mark.parametrize(("option", "is_private"), [("--private", True), ("--public", False)])
def test_whether_an_address_is_private_can_be_said(
    run: Run, sidecar: InMemorySidecar, option: str, is_private: bool
) -> None:
    settings(sidecar)
    run("endpoints", "allow", "https://ml.example.com", option)
    assert sidecar.sent(1)["persistent"][PRIVATE_ALLOWED] is is_private


@pytest.mark.parametrize(
    ("url", "patterns", "private"),
    [("https://api.openai.com", (), ()), ("http://10.0.0.5:8000", (r"^http://10\..*$",), (r"^http://10\..*$",))],
)
def test_what_is_allowed_already_is_not_sent(
    run: Run, sidecar: InMemorySidecar, url: str, patterns: tuple[str, ...], private: tuple[str, ...]
) -> None:
    settings(sidecar, *patterns, private=private, allowed="true" if private else "false")
    assert (
        run("endpoints", "allow", url, "--private" if private else "--public").stdout == f"{url} is allowed already\n"
    )
    assert sidecar.calls() == [GET]


def test_patterns_are_listed_with_whether_they_hold_for_private_addresses(run: Run, sidecar: InMemorySidecar) -> None:
    settings(sidecar, OWN, private=(OWN,), allowed="true")
    assert run("endpoints", "list").stdout == f"{OPENAI}\tno\n{OWN}\tyes\n"
    assert json.loads(run("endpoints", "list", "--json").stdout)[1] == {"pattern": OWN, "private_addresses": True}


@pytest.mark.parametrize("name", ["http://10.0.0.5:8000", OWN])
def test_a_server_is_removed_by_its_url_or_pattern(run: Run, sidecar: InMemorySidecar, name: str) -> None:
    settings(sidecar, OWN, private=(OWN,), allowed="true")
    ended = run("endpoints", "remove", name)
    assert ended.stdout == f"removed: {OWN}\n"
    assert f"{PRIVATE_ALLOWED} is false now" in ended.stderr
    assert sidecar.sent(1) == {"persistent": {PATTERNS: [OPENAI], PRIVATE_PATTERNS: [], PRIVATE_ALLOWED: False}}


def test_what_is_not_trusted_cannot_be_removed(run: Run, sidecar: InMemorySidecar) -> None:
    settings(sidecar)
    ended = run("endpoints", "remove", "http://10.0.0.5:8000", "--url", "http://h:1")
    assert ended.code == 2
    assert "see opensearch-ml-stream endpoints list --url http://h:1" in ended.stderr


def test_an_url_that_no_connector_can_have_is_refused(run: Run) -> None:
    assert "holds a user name" in run("endpoints", "allow", "http://me:secret@h").stderr


def test_the_hint_of_a_refused_connector_can_be_pasted(run: Run, sidecar: InMemorySidecar) -> None:
    reason = "Connector URL is not trusted. If x: opensearch-ml-stream endpoints allow http://10.0.0.5:8000"
    error = {"error": {"type": "x", "reason": reason}, "status": 400}
    sidecar.responses["GET", "/models/m1"] = httpx.Response(400, json=error)
    shown = run("models", "show", "m1", "--url", "http://h:1").stderr
    assert "opensearch-ml-stream endpoints allow http://10.0.0.5:8000 --url http://h:1 (status 400)" in shown
