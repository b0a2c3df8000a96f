"""Check texts against a model's guardrails: regular expressions here, stop words in the store, guard models by predict.

A check that cannot be made counts as triggered, so that nothing unchecked goes to a provider or comes from one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.predict.guardrails import (
    Guard,
    LocalGuard,
    ModelGuard,
    StopWords,
    is_accepted,
    is_refused,
)
from opensearch_ml_stream.plugin.store import Store

STOP_WORDS_SECONDS = 5  # as ML Commons waits
GUARD_MODEL_SECONDS = 60

CallGuardModel = Callable[[ModelGuard, str], Awaitable[Any]]
"""Returns the guard model's response to a text: what its `response_filter` is read from."""


@dataclass(frozen=True, slots=True)
class GuardrailChecks:
    """The checks of one prediction.

    `call_guard_model` carries the ids of the models whose guardrails are already running, so it can refuse a guardrail
    loop.
    """

    store: Store
    call_guard_model: CallGuardModel

    async def check(self, guard: Guard | None, text: str, triggered: str) -> None:
        """Raise InvalidRequest, its reason beginning with `triggered`, unless the text may pass."""
        if guard is None:
            return
        if isinstance(guard, ModelGuard):
            await self._check_by_model(guard, text, triggered)
            return
        if is_refused(guard, text):
            raise InvalidRequest(triggered)
        await self._check_stop_words(guard, text, triggered)

    async def _check_stop_words(self, guard: LocalGuard, text: str, triggered: str) -> None:
        for stop_words in guard.stop_words:
            if await self._matches_stop_words(stop_words, text, triggered):
                raise InvalidRequest(triggered)

    async def _matches_stop_words(self, stop_words: StopWords, text: str, triggered: str) -> bool:
        where = f"{triggered}: its stop words in index [{stop_words.index_name}]"
        if not stop_words.source_fields:
            raise InvalidRequest(f"{where} need source_fields")
        document = dict.fromkeys(stop_words.source_fields, text)
        try:
            async with asyncio.timeout(STOP_WORDS_SECONDS):
                return await self.store.percolate(stop_words.index_name, document)
        except TimeoutError:
            reason = f"no response within {STOP_WORDS_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        raise InvalidRequest(f"{where} cannot be searched: {reason}")

    async def _check_by_model(self, guard: ModelGuard, text: str, triggered: str) -> None:
        try:
            async with asyncio.timeout(GUARD_MODEL_SECONDS):
                response = await self.call_guard_model(guard, text)
        except TimeoutError:
            reason = f"no response within {GUARD_MODEL_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        else:
            if is_accepted(guard, response):
                return
            raise InvalidRequest(triggered)
        raise InvalidRequest(f"{triggered}: its guard model [{guard.model_id}] cannot be asked: {reason}")
