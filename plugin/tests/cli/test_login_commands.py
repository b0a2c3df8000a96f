"""`login` and `logout` against a sidecar in memory that admits one key and one user."""

import base64
import json
from pathlib import Path

import httpx
import pytest

from opensearch_ml_stream.plugin.cli.login_file import login_file, read_logins, write_logins
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from tests.cli.conftest import Run
from tests.cli.in_memory_sidecar import InMemorySidecar

URL = "http://127.0.0.1:9510"
KEY = "mls_00112233_secretsecret"
ANN = ("ann", "correct horse")
ADMITTED = {f"Bearer {KEY}", "Basic " + base64.b64encode(":".join(ANN).encode()).decode()}


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch) -> InMemorySidecar:
    """A sidecar whose callers log in."""
    in_memory = InMemorySidecar()

    def respond(_transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        response = in_memory.handle(request)
        if request.headers.get("authorization") not in ADMITTED:
            return httpx.Response(401, text="Unauthorized")
        return httpx.Response(200, json={"name": "opensearch-ml-stream"}) if request.url.path == "/" else response

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", respond)
    return in_memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return login_file({"XDG_CONFIG_HOME": str(tmp_path / "config")})


def presented(sidecar: InMemorySidecar) -> list[str | None]:
    return [request.headers.get("authorization") for request in sidecar.requests]


def test_a_key_from_standard_input_is_checked_and_remembered_for_later_commands(
    run: Run, sidecar: InMemorySidecar, path: Path
) -> None:
    ended = run("login", "--api-key", "-", stdin=f"{KEY}\n")
    assert (ended.code, ended.stdout) == (0, "")
    assert ended.stderr == f"Logged in to {URL} as the key 00112233. Remembered in {path}, for you alone\n"
    assert presented(sidecar) == [None, f"Bearer {KEY}"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == {"version": 1, "logins": {URL: {"key": KEY}}}
    sidecar.responses["POST", "/models/_search"] = {"hits": {"hits": []}}
    assert run("models", "list").code == 0
    assert presented(sidecar)[-1] == f"Bearer {KEY}"
    assert run("models", "list", "--url", "http://localhost:9510").code == 1
    assert presented(sidecar)[-1] is None


def test_a_user_and_the_password_are_asked_for(run: Run, path: Path) -> None:
    ended = run("login", stdin="ann\ncorrect horse\n")
    assert (ended.code, ended.stdout) == (0, "")
    assert f"Logged in to {URL} as ann." in ended.stderr and "horse" not in ended.stderr
    assert read_logins(path) == {URL: NameAndPassword(*ANN)}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("--user", "ann", "--password", "env:PW"), "ann"), (("--api-key", "env:KEY"), "the key 00112233")],
)
def test_a_login_may_be_checked_without_being_remembered(
    run: Run, path: Path, arguments: tuple[str, ...], name: str
) -> None:
    ended = run("login", "--no-store", *arguments, PW=ANN[1], KEY=KEY)
    assert (ended.code, ended.stderr) == (0, f"{URL} lets in {name}\n")
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("--user", "ann", "--password", "env:WRONG"), "ann"),
        (("--api-key", "env:WRONG"), "the key"),
        (("--api-key", "env:OTHER"), "the key 99"),
    ],
)
def test_a_login_that_is_refused_is_not_remembered(run: Run, path: Path, arguments: tuple[str, ...], name: str) -> None:
    write_logins(path, {URL: ApiKey(KEY)})
    ended = run("login", *arguments, WRONG="hunter22", OTHER="mls_99_hunter22")
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == (f"opensearch-ml-stream: {URL} refuses {name} (status 401); nothing is remembered\n")
    assert read_logins(path) == {URL: ApiKey(KEY)}


def test_a_sidecar_that_lets_everyone_in_gets_no_login_to_check(
    run: Run, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    open_sidecar = InMemorySidecar({("GET", "/"): {"name": "opensearch-ml-stream"}})
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _transport, one: open_sidecar.handle(one))
    ended = run("login", "--api-key", "env:KEY", KEY=KEY)
    assert ended.code == 1
    assert f"{URL} lets everyone in, so no login can be checked; nothing is remembered" in ended.stderr
    assert presented(open_sidecar) == [None] and not path.exists()


def test_a_login_without_tls_to_another_machine_comes_with_a_warning(run: Run, path: Path) -> None:
    ended = run("login", "--api-key", "env:KEY", "--url", "http://sidecar:9510", KEY=KEY)
    assert ended.code == 0
    assert ended.stderr.startswith("warning: http://sidecar:9510 is not encrypted: ")
    assert list(read_logins(path)) == ["http://sidecar:9510"]


def test_a_variable_that_goes_before_the_remembered_login_is_named(run: Run) -> None:
    ended = run("login", "--api-key", "env:KEY", KEY=KEY, MLSTREAM_API_KEY="other")
    assert ended.code == 0
    assert ended.stderr.endswith("\nwarning: the key of MLSTREAM_API_KEY takes precedence over it\n")


def widen(path: Path) -> None:
    write_logins(path, {URL: ApiKey(KEY)})
    path.chmod(0o644)


@pytest.mark.parametrize("command", [("login", "--api-key", "env:KEY"), ("logout",), ("models", "list")])
def test_a_file_that_others_can_read_is_used_by_no_command(
    run: Run, sidecar: InMemorySidecar, path: Path, command: tuple[str, ...]
) -> None:
    widen(path)
    ended = run(*command, KEY=KEY)
    assert (ended.code, ended.stdout) == (1, "")
    assert "Others can read or write the remembered logins" in ended.stderr
    assert set(presented(sidecar)) <= {None}


def test_a_file_that_others_can_read_is_of_no_matter_to_a_command_with_its_own_login(
    run: Run, sidecar: InMemorySidecar, path: Path
) -> None:
    widen(path)
    sidecar.responses["POST", "/models/_search"] = {"hits": {"hits": []}}
    assert run("models", "list", MLSTREAM_API_KEY=KEY).code == 0


def test_logout_forgets_this_url_alone(run: Run, path: Path) -> None:
    write_logins(path, {URL: ApiKey(KEY), "https://b": ApiKey("other")})
    assert run("logout").stderr == f"Forgot the login for {URL}\n"
    assert read_logins(path) == {"https://b": ApiKey("other")}
    again = run("logout")
    assert (again.code, again.stderr) == (0, f"No login is remembered for {URL}; there is one for https://b\n")
    assert run("logout", "--url", "https://B:443/").stderr == "Forgot the login for https://b\n"
    assert run("logout").stderr == f"No login is remembered for {URL}\n"


def test_the_errors_of_a_file_come_before_a_password_is_asked_for(path: Path, run: Run) -> None:
    widen(path)
    ended = run("login", stdin="")  # asking would fail with another error
    assert "Others can read" in ended.stderr
