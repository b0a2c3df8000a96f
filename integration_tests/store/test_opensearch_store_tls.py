"""A store behind TLS: a client certificate is presented, and a pinned certificate needs no authority."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.fake_provider import FakeProvider, json_response

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store.open_store import open_store

INFO = json_response({"version": {"number": "3.6.0"}})  # as `GET /` has it


def fingerprint(certificate: Certificate) -> str:
    return certificate.certificate.fingerprint(hashes.SHA256()).hex()


async def test_a_client_certificate_and_a_pinned_certificate_reach_a_guarded_cluster(tmp_path: Path) -> None:
    authority = new_authority()
    node, admin = authority.issue("localhost"), authority.issue("admin")
    (tmp_path / "admin.pem").write_text(admin.certificate_pem)
    (tmp_path / "admin.key").write_text(admin.key_pem)
    (tmp_path / "ca.pem").write_text(authority.certificate_pem)
    login = f"client_cert={tmp_path / 'admin.pem'}&client_key={tmp_path / 'admin.key'}"
    async with FakeProvider(INFO, node.server_context(tmp_path, clients_of=authority)) as cluster:
        for trust in (f"fingerprint={fingerprint(node)}", f"ca_certs={tmp_path / 'ca.pem'}"):
            async with open_store(f"{cluster.url}?{trust}&{login}") as store:
                await store.ping()
            async with open_store(f"{cluster.url}?{trust}") as store:
                with pytest.raises(Unavailable):
                    await store.ping()
        async with open_store(f"{cluster.url}?fingerprint={fingerprint(admin)}&{login}") as store:
            with pytest.raises(Unavailable, match="does not have the fingerprint"):
                await store.ping()
    assert len(cluster.requests) == 2
