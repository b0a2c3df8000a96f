"""Count the input tokens of a conversation by the model's provider, or estimate them if it cannot count."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import orjson

from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest, TokenCounting
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.connectors.token_spending import estimate_request_tokens
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.rest_handlers.callers import Caller

_HAS_NO_COUNT = frozenset({404, 405, 501})  # statuses of servers that speak the dialect, and do not count


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A number of input tokens."""

    input_tokens: int
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Counts the tokens of requests; fits `token_count_endpoint.Counts`."""

    names: ModelsByName
    models: ModelCache
    calls: ProviderCalls

    async def count(self, caller: Caller, name: str, request: ClientRequest) -> TokenCount:
        """Return how many input tokens a request has for a model, by its name or id.

        The provider of a model with an input guardrail is not called, since what the guardrail would refuse must not
        leave this server. Raises NotFound for an unknown model, UpstreamError for a fault of the provider, and
        Throttled, as a prediction does, beyond a rate limit or a budget.
        """
        model = await self.models.get(caller, await self.names.model_id(caller, name))
        counting = None if model.dialect is None else model.dialect.counting
        if counting is None or model.guardrails.input is not None:
            return _estimate(request)
        counted = _counted(model.render_conversation(request), counting)
        if counted is None:
            return _estimate(request)
        self.calls.apply_rate_limits(model, caller)
        await self.calls.budgets.check(model.model_id, model.settings, caller.name)
        try:
            body = await self.calls.fetch(model, counted)
        except UpstreamError as error:
            if error.provider_status not in _HAS_NO_COUNT | counting.not_counted:
                raise
            return _estimate(request)
        return TokenCount(_read(body, counting.member), is_estimated=False)


def _estimate(request: ClientRequest) -> TokenCount:
    """Return an estimate by the size of the request, as budgets make it. InvalidRequest for one that is wrong."""
    _ = request.conversation
    return TokenCount(estimate_request_tokens(to_json(request.body)), is_estimated=True)


def _counted(request: ProviderRequest, counting: TokenCounting) -> ProviderRequest | None:
    """Return the request of a count; None on other platforms, where it is another call or does not exist."""
    url = urlsplit(request.url)
    try:
        body = orjson.loads(request.body)
    except ValueError:  # what a template makes of a text
        return None
    if not url.path.endswith(counting.path) or not isinstance(body, dict):
        return None
    counting_url = url._replace(path=url.path.removesuffix(counting.path) + counting.counting_path)
    return replace(request, url=counting_url.geturl(), body=to_json(counting.body(body, url.path)))


def _read(body: bytes, member: str) -> int:
    count: Any
    try:
        count = provider_json.loads(body)[member]
    except (ValueError, KeyError, TypeError):
        count = None
    if not isinstance(count, int):
        raise UpstreamError(f"The provider's count of tokens has no {member}")
    return count
