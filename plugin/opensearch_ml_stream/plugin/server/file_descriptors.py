"""The limit on this process's file descriptors."""

import errno
import os
import resource
import sys

_RESERVED = 100  # for stores, logs, listeners and loops


def open_standard_streams() -> None:
    """Open those of standard input, output and error that are closed, on /dev/null.

    Else the next file that is opened gets the number of one, and the log and libraries write into it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  # as long as the process
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def raise_limit() -> None:
    """Raise the limit on open descriptors as far as the system allows: each stream takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS reports no number, and accepts only its own
            return


def limit() -> int:
    """Return how many descriptors this process may open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def most_connections(wanted: int) -> int:
    """Return how many clients may connect, so that each can have a connection to a provider."""
    return max(min(wanted, (limit() - _RESERVED) // 2), 1)


def are_exhausted() -> bool:
    """Return whether no descriptor is left."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
