"""What each provider's request may look like, and where a caller's parameters arrive in it, by shipped blueprint.

One row a blueprint: a JSON Schema of the provider's body, written from its API reference (`source`), and the place of
every parameter. A blueprint whose provider takes OpenAI's chat has a row of one line, `openai_chat(...)`.
"""

from tests.selection.provider_requests import aws_requests, hosted_requests, openai_requests, own_server_requests
from tests.selection.provider_requests.rows import ProviderRequest

PROVIDER_REQUESTS: dict[str, ProviderRequest] = {
    **openai_requests.ROWS,
    **hosted_requests.ROWS,
    **aws_requests.ROWS,
    **own_server_requests.ROWS,
}
