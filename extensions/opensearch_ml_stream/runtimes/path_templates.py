"""Path templates of custom handlers, as Starlette has them: `/models/{name}`, `/files/{rest:path}`."""

import re

_PARAMETER = re.compile(r"{([a-zA-Z_][a-zA-Z0-9_]*)(?::([a-zA-Z_][a-zA-Z0-9_]*))?}")


def parameter_names(template: str) -> list[str]:
    """Return the names of a template's parameters."""
    return [match[1] for match in _PARAMETER.finditer(template)]


def pattern_of(template: str) -> re.Pattern[str]:
    """Return the pattern of a template's paths, with a group for each parameter; re.error for a name given twice.

    A parameter of the type `path` may contain slashes. Other types are checked by the code that converts them.
    """
    parts: list[str] = []
    position = 0
    for match in _PARAMETER.finditer(template):
        parts.append(re.escape(template[position : match.start()]))
        parts.append(f"(?P<{match[1]}>{'.*' if match[2] == 'path' else '[^/]+'})")
        position = match.end()
    return re.compile("".join(parts) + re.escape(template[position:]))
