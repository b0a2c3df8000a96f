"""What is sent to a provider for a client's conversation: one body, or parameters for the connector's template."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest, Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.joined_turns import CannotBeTold
from opensearch_ml_stream.connectors.conversation.template_members import NotGiven, TemplateMembers
from opensearch_ml_stream.connectors.conversation.template_parameters import TemplateParameters
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming

_INDEX = re.compile(r"\[[0-9]*\]")
_TEMPLATE = "by its template's parameters"  # the provider, where no dialect of it is known


@dataclass(slots=True)
class Refusing:
    """Refuses what a provider cannot be told, but for the members that the model's `_sidecar.drop_params` names.

    A name of a member is its path in the client's body, with or without the places in arrays: `messages.name` and
    `messages[].name` are that of each message.
    """

    drop: frozenset[str]
    provider: str

    def __call__(self, member: str, why: str = "") -> None:
        """Raise InvalidRequest that names a member, unless it is to be dropped."""
        if _without_places(member) in map(_without_places, self.drop):
            return
        reason = f": {why}" if why else ""
        raise InvalidRequest(
            f"[{member}] cannot be said to this model's provider ({self.provider}){reason}. Leave it out, or let the "
            "model's _sidecar.drop_params name it"
        )


class ConversationRequest(NamedTuple):
    """What a conversation is sent as: a `body`, or `parameters` for the template where that is None."""

    body: Mapping[str, Any] | None
    parameters: Mapping[str, str]

    def render(self, action: CompiledAction, stream: Streaming | None = None) -> ProviderRequest:
        """Return the provider's request, with streaming turned on as `stream` says, if it is given.

        InvalidRequest as from `CompiledAction.render`.
        """
        return action.render(self.parameters, stream) if self.body is None else action.render_body(self.body, stream)


@dataclass(frozen=True, slots=True)
class ConversationTemplate:
    """What a connector's action has to say in the requests of conversations, found once per version of it.

    `members` are None where the template is no object whose members are known without a request.
    """

    members: TemplateMembers | None
    parameters: TemplateParameters

    @classmethod
    def compile(cls, action: CompiledAction, inputs: ModelInputs) -> "ConversationTemplate":
        """Read the template of an action."""
        members = None if action.body is None else TemplateMembers.read(action.body, action.parameters)
        return cls(members, TemplateParameters.find(action.body, action.parameters, inputs))

    @classmethod
    def without_template(cls, inputs: ModelInputs) -> "ConversationTemplate":
        """Return what there is to say of a model whose requests are made of parameters by something else."""
        return cls(None, TemplateParameters(inputs, inputs.names))

    def request(
        self, client: ClientRequest, dialect: Dialect | None, drop: Collection[str] = ()
    ) -> ConversationRequest:
        """Return what is sent for a client's request; `dialect` is the provider's, `drop` what may be left out.

        InvalidRequest that names the client's member which cannot be said, or what the connector leaves open.
        """
        if dialect is None or self.members is None:
            return self._by_parameters(client, Refusing(frozenset(drop), _TEMPLATE))
        refuse = Refusing(frozenset(drop), dialect.name)
        try:
            return ConversationRequest(self.members.body(dialect, written_body(client, dialect, refuse)), {})
        except (CannotBeTold, NotGiven) as error:
            if isinstance(error, NotGiven) and error.name != self.parameters.inputs.prompt:
                raise
            return self._by_parameters(client, _with_reason(Refusing(frozenset(drop), _TEMPLATE), error))

    def _by_parameters(self, client: ClientRequest, refuse: Refuse) -> ConversationRequest:
        return ConversationRequest(None, self.parameters.fill(client.conversation, refuse))


def written_body(client: ClientRequest, dialect: Dialect, refuse: Refusing) -> dict[str, Any]:
    """Return a client's request in a provider's dialect: as the client sent it, where that is its own."""
    if client.dialect != dialect.name:
        return dialect.write(client.conversation, refuse)
    body = dict(client.body)
    for path in map(_without_places, refuse.drop):
        if path not in dialect.turns:  # which can be dropped in part only, by a dialect that cannot say all of them
            body = _dropped(body, path.split("."))
    return dialect.adapt(body, refuse)


def _without_places(path: str) -> str:
    return _INDEX.sub("", path)


def _with_reason(refuse: Refuse, error: InvalidRequest) -> Refuse:
    def refuse_with_reason(member: str, why: str = "") -> None:
        refuse(member, f"{why}; {error.reason}" if why else error.reason)

    return refuse_with_reason


def _dropped(value: Any, path: list[str]) -> Any:
    """Return a copy of a value without the members at a path, in each element of an array on the way."""
    if isinstance(value, list):
        return [_dropped(element, path) for element in value]
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: member for name, member in value.items() if name != path[0]}
    return {**value, path[0]: _dropped(value[path[0]], path[1:])}
