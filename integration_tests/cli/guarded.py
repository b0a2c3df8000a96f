"""A sidecar whose callers log in, with one user."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from integration_tests.support.sidecars import running_sidecar

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security import own_accounts
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.open_store import open_store

PASSWORD = "correct horse"
T = TypeVar("T")


@dataclass(frozen=True)
class Guarded:
    """A sidecar whose callers log in, and the store of its users and keys."""

    url: str
    store: str

    def new_key(self, role: str, expires: int | None = None) -> str:
        made = self.in_store(lambda store: own_accounts.create_key(store, "k", role, now_millis(), expires))
        return made.value

    def in_store(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """What `users` and `keys` do, without a process for each."""

        async def run() -> T:
            async with open_store(self.store, "") as store:
                return await work(store)

        return asyncio.run(run())


@contextmanager
def running_guarded(folder: Path) -> Iterator[Guarded]:
    """The user is ann, who may look at models."""
    store = f"sqlite:///{folder}/store.db"
    Guarded("", store).in_store(lambda opened: own_accounts.add_user(opened, "ann", PASSWORD, "ml_read_access", 0))
    with running_sidecar(folder, store) as sidecar:
        yield Guarded(sidecar.url, store)
