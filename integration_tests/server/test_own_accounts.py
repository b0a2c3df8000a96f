"""Users and keys of the sidecar's own, from outside: made by the command line, used, revoked."""

from pathlib import Path

import httpx
from integration_tests.cli.commands import output_of, run_process
from integration_tests.server.guarded_sidecars import BASE, Guarded
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import running_sidecar

PASSWORD = "correct horse"
QUESTION = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}
LOCKED_AFTER = 5


def test_a_predict_key_streams_and_may_do_nothing_else(guarded: Guarded) -> None:
    key = guarded.keys["ml_predict_access"]
    with background_provider(openai_stream(["a", "b"])) as provider:
        model_id = guarded.create_model(connector_bodies.openai(provider.url), access_mode="public")
        path = f"{BASE}/models/{model_id}/_predict/stream"
        streamed = guarded.ask("POST", path, key, json=QUESTION)
        assert (streamed.status_code, '"is_last":true' in streamed.text) == (200, True)
        assert guarded.ask("GET", f"{BASE}/models/{model_id}", key).status_code == 403
        sent = [name for request in provider.requests for name, value in request.headers.items() if "mls_" in value]
        assert sent == [], "credentials of a caller never reach a provider"


def test_a_revoked_key_is_refused_on_every_worker(guarded: Guarded) -> None:
    """Once it is read again: `plugin/tests/security/test_own_gate.py`."""
    key = output_of("keys", "create", "short", "--role", "ml_read_access", "--expires", "1h", "--store", guarded.store)
    assert guarded.statuses("GET", "/", key) == {200}
    output_of("keys", "revoke", key.split("_")[1], "--store", guarded.store)
    eventually(lambda: guarded.statuses("GET", "/", key) == {401})


def test_five_wrong_passwords_lock_a_name_on_all_workers(guarded: Guarded) -> None:
    add = ("users", "add", "bob", "--role", "ml_read_access", "--password", "env:PW", "--store", guarded.store)
    output_of(*add, PW=PASSWORD)

    def attempt(password: str) -> httpx.Response:
        return guarded.ask("GET", "/", auth=("bob", password))

    assert [attempt(f"guess {n}").status_code for n in range(LOCKED_AFTER)] == [401] * LOCKED_AFTER
    locked = attempt(PASSWORD)
    assert locked.status_code == 429
    assert 0 < int(locked.headers["retry-after"]) <= 60
    assert guarded.statuses("GET", "/", guarded.keys["ml_read_access"]) == {200}


def test_who_has_logged_in_goes_on_at_every_worker_while_others_guess_at_the_name(guarded: Guarded) -> None:
    add = ("users", "add", "eve", "--role", "ml_read_access", "--password", "env:PW", "--store", guarded.store)
    output_of(*add, PW=PASSWORD)
    assert guarded.ask("GET", "/", auth=("eve", PASSWORD)).status_code == 200
    guesses = [guarded.ask("GET", "/", auth=("eve", f"guess {n}")).status_code for n in range(LOCKED_AFTER + 1)]
    assert guesses == [401] * LOCKED_AFTER + [429]
    assert guarded.statuses("GET", "/", "", auth=("eve", PASSWORD)) == {200}


def test_the_first_account_closes_a_running_sidecar(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with running_sidecar(tmp_path, store) as sidecar:
        assert sidecar.client.get("/").status_code == 200
        key = output_of("keys", "create", "first", "--role", "ml_read_access", "--store", store)
        eventually(lambda: sidecar.client.get("/").status_code == 401)
        assert sidecar.client.get("/", headers={"x-api-key": key}).status_code == 200
        both = sidecar.client.get("/v1/models", headers={"x-api-key": key, "Authorization": "Bearer another"})
        assert (both.status_code, "two logins that differ" in both.json()["error"]["message"]) == (400, True)
        assert "mls_" not in sidecar.log.read_text()


def test_a_server_for_the_network_needs_an_account_or_the_operators_word(tmp_path: Path) -> None:
    """An account instead: `plugin/tests/security/test_start_checks.py`."""
    store = f"sqlite:///{tmp_path}/store.db"
    ended = run_process("serve", "--port", "0", "--host", "0.0.0.0", "--store", store)
    assert ended.returncode == 2
    assert "opensearch-ml-stream users add NAME --role ml_full_access" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    with running_sidecar(tmp_path, store, arguments=("--host", "0.0.0.0", "--insecure-no-auth")) as sidecar:
        assert sidecar.client.get("/").status_code == 200
