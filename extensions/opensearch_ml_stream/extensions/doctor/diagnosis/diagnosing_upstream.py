"""An Upstream that takes the connection apart into the steps of a diagnosis: resolve, connect, tls.

It uses the functions of `HTTPUpstream`, on a connection of its own: no connection is reused, no name is cached, and
`max_connection` and the circuit breaker do not apply.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.request import getproxies_environment

from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.observed_response import CallTimes, ObservedResponse
from opensearch_ml_stream.extensions.doctor.diagnosis.report import StepName
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import Findings, StepLog
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import UpstreamResponse, network_errors
from opensearch_ml_stream.plugin.upstream.addresses import PrivateAddress, Resolver
from opensearch_ml_stream.plugin.upstream.http1.client import HTTPUpstream
from opensearch_ml_stream.plugin.upstream.http1.connection import Connection, connect, open_tcp
from opensearch_ml_stream.plugin.upstream.http1.pool import Route
from opensearch_ml_stream.plugin.upstream.target import Target
from opensearch_ml_stream.plugin.upstream.tls_contexts import UNVERIFIED, TLSContexts

NETWORK_STEPS: tuple[StepName, ...] = ("resolve", "connect", "tls")
MAX_SHOWN_ADDRESSES = 20
WARN_DAYS = 14  # before a certificate expires
MAX_NAMES = 20
MAX_CHARACTERS = 300
CERTIFICATE_SECONDS = 5.0  # to fetch a certificate that is not trusted


class DiagnosingUpstream:
    """Opens one call of a provider, in steps."""

    def __init__(self, live: LiveSettings, log: StepLog, times: CallTimes) -> None:
        self._client = _SteppedConnections(live, log, times)
        self._log = log
        self._times = times

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, config: ClientConfig, tls: Mapping[str, str], pool_key: str = ""
    ) -> AsyncIterator[UpstreamResponse]:
        """See Upstream.open. Each attempt of a call that is retried begins the steps anew."""
        self._times.begin()
        self._times.attempts += 1
        self._log.forget(NETWORK_STEPS)
        async with self._client.open(request, config, tls, pool_key) as response:
            yield ObservedResponse(response, self._times)

    def close(self) -> None:
        """Close the connection, which no other call will use."""
        self._client.close()


class _SteppedConnections(HTTPUpstream):
    """The client for providers, each of whose connections is opened in steps."""

    def __init__(self, live: LiveSettings, log: StepLog, times: CallTimes) -> None:
        super().__init__(live, Resolver(), TLSContexts(), getproxies_environment())
        self._log = log
        self._times = times

    def close(self) -> None:
        """Close idle connections, and cancel pending lookups."""
        super().close()
        self._resolver.close()

    async def connect(self, target: Target, route: Route, seconds: float) -> Connection:
        """See HTTPUpstream.connect. As there, an address whose TLS fails gives way to the next."""
        if route.proxy is not None:
            self._log.skip(NETWORK_STEPS, "not shown, as the call goes through an HTTP proxy")
            connection = await super().connect(target, route, seconds)
            self._times.sent()
            return connection
        addresses = await self._resolve(target, route)
        context = await self._contexts.get(route.tls) if route.scheme == "https" else None
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            connection = await self._connect(addresses, target, seconds)
            addresses = addresses[addresses.index(connection.address) + 1 :]
            if context is None:
                self._log.skip(("tls",), "the url is http: nothing is encrypted")
                break
            try:
                await self._start_tls(connection, target, context, deadline)
                break
            except UpstreamError:
                connection.abort()
                if not addresses:
                    raise
            except BaseException:
                connection.abort()
                raise
        self._times.sent()
        return connection

    async def _resolve(self, target: Target, route: Route) -> tuple[str, ...]:
        with self._log.timed("resolve") as found:
            addresses = await self._resolver.resolve(route.host)
            found.details = {"host": route.host, "addresses": list(addresses[:MAX_SHOWN_ADDRESSES])}
            try:
                route.policy.check(route.host, addresses)
            except PrivateAddress:
                found.advice = f"If it is to be called: opensearch-ml-stream endpoints allow {target.origins[0]}"
                raise
            more = "" if len(addresses) == 1 else f" and {len(addresses) - 1} more"
            found.summary = f"{route.host} is {addresses[0]}{more}"
        return addresses

    async def _connect(self, addresses: tuple[str, ...], target: Target, seconds: float) -> Connection:
        with self._log.timed("connect") as found:
            found.details = {"port": target.port}
            connection = await connect(addresses, target.authority, partial(open_tcp, target.port), seconds)
            found.details = {"address": connection.address, "port": target.port}
            found.summary = f"connected to {connection.address}, port {target.port}"
        return connection

    async def _start_tls(
        self, connection: Connection, target: Target, context: ssl.SSLContext, deadline: float
    ) -> None:
        """Begin TLS on a connection; the certificate must be for the name, not for the address."""
        loop = asyncio.get_running_loop()
        assert connection.transport is not None
        with self._log.timed("tls") as found:
            try:
                async with asyncio.timeout_at(deadline):
                    transport = await loop.start_tls(
                        connection.transport, connection, context, server_hostname=target.host
                    )
            except TimeoutError:
                found.summary = f"{target.authority} did not finish the TLS handshake in time"
                found.advice = "Check that the port speaks TLS, and the firewalls between here and the provider"
                raise network_errors.connect_timed_out(target.authority, 0.0) from None
            except OSError as error:  # ssl.SSLError is one
                await self._explain(error, found, connection.address, target)
                raise network_errors.unreachable(target.authority, error) from None
            assert transport is not None
            connection.transport = transport
            _describe(transport.get_extra_info("ssl_object"), context, found)

    async def _explain(self, error: OSError, found: Findings, address: str, target: Target) -> None:
        if not isinstance(error, ssl.SSLCertVerificationError):
            return
        found.summary, found.advice = why_untrusted(error)
        certificate = await self._certificate(address, target)
        found.details = {"verify_error": error.verify_message, "certificate": certificate}
        if error.verify_code == 10 and certificate:
            found.summary += f" on {certificate['valid_until'][:10]}"

    async def _certificate(self, address: str, target: Target) -> dict[str, Any]:
        """Fetch the untrusted certificate over a connection on which nothing is sent; empty if none comes."""
        loop = asyncio.get_running_loop()
        connection = Connection(address)
        context = await self._contexts.get(UNVERIFIED)
        try:
            async with asyncio.timeout(CERTIFICATE_SECONDS):
                transport, _ = await loop.create_connection(
                    lambda: connection, address, target.port, ssl=context, server_hostname=target.host
                )
            return certificate_fields(transport.get_extra_info("ssl_object").getpeercert(True) or b"")
        except OSError:  # TimeoutError is one
            return {}
        finally:
            connection.abort()


def _describe(connection: ssl.SSLObject, context: ssl.SSLContext, found: Findings) -> None:
    certificate = certificate_fields(connection.getpeercert(True) or b"")
    cipher = connection.cipher()
    found.details = {
        "version": connection.version(),
        "cipher": None if cipher is None else cipher[0],
        "certificate": certificate,
    }
    days = certificate.get("days_left", 0)
    found.summary = f"{connection.version()}, certificate valid for {days} more days"
    if context.verify_mode is ssl.CERT_NONE:
        found.verdict = "warning"
        found.summary = f"{connection.version()}, the certificate is not checked"
        found.advice = "client_config.skip_ssl_verification is true: whoever is in between can read the credential"
    elif certificate and days < WARN_DAYS:
        found.verdict = "warning"
        found.advice = "Have the certificate renewed before it expires"


class Problem(NamedTuple):
    """Why a certificate is not trusted, and what to do."""

    summary: str
    advice: str


_PRIVATE_AUTHORITY = (
    "If the provider is your own, give its authority as the credential ca_cert_pem, or install it on this machine; "
    "if not, something between here and the provider may decrypt the traffic (a company's proxy)"
)
_RENEW = "Renew the certificate at the provider (or at the proxy in front of it)"
_OTHER_HOST = "Check the host in the connector's url: it must be one of the certificate's names"

# X509_V_ERR_*, https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/
_PROBLEMS = {
    9: Problem("The certificate is not valid yet", "Check this machine's clock, and when the certificate begins"),
    10: Problem("The certificate has expired", f"{_RENEW}; check this machine's clock, too"),
    18: Problem("The certificate is signed by itself, not by an authority that is trusted here", _PRIVATE_AUTHORITY),
    19: Problem("The certificate's authority is not trusted here", _PRIVATE_AUTHORITY),
    20: Problem(
        "The certificate's authority is not known here",
        f"Check that the provider sends its intermediate certificates. {_PRIVATE_AUTHORITY}",
    ),
    21: Problem(
        "The certificate's signature cannot be checked",
        "Check that the provider sends its intermediate certificates",
    ),
    23: Problem("The certificate was revoked", _RENEW),
    62: Problem("The certificate is for another host name", _OTHER_HOST),
    64: Problem("The certificate is for another address", _OTHER_HOST),
}


def why_untrusted(error: ssl.SSLCertVerificationError) -> Problem:
    """Return what a failed verification means."""
    known = _PROBLEMS.get(error.verify_code)
    if known is not None:
        return known
    return Problem(f"The certificate is not trusted: {error.verify_message}", _PRIVATE_AUTHORITY)


def certificate_fields(data: bytes) -> dict[str, Any]:
    """Return what a certificate (DER) says: subject, issuer, names, valid_from, valid_until, days_left.

    An empty object if it cannot be read. Texts are cut: the issuer of the certificate chooses their length.
    """
    try:
        certificate = x509.load_der_x509_certificate(data)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return {
            "subject": _cut(certificate.subject.rfc4514_string()),
            "issuer": _cut(certificate.issuer.rfc4514_string()),
            "names": _names(certificate),
            "valid_from": begins.isoformat(),
            "valid_until": ends.isoformat(),
            "days_left": (ends - datetime.now(UTC)).days,
        }
    except ValueError:
        return {}


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension):
        return []
    assert isinstance(extension, x509.SubjectAlternativeName)
    names = [*extension.get_values_for_type(x509.DNSName), *map(str, extension.get_values_for_type(x509.IPAddress))]
    return [_cut(name) for name in names[:MAX_NAMES]]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "..."
