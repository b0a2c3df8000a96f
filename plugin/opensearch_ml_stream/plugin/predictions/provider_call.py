"""One call of a provider: check the URL, sign and send the request, read the response's status and errors.

A model with a protocol of its own is called by that instead.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.provider_errors import (
    MAX_ERROR_BYTES,
    error_in_body,
    named_error_without_result,
    read_error_body,
)
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.sigv4 import sign
from opensearch_ml_stream.connectors.response_usage import count_response_tokens
from opensearch_ml_stream.connectors.retry_after import retry_after_for_caller
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response
from opensearch_ml_stream.plugin.connector_protocol import NextRequest
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.limits.budgets import Budgets, Charge
from opensearch_ml_stream.plugin.limits.call_timeouts import in_time
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimits
from opensearch_ml_stream.plugin.limits.stream_caps import OpenStreams
from opensearch_ml_stream.plugin.observation import Observation
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.whole_prediction import Fetch
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries
from opensearch_ml_stream.plugin.upstream.tls_contexts import AUTHORITY, credential_of_tls
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import is_trusted, untrusted
from opensearch_ml_stream.rest_handlers.callers import Caller

MAX_ANSWERED_ERROR_BYTES = 4096  # under a good status, of an error that is told from an answer by its form alone

_THROTTLED = (
    "Error from remote service: The request was denied due to remote server throttling. "
    "To change the retry policy and behavior, please update the connector client_config."
)


@dataclass(frozen=True, slots=True)
class ProviderCalls:
    """Opens calls of providers: only trusted endpoints, within the models' rate limits and budgets."""

    live_settings: LiveSettings
    upstream: Upstream
    limits: RateLimits
    budgets: Budgets
    open_streams: OpenStreams

    def apply_rate_limits(self, model: CompiledModel, caller: Caller) -> None:
        """Acquire a token for one call of the provider; Throttled if the model or the caller has none left."""
        of_model = model.rate_limit
        of_user = model.user_limit(caller.name) if self.live_settings.current.controller_enabled else None
        if of_model is not None or of_user is not None:
            self.limits.acquire(model.model_id, of_model, caller.name, of_user)

    async def charge(self, model: CompiledModel, caller: Caller, request: bytes) -> Charge | None:
        """Charge a call to the model's budgets, None without any and without prices; Throttled if one is spent."""
        settings = model.settings
        if not settings.budgets and settings.prices is None:
            return None
        return await self.budgets.charge(model.model_id, settings, caller.name, request)

    def open(
        self, model: CompiledModel, request: ProviderRequest, further: NextRequest | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Open the provider's response, whatever its status (see `check_status`); retried as `client_config` says.

        `further` gives the further requests of a stream by the model's protocol. The response ends with ReadTimedOut
        after the times in the model's limits. Raises InvalidRequest if the URL is not trusted, or a region or service
        to sign for is missing.
        """
        opening = (
            open_remote(self.upstream, self.live_settings.current, model, request)
            if model.protocol is None
            else model.protocol.open(request, further)
        )
        return in_time(opening, model.settings.limits) if model.is_timed else opening

    async def fetch_within_limits(
        self, model: CompiledModel, observed: Observation, send: Fetch, request: ProviderRequest
    ) -> bytes:
        """Fetch by `send`, a form of `fetch`, within the model's rate limits and budgets.

        UpstreamError also for a body that is an error under a 2xx status.
        """
        caller = observed.caller
        self.apply_rate_limits(model, caller)
        charge = await self.charge(model, caller, request.body)
        observed.admit()
        if charge is None:
            return _good(model, await send(request))
        with charge:
            body = _good(model, await send(request))
            charge.pay(count_response_tokens(body, charge.estimated_input))
        return body

    async def fetch(self, model: CompiledModel, request: ProviderRequest) -> bytes:
        """Return the whole body of a 2xx response, redacted; UpstreamError for another status or an empty body."""
        async with self.open(model, request) as response:
            if not 200 <= response.status < 300:
                await check_status(response, model)
            body = await read_all(response, self.live_settings.current.max_json_size)
        if not body.strip():
            raise UpstreamError("Remote service returned empty response body")
        return model.redactor.body(body)


def open_remote(
    upstream: Upstream, settings: Settings, model: CompiledModel, request: ProviderRequest
) -> AbstractAsyncContextManager[UpstreamResponse]:
    """Open a remote model's response by `upstream`: only at a trusted URL, signed and retried as its connector says."""
    connector = model.connector
    if not is_trusted(request.url, settings.trusted_connector_endpoints_regex):
        raise untrusted(request.url)
    if connector.protocol == "aws_sigv4":
        request = _signed(model, request)
    config = connector.client_config
    credential = model.credential
    tls = credential_of_tls(config, credential) if config.mutual_tls_enabled or AUTHORITY in credential else {}
    if config.max_retry_times:
        return open_with_retries(upstream, request, config, tls, model.pool_key)
    return upstream.open(request, config, tls, model.pool_key)


async def check_status(response: UpstreamResponse, model: CompiledModel) -> None:
    """Raise UpstreamError with the provider's own, redacted message if the status is not 2xx."""
    if not 200 <= response.status < 300:
        raise await read_error(response, model.redactor)


async def read_all(response: UpstreamResponse, limit: int) -> bytes:
    """Read the whole body; UpstreamError if it is larger than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    while data := await response.read():
        size += len(data)
        if size > limit:
            raise UpstreamError(
                f"The provider's response is larger than {limit} bytes (plugins.ml_commons.max_json_size)"
            )
        parts.append(data)
    return b"".join(parts)


def _signed(model: CompiledModel, request: ProviderRequest) -> ProviderRequest:
    credential = model.credential
    parameters = model.connector.parameters
    region = parameters.get("region") or credential.get("region")
    service = parameters.get("service_name") or credential.get("service_name")
    if not region or not service:
        raise InvalidRequest("Missing region" if not region else "Missing service name")
    return sign(request, credential, region, service, datetime.now(UTC))


def _good(model: CompiledModel, body: bytes) -> bytes:
    """Return the body of a 2xx response; UpstreamError with the provider's own, redacted message if it is an error."""
    error = error_in_body(body) or (None if model.dialect is None else _error_in_answer(body, model))
    if error is not None:
        raise error.redacted(model.redactor.error)
    return body


def _error_in_answer(body: bytes, model: CompiledModel) -> UpstreamError | None:
    """Return the error in a small body, of a provider whose answers have a known, different form."""
    if len(body) > MAX_ANSWERED_ERROR_BYTES:
        return None
    try:
        value: Any = provider_json.loads(body)
    except ValueError:
        return None
    error = named_error_without_result(value)
    if error is None or decode_whole_response(value, model.providers, may_be_empty=True) is not None:
        return None
    return error


async def read_error(response: UpstreamResponse, redactor: Redactor) -> UpstreamError:
    """Read a response that is not 2xx: its body redacted, throttling as ML Commons words it."""
    parts: list[bytes] = []
    size = 0
    while size < MAX_ERROR_BYTES and (data := await response.read()):
        parts.append(data)
        size += len(data)
    aws_name = response.headers.get("x-amzn-errortype", "")
    throttled = aws_name.startswith("ThrottlingException")
    said = read_error_body(b"".join(parts), 429 if throttled else response.status, aws_name)
    error = UpstreamError(
        _THROTTLED if throttled else said.reason,
        type="remote_connector_throttling_exception" if throttled else None,
        retry_after=retry_after_for_caller(response.headers) or said.retry_after,
        provider_status=said.provider_status,
        provider=said.provider,
    )
    return error.redacted(redactor.error)
