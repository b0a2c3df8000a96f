"""The port's certificate: what the settings' files make, what is refused, and how changes come into force."""

import logging
import ssl
import sys
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.server.http1.tls_handshake import tls_extension
from opensearch_ml_stream.plugin.server.port_certificate import (
    PortCertificate,
    ReloadingCertificate,
    create_certificate,
    read_certificate_files,
    warn_of_dates,
)
from opensearch_ml_stream.plugin.settings import Settings
from tests.upstream.certificates import Certificate, handshake, issue

AUTHORITY = issue("authority", authority=True)
OWN = issue("ml.example", AUTHORITY)
NEXT = issue("ml.example", AUTHORITY)
ANN = issue("ann", AUTHORITY)


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a port's certificate, and the settings that name them."""

    folder: Path

    @property
    def settings(self) -> Settings:
        return Settings(tls_certificate=str(self.folder / "cert.pem"), tls_key=str(self.folder / "key.pem"))

    def write(self, certificate: Certificate, key: Certificate | None = None) -> None:
        (self.folder / "cert.pem").write_text(certificate.pem)
        (self.folder / "key.pem").write_text((key or certificate).key_pem())

    def asking(self, clients: str) -> Settings:
        (self.folder / "ca.pem").write_text(AUTHORITY.pem)
        authorities = str(self.folder / "ca.pem")
        return replace(self.settings, tls_client_certificates=clients, tls_client_authorities=authorities)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write(OWN)
    return made


def created(settings: Settings) -> PortCertificate:
    contents = read_certificate_files(settings)
    assert contents is not None
    return create_certificate(settings, contents)


def client(certificate: Certificate | None = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if certificate is not None and folder is not None:
        (folder / "client.pem").write_text(certificate.key_pem() + certificate.pem)
        context.load_cert_chain(folder / "client.pem")
    return context


def presented(certificate: PortCertificate) -> bytes | None:
    return handshake(client(), certificate.context, "ml.example")[0].getpeercert(binary_form=True)


def der(certificate: Certificate) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.pem)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert read_certificate_files(Settings()) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tls_key": "k"}, r"tls\.\* need opensearch_ml_stream\.tls\.certificate"),
        ({"tls_client_certificates": "required"}, r"tls\.\* need opensearch_ml_stream\.tls\.certificate"),
        ({"tls_certificate": "c", "tls_client_certificates": "optional"}, "belong together"),
        ({"tls_certificate": "c", "tls_client_authorities": "a"}, "belong together"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read_certificate_files(replace(Settings(), **settings))


def test_the_oldest_version_is_tls_1_2_and_http_1_1_is_agreed_upon(files: Files) -> None:
    context = created(files.settings).context
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    caller = client()
    caller.set_alpn_protocols(["h2", "http/1.1"])
    assert handshake(caller, context, "ml.example")[0].selected_alpn_protocol() == "http/1.1"


@pytest.mark.parametrize(("version", "number"), [(ssl.TLSVersion.TLSv1_2, 0x0303), (ssl.TLSVersion.TLSv1_3, 0x0304)])
def test_the_application_is_told_of_a_verified_client(files: Files, version: ssl.TLSVersion, number: int) -> None:
    certificate = created(files.asking("optional"))
    caller = client(ANN, files.folder)
    caller.maximum_version = version
    extension = tls_extension(handshake(caller, certificate.context, "ml.example")[1])
    assert extension["client_cert_name"] == "CN=ann"
    assert extension["client_cert_chain"] == [ANN.pem]
    assert extension["client_cert_error"] is None
    assert extension["tls_version"] == number


def test_a_client_without_a_certificate_has_no_name(files: Files) -> None:
    certificate = created(files.asking("optional"))
    extension = tls_extension(handshake(client(), certificate.context, "ml.example")[1])
    assert (extension["client_cert_name"], extension["client_cert_chain"]) == (None, [])


def test_a_required_certificate_must_come_from_the_named_authority(files: Files) -> None:
    context = created(files.asking("required")).context
    handshake(client(ANN, files.folder), context, "ml.example")
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(client(), context, "ml.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client(issue("eve"), files.folder), context, "ml.example")


def test_a_file_of_authorities_without_any_is_named(files: Files) -> None:
    settings = files.asking("required")
    Path(settings.tls_client_authorities).write_text("")
    with pytest.raises(InvalidRequest, match=r"ca\.pem: it holds no certificate"):
        created(settings)


def test_dates_that_clients_will_not_accept_are_logged(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    certificate = created(files.settings)
    warn_of_dates(certificate)
    assert caplog.messages == []
    now = datetime.now(UTC)
    warn_of_dates(certificate, now + timedelta(days=9))
    warn_of_dates(certificate, now - timedelta(days=9))
    assert [text.split(" on ")[0].split(" before ")[0] for text in caplog.messages] == [
        "the port's certificate (CN=ml.example) expired",
        "the port's certificate (CN=ml.example) is not valid",
    ]


def reloading(files: Files) -> ReloadingCertificate:
    at_start = read_certificate_files(files.settings)
    assert at_start is not None
    return ReloadingCertificate(files.settings, at_start)


def test_a_change_comes_into_force_when_two_looks_see_the_same(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    certificate = reloading(files)
    files.write(NEXT)
    assert [certificate.reload(), certificate.reload(), certificate.reload()] == [False, True, False]
    assert presented(certificate.current) == der(NEXT)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("the port has a new certificate: CN=ml.example, valid until ")


def test_files_that_are_written_one_after_another_are_not_complained_of(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = reloading(files)
    files.write(NEXT, key=OWN)
    assert not certificate.reload()
    files.write(NEXT)
    assert [certificate.reload(), certificate.reload()] == [False, True]
    assert caplog.messages == []


@pytest.mark.parametrize("fault", ["other key", "missing"])
def test_a_broken_new_file_is_logged_once_and_the_old_certificate_stays(
    files: Files, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    certificate = reloading(files)
    if fault == "missing":
        (files.folder / "key.pem").unlink()
    else:
        files.write(OWN, key=NEXT)
    assert not any(certificate.reload() for _ in range(4))
    assert presented(certificate.current) == der(OWN)
    assert len(caplog.messages) == 1
    assert f"{files.folder / 'key.pem'}: " in caplog.messages[0]
    files.write(NEXT)
    assert [certificate.reload(), certificate.reload()] == [False, True]
    assert presented(certificate.current) == der(NEXT)


def test_a_worker_that_is_born_while_the_files_are_broken_has_those_of_the_servers_start(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    at_start = read_certificate_files(files.settings)
    assert at_start is not None
    files.write(OWN, key=NEXT)
    certificate = ReloadingCertificate(files.settings, at_start)
    assert presented(certificate.current) == der(OWN)
    assert len(caplog.messages) == 1


def test_a_new_certificate_that_a_full_disk_kept_out_is_in_force_once_there_is_space(
    files: Files, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = reloading(files)
    files.write(NEXT)
    with monkeypatch.context() as full:
        full.setattr(sys, "platform", "one without files in memory")
        full.setattr(tempfile, "tempdir", str(files.folder / "missing"))
        assert not any(certificate.reload() for _ in range(4))
    assert len(caplog.messages) == 1
    assert "its key cannot be written to a temporary file (No such file or directory)" in caplog.messages[0]
    assert certificate.reload()
    assert presented(certificate.current) == der(NEXT)


def test_files_that_are_as_they_were_are_no_new_certificate(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    certificate = reloading(files)
    for _ in range(2):
        files.write(OWN, key=NEXT)
        assert not any(certificate.reload() for _ in range(3))
        files.write(OWN)
        assert not any(certificate.reload() for _ in range(3))
    assert [text.split(",")[0] for text in caplog.messages] == ["the port's new certificate is not used"] * 2


def test_only_one_worker_logs(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    at_start = read_certificate_files(files.settings)
    assert at_start is not None
    certificate = ReloadingCertificate(files.settings, at_start, logs=False)
    files.write(NEXT)
    assert [certificate.reload(), certificate.reload()] == [False, True]
    files.write(NEXT, key=OWN)
    assert not any(certificate.reload() for _ in range(3))
    assert caplog.messages == []
