"""The runtime models, read from the status file."""

from contextlib import suppress
from pathlib import Path

from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.status import STATUS_FILE, ModelStatus, read_status


class RuntimeModels:
    """The models by name, read again when the keeper has written the file; `folder` is that of the runtimes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATUS_FILE
        self._version: tuple[int, int] | None = None  # of the file that was read
        self._models: dict[str, ModelStatus] = {}

    def current(self) -> dict[str, ModelStatus]:
        """Return the models; none without a keeper. The object is the same until the file is written again.

        While the file cannot be read, for lack of file descriptors, the last ones are returned.
        """
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError:
            return self._models
        version = None if found is None else (found.st_mtime_ns, found.st_ino)
        if version != self._version:
            with suppress(OSError):
                self._models = {} if version is None else read_status(self._path)
                self._version = version
        return self._models

    def callable_sockets(self, name: str) -> list[str]:
        """Return the sockets of a model's callable processes, at least one; raises what a call would raise."""
        status = self.current().get(name)
        if status is None:
            raise runtime_errors.unknown_model(name)
        ready = status.callable_sockets
        if not ready:
            raise runtime_errors.not_callable(name, status)
        return ready

    def is_unloaded(self, name: str) -> bool:
        """Return whether a model is unloaded, and stays so until it is loaded explicitly."""
        status = self.current().get(name)
        return status is not None and status.state == "UNLOADED"
