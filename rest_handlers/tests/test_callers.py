"""Tenants: the header that names one, and what belongs to it."""

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller, OpenGate, Scope, TenantGate

GATE = TenantGate(OpenGate())
NOT_YOURS = "You don't have permission to access this resource"


def scope(*values: bytes) -> Scope:
    return {"headers": [(b"host", b"x"), *[(b"x-tenant-id", value) for value in values]]}


async def test_the_header_says_which_tenant_calls() -> None:
    caller = await GATE.admit(scope(b" team-a "), actions.MODEL_GET)
    assert caller == Caller("", is_admin=True, tenant_id="team-a")
    assert caller.is_anyone and caller.tenant_fields == {"tenant_id": "team-a"}


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ([], Forbidden("Tenant ID header is missing or has no value")),
        ([b" "], Forbidden("Tenant ID header is missing or has no value")),
        ([b"a", b"b"], InvalidRequest("X-Tenant-Id must be given once, with at most 512 visible ASCII characters")),
        ([b"a b"], InvalidRequest("X-Tenant-Id must be given once, with at most 512 visible ASCII characters")),
        ([b"\xc3\xa4"], InvalidRequest("X-Tenant-Id must be given once, with at most 512 visible ASCII characters")),
        ([b"a" * 513], InvalidRequest("X-Tenant-Id must be given once, with at most 512 visible ASCII characters")),
    ],
)
async def test_a_header_that_names_no_tenant_is_refused(values: list[bytes], refusal: MLStreamError) -> None:
    with pytest.raises(type(refusal)) as refused:
        await GATE.admit(scope(*values), actions.PREDICT_STREAM, actions.PREDICT)
    assert refused.value.reason == refusal.reason


@pytest.mark.parametrize("action", [actions.METRICS_GET, actions.SETTINGS_GET, actions.SETTINGS_UPDATE])
async def test_what_concerns_the_server_needs_no_tenant(action: str) -> None:
    assert await GATE.admit(scope(), action) is ANYONE
    assert GATE.asks_for_login is OpenGate.asks_for_login


def test_another_tenants_document_is_nobody_elses_not_even_an_admins() -> None:
    admin = Caller("admin", is_admin=True, tenant_id="a")
    admin.check_tenant({"tenant_id": "a"})
    for document in ({"tenant_id": "b"}, {"tenant_id": None}, {}):
        with pytest.raises(Forbidden) as refused:
            admin.check_tenant(document)
        assert refused.value.reason == NOT_YOURS


def test_without_tenants_every_document_is_everyones() -> None:
    Caller("ann").check_tenant({"tenant_id": "b"})
    assert Caller("ann").tenant_fields == {}
