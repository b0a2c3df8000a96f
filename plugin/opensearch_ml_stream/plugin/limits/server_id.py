"""The id of a server among those that share its store."""

import os
from pathlib import Path
from secrets import token_hex

from opensearch_ml_stream.plugin.shared.locked_file import locked

_LENGTH = 32


def server_id(runtime: Path) -> str:
    """Return the id of the server whose workers share that folder, the same to all of them: the first one makes it.

    OSError if its file in the folder cannot be opened, locked or written.
    """
    with locked(runtime / "server-id") as file:
        id = os.pread(file, _LENGTH, 0).decode()
        if len(id) != _LENGTH:
            id = token_hex(_LENGTH // 2)
            os.pwrite(file, id.encode(), 0)
        return id
