"""Fallback models, which are called when a model's provider fails before the first chunk of its response.

Each is an ordinary model with its own rights, limits, guardrails and template. Fallbacks of a fallback are not tried.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, UpstreamError
from opensearch_ml_stream.plugin.limits.stream_caps import CAPS_OVER_MODELS
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel

T = TypeVar("T")

log = logging.getLogger(__name__)


async def first_to_respond(
    model: CompiledModel,
    attempt: Callable[[CompiledModel], Awaitable[T]],
    find: Callable[[str], Awaitable[CompiledModel]],
    fell_back: Callable[[str | None, MLStreamError], None],
) -> T:
    """Return the result of `attempt` for the model or, if it fails, for the first of its fallback models that succeeds.

    `find` returns the fallback model of an id, or raises why the caller may not use it. `fell_back` is called with each
    model that is tried and the error of the one before, and last with None if all fail: then the model's own error is
    raised.
    """
    try:
        return await attempt(model)
    except MLStreamError as error:
        if not may_fall_back(error):
            raise
        first = last = error
    try:
        for id in model.settings.fallback_model_ids:
            try:
                fallback = await find(id)
            except MLStreamError as error:
                log.info("Fallback model %s of %s cannot be used: %s", id, model.model_id, error.reason)
                continue
            fell_back(id, last)
            try:
                return await attempt(fallback)
            except MLStreamError as error:
                log.info("Fallback model %s of %s failed: %s", id, model.model_id, error.reason)
                last = error
            if _is_over_models(last):
                break
        fell_back(None, last)
        first.reason += "; no fallback model answered either"
        raise first
    finally:
        del first, last  # an error holds the frames that hold it, and they the prompt


def may_fall_back(error: MLStreamError) -> bool:
    """Whether another model may succeed: the provider failed, or a limit of this sidecar was reached.

    A bad request (400) is the caller's to fix. A cap on open streams that all models share would refuse the next model
    too.
    """
    if isinstance(error, Throttled):
        return not _is_over_models(error)
    return isinstance(error, UpstreamError) and error.status != 400


def _is_over_models(error: MLStreamError) -> bool:
    return isinstance(error, Throttled) and error.limit in CAPS_OVER_MODELS
