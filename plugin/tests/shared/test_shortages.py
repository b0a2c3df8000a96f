"""What workers share finds no descriptor, disk space or memory for a moment: a call fails, and the next one counts."""

import errno
import mmap
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
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
