"""What workers share finds no descriptor, disk space or memory for a moment: a call fails, and the next one counts."""

import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit, RateLimits
from opensearch_ml_stream.plugin.limits.spending_table import Counter, SpendingTable
from opensearch_ml_stream.plugin.limits.stream_caps import Cap, StreamCounts
from opensearch_ml_stream.plugin.monitoring.statistics import FinishedAction, open_statistics
from opensearch_ml_stream.plugin.security.lockouts import Lockouts
from opensearch_ml_stream.plugin.security.own_gate import VerifiedLogins
from opensearch_ml_stream.plugin.shared.table import table_key

Use = Callable[[Any], object]
REFUSALS = [(os, "open", errno.EMFILE), (os, "pwrite", errno.ENOSPC), (mmap, "mmap", errno.ENOMEM)]

USERS = [
    pytest.param(
        lambda folder: closing(RateLimits(folder)), lambda limits: limits.acquire("m", RateLimit(100, 1)), Unavailable,
        id="rate limits",
    ),
    pytest.param(
        lambda folder: closing(StreamCounts(folder, 2)),
        lambda counts: counts.acquire([Cap("model_streams", table_key("m"), 9)]), Unavailable,
        id="open streams",
    ),
    pytest.param(
        lambda folder: closing(Lockouts(folder)), lambda lockouts: lockouts.count_attempt("ann"), Unavailable,
        id="lock-outs",
    ),
    pytest.param(
        lambda folder: closing(SpendingTable(folder / "spending")),
        lambda table: table.read(Counter("m", None, 60), 1), OSError,
        id="budgets",
    ),
    pytest.param(
        lambda folder: closing(VerifiedLogins(folder, b"k" * 32)), lambda logins: logins.add(b"d" * 16), None,
        id="right logins",
    ),
    pytest.param(
        open_statistics, lambda statistics: statistics.end(None, "m", FinishedAction("predict", False)), None,
        id="statistics",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "number"), REFUSALS, ids=["descriptors", "disk", "memory"])
@pytest.mark.parametrize(("opening", "use", "refusal"), USERS)
def test_a_shortage_ends_one_call_at_most(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opening: Callable[[Path], AbstractContextManager[Any]],
    use: Use,
    refusal: type[Exception] | None,
    owner: Any,
    name: str,
    number: int,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with opening(tmp_path) as user:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            if refusal is None:
                use(user)
            else:
                with pytest.raises(refusal, match=os.strerror(number)):
                    use(user)
        use(user)


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [(os, "open", errno.EMFILE), (mmap, "mmap", errno.ENOMEM), (fcntl, "flock", errno.ENOLCK)],
)
@pytest.mark.parametrize(("opening", "use"), [each.values[:2] for each in USERS], ids=[each.id for each in USERS])
def test_calls_of_a_second_worker_during_a_shortage_keep_no_file_and_no_number(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opening: Callable[[Path], AbstractContextManager[Any]],
    use: Use,
    owner: Any,
    name: str,
    number: int,
) -> None:
    real = getattr(owner, name)
    for at in range(4):  # the one of its calls that is refused, and all after it
        calls = 0

        def refuse(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > at:  # noqa: B023
                raise OSError(number, os.strerror(number))
            return real(*arguments, **named)

        folder = tmp_path / str(at)
        folder.mkdir()
        with opening(folder) as first, opening(folder) as second:
            use(first)
            files = []
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, refuse)
                for _ in range(3):
                    with suppress(Unavailable, OSError):
                        use(second)
                    files.append(len(os.listdir("/proc/self/fd")))
            use(second)
            assert files[1] == files[2]


@pytest.mark.parametrize(("opening", "use"), [each.values[:2] for each in USERS], ids=[each.id for each in USERS])
def test_a_worker_begins_and_counts_though_the_folder_was_removed(
    tmp_path: Path, opening: Callable[[Path], AbstractContextManager[Any]], use: Use
) -> None:
    with opening(tmp_path / "folder") as user:
        use(user)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
