"""The sidecar in memory of the command line's tests."""

from tests.cli.conftest import run, sidecar

__all__ = ["run", "sidecar"]
