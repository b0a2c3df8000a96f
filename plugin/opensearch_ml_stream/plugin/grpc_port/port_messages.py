"""Messages of the port's own services, health and reflection, in a pool of descriptors of their own.

The packages that have them are made by a compiler of protobuf as new as they are, and stop where another package of the
environment, as mlserver, keeps protobuf at an older version.
"""

from pathlib import Path
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from opensearch_ml_stream.plugin.grpc_port.message_pool import pool_of, read_files

PORT_FILES = read_files(Path(__file__).parent / "protos", "health", "reflection")
_POOL = pool_of(PORT_FILES)


def _message_class(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(name))


HealthCheckRequest = _message_class("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse = _message_class("grpc.health.v1.HealthCheckResponse")
HealthListResponse = _message_class("grpc.health.v1.HealthListResponse")
ServerReflectionRequest = _message_class("grpc.reflection.v1alpha.ServerReflectionRequest")
ServerReflectionResponse = _message_class("grpc.reflection.v1alpha.ServerReflectionResponse")
