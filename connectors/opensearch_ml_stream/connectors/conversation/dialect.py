"""Dialects: how a provider takes a conversation (`Dialect`), and how a client sends one (`ClientRequest`).

A provider's interface has a dialect (`Interface.dialect`). If the client speaks the dialect of the same `name`, its
body is passed on as it is, with members that are unknown here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from opensearch_ml_stream.connectors.conversation.as_sent import ChooseEvent
from opensearch_ml_stream.connectors.conversation.conversation import Conversation, JSONObject
from opensearch_ml_stream.connectors.syntax import jsontext

OPENAI_CHAT = "openai_chat"
OPENAI_COMPLETIONS = "openai_completions"
OPENAI_RESPONSES = "openai_responses"
ANTHROPIC = "anthropic"
"""Names of the dialects that clients speak."""


class Refuse(Protocol):
    """Refuses a member of the client's request that the provider's dialect cannot say.

    Raises InvalidRequest that names the member, unless the model's `_sidecar.drop_params` has it: then it returns, and
    what called it leaves the member out.
    """

    def __call__(self, member: str, why: str = "") -> None:
        """Refuse a member, by the name that the client has for it (`Conversation.member`)."""
        ...


Write = Callable[[Conversation, Refuse], dict[str, Any]]
Adapt = Callable[[dict[str, Any], Refuse], dict[str, Any]]


def as_it_is(body: dict[str, Any], refuse: Refuse) -> dict[str, Any]:
    """Return a body unchanged."""
    return body


@dataclass(frozen=True, slots=True)
class TokenCounting:
    """How a provider counts the input tokens of a request without answering it.

    `path` ends the URL path of a request for an answer, `counting_path` that of a request for a count. `body` makes the
    body of the latter from that of the former and its path. `member` of the response holds the count. `not_counted`
    are statuses that mean only that this request, or this model, cannot be counted.
    """

    path: str
    counting_path: str
    body: Callable[[JSONObject, str], JSONObject]
    member: str = "input_tokens"
    not_counted: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a provider takes a conversation.

    `write` returns the members of the request's body: the conversation, its tools and options, but neither the model
    nor what turns streaming on. `adapt` makes what this provider takes of a body of a client that speaks the same
    dialect: it may change the body, but nothing in its members.

    `turns` are paths of members (names joined by dots) that hold what is said; a template's own text there comes first,
    and does not replace what the client says. `instead_of` names, for a member that is written, those of the template
    that say the same and are left out then.

    `defaults` are members that the provider requires: what they are where neither the client nor the template has them.

    `as_sent` returns what chooses the events of one stream that clients of the same dialect get as they were sent: one
    of nothing but counts of tokens only if the client wants it, as the argument says. None without such clients.

    `counting` is how tokens are counted, None where nobody does.
    """

    name: str
    write: Write
    turns: tuple[str, ...]
    adapt: Adapt = as_it_is
    instead_of: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    defaults: JSONObject = field(default_factory=lambda: MappingProxyType({}))
    as_sent: Callable[[bool], ChooseEvent] | None = None
    counting: TokenCounting | None = None


@dataclass  # not frozen, which would take three times as long to make: one is made per request
class ClientRequest:
    """A conversation as a client sent it: `body` without the members that are the door's (model, stream).

    `read` makes the neutral form of the body; it raises InvalidRequest that names the member which is wrong.
    `wants_usage` says whether the client asked for the counts of tokens in its stream.
    """

    dialect: str
    body: JSONObject
    read: Callable[[JSONObject], Conversation]
    wants_usage: bool = True
    _conversation: Conversation | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_translated(self) -> bool:
        """Whether the neutral form was read, as it is for a provider of another dialect."""
        return self._conversation is not None

    @property
    def conversation(self) -> Conversation:
        """The neutral form, read when it is asked for first. Raises what `read` raises."""
        if self._conversation is None:
            self._conversation = self.read(self.body)
        return self._conversation

    def said(self) -> str:
        """Return the body as JSON text, for guardrails: a dialect may join its parts with something between them."""
        return jsontext.dumps(self.body)
