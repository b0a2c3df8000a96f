"""The commands `users` and `keys`, on a store in a file."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.account_commands import why_unused
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store
from tests.cli.conftest import Run
from tests.security.scripted_plugin import StoreInCluster

pytestmark = pytest.mark.usefixtures("cheap_passwords")

ADD = ("users", "add", "ann", "--role", "ml_full_access", "--password", "env:PW")


@pytest.fixture
def store(tmp_path: Path) -> tuple[str, str]:
    """The options for a store in which no account is, and that no server uses."""
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(sqlite3.connect(tmp_path / "store.db")):
        return ("--store", url)


def unused(store: tuple[str, str]) -> str:
    return f"No running server uses this store: start one with `opensearch-ml-stream serve {' '.join(store)}`."


def serve(store: tuple[str, str], seconds_ago: int) -> None:
    """Leave the lease that a server renewed at that time."""

    async def renew() -> None:
        async with open_store(store[1]) as opened:
            await opened.put(Index.LEASE, "server", {"renewed_time": now_millis() - 1000 * seconds_ago})

    asyncio.run(renew())


def test_users_are_added_listed_changed_and_removed(run: Run, store: tuple[str, str]) -> None:
    serve(store, seconds_ago=3)
    added = run(*ADD, *store, PW="correct horse")
    assert (added.code, added.stdout) == (0, "")
    assert added.stderr == "Added the user ann with the role ml_full_access. In force within 2 s.\n"
    listed = run("users", "list", *store)
    assert (listed.stdout, listed.stderr) == ("ann\tml_full_access\n", "")
    assert json.loads(run("users", "list", *store, "--json").stdout) == [{"name": "ann", "roles": ["ml_full_access"]}]
    changed = run("users", "password", "ann", "--password", "env:PW", *store, PW="another horse")
    assert changed.stderr == "Changed the password of ann. In force within 2 s.\n"
    assert run("users", "remove", "ann", *store).stderr == "Removed the user ann. In force within 2 s.\n"
    assert run("users", "list", *store).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("users", "add", "a b", "--role", "ml_read_access", "--password", "env:PW"), "A name begins"),
        (("users", "add", "ann", "--role", "root", "--password", "env:PW"), "There is no role root; the roles are"),
        (("users", "add", "ann", "--role", "ml_read_access", "--password", "hunter22"), "must be env:NAME, file:PATH"),
        (("users", "password", "ann", "--password", "env:PW"), "There is no user ann"),
        (("users", "remove", "ann"), "There is no user ann"),
        (("keys", "revoke", "12"), "There is no key 12"),
        (("keys", "create", "app", "--role", "ml_read_access", "--expires", "soon"), "such as 90m, 12h or 30d"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run, store: tuple[str, str], arguments: tuple[str, ...], reason: str
) -> None:
    ended = run(*arguments, *store, PW="correct horse")
    assert (ended.code, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert reason in ended.stderr
    assert "hunter22" not in ended.stderr


def test_a_short_password_is_refused(run: Run, store: tuple[str, str]) -> None:
    assert "at least 8 characters" in run(*ADD, *store, PW="short").stderr


def test_a_key_is_printed_once_and_listed_without_its_secret(run: Run, store: tuple[str, str]) -> None:
    created = run("keys", "create", "app", "--role", "ml_predict_access", "--expires", "30d", *store)
    key = created.stdout.strip()
    id = key.split("_")[1]
    assert created.stdout == f"{key}\n" and key.startswith("mls_")
    assert created.stderr.startswith(f"Key {id} with the role ml_predict_access, valid until 20")
    run("keys", "create", "other", "--role", "ml_read_access", *store)
    listed = [line.split("\t") for line in run("keys", "list", *store).stdout.splitlines()]
    assert [row[:3] for row in listed if row[0] == id] == [[id, "app", "ml_predict_access"]]
    assert [row[3] for row in listed if row[1] == "other"] == ["no end"]
    as_json = {row["id"]: row for row in json.loads(run("keys", "list", *store, "--json").stdout)}
    assert (as_json[id]["name"], as_json[id]["roles"]) == ("app", ["ml_predict_access"])
    assert {row["valid_until"] for row in as_json.values() if row["name"] == "other"} == {None}
    assert key.split("_")[2] not in str(listed)
    assert run("keys", "revoke", id, *store).stderr == f"Revoked the key {id}. {unused(store)}\n"
    assert id not in run("keys", "list", *store).stdout


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_store_that_no_server_uses_is_named_to_be_pasted(
    run: Run, store: tuple[str, str], *, is_stopped: bool
) -> None:
    if is_stopped:
        serve(store, seconds_ago=120)
    assert run(*ADD, *store, PW="correct horse").stderr.endswith(f"{unused(store)}\n")
    assert run("users", "list", *store).stderr == run("keys", "list", *store).stderr == f"{unused(store)}\n"
    assert run("keys", "create", "app", "--role", "ml_read_access", *store).stderr.endswith(f"{unused(store)}\n")


def test_only_what_adds_an_account_makes_a_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    store = ("--store", f"sqlite:///{tmp_path}/stores.db")
    for command in (
        ("users", "list"), ("keys", "list"), ("keys", "revoke", "1"), ("users", "remove", "ann"),
        ("users", "password", "ann", "--password", "env:PW"),
    ):  # fmt: skip
        refused = run(*command, *store, PW="correct horse")
        assert (refused.code, refused.stdout, len(refused.stderr.splitlines())) == (2, "", 1)
        assert f"There is no store {tmp_path}/stores.db. Did you mean --store sqlite:///{tmp_path}/store.db?" in (
            refused.stderr
        )
    assert not (tmp_path / "stores.db").exists()
    assert f"Made a new store: {' '.join(store)}\n" in run(*ADD, *store, PW="correct horse").stderr
    assert "Made" not in run("keys", "create", "app", "--role", "ml_read_access", *store).stderr


def test_an_account_that_the_settings_do_not_look_at_comes_with_a_warning(run: Run, store: tuple[str, str]) -> None:
    variable = {"MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__SECURITY": "none"}
    warning = "warning: it cannot be used: with opensearch_ml_stream.security: none, nobody has to log in\n"
    created = run("keys", "create", "app", "--role", "ml_read_access", *store, **variable)
    assert created.stdout.startswith("mls_") and created.stdout.count("\n") == 1
    assert warning in created.stderr
    assert warning in run(*ADD, *store, PW="correct horse", **variable).stderr
    assert "warning" not in run("users", "list", *store, **variable).stderr


@pytest.mark.parametrize(
    ("security", "installed", "down", "reason"),
    [
        ("auto", False, False, None),
        ("auto", True, False, "the cluster has the security plugin, so its users call"),
        ("auto", True, True, None),
        ("own", True, False, None),
        ("opensearch", True, False, "only users of the cluster can log in"),
        ("none", False, False, "nobody has to log in"),
    ],
)
async def test_own_accounts_are_unused_where_others_decide(
    security: str, installed: bool, down: bool, reason: str | None
) -> None:
    store = StoreInCluster()
    store.plugin.installed, store.plugin.down = installed, down
    found = await why_unused(security, store)
    await store.close()
    assert found is None if reason is None else reason in str(found)


def test_a_password_may_come_from_standard_input(run: Run, store: tuple[str, str]) -> None:
    added = run("users", "add", "ann", "--role", "ml_full_access", *store, stdin="correct horse\n")
    assert (added.code, "Added the user ann" in added.stderr) == (0, True)
    assert "there is no terminal to ask on" in run("users", "password", "ann", *store).stderr
