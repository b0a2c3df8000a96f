"""Metrics that a model registers: its process writes them to a file beside its socket, which workers read."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

MAX_SAMPLES = 2_000  # of one process: 117 histograms
MAX_CHARACTERS = 200  # of a name, and of a label's value
MAX_DOCUMENTATION = 1_000
MAX_BYTES = 2 * 1024 * 1024
TYPES = ("counter", "gauge", "histogram", "summary")
_RESERVED = ("mlstream_", "process_", "python_")  # the server's own


class Registry(Protocol):
    """The registry of metrics, MLServer's or ours."""

    def collect(self) -> Iterable[Any]:
        """Yield families: `name`, `documentation`, `type` and `samples`, each of `name`, `labels` and `value`."""
        ...


class MetricsFile:
    """The file of one process, written when its metrics have changed."""

    def __init__(self, registry: Registry, socket: str) -> None:
        self._registry = registry
        self._path = file_of(socket)
        self._written = ""

    def write(self) -> list[str]:
        """Write the metrics; return the names of those that exceed a bound and are left out."""
        families, left_out = _bounded(self._registry.collect())
        text = json.dumps(families)
        if len(text) > MAX_BYTES:
            families, left_out, text = [], [*left_out, *(family["name"] for family in families)], "[]"
        if text != self._written and (families or self._written):
            being_written = f"{self._path}.new"
            with open(being_written, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(being_written, self._path)
            self._written = text
        return left_out


def file_of(socket: str) -> str:
    """Return the path of the file of the process with that socket."""
    return f"{socket}.metrics"


def remove(socket: str) -> None:
    """Remove the file of a process that has ended."""
    with suppress(FileNotFoundError):
        os.unlink(file_of(socket))


def read(socket: str) -> list[dict[str, Any]]:
    """Return the metric families of a process, empty without a file: `name`, `documentation`, `type`, `samples`."""
    try:
        with open(file_of(socket), "rb") as file:
            content = file.read(MAX_BYTES)
        families: list[dict[str, Any]] = json.loads(content)
    except (OSError, ValueError):
        return []
    return families


def _bounded(families: Iterable[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    kept: list[dict[str, Any]] = []
    left_out: list[str] = []
    room = MAX_SAMPLES
    for family in families:
        samples = [
            (sample.name, dict(sample.labels), float(sample.value))
            for sample in family.samples
            if not sample.name.endswith("_created")
        ]
        if not samples:
            continue
        names = (family.name, *(text for _, labels, _ in samples for pair in labels.items() for text in pair))
        is_foreign = family.type not in TYPES or family.name.startswith(_RESERVED)
        if is_foreign or len(samples) > room or max(map(len, names)) > MAX_CHARACTERS:
            left_out.append(str(family.name)[:MAX_CHARACTERS])
            continue
        room -= len(samples)
        documentation = str(family.documentation)[:MAX_DOCUMENTATION]
        kept.append({"name": family.name, "documentation": documentation, "type": family.type, "samples": samples})
    return kept, left_out
