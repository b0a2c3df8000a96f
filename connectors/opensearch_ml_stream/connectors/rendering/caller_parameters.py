"""Which of the parameters that decide where requests, and their credential, are sent a caller may set.

They stand in the connector's URL, and in headers that name a host or an account. Where the connector gives a value, a
caller sets another only for a name of MODEL_NAMES or of a provider's, in path and query, or for one that the connector
lists in its parameter `_caller_parameters`. Where it gives none, a caller fills in path and query, but the origin
(scheme, host, port) only if the connector has no credential, or lists the name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from opensearch_ml_stream.connectors.documents import MAX_URL_LENGTH, Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.rendering.filled_template import parameter_names
from opensearch_ml_stream.connectors.rendering.template import TO_STRING, ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.rendering.url import Origin, find_origin, render_url, split_url
from opensearch_ml_stream.connectors.syntax import jsontext

CALLER_PARAMETERS = "_caller_parameters"
# Names under which the URLs of providers hold a model, beside those that a provider has of its own.
MODEL_NAMES = frozenset({"model", "model_id", "modelId", "model_name", "modelName"})

# Only the connector's own parameters may fill these headers: they say who calls, and where to.
_CONNECTOR_ONLY_HEADERS = frozenset({
    "authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token", "x-auth-header",
    "x-forwarded-for", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip", "x-originating-ip",
    "host", "x-forwarded-host", "x-forwarded-server", "forwarded",
})  # fmt: skip
# Words in the names of other headers, or of parameters in them, that name a host or an account.
_HOST = re.compile(r"\b(host|hostname|ur[il]|endpoint|api-base|origin|authority|server|region)\b")
_ACCOUNT = re.compile(
    r"\b(account|organi[sz]ation|org|project|tenant|work-?space|subscription|team|folder|billing|bill|customer)\b"
)
_WORD_BOUNDARY = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])")
_WHOLE_ORIGIN = re.compile(r"://[^/?#]*[/?#]|^[^:/?#]*[/?#]")
_PATH_STARTS = ("/", "?", "#")


@dataclass(frozen=True)
class CallerParameters:
    """What callers may set in the URL and headers of an action, found once per connector version.

    `fixed` may not be set to another value, `bound` may not change the origin, `free` may. `open` are those of the
    origin to which the connector gives no value, and its credential lets no caller give one.
    """

    url: Template
    headers: tuple[Template, ...]  # but those that only the connector fills
    connector: ConnectorParameters
    fixed: frozenset[str]
    bound: frozenset[str]
    free: frozenset[str]
    open: frozenset[str]

    @classmethod
    def compile(
        cls,
        action: Action,
        connector: ConnectorParameters,
        *,
        has_credential: bool = True,
        known: KnownProviders = SHIPPED,
    ) -> "CallerParameters":
        """Find the parameters of an action's URL and headers. InvalidRequest for a wrong `_caller_parameters`."""
        listed = read_caller_parameters(connector.values.get(CALLER_PARAMETERS))
        has_credential |= any(map(is_connectors_own, action.headers))
        url = Template.compile(action.url, json=False)
        in_url = _names_of([url], connector)
        given = frozenset(name for name in in_url if _is_given(name, connector))
        fixed = {name for name in given if _base(name) not in listed | MODEL_NAMES | known.model_parameters}
        own = Parameters(connector, {}, lambda name: "")
        free = {name for name in in_url if _base(name) in listed and not _begins_path(name, own)}
        if not has_credential:
            free |= in_url - given
        headers = {
            name: Template.compile(value, json=False)
            for name, value in action.headers.items()
            if not is_connectors_own(name)
        }
        hosts, accounts = _names_about(_HOST, headers, connector), _names_about(_ACCOUNT, headers, connector)
        in_headers = {name for name in hosts | accounts if _is_given(name, connector)}
        fixed |= {name for name in in_headers | (hosts if has_credential else set()) if _base(name) not in listed}
        in_origin = names_in_origin(url, connector)
        bound, left_open = in_url - free, in_origin - given - free
        return cls(url, tuple(headers.values()), connector, frozenset(fixed), bound, frozenset(free), left_open)

    def check(self, request: Mapping[str, str], url: str) -> None:
        """Raise InvalidRequest that names what a request sets and may not; `url` is the action's, filled with it."""
        if given := self.fixed.intersection(request):
            own = self._destination({name: value for name, value in request.items() if name not in given})
            if own is None or own != self._destination(request):
                raise _refused(given)
        if given := self.bound.intersection(request):
            chosen = self.free.intersection(request)
            origin = self._find_origin({name: request[name] for name in chosen}) if chosen else self._own_origin
            if origin != find_origin(url) or (self.open and (origin is None or not origin.host)):
                raise _refused(given & self.open or given)

    @cached_property
    def refused(self) -> frozenset[str]:
        """The names of all parameters that no request can set."""
        refused = self.fixed | self.open
        for name in [placeholder.name for placeholder in self.url.placeholders if placeholder.name in self.open][-1:]:
            origin = self._own_origin
            if origin is not None and origin.host and self._find_origin({name: "/"}) == origin:
                return refused - {name}  # it stands behind a host, so it may begin the path
        return refused

    @cached_property
    def _own_origin(self) -> Origin | None:
        return self._find_origin({})

    def _destination(self, request: Mapping[str, str]) -> object:
        """Return where a request goes: its URL as parsed, and what the headers say; None if that cannot be told."""
        scope = Parameters(self.connector, request)
        try:
            url = split_url(render_url(self.url, scope))
            return url and (url, [template.render_text(scope) for template in self.headers])
        except InvalidRequest:
            return None

    def _find_origin(self, request: Mapping[str, str]) -> Origin | None:
        """Return the origin of the connector's URL with these of a request's parameters, empty where it has none."""
        return own_origin(self.url, self.connector, request)


def read_caller_parameters(text: str | None) -> frozenset[str]:
    """Return the names in a connector's `_caller_parameters`. InvalidRequest if it is no JSON list of names."""
    names = [] if text is None else jsontext.value_or_text(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(
            f'{CALLER_PARAMETERS}: must be a JSON list of the names that callers may set, such as ["region"]'
        )
    return frozenset(names)


def own_origin(
    url: Template, connector: ConnectorParameters, request: Mapping[str, str] | None = None
) -> Origin | None:
    """Return the origin that a connector itself says; what it gives no value counts as empty."""
    return find_origin(render_url(url, Parameters(connector, request or {}, lambda name: "")))


def names_in_origin(url: Template, connector: ConnectorParameters) -> frozenset[str]:
    """Return the names of the parameters in a URL's origin, or where it ends, as the connector's own values fill it."""
    own = Parameters(connector, {}, lambda name: "")
    names: list[str] = []
    text = url.literals[0]
    for placeholder, literal in zip(url.placeholders, url.literals[1:], strict=True):
        if len(text) > MAX_URL_LENGTH or _WHOLE_ORIGIN.search(text):
            break
        names.append(placeholder.name)
        text += (own.get(placeholder.name) or placeholder.default or "") + literal
    return parameter_names(names, connector)


def is_connectors_own(header: str) -> bool:
    """Return whether only the connector's own parameters may fill a header, whatever a request has."""
    return header.lower() in _CONNECTOR_ONLY_HEADERS


def _names_of(templates: Iterable[Template], connector: ConnectorParameters) -> frozenset[str]:
    return parameter_names(
        (placeholder.name for template in templates for placeholder in template.placeholders), connector
    )


def _names_about(
    what: re.Pattern[str], headers: Mapping[str, Template], connector: ConnectorParameters
) -> frozenset[str]:
    """Return the parameters of headers that are named so, and those of all headers that are named so themselves."""
    in_headers = _names_of((template for name, template in headers.items() if _names(what, name)), connector)
    return in_headers | {name for name in _names_of(headers.values(), connector) if _names(what, name)}


def _names(what: re.Pattern[str], name: str) -> bool:
    return what.search(_WORD_BOUNDARY.sub("-", name).lower()) is not None


def _base(name: str) -> str:
    return name.removesuffix(TO_STRING)


def _is_given(name: str, connector: ConnectorParameters) -> bool:
    return name in connector.values or _base(name) in connector.values


def _begins_path(name: str, own: Parameters) -> bool:
    """Whether a name is no part of the origin, as the connector's own value of it shows."""
    return (own.get(_base(name)) or "").startswith(_PATH_STARTS)


def _refused(names: Iterable[str]) -> InvalidRequest:
    shown = ", ".join(f"[{name}]" for name in sorted(names))
    return InvalidRequest(
        f"A request may not set {shown}: it says where the connector's requests and credential go. The connector's "
        f"author allows it by listing the name in the connector's parameter {CALLER_PARAMETERS}"
    )
