"""Ids of responses, where a client's API has them."""

from random import getrandbits


def new_id() -> str:
    """Return 32 hexadecimal digits that tell a response from all others.

    They are no secret: nothing is kept or found by them. So the kernel is not asked for them, which is a system call.
    """
    return f"{getrandbits(128):032x}"
