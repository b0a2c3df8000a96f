"""`serve` that cannot start ends at once with the reason in one line, before it announces its address."""

import subprocess
from pathlib import Path

from integration_tests.cli.commands import COMMAND, environment
from integration_tests.support.certificates import new_authority

SECRET = "pw-1234567890"


def serve(*arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and standard error."""
    command = [*COMMAND, "serve", "--port", "0", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(**variables))
    return ended.returncode, ended.stderr


def test_an_invalid_store_is_refused_before_any_worker_starts() -> None:
    """Others: `plugin/tests/store/test_open_store.py`."""
    url = f"postgres://u:{SECRET}@h/x"
    code, shown = serve("--store", url, "--workers", "2")  # a worker that cannot start would be started again
    assert (code, len(shown.splitlines())) == (2, 1), shown
    assert "The store must be sqlite:///PATH" in shown
    assert SECRET not in shown


def test_a_host_that_is_no_name_is_named() -> None:
    code, shown = serve("--store", "sqlite:///:memory:", "--host", "a..b")
    assert (code, len(shown.splitlines())) == (1, 1), shown
    assert "The host a..b is not a host name" in shown


def test_a_certificate_that_cannot_be_used_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(new_authority().issue("localhost").certificate_pem)
    (tmp_path / "key.pem").write_text(new_authority().key_pem)
    tls = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__TLS__"
    files = {f"{tls}CERTIFICATE": str(tmp_path / "cert.pem"), f"{tls}KEY": str(tmp_path / "key.pem")}
    code, shown = serve("--store", "sqlite:///:memory:", "--workers", "2", **files)
    assert (code, len(shown.splitlines())) == (2, 1), shown
    assert f"{tmp_path / 'key.pem'}: the key does not match the certificate" in shown
