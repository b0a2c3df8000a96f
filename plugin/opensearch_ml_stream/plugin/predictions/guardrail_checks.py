"""Check texts against a model's guardrails: patterns here, stop words in the store, guard models by predictions.

If a check fails to run, the text is refused: nothing unchecked goes to a provider or comes from one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.configuration import (
    Guard,
    LocalGuard,
    ModelGuard,
    StopWords,
    is_accepted,
)
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import readable_text, refusing_pattern
from opensearch_ml_stream.plugin.store import Store

STOP_WORDS_SECONDS = 5  # as ML Commons waits
GUARD_MODEL_SECONDS = 60

# Characters of a payload times patterns that are checked in the event loop: at worst 50 ms, as measured.
_MAX_INLINE_WORK = 65_536

_T = TypeVar("_T")

CallGuardModel = Callable[[ModelGuard, str], Awaitable[Any]]
"""Returns the guard model's response to a text: what its `response_filter` is read from."""


@dataclass(frozen=True, slots=True)
class GuardrailChecks:
    """The checks of one prediction.

    `call_guard_model` has the ids of the models whose guardrails are already running, so that it can refuse a loop.
    """

    store: Store
    call_guard_model: CallGuardModel

    async def check(self, guard: Guard | None, payload: str, triggered: str, said: str = "") -> None:
        """Raise InvalidRequest, with a reason that starts with `triggered`, unless the guard accepts a whole payload.

        `said` is the client's conversation that the payload was made of, as JSON text, if there is one; it is checked
        as well.
        """
        if guard is None:
            return
        try:
            refused_by = await self.payload_refused_by(guard, payload, said)
        except UpstreamError as error:
            raise InvalidRequest(f"{triggered}: {error.reason}") from None
        if refused_by is not None:
            raise InvalidRequest(f"{triggered} by {refused_by}")

    async def payload_refused_by(self, guard: Guard, payload: str, said: str = "") -> str | None:
        """Return the part of the guard that refuses a JSON payload or a text in it or in `said`, None if all accept it.

        UpstreamError if the check fails to run.
        """
        size = len(payload) + len(said)
        if isinstance(guard, LocalGuard):
            work = size * len(guard.regex)
            index = await _compute(partial(refusing_pattern, guard.regex, payload, said), work) if guard.regex else None
            if index is not None:
                return pattern_name(index)
            if not guard.stop_words:
                return None
        return await self.text_refused_by(guard, await _compute(partial(readable_text, payload, said), size))

    async def text_refused_by(self, guard: Guard, text: str) -> str | None:
        """Return the guard's model or stop words that refuse a text. Otherwise as `payload_refused_by`."""
        if isinstance(guard, ModelGuard):
            return None if await self._is_accepted(guard, text) else f"guard model [{guard.model_id}]"
        for stop_words in guard.stop_words:
            if await self._matches_stop_words(stop_words, text):
                return f"stop words in index [{stop_words.index_name}]"
        return None

    async def _matches_stop_words(self, stop_words: StopWords, text: str) -> bool:
        where = f"its stop words in index [{stop_words.index_name}]"
        if not stop_words.source_fields:
            raise UpstreamError(f"{where} need source_fields")
        document = dict.fromkeys(stop_words.source_fields, text)
        try:
            async with asyncio.timeout(STOP_WORDS_SECONDS):
                return await self.store.percolate(stop_words.index_name, document)
        except TimeoutError:
            reason = f"no response within {STOP_WORDS_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        raise UpstreamError(f"{where} cannot be searched: {reason}")

    async def _is_accepted(self, guard: ModelGuard, text: str) -> bool:
        try:
            async with asyncio.timeout(GUARD_MODEL_SECONDS):
                return is_accepted(guard, await self.call_guard_model(guard, text))
        except TimeoutError:
            reason = f"no response within {GUARD_MODEL_SECONDS} s"
        except MLStreamError as error:
            reason = error.reason
        raise UpstreamError(f"its guard model [{guard.model_id}] cannot be called: {reason}")


def pattern_name(index: int) -> str:
    """Return the name of one of a guard's patterns in errors and endings."""
    return f"regex[{index}]"


async def _compute(function: Callable[[], _T], work: int) -> _T:
    """Call a function that needs so much work, in a thread if it would block other requests."""
    return function() if work <= _MAX_INLINE_WORK else await asyncio.to_thread(function)
