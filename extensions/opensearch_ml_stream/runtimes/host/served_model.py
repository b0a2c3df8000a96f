"""The loaded model for calls: JSON in, JSON out, with the names that MLServer fills in."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from opensearch_ml_stream.runtimes.host.asgi_requests import Application, respond
from opensearch_ml_stream.runtimes.host.failures import FailureLog, error_payload
from opensearch_ml_stream.runtimes.host.keeper_socket import Figures
from opensearch_ml_stream.runtimes.interface import wire

Predict = Callable[[Any], Awaitable[Any]]


class ServedModel:
    """A model with its `predict` (which may batch), its figures and its log.

    `handlers` is the application of its custom handlers. `end` ends the process, as after SystemExit.
    """

    def __init__(
        self,
        model: Any,
        predict: Predict,
        handlers: Application,
        figures: Figures,
        log: FailureLog,
        end: Callable[[], None],
    ) -> None:
        self.predict = predict
        self._handlers = handlers
        self.figures = figures
        self.log = log
        self.end = end
        self._model = model
        self._name: str = model.name
        self._version: str | None = model.version
        self._types: ModuleType = wire.load_types()
        self._mlserver_error: type[Exception] = import_module("mlserver.errors").MLServerError

    def decode(self, payload: bytes, identifier: str | None = None) -> Any:
        """Decode a request. It gets `identifier`; without one it keeps its own or gets a new one, as in MLServer.

        MalformedRequest if it is not a request.
        """
        request = wire.decode_request(self._types, payload)
        request.id = identifier or request.id or str(uuid.uuid4())
        return request

    def encode(self, response: Any, identifier: str) -> bytes:
        """Encode a response to the request with that identifier. TypeError or ValueError if it is not a response."""
        return wire.encode_response(response, model_name=self._name, model_version=self._version, request_id=identifier)

    async def handle(self, message: bytes) -> bytes:
        """Let a custom handler respond to an HTTP request; both are messages in the format of frames."""
        return await respond(self._handlers, message)

    def error_payload(self, error: BaseException) -> bytes:
        """Encode an exception for an ERROR frame."""
        return error_payload(error, self._mlserver_error)

    def predict_stream(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Call the model's `predict_stream`; one that has none responds with its whole response."""
        predict_stream = getattr(self._model, "predict_stream", None)
        responses: AsyncIterator[Any] = predict_stream(requests) if predict_stream else self._whole(requests)
        return responses

    async def _whole(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        yield await self.predict(await anext(requests))
