"""Reloading of the port's certificate: new connections get what the files hold now, if it is good."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.server.tls.port_certificate import (
    PortCertificate,
    create_certificate,
    read_certificate_files,
    warn_of_dates,
)
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.tls.files import Contents

LOOK_SECONDS = 2.0

log = logging.getLogger("opensearch_ml_stream")


class ReloadingCertificate:
    """The port's certificate; `current` is replaced as a whole.

    `at_start` is what the files held when the server started: a worker that is born later, while they are broken,
    begins with that. Of the workers, which all see the same, one `logs`.
    """

    def __init__(self, settings: Settings, at_start: Contents, *, logs: bool = True) -> None:
        self._settings = settings
        self._logs = logs
        self._refused = ""  # why what the files hold is not in force
        self._seen = self._in_force = self._read()  # what they held, or why they could not be read
        try:
            self.current = self._create(self._seen)
        except InvalidRequest as error:
            self._refuse(error)
            self._in_force = at_start
            self.current = self._create(at_start)

    def look(self) -> bool:
        """Look at the files, and return whether there is a new certificate; for a thread, as it reads files.

        A change counts when two looks in a row see the same, so that files which are written one after another are
        not read in between. What is wrong is logged once, and tried again: it may have been a full disk.
        """
        now = self._read()
        before, self._seen = self._seen, now
        if now == self._in_force:
            self._refused = ""
            return False
        if now != before:
            return False
        try:
            self.current = self._create(now)
        except InvalidRequest as error:
            self._refuse(error)
            return False
        self._in_force, self._refused = now, ""
        if self._logs:
            pair = self.current.pair
            log.info("the port has a new certificate: %s, valid until %s", pair.subject, pair.expires)
            warn_of_dates(self.current)
        return True

    @asynccontextmanager
    async def watching(
        self, show: Callable[[PortCertificate], None], background: BackgroundTasks
    ) -> AsyncIterator[None]:
        """Look at the files again and again while the block runs, and show each certificate that comes into force."""
        show(self.current)

        async def look() -> float:
            if await asyncio.to_thread(self.look):
                show(self.current)
            return LOOK_SECONDS

        async with background.running("port certificate", look, after=LOOK_SECONDS):
            yield

    def _read(self) -> Contents | str:
        try:
            contents = read_certificate_files(self._settings)
        except InvalidRequest as error:
            return error.reason
        assert contents is not None
        return contents

    def _create(self, state: Contents | str) -> PortCertificate:
        if isinstance(state, str):
            raise InvalidRequest(state)
        return create_certificate(self._settings, state)

    def _refuse(self, error: InvalidRequest) -> None:
        if self._logs and error.reason != self._refused:
            log.error("the port's new certificate is not used, the old one stays in force: %s", error.reason)
        self._refused = error.reason
