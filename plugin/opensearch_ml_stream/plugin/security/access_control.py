"""Access to one connector or model group: public, private or restricted to backend roles (ML Commons contract, 6.3).

A model is as accessible as its group. A document without an owner was made where nobody logs in, and is everyone's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.rest_handlers.callers import Caller

PUBLIC, PRIVATE, RESTRICTED = "public", "private", "restricted"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """What ML Commons says to access fields that cannot be, of one kind of document."""

    only_restricted: str
    add_all_by_admin: str
    roles_and_add_all: str
    caller_without_roles: str
    no_roles: str
    foreign_role: str


CONNECTOR_WORDING = Wording(
    only_restricted="You can specify backend roles only for a connector with the restricted access mode.",
    add_all_by_admin="Admin can't add all backend roles",
    roles_and_add_all="You can't specify backend roles and add all backend roles to true at same time.",
    caller_without_roles="You must have at least one backend role to create a connector.",
    no_roles="You must specify at least one backend role or make the connector public/private for registering it.",
    foreign_role="You don't have the backend roles specified.",
)
GROUP_WORDING = Wording(
    only_restricted="You can specify backend roles only for a model group with the restricted access mode.",
    add_all_by_admin="Admin users cannot add all backend roles to a model group.",
    roles_and_add_all="You cannot specify backend roles and add all backend roles at the same time.",
    caller_without_roles="You must have at least one backend role to register a restricted model group.",
    no_roles=(
        "You must specify one or more backend roles or add all backend roles to register a restricted model group."
    ),
    foreign_role="You don't have the backend roles specified.",
)


def may_access(caller: Caller, document: Json) -> bool:
    """Whether the caller may see and use a connector or model group, of that stored source."""
    owner = document.get("owner")
    if caller.is_admin or owner is None:
        return True
    match document.get("access"):
        case "public":
            return True
        case "private":
            return isinstance(owner, Mapping) and owner.get("name") == caller.name
        case "restricted":
            return not caller.backend_roles.isdisjoint(_strings(document.get("backend_roles")))
        case _:
            return False


def visible_to(caller: Caller) -> Json:
    """Return the query that finds the connectors or model groups that the caller may see."""
    if caller.is_admin:
        return {"match_all": {}}
    own = {"nested": {"path": "owner", "query": {"term": {"owner.name.keyword": caller.name}}}}
    ownerless = {"bool": {"must_not": [{"nested": {"path": "owner", "query": {"exists": {"field": "owner"}}}}]}}
    return {
        "bool": {
            "should": [
                {"term": {"access": PUBLIC}},
                {"terms": {"backend_roles.keyword": sorted(caller.backend_roles)}},
                {"bool": {"must": [own, {"term": {"access": PRIVATE}}]}},
                ownerless,
            ]
        }
    }


def access_fields(caller: Caller, body: Json, wording: Wording) -> dict[str, Any]:
    """Return `access`, `owner` and, if restricted, `backend_roles` of a document that the caller makes.

    Reads `access_mode`, `backend_roles` and `add_all_backend_roles` of the request. InvalidRequest if they contradict
    each other, or name roles that the caller has not.
    """
    roles, add_all = _strings(body.get("backend_roles")), body.get("add_all_backend_roles") is True
    access = body.get("access_mode") or (RESTRICTED if roles or add_all else PRIVATE)
    if roles and add_all:
        raise InvalidRequest(wording.roles_and_add_all)
    if access != RESTRICTED:
        if roles or add_all:
            raise InvalidRequest(wording.only_restricted)
        return {"access": access, "owner": owner_of(caller)}
    if caller.is_admin and add_all:
        raise InvalidRequest(wording.add_all_by_admin)
    if not caller.backend_roles:
        raise InvalidRequest(wording.caller_without_roles)
    if not roles and not add_all:
        raise InvalidRequest(wording.no_roles)
    if not caller.is_admin and not caller.backend_roles.issuperset(roles):
        raise InvalidRequest(wording.foreign_role)
    return {
        "access": access,
        "owner": owner_of(caller),
        "backend_roles": sorted(caller.backend_roles) if add_all else roles,
    }


def owner_of(caller: Caller) -> dict[str, Any]:
    """Return the owner as ML Commons stores one."""
    return {
        "name": caller.name,
        "backend_roles": sorted(caller.backend_roles),
        "roles": sorted(caller.roles),
        "custom_attribute_names": [],
    }


def _strings(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
