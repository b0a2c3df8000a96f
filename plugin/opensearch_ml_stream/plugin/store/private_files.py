"""Files that only this user may read: the embedded store holds the key of all credentials."""

import errno
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

OWN_FOLDER = "opensearch-ml-stream"  # the name of the default store's folder, and of no other program's

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SUFFIXES = ("", "-wal", "-shm")  # SQLite's own files beside the store

log = logging.getLogger(__name__)


def make_private(path: Path) -> None:
    """Create the store's file if it is missing, and take from others what they may do with it and its folder.

    A folder that may belong to others as well, one with another name, is left as it is. OSError if the file is missing
    and cannot be created, or may not be read and written; modes that cannot be changed are logged.

    A file that is there is not opened: to close it would release all locks of SQLite's connections in this process, and
    the next process that disconnects would take its write-ahead log away from them.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    for suffix in _SUFFIXES:
        _close_to_others(path.with_name(path.name + suffix), 0o600)
    if path.parent.resolve().name == OWN_FOLDER:
        _close_to_others(path.parent, 0o700)


def _close_to_others(path: Path, mode: int) -> None:
    try:
        before = stat.S_IMODE(path.stat().st_mode)
        if not before & _OTHERS:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("Others may read %s, and its mode cannot be changed: %s", path, error.strerror)
        return
    log.warning("Others could read %s (mode %o): changed to %o. Change the credentials if they did", path, before, mode)
