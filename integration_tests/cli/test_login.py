"""`login` and the commands after it, as processes at a sidecar whose callers log in."""

from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import Ended, run_command
from integration_tests.cli.guarded import PASSWORD, Guarded
from integration_tests.cli.terminal import on_a_terminal
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import head, json_response

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security import own_accounts


@dataclass(frozen=True)
class Person:
    """Someone at a shell, with a configuration folder of their own."""

    config: Path
    url: str

    def run(self, *arguments: str, **variables: str) -> Ended:
        return run_command(*arguments, MLSTREAM_URL=self.url, XDG_CONFIG_HOME=str(self.config), **variables)

    @property
    def logins(self) -> Path:
        return self.config / "opensearch-ml-stream" / "logins.json"


@pytest.fixture
def person(tmp_path: Path, guarded: Guarded) -> Person:
    return Person(tmp_path / "config", guarded.url)


def test_on_a_terminal_the_password_is_asked_for_and_not_shown(person: Person, guarded: Guarded) -> None:
    variables = {"MLSTREAM_URL": guarded.url, "XDG_CONFIG_HOME": str(person.config)}
    with on_a_terminal("login", **variables) as terminal:
        terminal.read_until("User: ")
        terminal.type("ann")
        terminal.read_until("Password of ann: ")  # with the space that is written once nothing is shown any more
        terminal.type(PASSWORD)
        terminal.read_until("for you alone")
    assert f"Logged in to {guarded.url} as ann. Remembered in" in terminal.output
    assert PASSWORD not in terminal.output
    assert person.logins.stat().st_mode & 0o777 == 0o600
    assert person.run("models", "list").returncode == 0
    assert "Forgot the login" in person.run("logout").stderr
    refused = person.run("models", "list")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("opensearch-ml-stream: Unauthorized (status 401); log in with `")
    assert f" login --url {guarded.url}`" in refused.stderr


def test_a_wrong_login_is_not_remembered(person: Person) -> None:
    ended = person.run("login", "--user", "ann", "--password", "env:PW", PW="hunter22")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "(status 401); nothing is remembered" in ended.stderr and "hunter22" not in ended.stderr
    assert not person.config.exists()


def test_a_revoked_key_is_named_by_where_it_comes_from(person: Person, guarded: Guarded) -> None:
    key = guarded.new_key("ml_read_access")
    assert person.run("login", "--api-key", "env:KEY", KEY=key).returncode == 0
    guarded.in_store(lambda store: own_accounts.remove_account(store, own_accounts.key_id(key.split("_")[1])))
    eventually(lambda: httpx.get(guarded.url, headers={"x-api-key": key}).status_code == 401)
    remembered = person.run("models", "list").stderr
    assert "(status 401); the login that is remembered for it is wrong, expired or revoked; log in with" in remembered
    of_variable = person.run("models", "list", MLSTREAM_API_KEY=key).stderr
    assert "the key of MLSTREAM_API_KEY is wrong, expired or revoked" in of_variable
    assert key.split("_")[2] not in remembered + of_variable


def test_an_expired_key_is_refused_and_listed_as_expired(person: Person, guarded: Guarded) -> None:
    key = guarded.new_key("ml_read_access", expires=now_millis() - 1)
    refused = person.run("models", "list", "--api-key", "env:KEY", KEY=key)
    assert refused.returncode == 1
    assert "the key of --api-key is wrong, expired or revoked" in refused.stderr
    rows = [line.split("\t") for line in run_command("keys", "list", "--store", guarded.store).stdout.splitlines()]
    assert [row[3].endswith(" UTC (expired)") for row in rows if row[0] == key.split("_")[1]] == [True]


def test_a_missing_permission_is_named_with_the_roles_that_have_it(person: Person, guarded: Guarded) -> None:
    ended = person.run("models", "list", MLSTREAM_API_KEY=guarded.new_key("ml_predict_access"))
    assert ended.returncode == 1
    assert "no permissions for [cluster:admin/opensearch/ml/models/search] and User [name=k" in ended.stderr
    assert ended.stderr.endswith(
        "; of the roles that come with the sidecar, it is in ml_full_access and ml_read_access\n"
    )


def test_neither_a_redirect_nor_another_port_gets_the_login(person: Person, guarded: Guarded) -> None:
    assert person.run("login", "--user", "ann", "--password", "env:PW", PW=PASSWORD).returncode == 0
    with background_provider(json_response({"hits": {"hits": []}})) as other:
        elsewhere = f"{other.url}/_plugins/_ml/models/_search"
        with background_provider([head(307, location=elsewhere, content_length="0")]) as redirecting:
            ended = person.run("models", "list", "--url", redirecting.url, MLSTREAM_API_KEY="k")
        assert (ended.returncode, other.requests) == (1, [])
        assert f"redirects to {elsewhere} (status 307); no login goes there" in ended.stderr
        assert person.run("models", "list", "--url", other.url).returncode == 0
        assert [request.headers.get("authorization") for request in other.requests] == [None]
