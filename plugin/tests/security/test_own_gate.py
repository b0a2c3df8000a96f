"""Users and keys of the sidecar's own, over SQLite."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Throttled,
    Unauthorized,
    Unavailable,
)
from opensearch_ml_stream.plugin.security import own_gate
from opensearch_ml_stream.plugin.security.concurrency_limit import ConcurrencyLimit
from opensearch_ml_stream.plugin.security.lockouts import MAX_FAILURES
from opensearch_ml_stream.plugin.security.own_accounts import (
    accounts,
    add_user,
    create_key,
    key_id,
    remove_account,
    user_id,
)
from opensearch_ml_stream.plugin.security.own_gate import OwnLogins
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.actions import MODEL_DELETE, MODEL_GET, PASS_THROUGH, PREDICT, PREDICT_STREAM

pytestmark = pytest.mark.usefixtures("cheap_passwords")

ANN = NameAndPassword("ann", "correct horse")
NOW = 1_000_000


class Clock:
    """Milliseconds since 1970, as a test sets them."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class StoreThatMayBeDown(SQLiteStore):
    """A store in memory that does not respond while it is `down`."""

    down = False
    reads = 0

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document, unless the store is down."""
        self.reads += 1
        if self.down:
            raise Unavailable("down")
        return await super().get(index, id)


@pytest.fixture
async def store() -> AsyncIterator[StoreThatMayBeDown]:
    store = StoreThatMayBeDown(":memory:")
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_gate, "FRESH_SECONDS", 0.0)


@pytest.fixture
def own(store: Store, clock: Clock, tmp_path: Path) -> Iterator[OwnLogins]:
    own = OwnLogins(store, tmp_path, clock)
    yield own
    own.close()


async def test_a_user_may_do_what_the_role_allows(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_read_access", NOW)
    caller = await own.admit(ANN, MODEL_GET)
    assert (caller.name, caller.roles, caller.is_admin) == ("ann", frozenset({"ml_read_access"}), False)
    with pytest.raises(Forbidden) as refused:
        await own.admit(ANN, MODEL_DELETE)
    assert refused.value.reason == (
        f"no permissions for [{MODEL_DELETE}] and User [name=ann, backend_roles=[], requestedTenant=null]"
    )
    assert refused.value.type == "security_exception"


async def test_one_of_several_actions_is_enough(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_predict_access", NOW)
    assert (await own.admit(ANN, MODEL_GET, PREDICT)).name == "ann"
    assert (await own.admit(ANN, PREDICT_STREAM)).name == "ann"


async def test_full_access_is_the_admin(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    assert (await own.admit(ANN, MODEL_DELETE)).is_admin


@pytest.mark.parametrize(
    "credentials",
    [
        None,
        NameAndPassword("ann", "wrong horse"),
        NameAndPassword("bob", "correct horse"),
        ApiKey("correct horse"),
        ApiKey("mls_0123456789abcdef_ffff"),
    ],
)
async def test_wrong_credentials_are_unauthorized(
    store: Store, own: OwnLogins, credentials: NameAndPassword | ApiKey | None
) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    with pytest.raises(Unauthorized):
        await own.admit(credentials, MODEL_GET)


@pytest.mark.parametrize(
    "credentials",
    [
        NameAndPassword("é" * 1200, "correct horse"),
        NameAndPassword("ann\0", "correct horse"),
        NameAndPassword("../ann", "correct horse"),
        ApiKey(f"mls_{'a' * 3000}_s"),
        ApiKey("mls_éé_s"),
    ],
)
async def test_a_store_is_not_asked_for_what_no_account_is_called(
    store: StoreThatMayBeDown, own: OwnLogins, credentials: NameAndPassword | ApiKey
) -> None:
    with pytest.raises(Unauthorized):
        await own.admit(credentials, MODEL_GET)
    assert store.reads == 0


async def test_five_wrong_passwords_lock_a_user_out_but_not_who_is_in(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    await own.admit(ANN, MODEL_GET)
    for attempt in range(MAX_FAILURES):
        with pytest.raises(Unauthorized):
            await own.admit(NameAndPassword("ann", f"guess {attempt}"), MODEL_GET)
    with pytest.raises(Throttled):
        await own.admit(NameAndPassword("ann", "guess again"), MODEL_GET)
    assert (await own.admit(ANN, MODEL_GET)).name == "ann", "what was found right before goes on"


async def test_a_key_lets_in_until_it_expires(store: Store, own: OwnLogins, clock: Clock) -> None:
    key = await create_key(store, "app", "ml_predict_access", NOW, expires=NOW + 1)
    assert (await own.admit(ApiKey(key.value), PREDICT)).name == "app"
    with pytest.raises(Unauthorized):
        await own.admit(ApiKey(key.value[:-1]), PREDICT)
    clock.now += 1
    with pytest.raises(Unauthorized):
        await own.admit(ApiKey(key.value), PREDICT)


@pytest.mark.usefixtures("always_fresh")
async def test_a_removed_account_is_refused_once_it_is_read_again(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    key = await create_key(store, "app", "ml_full_access", NOW)
    await own.admit(ANN, PREDICT)
    await own.admit(ApiKey(key.value), PREDICT)
    await remove_account(store, user_id("ann"))
    await remove_account(store, key_id(key.id))
    for credentials in (ANN, ApiKey(key.value)):
        with pytest.raises(Unauthorized):
            await own.admit(credentials, PREDICT)


@pytest.mark.usefixtures("always_fresh")
async def test_a_changed_password_is_checked_anew(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    await own.admit(ANN, PREDICT)
    await remove_account(store, user_id("ann"))
    await add_user(store, "ann", "another horse", "ml_full_access", NOW)
    with pytest.raises(Unauthorized):
        await own.admit(ANN, PREDICT)
    assert (await own.admit(NameAndPassword("ann", "another horse"), PREDICT)).name == "ann"


@pytest.mark.usefixtures("always_fresh")
async def test_known_accounts_stay_in_force_while_the_store_is_down(store: StoreThatMayBeDown, own: OwnLogins) -> None:
    key = await create_key(store, "app", "ml_full_access", NOW)
    await own.admit(ApiKey(key.value), PREDICT)
    store.down = True
    assert (await own.admit(ApiKey(key.value), PREDICT)).name == "app"
    with pytest.raises(Unavailable):
        await own.admit(ANN, PREDICT)


async def test_logins_that_wait_for_their_turn_are_bounded(
    store: Store, own: OwnLogins, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await add_user(store, f"user{number}", ANN.password, "ml_full_access", NOW)
    others_are_refused = threading.Event()

    def is_password(password: str, stored: str) -> bool:
        return not others_are_refused.wait(30)

    monkeypatch.setattr(own_gate, "is_password", is_password)
    own._checks_at_once = ConcurrencyLimit(1, 1, None)
    guesses = [NameAndPassword(f"user{number}", "guess") for number in range(5)]
    attempts = [asyncio.create_task(own.admit(guess, PREDICT)) for guess in guesses]
    while sum(attempt.done() for attempt in attempts) < 3:
        await asyncio.wait([each for each in attempts if not each.done()], return_when=asyncio.FIRST_COMPLETED)
    others_are_refused.set()
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert Counter(type(outcome) for outcome in outcomes) == {Unauthorized: 2, Throttled: 3}


@pytest.mark.parametrize("exists", [True, False])
async def test_of_many_guesses_at_the_same_time_five_are_tried(store: Store, own: OwnLogins, exists: bool) -> None:
    if exists:
        await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    attempts = [own.admit(NameAndPassword("ann", f"guess {number}"), PREDICT) for number in range(12)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert Counter(type(outcome) for outcome in outcomes) == {Unauthorized: MAX_FAILURES, Throttled: 12 - MAX_FAILURES}


async def test_guesses_at_names_that_no_user_has_take_nobodys_turn(
    store: Store, own: OwnLogins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait: a first login comes right behind the one that is hashed."""
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    may_hash, hashed = threading.Event(), list[str]()

    def is_password(password: str, stored: str) -> bool:
        assert may_hash.wait(30)
        hashed.append(password)
        return password == ANN.password

    monkeypatch.setattr(own_gate, "is_password", is_password)
    own._hash_seconds = 3600  # none of those that wait is refused before ann is let in
    guesses = [asyncio.create_task(own.admit(NameAndPassword(f"no{each}", "guess"), PREDICT)) for each in range(200)]
    while len(own._checks) < len(guesses):  # noqa: ASYNC110
        await asyncio.sleep(0)
    login = asyncio.create_task(own.admit(ANN, PREDICT))
    while not own._tried:  # noqa: ASYNC110
        await asyncio.sleep(0)
    may_hash.set()
    assert (await login).name == "ann"
    assert hashed == ["guess", ANN.password]
    assert sum(guess.done() for guess in guesses) <= 1
    for task in (*guesses, *own._checks.values()):
        task.cancel()


async def test_a_name_that_no_user_has_is_refused_as_a_wrong_password_is(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    outcomes: dict[str, list[str]] = {}
    for name in ("ann", "nobody"):
        attempts = [own.admit(NameAndPassword(name, f"guess {number}"), PREDICT) for number in range(MAX_FAILURES + 3)]
        answers = await asyncio.gather(*attempts, return_exceptions=True)
        outcomes[name] = sorted(f"{type(answer).__name__} {answer}".split(" in ")[0] for answer in answers)
    assert outcomes["ann"] == outcomes["nobody"]


async def test_who_has_logged_in_at_one_worker_goes_on_at_all_while_the_name_is_locked(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    one, other = (OwnLogins(store, tmp_path, clock, b"k" * 32) for _ in range(2))
    with closing(one), closing(other):
        await one.admit(ANN, PREDICT)
        for number in range(MAX_FAILURES + 3):
            with pytest.raises((Unauthorized, Throttled)):
                await other.admit(NameAndPassword("ann", f"guess {number}"), PREDICT)
        for worker in (one, other):
            assert (await worker.admit(ANN, PREDICT)).name == "ann"
            with pytest.raises(Throttled):
                await worker.admit(NameAndPassword("ann", "guess again"), PREDICT)


async def test_any_number_of_names_that_no_user_has_locks_no_user_out(store: Store, own: OwnLogins) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    for _ in range(MAX_FAILURES):
        own._lockouts_of_unknown.count_attempt("ann")  # as does any name of the same slot
    assert (await own.admit(ANN, PREDICT)).name == "ann"


async def test_a_password_that_many_present_at_the_same_time_is_checked_once(
    store: Store, own: OwnLogins, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    checked: list[str] = []

    def is_password(password: str, stored: str) -> bool:
        checked.append(password)
        return True

    monkeypatch.setattr(own_gate, "is_password", is_password)
    callers = await asyncio.gather(*(own.admit(ANN, PREDICT) for _ in range(5)))
    assert {caller.name for caller in callers} == {"ann"} and checked == [ANN.password]


async def test_accounts_are_stored_without_their_secrets(store: Store) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    key = await create_key(store, "app", "ml_read_access", NOW)
    stored = [(await store.search(Index.ACCOUNT, {}))["hits"]["hits"]]
    assert ANN.password not in str(stored)
    assert key.value not in str(stored)
    assert key.value.rpartition("_")[2] not in str(stored)
    listed = await accounts(store, "user") + await accounts(store, "key")
    assert [(account.id, account.name, account.roles) for account in listed] == [
        ("user:ann", "ann", ("ml_full_access",)),
        (f"key:{key.id}", "app", ("ml_read_access",)),
    ]


@pytest.mark.parametrize(
    ("name", "password", "role", "reason"),
    [
        ("", "correct horse", "ml_full_access", "A name begins"),
        ("a b", "correct horse", "ml_full_access", "A name begins"),
        ("a:b", "correct horse", "ml_full_access", "A name begins"),
        ("ann", "short", "ml_full_access", "at least 8 characters"),
        ("ann", "correct horse", "root", "the roles are ml_full_access"),
    ],
)
async def test_a_user_that_cannot_be_is_refused(store: Store, name: str, password: str, role: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        await add_user(store, name, password, role, NOW)


async def test_names_are_taken_once_and_what_is_not_there_cannot_be_removed(store: Store) -> None:
    await add_user(store, "ann", ANN.password, "ml_full_access", NOW)
    with pytest.raises(Conflict, match="There is a user ann already"):
        await add_user(store, "ann", "another horse", "ml_read_access", NOW)
    with pytest.raises(NotFound, match="There is no user bob"):
        await remove_account(store, user_id("bob"))
    with pytest.raises(NotFound, match="There is no key 12"):
        await remove_account(store, key_id("12"))


@pytest.mark.parametrize(
    "source",
    [{}, {"kind": "key", "name": "n", "roles": "ml_full_access", "secret": "s"},
     {"kind": "key", "name": "n", "roles": [], "secret": "s", "expires_time": "soon"}],
)  # fmt: skip
async def test_an_account_that_cannot_be_read_lets_nobody_in(
    store: Store, own: OwnLogins, source: dict[str, object]
) -> None:
    await store.create(Index.ACCOUNT, source, key_id("12"))
    with pytest.raises(Unauthorized):
        await own.admit(ApiKey("mls_12_s"), PREDICT)


async def test_an_account_may_do_what_any_of_its_roles_allows(store: Store, own: OwnLogins) -> None:
    key = ApiKey((await create_key(store, "app", "ml_predict_access,pass_through_access", NOW)).value)
    for action in (PREDICT, PASS_THROUGH):
        assert (await own.admit(key, action)).roles == {"ml_predict_access", "pass_through_access"}
    with pytest.raises(Forbidden):
        await own.admit(key, MODEL_DELETE)
    for roles in ("ml_predict_access,root", "ml_predict_access,", "ml_predict_access, ml_read_access"):
        with pytest.raises(InvalidRequest, match="There is no role"):
            await create_key(store, "app", roles, NOW)
