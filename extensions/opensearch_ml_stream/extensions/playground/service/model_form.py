"""The form for a call of a model: the parameters of its templates, and which of them holds the user's turn."""

from collections.abc import Iterable
from dataclasses import dataclass

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.predict.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.rendering.caller_parameters import CallerParameters, is_connectors_own
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, find_placeholders

CHAT = "chat"
EMBEDDING = "embedding"
OTHER = "other"
TEXT_DOCS = "text_docs"
_TEXTS = ("prompt", "inputs")  # the kinds that are called as their parameter
_TO_STRING = ".toString()"


@dataclass(frozen=True, slots=True)
class FormParameter:
    """One parameter. `default` is the connector's value as it is stored, else the one in the template, else None.

    `is_of_connector` is whether the connector gives it a value.
    """

    name: str
    default: str | None
    is_of_connector: bool = False

    @property
    def is_required(self) -> bool:
        """Whether a call has to give it."""
        return self.default is None and not self.is_of_connector


@dataclass(frozen=True, slots=True)
class ModelForm:
    """The form: `kind` is chat, prompt, inputs, embedding or other, `turn` the parameter of the user's turn, or None.

    The parameters stand in the order in which the body, the URL and the headers of the request name them.
    """

    kind: str
    turn: str | None
    parameters: tuple[FormParameter, ...]


def find_model_form(
    action: Action, connector: ConnectorParameters, prompt: str | None = None, *, has_credential: bool = True
) -> ModelForm:
    """Return the form of an action; `prompt` is the parameter for a text, if the model's settings name one.

    What a request may not set is left out. Takes time linear in the templates and the connector's parameters.
    InvalidRequest for a template with too many placeholders, and for a wrong `_caller_parameters`.
    """
    inputs = find_model_inputs(action, connector, prompt)
    kind, turn = OTHER, inputs.prompt
    if inputs.takes_texts:
        kind, turn = EMBEDDING, TEXT_DOCS
    elif inputs.chat is not None:
        kind, turn = CHAT, inputs.chat.parameter
    elif turn in _TEXTS:
        kind = turn
    refused = CallerParameters.compile(action, connector, has_credential=has_credential).refused
    return ModelForm(kind, turn, tuple(one for one in _parameters(action, connector) if one.name not in refused))


def _parameters(action: Action, connector: ConnectorParameters) -> tuple[FormParameter, ...]:
    """Return what the templates name, and what the connector's values that stand in them name."""
    defaults: dict[str, str | None] = {}
    read = set[str]()
    headers = [value for header, value in action.headers.items() if not is_connectors_own(header)]
    left = [action.request_body or "", action.url, *headers]
    while left:
        nested: list[str] = []
        for name, default in _placeholders(left):
            defaults[name] = default if defaults.get(name) is None else defaults[name]
            if name in connector.templates and name not in read:
                read.add(name)
                nested.append(connector.values[name])
        left = nested
    return tuple(
        FormParameter(name, connector.values.get(name, default), name in connector.values)
        for name, default in defaults.items()
    )


def _placeholders(templates: Iterable[str]) -> Iterable[tuple[str, str | None]]:
    for template in templates:
        for match in find_placeholders(template):
            escape, name, default = match.groups()
            if not escape:
                yield name.removesuffix(_TO_STRING), default
