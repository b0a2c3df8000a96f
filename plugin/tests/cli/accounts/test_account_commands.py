"""The commands `users` and `keys`, on a store in a file."""

from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.cli.accounts.account_store import why_unused
from tests.cli.conftest import Run
from tests.security.cluster.scripted_plugin import StoreInCluster

pytestmark = pytest.mark.usefixtures("cheap_passwords")

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
    assert [row[3] for row in listed if row[1] == "other"] == ["no end"]
    assert key.split("_")[2] not in str(listed)
    assert run("keys", "revoke", id, *store).stderr == f"Revoked the key {id}. {ENDS}\n"
    assert id not in run("keys", "list", *store).stdout


def test_an_account_that_the_settings_do_not_look_at_comes_with_a_warning(run: Run, store: tuple[str, str]) -> None:
    variable = {"MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__SECURITY": "none"}
    warning = "warning: it lets nobody in: with opensearch_ml_stream.security: none nobody has to log in\n"
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
        ("opensearch", True, False, "users of the cluster call"),
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
