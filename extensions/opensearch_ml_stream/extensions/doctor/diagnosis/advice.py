"""What to do about a provider's response that is not good: by its status, or by how its stream ended."""

from opensearch_ml_stream.connectors.errors import MLStreamError, StreamTruncated
from opensearch_ml_stream.plugin.upstream import ReadTimedOut

# Seconds after which proxies, load balancers and clients commonly give up, and how near to one an end is no accident.
COMMON_TIMEOUTS = (5, 10, 15, 20, 30, 60, 90, 100, 120, 180, 230, 240, 300, 350, 600)
NEAR_SECONDS = 0.7

_BY_STATUS = {
    400: "The provider does not take the request: compare the template's body with the provider's documentation",
    401: "The provider does not take the credential: check its value in the connector, and the header that carries it",
    402: "The provider asks for payment: check the account's credit",
    403: "The provider refuses this credential: check the account's rights for this model, and its region",
    404: "The provider does not know this path or model: check the connector's url and the parameter for the model",
    405: "The path takes another method: check the action's url and method",
    413: "The request is too large for the provider, or for a proxy in front of it: send a shorter prompt",
    422: "The provider does not take the request: compare the template's body with the provider's documentation",
    429: "The provider limits this account: wait, raise its quota, or set max_retry_times in client_config",
}


def of_status(status: int) -> str:
    """Return what to do about a status that is not 2xx."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 300 <= status < 400:
        return "The provider redirects, which no connector follows: put the address that it redirects to into the url"
    if status >= 500:
        return "The fault is the provider's, or of a proxy in front of it: call it again later, and see its status page"
    return "Compare the request with the provider's documentation"


def of_end(error: MLStreamError, milliseconds: float, *, has_chunks: bool) -> str:
    """Return what to do about a stream that ended in an error, so many milliseconds after its request."""
    timeout = common_timeout(milliseconds)
    cut = "" if timeout is None else f" It ended after {timeout} s, which looks like a timeout of one of these."
    if isinstance(error, ReadTimedOut):
        return (
            "Call the provider directly (curl) to see whether it is as silent there. If the model needs so long, raise "
            "read_timeout in the connector's client_config"
        )
    if isinstance(error, StreamTruncated) and has_chunks:
        return (
            "The provider, or a proxy or load balancer between here and it, closed the connection too early: look at "
            f"the timeouts and the logs of each.{cut}"
        )
    if has_chunks:
        return f"The provider ended its stream with an error: its own words are above.{cut}"
    return (
        "Check that this model can stream at this url, and that `_llm_interface` or `_stream` in the connector's "
        "parameters names what the provider sends"
    )


def common_timeout(milliseconds: float) -> int | None:
    """Return the common timeout that a time is near to, None for any other."""
    seconds = milliseconds / 1000
    return next((timeout for timeout in COMMON_TIMEOUTS if -0.1 <= seconds - timeout <= NEAR_SECONDS), None)
