"""Closes a connection inside a response, so that its client sees that the response is not whole."""

import asyncio
import socket
import struct

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no time


def break_off(transport: asyncio.Transport, *, is_framed: bool) -> None:
    """Close the connection without the last chunk or byte that a framed body says to come.

    A body that only the end of the connection would end is reset.
    """
    if is_framed:
        transport.close()
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
