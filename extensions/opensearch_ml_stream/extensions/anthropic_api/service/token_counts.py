"""How many input tokens a message would have: counted by the model's provider if it can, else estimated."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import orjson

from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, ClientRequest
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.spending.token_spending import estimate_request_tokens
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.extensions.anthropic_api.paths import COUNT_TOKENS_PATH, MESSAGES_PATH
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.rest_handlers.callers import Caller

_HAS_NO_COUNT = (404, 405, 501)  # statuses of servers that speak the dialect, and do not count
# What a connector's template may add, and Anthropic does not take where it only counts.
_OF_THE_ANSWER = frozenset({
    "max_tokens", "metadata", "service_tier", "stop_sequences", "stream", "temperature", "top_k", "top_p",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of input tokens."""

    input_tokens: int
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Counts the tokens of requests; fits `count_tokens.Counts`."""

    names: ModelsByName
    models: ModelCache
    calls: ProviderCalls

    async def count(self, caller: Caller, name: str, request: ClientRequest) -> TokenCount:
        """Return how many input tokens a request has for a model, by its name or id.

        A model with an input guardrail is not asked: what that would refuse does not leave this server. Raises
        NotFound for an unknown model, UpstreamError for a fault of the provider, and Throttled as a prediction does
        for what would call the provider beyond a rate limit or a budget.
        """
        model = await self.models.get(caller, await self.names.model_id(caller, name))
        if model.dialect is None or model.dialect.name != ANTHROPIC or model.guardrails.input is not None:
            return _estimate(request)
        rendered = model.render_conversation(request)
        url = urlsplit(rendered.url)
        if url.path != MESSAGES_PATH:  # on other platforms, it is another call, or none
            return _estimate(request)
        self.calls.apply_rate_limits(model, caller)
        await self.calls.budgets.check(model.model_id, model.settings, caller.name)
        counting = _counting(replace(rendered, url=url._replace(path=COUNT_TOKENS_PATH).geturl()))
        try:
            return TokenCount(_read(await self.calls.fetch(model, counting)), is_estimated=False)
        except UpstreamError as error:
            if error.provider_status not in _HAS_NO_COUNT:
                raise
            return _estimate(request)


def _estimate(request: ClientRequest) -> TokenCount:
    """Return an estimate by the size of the request, as budgets make it. InvalidRequest for one that is wrong."""
    _ = request.conversation
    return TokenCount(estimate_request_tokens(orjson.dumps(request.body)), is_estimated=True)


def _counting(request: ProviderRequest) -> ProviderRequest:
    """Return the request without what says how the answer is to be."""
    body: dict[str, Any] = orjson.loads(request.body)
    return replace(request, body=orjson.dumps({name: body[name] for name in body if name not in _OF_THE_ANSWER}))


def _read(body: bytes) -> int:
    try:
        count = provider_json.loads(body)["input_tokens"]
    except (ValueError, KeyError, TypeError):
        count = None
    if not isinstance(count, int):
        raise UpstreamError("The provider's count of tokens has no input_tokens")
    return count
