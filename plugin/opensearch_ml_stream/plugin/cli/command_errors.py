"""Errors that end a command: one line on stderr, and an exit code that scripts can use."""

REQUEST_FAILED = 1
USAGE = 2
UNREACHABLE = 3


class CommandFailed(Exception):
    """A command that cannot be carried out. `str()` of it tells the user what is wrong, where, and what to do."""

    exit_code = REQUEST_FAILED


class RequestFailed(CommandFailed):
    """An error response, or a response that broke off. `status` is the HTTP status, `advice` what to do about it."""

    def __init__(self, status: int, reason: str, advice: str = "") -> None:
        what_to_do = advice or _advice(reason)
        super().__init__(f"{reason} (status {status})" + (f"; {what_to_do}" if what_to_do else ""))
        self.status = status


class WrongUsage(CommandFailed):
    """An option or argument that cannot be used."""

    exit_code = USAGE


class Unreachable(CommandFailed):
    """A sidecar to which no connection can be made."""

    exit_code = UNREACHABLE


_ADVICE = (
    ("has private ip address", "allow it with `opensearch-ml-stream endpoints allow URL`, the URL of its connector"),
    ("Failed to find model", "see the ids with `opensearch-ml-stream models list`"),
)


def _advice(reason: str) -> str:
    matching = [advice for words, advice in _ADVICE if words in reason and "endpoints allow" not in reason]
    return matching[0] if matching else ""
