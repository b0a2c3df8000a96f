"""Writes the documents' states as the models change, in their order, again and again until the store takes them."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder, model_id
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import (
    DocumentState,
    RuntimeDocuments,
)

RETRY_SECONDS = 2.0

log = logging.getLogger("opensearch_ml_stream")


@dataclass(frozen=True, slots=True)
class _Wanted:
    key: str
    model: ModelFolder
    state: DocumentState


class DocumentWriter:
    """Takes what is to be written; `take_turn` writes it. Of two states of a model only the later one need be written.

    `on_refusal` is called with a model's name and the reason why it cannot be written.
    """

    def __init__(self, documents: RuntimeDocuments, on_refusal: Callable[[str, str], None]) -> None:
        self._on_refusal = on_refusal
        self._documents = documents
        self._wanted: dict[str, _Wanted] = {}
        self._kept: Callable[[], set[str]] | None = None
        self._writing = asyncio.Lock()  # so that no state is written over a later one
        self._change = asyncio.Event()
        self._complained = False

    def put(self, key: str, model: ModelFolder, state: DocumentState) -> None:
        """Have the model's document written, with this state."""
        self._wanted[model_id(model)] = _Wanted(key, model, state)
        self._change.set()

    async def written(self) -> None:
        """Wait until what is being written is, so that a worker's write comes behind it."""
        async with self._writing:
            pass

    async def forget(self, model: ModelFolder) -> None:
        """Have nothing written of what `put` was told of the model so far; return once nothing is."""
        self._wanted.pop(model_id(model), None)
        await self.written()

    def retire_others(self, kept: Callable[[], set[str]]) -> None:
        """Have the documents of other ids than `kept` says by then marked as undeployed."""
        self._kept = kept
        self._change.set()

    async def take_turn(self) -> float:
        """Wait for what is to be written, and write it; return the seconds until the next time."""
        await self._change.wait()
        try:
            await self.flush()
        except MLStreamError as error:
            if not self._complained:
                log.warning("documents of runtime models wait for the store: %s", error.reason)
            self._complained = True
            return RETRY_SECONDS
        self._complained = False
        return 0

    async def flush(self) -> None:
        """Write what is to be written, once; raise what the store raises, and keep it to be written then."""
        async with self._writing:
            self._change.clear()
            try:
                await self._write()
            except BaseException:
                self._change.set()
                raise

    async def _write(self) -> None:
        while self._wanted:
            id, wanted = next(iter(self._wanted.items()))
            self._wanted[id] = self._wanted.pop(id)  # as the last: what cannot be written must not hold the others up
            try:
                await self._documents.put(wanted.key, wanted.model, wanted.state)
            except Unavailable:
                raise
            except MLStreamError as error:
                self._on_refusal(wanted.key, error.reason)
            if self._wanted.get(id) is wanted:
                del self._wanted[id]
        if self._kept is not None:
            kept = self._kept
            await self._documents.retire(kept())
            if self._kept is kept:
                self._kept = None
