"""A process that has no file descriptor left."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_descriptors() -> Iterator[None]:
    """This process can open no file while the block runs."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 1, limits[1]))
    taken = [opened]
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in taken:
            os.close(number)
