"""Processes pinned to CPUs, and the CPU time and memory that a process tree uses, read from /proc."""

import os
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STOP_SECONDS = 15
_UTIME, _STIME, _RSS = 11, 12, 21  # fields of /proc/PID/stat after the name


@dataclass(frozen=True, slots=True)
class Cpus:
    """The CPUs of the relay, and those of the load generator and the provider that measure it."""

    relay: frozenset[int]
    load: frozenset[int]


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time since the start, of which `kernel_seconds` in the kernel, and resident memory now."""

    cpu_seconds: float
    kernel_seconds: float
    rss_bytes: int


def split_cpus() -> Cpus:
    """One CPU for the relay, the others for the load (the same, where there is but one)."""
    available = sorted(os.sched_getaffinity(0))
    return Cpus(frozenset(available[:1]), frozenset(available[1:] or available))


def allow_many_files() -> None:
    """Raises this process's limit of open files, which children inherit: 2,000 streams are 4,000 sockets to a relay."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def started(
    command: Sequence[str],
    cpus: frozenset[int],
    log: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process on these CPUs that writes into `log`; ended with all of its children."""
    with log.open("ab") as output, on_cpus(cpus):
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


@contextmanager
def on_cpus(cpus: frozenset[int]) -> Iterator[None]:
    """Runs this process on these CPUs, so that children inherit them from the moment they start."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own session, so nothing else is in the group
        process.wait()


def tree(root: int) -> list[int]:
    """The pids of the process and its living descendants."""
    pids = [root]
    for pid in pids:
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return pids


def usage(pid: int) -> Usage:
    """What one process has used so far; zeros if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return Usage(0, 0, 0)
    fields = stat[stat.rindex(")") + 1 :].split()  # the name may hold spaces
    user, kernel = int(fields[_UTIME]) / _TICKS, int(fields[_STIME]) / _TICKS
    return Usage(user + kernel, kernel, int(fields[_RSS]) * _PAGE)


def tree_usage(root: int) -> Usage:
    """What all processes of the tree have used so far, summed."""
    usages = [usage(pid) for pid in tree(root)]
    return Usage(
        sum(each.cpu_seconds for each in usages),
        sum(each.kernel_seconds for each in usages),
        sum(each.rss_bytes for each in usages),
    )
