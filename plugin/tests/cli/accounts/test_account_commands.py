"""The commands `users` and `keys`, on a store in a file."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.accounts.account_store import warn_if_not_in_force
from tests.cli.conftest import Run
from tests.security.cluster.scripted_plugin import StoreInCluster

ADD = ("users", "add", "ann", "--role", "ml_full_access", "--password", "env:PW")
ENDS = "In force within 2 s."


@pytest.fixture
def store(tmp_path: Path) -> tuple[str, str]:
    return ("--store", f"sqlite:///{tmp_path}/store.db")


def test_users_are_added_listed_changed_and_removed(run: Run, store: tuple[str, str]) -> None:
    added = run(*ADD, *store, PW="correct horse")
    assert (added.code, added.stdout) == (0, "")
    assert added.stderr == f"Added the user ann with the role ml_full_access. {ENDS}\n"
    assert run("users", "list", *store).stdout == "ann\tml_full_access\n"
    changed = run("users", "password", "ann", "--password", "env:PW", *store, PW="another horse")
    assert changed.stderr == f"Changed the password of ann. {ENDS}\n"
    assert run("users", "remove", "ann", *store).stderr == f"Removed the user ann. {ENDS}\n"
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
    assert [row[3] for row in listed if row[1] == "other"] == ["it is revoked"]
    assert key.split("_")[2] not in str(listed)
    assert run("keys", "revoke", id, *store).stderr == f"Revoked the key {id}. {ENDS}\n"
    assert id not in run("keys", "list", *store).stdout


@pytest.mark.parametrize(
    ("security", "installed", "down", "is_said"),
    [
        ("auto", True, False, True),
        ("opensearch", True, False, True),
        ("own", True, False, False),
        ("auto", False, False, False),
        ("auto", True, True, False),
    ],
)
async def test_users_that_do_not_count_as_those_of_the_cluster_do_are_said_to(
    security: str, installed: bool, down: bool, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    store = StoreInCluster()
    store.plugin.installed, store.plugin.down = installed, down
    await warn_if_not_in_force(security, store)
    await store.close()
    assert ("so its users call, and not those of the sidecar" in capsys.readouterr().err) is is_said
