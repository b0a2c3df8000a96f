"""Access to one connector or model group: public, private or restricted to backend roles (ML Commons contract, 6.3).

A model is as accessible as its group. A document without an owner was created without a login, or while access control
was off, and is accessible to everyone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.rest_handlers.callers import Caller

PUBLIC, PRIVATE, RESTRICTED = "public", "private", "restricted"
ACCESS_MODES = (PUBLIC, RESTRICTED, PRIVATE)

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AskedAccess:
    """The access fields of a request: `access_mode`, `backend_roles` and `add_all_backend_roles`, None if absent."""

    mode: str | None = None
    roles: tuple[str, ...] | None = None
    add_all: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.mode is None and self.roles is None and self.add_all is None


@dataclass(frozen=True, slots=True)
class Wording:
    """ML Commons' error texts for invalid access fields of one kind of document."""

    switched_off: str
    only_restricted: str
    add_all_by_admin: str
    roles_and_add_all: str
    caller_without_roles: str
    no_roles: str
    foreign_role: str = "You don't have the backend roles specified."
    not_owner: str = "Only owner or admin can update access control data."


CONNECTOR_WORDING = Wording(
    switched_off=(
        "You cannot specify connector access control parameters because the Security plugin or connector access "
        "control is disabled on your cluster."
    ),
    only_restricted="You can specify backend roles only for a connector with the restricted access mode.",
    add_all_by_admin="Admin can't add all backend roles",
    roles_and_add_all="You can't specify backend roles and add all backend roles to true at same time.",
    caller_without_roles="You must have at least one backend role to create a connector.",
    no_roles="You must specify at least one backend role or make the connector public/private for registering it.",
)
GROUP_WORDING = Wording(
    switched_off=(
        "You cannot specify model access control parameters because the Security plugin or model access control is "
        "disabled on your cluster."
    ),
    only_restricted="You can specify backend roles only for a model group with the restricted access mode.",
    add_all_by_admin="Admin users cannot add all backend roles to a model group.",
    roles_and_add_all="You cannot specify backend roles and add all backend roles at the same time.",
    caller_without_roles="You must have at least one backend role to register a restricted model group.",
    no_roles=(
        "You must specify one or more backend roles or add all backend roles to register a restricted model group."
    ),
)


@dataclass(frozen=True, slots=True)
class AccessControl:
    """Access control of all connectors, or of all model groups. `is_on` is its setting, as it is now."""

    is_on: Callable[[], bool]
    wording: Wording

    def applies_to(self, caller: Caller) -> bool:
        """Whether it is on, and the caller has logged in: only then can a document have an owner."""
        return not caller.is_anyone and self.is_on()

    def restricts(self, caller: Caller) -> bool:
        """Whether there may be a document that the caller may not access."""
        return not caller.is_admin and self.is_on()

    def allows(self, caller: Caller, document: Json | None) -> bool:
        """Whether the caller may see and use a document, of that stored source; None if it is missing.

        Forbidden for another tenant's.
        """
        if document is not None:
            caller.check_tenant(document)
        return self.modes_allow(caller, document)

    def modes_allow(self, caller: Caller, document: Json | None) -> bool:
        """Whether its access mode lets the caller see and use a document, whatever its tenant."""
        return not self.restricts(caller) or (document is not None and may_access(caller, document))

    def new_fields(self, caller: Caller, asked: AskedAccess) -> dict[str, Any]:
        """Return the tenant of a document that the caller makes, and where access control applies its access fields.

        InvalidRequest for what cannot be, and for all that is asked where it does not apply.
        """
        self.check_applies(caller, asked)
        fields = access_fields(caller, asked, self.wording) if self.applies_to(caller) else {}
        return {**fields, **caller.tenant_fields}

    def changed_fields(self, caller: Caller, document: Json, asked: AskedAccess) -> dict[str, Any]:
        """Return the access fields that a request changes; errors as those of `new_fields`.

        InvalidRequest also if the caller is neither admin nor owner. A mode that is not given stays, unless roles are.
        An admin who says who may access a document without an owner becomes its owner: it would stay everyone's.
        """
        self.check_applies(caller, asked)
        if asked.is_empty or not self.applies_to(caller):
            return {}
        owner = document.get("owner")
        if not caller.is_admin and not _is_owner(caller, owner):
            raise InvalidRequest(self.wording.not_owner)
        mode = asked.mode or (RESTRICTED if asked.roles or asked.add_all else document.get("access", PUBLIC))
        fields = access_fields(caller, AskedAccess(mode, asked.roles, asked.add_all), self.wording)
        return {"backend_roles": [], **fields, "owner": owner or fields["owner"]}

    def check_applies(self, caller: Caller, asked: AskedAccess) -> None:
        """Raise InvalidRequest if anything is asked where access control does not apply: silence would promise it."""
        if (asked.mode is not None or asked.add_all is not None or asked.roles) and not self.applies_to(caller):
            raise InvalidRequest(self.wording.switched_off)


def connector_access(live_settings: LiveSettings) -> AccessControl:
    """Return the access control of all connectors."""
    return AccessControl(lambda: live_settings.current.connector_access_control_enabled, CONNECTOR_WORDING)


def group_access(live_settings: LiveSettings) -> AccessControl:
    """Return the access control of all model groups, and so of all models."""
    return AccessControl(lambda: live_settings.current.model_access_control_enabled, GROUP_WORDING)


def may_access(caller: Caller, document: Json) -> bool:
    """Whether the caller may see and use a connector or model group, of that stored source."""
    owner = document.get("owner")
    if caller.is_admin or owner is None:
        return True
    match document.get("access"):
        case "public":
            return True
        case "private":
            return _is_owner(caller, owner)
        case "restricted":
            return not caller.backend_roles.isdisjoint(_strings(document.get("backend_roles")))
        case _:
            return False


def visible_to(caller: Caller) -> Json:
    """Return the query that finds the connectors or model groups that the caller may see."""
    if caller.is_admin:
        return {"match_all": {}}
    own = {
        "nested": {
            "path": "owner",
            "query": {"term": {"owner.name.keyword": caller.name}},
            "ignore_unmapped": True,
        }
    }
    owned = {"nested": {"path": "owner", "query": {"match_all": {}}, "ignore_unmapped": True}}
    shared = {"terms": {"backend_roles.keyword": sorted(caller.backend_roles)}}
    return {
        "bool": {
            "should": [
                {"term": {"access": PUBLIC}},
                {"bool": {"filter": [{"term": {"access": PRIVATE}}, own]}},
                {"bool": {"filter": [{"term": {"access": RESTRICTED}}, shared]}},
                {"bool": {"must_not": [owned]}},
            ]
        }
    }


def access_fields(caller: Caller, asked: AskedAccess, wording: Wording) -> dict[str, Any]:
    """Return `access`, `owner` and, if restricted, `backend_roles` of a document that the caller makes.

    Without a mode, roles make it restricted, and none make it private. InvalidRequest if what is asked contradicts
    itself, or names roles that the caller has not.
    """
    roles, add_all = asked.roles or (), asked.add_all is True
    access = asked.mode or (RESTRICTED if roles or add_all else PRIVATE)
    if roles and add_all:
        raise InvalidRequest(wording.roles_and_add_all)
    if access != RESTRICTED:
        if roles or add_all:
            raise InvalidRequest(wording.only_restricted)
        return {"access": access, "owner": owner_of(caller)}
    if caller.is_admin and add_all:
        raise InvalidRequest(wording.add_all_by_admin)
    if not caller.is_admin and not caller.backend_roles:
        raise InvalidRequest(wording.caller_without_roles)
    if not roles and not add_all:
        raise InvalidRequest(wording.no_roles)
    if not caller.is_admin and not caller.backend_roles.issuperset(roles):
        raise InvalidRequest(wording.foreign_role)
    return {
        "access": access,
        "owner": owner_of(caller),
        "backend_roles": sorted(caller.backend_roles) if add_all else list(roles),
    }


def owner_of(caller: Caller) -> dict[str, Any]:
    """Return the owner as ML Commons stores one."""
    return {
        "name": caller.name,
        "backend_roles": sorted(caller.backend_roles),
        "roles": sorted(caller.roles),
        "custom_attribute_names": [],
    }


def _is_owner(caller: Caller, owner: object) -> bool:
    return isinstance(owner, Mapping) and owner.get("name") == caller.name


def _strings(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
