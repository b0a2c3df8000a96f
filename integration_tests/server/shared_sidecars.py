"""What tests know of the sidecars in `conftest.py`."""

from dataclasses import dataclass

from integration_tests.support.sidecars import Sidecar

LISTED_ORIGIN = "https://app.example.com"
LISTED_HOST = "ml.example.com"
MAX_BODY = 65_536


@dataclass(frozen=True, slots=True)
class Replicas:
    """Two sidecars of one worker over one store."""

    store: str
    one: Sidecar
    other: Sidecar
