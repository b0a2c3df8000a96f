"""How a command ends when it cannot do what was asked: one line on stderr, and an exit code that scripts can use."""

SERVER_SAID_NO = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130


class CommandFailed(Exception):
    """`str()` of it is for the user: what is wrong, where, and what to do."""

    exit_code = SERVER_SAID_NO


class ServerSaidNo(CommandFailed):
    """An error answer, or an answer that broke off. `status` is the HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{reason} (status {status}){_advice(reason)}")
        self.status = status


class WrongUsage(CommandFailed):
    exit_code = USAGE


class Unreachable(CommandFailed):
    exit_code = UNREACHABLE


_ADVICE = (
    (
        "not matching the trusted connector endpoint regex",
        "add a pattern for it to the sidecar's setting plugins.ml_commons.trusted_connector_endpoints_regex",
    ),
    (
        "has private ip address",
        "allow private addresses with the sidecar's setting plugins.ml_commons.connector.private_ip_enabled: true",
    ),
    ("Failed to find model", "see the ids with `opensearch-ml-stream models list`"),
)


def _advice(reason: str) -> str:
    found = [advice for words, advice in _ADVICE if words in reason]
    return f"; {found[0]}" if found else ""
