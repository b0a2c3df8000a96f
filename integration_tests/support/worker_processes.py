"""The workers of a sidecar as the operating system sees them."""

import contextlib
import os
from pathlib import Path

from integration_tests.support.sidecars import Sidecar

MIB = 2**20


def worker_pids(sidecar: Sidecar) -> list[int]:
    """The workers are the supervisor's children."""
    children = Path(f"/proc/{sidecar.process.pid}/task/{sidecar.process.pid}/children").read_text()
    return [int(pid) for pid in children.split() if runs(int(pid))]


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended; what has is a zombie until its parent has seen it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter between open and read
        return False


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def sockets(pid: int) -> int:
    links = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            links.append(os.readlink(descriptor))
    return sum(link.startswith("socket:") for link in links)


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
