"""A store behind TLS: a client certificate is presented, and a pinned certificate needs no authority.

What is sent for a caller goes without that certificate, which may be an administrator's.
"""

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
    assert len(cluster.requests) == 2 * 2  # a ping looks at the server, and at its indices


async def test_a_caller_is_asked_about_without_the_certificate_and_the_login_of_the_store(tmp_path: Path) -> None:
    authority = new_authority()
    node, admin = authority.issue("localhost"), authority.issue("admin")
    (tmp_path / "admin.pem").write_text(admin.certificate_pem + admin.key_pem)
    (tmp_path / "ca.pem").write_text(authority.certificate_pem)
    options = f"ca_certs={tmp_path / 'ca.pem'}&client_cert={tmp_path / 'admin.pem'}"
    seen = json_response({"user_name": "ann"})
    async with (
        FakeProvider(seen, node.server_context(tmp_path, clients_of=authority)) as guarded,
        open_store(f"{guarded.url}?{options}") as store,
    ):
        assert store.security is not None
        with pytest.raises(Unavailable):  # this node serves nobody without a certificate
            await store.security.auth_info({"authorization": "Bearer x"})
    async with (
        FakeProvider(seen, node.server_context(tmp_path)) as cluster,
        open_store(f"{cluster.url.replace('://', '://admin:pw@')}?{options}") as store,
    ):
        assert store.security is not None
        await store.security.auth_info({"authorization": "Bearer x"})
        await store.security.auth_info({"x-proxy-user": "bob"})
    assert [request.headers.get("authorization") for request in cluster.requests] == ["Bearer x", None]
