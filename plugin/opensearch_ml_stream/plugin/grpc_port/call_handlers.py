"""Runs the calls of the gRPC port: lets callers in, counts what is in flight, turns errors into statuses, logs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from opensearch_ml_stream.connectors.errors import Internal, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.grpc_port.call import Call, stopping
from opensearch_ml_stream.plugin.grpc_port.statuses import StatusCodes, status_code
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller, Gate
from opensearch_ml_stream.rest_handlers.http.requests import foreign_id
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

UnaryWork = Callable[[Call, Caller, bytes], Awaitable[bytes]]
"""What makes the one response to a request; both are messages as protobuf writes them."""

StreamWork = Callable[[Call, Caller], Awaitable[None]]
"""What reads a call's messages and writes its responses."""

Handler = Any
"""A method's `grpc.RpcMethodHandler`, which is generic in type stubs and not when it runs."""


class CallHandlers:
    """Makes handlers of grpc out of the work of methods.

    All are told to grpc as methods with a stream of requests, which differ from others on the wire in nothing: so a
    caller is let in before their message is read. `request_seconds` is how long the first message may take.
    """

    def __init__(self, gate: Gate, in_flight: InFlightResponses, log: RequestLog, request_seconds: float) -> None:
        self._gate = gate
        self._in_flight = in_flight
        self._log = log
        self._request_seconds = request_seconds
        self._waiting: set[Call] = set()
        self._is_stopping = False

    def unary(self, path: str, work: UnaryWork, *actions: str, is_open: bool = False) -> Handler:
        """Return the handler of a method with one request and one response; everyone may call one that `is_open`."""

        async def handle(requests: object, context: Any) -> bytes:
            response = b""

            async def respond(call: Call, caller: Caller) -> None:
                nonlocal response
                request = await call.first_message()
                if request is None:
                    raise InvalidRequest("The call has no request: a message, which may be empty, must come")
                response = await work(call, caller, request)

            await self._run(path, context, respond, actions, is_open=is_open)
            return response

        return grpc.stream_unary_rpc_method_handler(handle)

    def stream(
        self, path: str, work: StreamWork, *actions: str, is_open: bool = False, code: StatusCodes = status_code
    ) -> Handler:
        """Return the handler of a method with a stream of responses; everyone may call one that `is_open`."""

        async def handle(requests: object, context: Any) -> None:
            await self._run(path, context, work, actions, is_open=is_open, code=code)

        return grpc.stream_stream_rpc_method_handler(handle)

    def stop(self) -> None:
        """End the calls that wait for their client; no others begin to wait."""
        self._is_stopping = True
        for call in tuple(self._waiting):
            call.interrupt(stopping())

    async def _run(
        self,
        path: str,
        context: Any,
        work: StreamWork,
        actions: tuple[str, ...],
        *,
        is_open: bool = False,
        code: StatusCodes = status_code,
    ) -> None:
        call = Call(path, context, self._in_flight, self._waiting, self._request_seconds, code)
        call.notes.id = foreign_id(call.scope) or next(self._log.ids)
        try:
            try:
                if self._is_stopping:
                    raise stopping()
                caller = ANYONE if is_open else await self._gate.admit(call.scope, *actions)
                await work(call, caller)
            except MLStreamError as error:
                await call.fail(error)
            except asyncio.CancelledError:
                interruption = call.take_interruption()
                if interruption is None:
                    call.disconnected = True
                    raise
                await call.fail(interruption)
            except grpc.aio.BaseError:  # of a read or write, as the client is gone
                call.disconnected = True
                raise asyncio.CancelledError from None
            except Exception:  # noqa: BLE001 - it is logged, and the client is told
                self._log.exception(call, "internal error")
                await call.fail(Internal("Internal error; the server's log says more", type="exception"))
            else:
                call.succeed()
        finally:
            call.close()
            self._log.ended(call)
