"""The certificate of the port: an SSLContext of the files that the settings name, reloaded when these change."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives import serialization

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.key_pairs import (
    Contents,
    KeyPair,
    KeyPairFiles,
    load_key_pair,
    naming,
    parse_certificates,
    parse_files,
    read_files,
)
from opensearch_ml_stream.plugin.settings import Settings

LOOK_SECONDS = 2.0

_VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

log = logging.getLogger("opensearch_ml_stream")


@dataclass(frozen=True, slots=True)
class PortCertificate:
    """A certificate with its key, and the SSLContext of connections that use it.

    `authorities` are the authorities for clients' certificates, in PEM.
    """

    context: ssl.SSLContext
    pair: KeyPair
    authorities: bytes | None = None


def read_certificate_files(settings: Settings) -> Contents | None:
    """Return the contents of the port's TLS files, None if the settings name no certificate.

    Raises InvalidRequest if one cannot be read, or if the settings contradict each other.
    """
    _check_settings(settings)
    if not settings.tls_certificate:
        return None
    authorities = [settings.tls_client_authorities] if settings.tls_client_authorities else []
    return read_files([*_files(settings).paths(), *authorities])


def create_certificate(settings: Settings, contents: Contents) -> PortCertificate:
    """Return the port's certificate from the contents of its files; InvalidRequest says which file is wrong."""
    pair = parse_files(_files(settings), contents)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = _VERIFY[settings.tls_client_certificates]
    if authorities := settings.tls_client_authorities:
        with naming(authorities):
            for authority in parse_certificates(contents[authorities]):
                context.load_verify_locations(cadata=authority.public_bytes(serialization.Encoding.DER))
    with naming(settings.tls_certificate):
        load_key_pair(context, pair)
    return PortCertificate(context, pair, contents.get(settings.tls_client_authorities))


def warn_of_dates(certificate: PortCertificate, now: datetime | None = None) -> None:
    """Log a warning if clients will not accept the certificate because of its dates."""
    now = now or datetime.now(UTC)
    own = certificate.pair.certificates[0]
    if own.not_valid_after_utc <= now:
        log.warning("the port's certificate (%s) expired on %s", certificate.pair.subject, own.not_valid_after_utc)
    elif own.not_valid_before_utc > now:
        log.warning(
            "the port's certificate (%s) is not valid before %s", certificate.pair.subject, own.not_valid_before_utc
        )


class ReloadingCertificate:
    """The port's certificate. `current`, which new connections use, is replaced when valid new files are found.

    `at_start` are the files' contents when the server started, which a worker uses that is started while the files are
    broken. Only one of the workers `logs`, since all see the same.
    """

    def __init__(self, settings: Settings, at_start: Contents, *, logs: bool = True) -> None:
        self._settings = settings
        self._logs = logs
        self._refused = ""  # why the present files are not used
        self._seen = self._in_force = self._read()  # contents, or why they could not be read
        try:
            self.current = self._create(self._seen)
        except InvalidRequest as error:
            self._refuse(error)
            self._in_force = at_start
            self.current = self._create(at_start)

    def reload(self) -> bool:
        """Read the files, and return whether there is a new certificate. To be called in a thread.

        A change is accepted when two reads in a row see the same, as the files may be written one after another. An
        error is logged once, and the files are tried again, since the disk may have been full.
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
        """Reload the files while the block runs, and call `show` with each new certificate."""
        show(self.current)

        async def look() -> float:
            if await asyncio.to_thread(self.reload):
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


def _files(settings: Settings) -> KeyPairFiles:
    return KeyPairFiles(settings.tls_certificate, settings.tls_key, settings.tls_key_password)


def _check_settings(settings: Settings) -> None:
    asks_clients = settings.tls_client_certificates != "none"
    others = settings.tls_key or settings.tls_key_password or settings.tls_client_authorities or asks_clients
    if not settings.tls_certificate and others:
        raise InvalidRequest("Settings opensearch_ml_stream.tls.* need opensearch_ml_stream.tls.certificate")
    if asks_clients != bool(settings.tls_client_authorities):
        raise InvalidRequest(
            "Settings opensearch_ml_stream.tls.client_certificates (optional or required) and "
            "opensearch_ml_stream.tls.client_authorities belong together; set both or neither"
        )
