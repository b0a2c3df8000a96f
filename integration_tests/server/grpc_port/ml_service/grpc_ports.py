"""A sidecar with a gRPC port, and a client of OpenSearch's MLService on it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.server.grpc_port.ml_service.ml_service_client import MLServiceClient, ml_service_client
from integration_tests.support.sidecars import Sidecar, running_sidecar


@dataclass(frozen=True)
class Port:
    """A sidecar and its gRPC port; `client` calls it without a login."""

    sidecar: Sidecar
    target: str
    client: MLServiceClient

    def change_setting(self, name: str, value: Any) -> None:
        """Change a setting at run time; None restores its default."""
        response = self.sidecar.client.put("/_plugins/_ml/_settings", json={"persistent": {name: value}})
        assert response.status_code == 200, response.text


@contextmanager
def running_port(
    folder: Path, store: str = "", settings: Mapping[str, str] | None = None, arguments: tuple[str, ...] = ()
) -> Iterator[Port]:
    """A sidecar whose gRPC port is a free one."""
    with running_sidecar(folder, store, settings, (*arguments, *GRPC)) as sidecar:
        target = grpc_address(sidecar)
        with ml_service_client(target) as client:
            yield Port(sidecar, target, client)
