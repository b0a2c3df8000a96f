"""How every provider of a shipped blueprint is called, by the blueprint's name."""

from integration_tests.interop.provider_dialects import aws, hosted, openai, own_servers, platforms
from integration_tests.interop.provider_dialects.dialect import Dialect

DIALECTS: dict[str, Dialect] = {
    **openai.DIALECTS,
    **aws.DIALECTS,
    **hosted.DIALECTS,
    **platforms.DIALECTS,
    **own_servers.DIALECTS,
}
