"""Room on the disk for the files in which prometheus_client keeps the metrics of one of several workers.

It maps them sparse, and the first write to a page of a mapped file that finds no room on the disk kills the process. So
every byte is written before it is mapped: of a new file, and of what a file will grow by.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from opensearch_ml_stream.plugin.shared.locked_file import append_zeros

_KINDS = ("counter", "histogram", "gauge_livesum", "gauge_livemin")  # as the library names the files of ours
_FIRST_SIZE = 64 * 1024  # of a file, as the library makes it; it doubles
_MOST_OF_A_SERIES = 32 * 1024  # the buckets of a histogram, each with the metric's help and a model's id


class MetricFiles:
    """The files of the process of that id, in the directory of all workers."""

    def __init__(self, directory: Path, process_id: int) -> None:
        self._paths = [directory / f"{kind}_{process_id}.db" for kind in _KINDS]

    def reserve(self) -> None:
        """Make room for one more series, of whatever kind. OSError, such as a full disk, if there is none."""
        for path in self._paths:
            try:
                file = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                _create(path)
                continue
            try:
                _extend(file, used=int.from_bytes(os.pread(file, 4, 0), sys.byteorder))
            finally:
                os.close(file)


def _create(path: Path) -> None:
    """Make a file under another name until it is whole: other workers read those that they find."""
    unfinished = path.with_suffix(".new")
    file = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _extend(file, used=0)
        unfinished.rename(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise
    finally:
        os.close(file)


def _extend(file: int, used: int) -> None:
    """Write what is missing to the size that the file will have after one more series."""
    size, wanted = os.fstat(file).st_size, _FIRST_SIZE
    while wanted < used + _MOST_OF_A_SERIES:
        wanted *= 2
    if size < wanted:
        append_zeros(file, size, wanted - size)
