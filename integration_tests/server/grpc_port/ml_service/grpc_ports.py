"""A sidecar with a gRPC port, and a client of OpenSearch's MLService on it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.server.grpc_port.ml_service.ml_service_client import MLServiceClient, ml_service_client
from integration_tests.support.sidecars import Sidecar, running_sidecar


@dataclass(frozen=True)
class Port:
    """A sidecar and its gRPC port; `client` calls it without a login."""

    sidecar: Sidecar
    target: str
    client: MLServiceClient


@contextmanager
def running_port(
    folder: Path, settings: Mapping[str, str] | None = None, arguments: tuple[str, ...] = ()
) -> Iterator[Port]:
    """A sidecar whose gRPC port is a free one."""
    with running_sidecar(folder, settings=settings, arguments=(*arguments, *GRPC)) as sidecar, open_port(sidecar) as it:
        yield it


@contextmanager
def open_port(sidecar: Sidecar) -> Iterator[Port]:
    target = grpc_address(sidecar)
    with ml_service_client(target) as client:
        yield Port(sidecar, target, client)
