"""Users and keys of the sidecar's own, from outside: made by the command line, used with curl's headers, revoked."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import COMMAND, environment, output_of
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, promptly
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

BASE = "/_plugins/_ml"
PASSWORD = "correct horse"
ROLES = ("ml_full_access", "ml_read_access", "ml_predict_access")
QUESTION = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}
LOCKED_AFTER = 5


@dataclass(frozen=True)
class Guarded:
    """A sidecar whose callers log in; `keys` by role."""

    sidecar: Sidecar
    store: str
    keys: dict[str, str]

    def ask(self, method: str, path: str, role: str | None = None, **options: object) -> httpx.Response:
        """Send a request with the key of a role, without any for None."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.keys[role]}"}
        return self.sidecar.client.request(method, path, headers=headers, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("accounts")
    store = f"sqlite:///{folder}/store.db"
    keys = {role: output_of("keys", "create", f"of-{role}", "--role", role, "--store", store) for role in ROLES}
    output_of("users", "add", "ann", "--role", "ml_full_access", "--password", "env:PW", "--store", store, PW=PASSWORD)
    with running_sidecar(folder, store, arguments=("--workers", "2")) as sidecar:
        yield Guarded(sidecar, store, keys)


@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda key: {"Authorization": f"ApiKey {key}"},
        lambda key: {"x-api-key": key},
    ],
    ids=["bearer", "apikey", "x-api-key"],
)
def test_a_key_is_given_in_any_of_three_headers(guarded: Guarded, headers: object) -> None:
    sent = headers(guarded.keys["ml_read_access"])  # type: ignore[operator]
    assert guarded.sidecar.client.get(f"{BASE}/models/_search", headers=sent).status_code == 200


def test_a_user_logs_in_with_a_password(guarded: Guarded) -> None:
    search = f"{BASE}/models/_search"
    assert guarded.sidecar.client.get(search, auth=("ann", PASSWORD)).status_code == 200
    refused = guarded.sidecar.client.get(search, auth=("ann", "wrong horse"))
    assert (refused.status_code, refused.text) == (401, "Unauthorized")
    assert refused.headers["www-authenticate"].startswith("Basic realm=")


def test_a_predict_key_streams_and_may_do_nothing_else(guarded: Guarded) -> None:
    with background_provider(openai_stream(["a", "b"])) as provider:
        connector = guarded.ask(
            "POST", f"{BASE}/connectors/_create", "ml_full_access", json=connector_bodies.openai(provider.url)
        ).json()["connector_id"]
        model = {"name": "m", "function_name": "remote", "connector_id": connector}
        model_id = guarded.ask("POST", f"{BASE}/models/_register", "ml_full_access", json=model).json()["model_id"]
        path = f"{BASE}/models/{model_id}/_predict/stream"
        streamed = guarded.ask("POST", path, "ml_predict_access", json=QUESTION)
        assert (streamed.status_code, '"is_last":true' in streamed.text) == (200, True)
        assert guarded.ask("GET", f"{BASE}/models/{model_id}", "ml_predict_access").status_code == 403
        sent = [name for request in provider.requests for name, value in request.headers.items() if "mls_" in value]
        assert sent == [], "credentials of a caller never reach a provider"


def test_a_revoked_key_is_refused_on_every_worker_within_two_seconds(guarded: Guarded) -> None:
    key = output_of("keys", "create", "short", "--role", "ml_read_access", "--expires", "1h", "--store", guarded.store)
    with httpx.Client(base_url=guarded.sidecar.url, headers={"x-api-key": key}) as client:
        assert all(client.get("/", headers={"Connection": "close"}).status_code == 200 for _ in range(8))
        output_of("keys", "revoke", key.split("_")[1], "--store", guarded.store)
        promptly(lambda: client.get("/", headers={"Connection": "close"}).status_code == 401, 2)
        eventually(lambda: {client.get("/", headers={"Connection": "close"}).status_code for _ in range(8)} == {401})


def test_five_wrong_passwords_lock_a_name_on_all_workers(guarded: Guarded) -> None:
    add = ("users", "add", "bob", "--role", "ml_read_access", "--password", "env:PW", "--store", guarded.store)
    output_of(*add, PW=PASSWORD)

    def attempt(password: str) -> httpx.Response:
        return httpx.get(f"{guarded.sidecar.url}/", auth=("bob", password), headers={"Connection": "close"})

    assert [attempt(f"guess {n}").status_code for n in range(LOCKED_AFTER)] == [401] * LOCKED_AFTER
    locked = attempt(PASSWORD)
    assert locked.status_code == 429
    assert 0 < int(locked.headers["retry-after"]) <= 60
    assert guarded.sidecar.client.get("/", auth=("ann", PASSWORD)).status_code == 200


def test_the_first_account_closes_a_running_sidecar(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with running_sidecar(tmp_path, store) as sidecar:
        assert sidecar.client.get("/").status_code == 200
        key = output_of("keys", "create", "first", "--role", "ml_read_access", "--store", store)
        promptly(lambda: sidecar.client.get("/").status_code == 401, 2)
        assert sidecar.client.get("/", headers={"x-api-key": key}).status_code == 200
        assert "mls_" not in sidecar.log.read_text()


def test_a_server_for_the_network_needs_an_account_or_the_operators_word(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    serve = [*COMMAND, "serve", "--port", "0", "--host", "0.0.0.0", "--store", store]
    ended = subprocess.run(serve, capture_output=True, text=True, timeout=60, env=environment())
    assert ended.returncode == 2
    assert "opensearch-ml-stream users add NAME --role ml_full_access" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    with running_sidecar(tmp_path, store, arguments=("--host", "0.0.0.0", "--insecure-no-auth")) as sidecar:
        assert sidecar.client.get("/").status_code == 200
    output_of("keys", "create", "first", "--role", "ml_read_access", "--store", store)
    with running_sidecar(tmp_path, store, arguments=("--host", "0.0.0.0")) as sidecar:
        assert sidecar.client.get("/").status_code == 401
