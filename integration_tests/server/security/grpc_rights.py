"""The table of rights over gRPC: every method of the port, as reflection lists them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from integration_tests.server.security.needs import CALLS, Needs
from integration_tests.server.security.rights import Answer, Login

_CALL_SECONDS = 20
_NAMES = ("name", "model_name", "model_id")  # the fields of requests that name a model
_KINDS = {
    grpc.StatusCode.UNAUTHENTICATED: "unknown",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "locked out",
    grpc.StatusCode.PERMISSION_DENIED: "refused",
    grpc.StatusCode.OK: "let in",
    grpc.StatusCode.NOT_FOUND: "let in",
    grpc.StatusCode.INVALID_ARGUMENT: "let in",
    grpc.StatusCode.FAILED_PRECONDITION: "let in",
}


@dataclass(frozen=True, slots=True)
class GrpcPort:
    address: str
    requests: dict[str, bytes] = field(default_factory=dict)
    """For each row a request that names a model that does not exist; `rows` fills it."""

    @property
    def needs(self) -> Mapping[str, Needs | None]:
        return CALLS

    def rows(self, login: Login) -> list[str]:
        """Each method, as `package.Service/Method`."""
        with grpc.insecure_channel(self.address) as channel:
            database = ProtoReflectionDescriptorDatabase(grpc.intercept_channel(channel, _LoggedIn(login)))
            pool = DescriptorPool(database)
            for service in map(pool.FindServiceByName, database.get_services()):
                for method in service.methods:
                    self.requests[f"{service.full_name}/{method.name}"] = _request(method.input_type)
        return list(self.requests)

    def spellings(self, row: str) -> Sequence[str]:
        return (row,)

    def ask(self, row: str, login: Login) -> Answer:
        """Calls a method over a connection of its own, so that any worker may get it.

        On the wire a single request does not differ from a stream of one; of a stream the first response counts.
        """
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(self.address, options=options) as channel:
            metadata = tuple(login.items())
            call = channel.stream_stream(f"/{row}")(iter([self.requests[row]]), _CALL_SECONDS, metadata)
            try:
                for _ in call:
                    return Answer("let in")
            except grpc.RpcError:
                pass
            return _answer(call.code(), call.details())


def _answer(code: grpc.StatusCode, details: str) -> Answer:
    kind: Any = _KINDS.get(code, "failed")
    return Answer(kind, {"refused": details, "failed": f"{code.name} {details}"}.get(kind, ""))


def _request(message: Any) -> bytes:
    names = {name: "none-such" for name in _NAMES if name in message.fields_by_name}
    encoded: bytes = GetMessageClass(message)(**names).SerializeToString()
    return encoded


class _LoggedIn(grpc.StreamStreamClientInterceptor):  # type: ignore[misc]  # grpc has no types
    """Adds the login to the metadata of calls."""

    def __init__(self, login: Login) -> None:
        self._metadata = tuple(login.items())

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(details._replace(metadata=self._metadata), requests)
