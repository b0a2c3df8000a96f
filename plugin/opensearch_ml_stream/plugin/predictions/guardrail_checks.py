"""`guardrails` at work: regular expressions here, stop words by the store, and guard models by a prediction.

What cannot be asked counts as triggered, so that nothing unchecked goes to a provider or comes from one.
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

AskGuardModel = Callable[[ModelGuard, str], Awaitable[Any]]
"""The guard model's answer to a text: what its `response_filter` is read from."""


@dataclass(frozen=True, slots=True)
class GuardrailChecks:
    store: Store
    ask: AskGuardModel

    async def check(self, guard: Guard | None, text: str, triggered: str) -> None:
        """InvalidRequest, its reason beginning with `triggered`, unless the text may pass."""
        if guard is None:
            return
        if isinstance(guard, ModelGuard):
            await self._check_by_model(guard, text, triggered)
            return
        if is_refused(guard, text):
            raise InvalidRequest(triggered)
        await self._check_stop_words(guard, text, triggered)

    async def _check_stop_words(self, guard: LocalGuard, text: str, triggered: str) -> None:
        for words in guard.stop_words:
            if await self._holds(words, text, triggered):
                raise InvalidRequest(triggered)

    async def _holds(self, words: StopWords, text: str, triggered: str) -> bool:
        if not words.source_fields:
            raise InvalidRequest(f"{triggered}: its stop words in index [{words.index_name}] need source_fields")
        document = dict.fromkeys(words.source_fields, text)
        try:
            async with asyncio.timeout(STOP_WORDS_SECONDS):
                return await self.store.percolate(words.index_name, document)
        except TimeoutError:
            reason = f"no answer within {STOP_WORDS_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        raise InvalidRequest(f"{triggered}: its stop words in index [{words.index_name}] cannot be searched: {reason}")

    async def _check_by_model(self, guard: ModelGuard, text: str, triggered: str) -> None:
        try:
            async with asyncio.timeout(GUARD_MODEL_SECONDS):
                answer = await self.ask(guard, text)
        except TimeoutError:
            reason = f"no answer within {GUARD_MODEL_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        else:
            if is_accepted(guard, answer):
                return
            raise InvalidRequest(triggered)
        raise InvalidRequest(f"{triggered}: its guard model [{guard.model_id}] cannot be asked: {reason}")
