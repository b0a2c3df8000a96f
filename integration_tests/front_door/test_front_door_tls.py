"""The front door to a cluster behind TLS: it trusts whom the store's URL trusts, and shows no certificate."""

from pathlib import Path

import pytest
from integration_tests.front_door.scripted_cluster import door_to
from integration_tests.support.certificates import new_authority
from integration_tests.support.fake_provider import FakeProvider, json_response

GET = b"GET /_cat HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(("guarded", "trusted", "status"), [(False, True, 200), (False, False, 503), (True, True, 503)])
async def test_the_stores_certificate_stays_with_the_store(
    tmp_path: Path, guarded: bool, trusted: bool, status: int
) -> None:
    authority = new_authority()
    node, admin = authority.issue("localhost"), authority.issue("admin")
    (tmp_path / "admin.pem").write_text(admin.certificate_pem)
    (tmp_path / "admin.key").write_text(admin.key_pem)
    (tmp_path / "ca.pem").write_text((authority if trusted else new_authority()).certificate_pem)
    files = {"ca_certs": "ca.pem", "client_cert": "admin.pem", "client_key": "admin.key"}
    options = "&".join(f"{name}={tmp_path / file}" for name, file in files.items())
    context = node.server_context(tmp_path, clients_of=authority if guarded else None)
    async with FakeProvider(json_response({"a": 1}), context) as cluster, door_to(f"{cluster.url}?{options}") as door:
        response = await door.exchange(GET)
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert len(cluster.requests) == (status == 200)
