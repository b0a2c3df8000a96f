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


def listeners(address: str) -> int:
    """How many sockets listen on the port of a URL, or of HOST:PORT: one for each worker that has begun to serve it."""
    suffix, listens = f":{int(address.rpartition(':')[2]):04X}", "0A"
    sockets = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return sum(fields[1].endswith(suffix) and fields[3] == listens for fields in sockets)


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
