"""File descriptors of this process: how many it may have, and whether there are any left."""

import errno
import os
import resource
import sys

_RESERVED = 100  # for stores, logs, listeners and loops


def open_standard_streams() -> None:
    """Open what is closed of standard input, output and error, on /dev/null: else a file of ours would get its number.

    The log, and libraries, write there whatever it is.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  # as long as the process
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def raise_limit() -> None:
    """Raise the limit of open descriptors as far as the operator allows: each stream takes two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS names no number, and takes its own only
            return


def limit() -> int:
    """Return how many descriptors this process may have."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def most_connections(wanted: int) -> int:
    """Return how many clients can be connected so that as many connections to providers are possible."""
    return max(min(wanted, (limit() - _RESERVED) // 2), 1)


def are_exhausted() -> bool:
    """Return whether no descriptor is left."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
