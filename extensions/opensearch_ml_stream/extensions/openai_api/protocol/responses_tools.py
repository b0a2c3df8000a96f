"""The tools of a request of `/v1/responses`, as functions, the only tools that other providers have.

A free-form tool (`custom`) becomes a function with one string parameter, and its grammar part of the description. The
tools of a namespace become functions whose names begin with the namespace. Tools of other kinds are run by OpenAI, or
known only to its models: they are left out, and a warning names them to the client.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.conversation.conversation import JSONObject, Tool
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import Members

ADDITIONAL_TOOLS = "additional_tools"
"""The type of items of the input that are tools."""

MAX_NAMESPACE_CHARS = 128  # each of its tools repeats the namespace
_MAX_SHOWN_CHARS = 64  # of the name of an unknown kind of tools
_INPUT = "input"  # the parameter of a free-form tool
_FREE_FORM: JSONObject = {
    "type": "object",
    "properties": {_INPUT: {"type": "string"}},
    "required": [_INPUT],
    "additionalProperties": False,
}


class ClientTool(NamedTuple):
    """A tool as the client calls it; `namespace` is "" for one without."""

    name: str
    namespace: str = ""
    is_free_form: bool = False


def function_name(name: str, namespace: str = "") -> str:
    """Return the name of the function for a tool."""
    return f"{namespace}__{name}" if namespace else name


def free_form_arguments(text: str) -> str:
    """Return the arguments of the function for a free-form tool with this input."""
    return to_json({_INPUT: text}).decode()


def free_form_input(arguments: str) -> str:
    """Return the input of a free-form tool: models may also write the text itself, or use another name."""
    try:
        called = provider_json.loads(arguments.encode())
    except ValueError:
        return arguments
    text = called.get(_INPUT, next(iter(called.values()), None)) if isinstance(called, dict) else None
    return text if isinstance(text, str) else arguments


class ToolReader:
    """Reads tools: those that become functions, and the others (`left_out`)."""

    def __init__(self, unknown: dict[str, Any]) -> None:
        self._unknown = unknown
        self.functions: list[Tool] = []
        self.left_out: list[str] = []

    def read(self, tools: Iterable[Any], path: str, namespace: str = "") -> None:
        """Read the tools at a path. InvalidRequest names the member that is wrong."""
        for place, value in enumerate(tools):
            members = Members(value, f"{path}[{place}]")
            kind = members.need("type", str)
            if kind == "namespace" and not namespace:
                self._read_namespace(members)
            elif kind in ("function", "custom"):
                self._read_function(members, namespace, is_free_form=kind == "custom")
            else:
                self.left_out.append(f"{path}[{place}] ({kind[:_MAX_SHOWN_CHARS]})")
                continue
            self._unknown.update(members.unread())

    def _read_namespace(self, members: Members) -> None:
        name = members.need("name", str)
        if len(name) > MAX_NAMESPACE_CHARS:
            raise InvalidRequest(f"{members.path('name')} may have {MAX_NAMESPACE_CHARS} characters")
        members.drop("description")
        self.read(members.need("tools", list), members.path("tools"), name)

    def _read_function(self, members: Members, namespace: str, *, is_free_form: bool) -> None:
        members.drop(
            "defer_loading"
        )  # hides the tool until a search finds it; without a search it is there from the start
        name, described = members.need("name", str), members.take("description", str) or ""
        parameters: JSONObject | None
        if is_free_form:
            described, parameters = _with_format(described, members), _FREE_FORM
        else:
            parameters = members.take("parameters", dict)
        strict = members.take("strict", bool)
        self.functions.append(Tool(function_name(name, namespace), described, parameters, strict))


def _with_format(description: str, members: Members) -> str:
    """Return the description of a free-form tool with the grammar of its input."""
    text_format = members.take("format", dict) or {}
    if not isinstance(definition := text_format.get("definition"), str):
        return description
    grammar = f"The input is text of this {text_format.get('syntax', 'lark')} grammar:\n{definition}"
    return f"{description}\n\n{grammar}" if description else grammar


def client_tools(request: JSONObject) -> Mapping[str, ClientTool]:
    """Return the tools of a request that are not plain functions, by the names of their functions.

    Errors in the request are skipped here, and refused where the request is read.
    """
    found = dict(_other_than_functions(request.get("tools")))
    items = request.get("input")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("type") == ADDITIONAL_TOOLS:
            found.update(_other_than_functions(item.get("tools")))
    return found


def _other_than_functions(tools: Any, namespace: str = "") -> Iterator[tuple[str, ClientTool]]:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            continue
        kind = tool.get("type")
        if kind == "namespace" and not namespace and len(name) <= MAX_NAMESPACE_CHARS:
            yield from _other_than_functions(tool.get("tools"), name)
        elif kind == "custom" or (kind == "function" and namespace):
            yield function_name(name, namespace), ClientTool(name, namespace, kind == "custom")
