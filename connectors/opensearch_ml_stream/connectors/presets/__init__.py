"""The providers whose streams are known by name: one small module each, and the only list of them here."""

from opensearch_ml_stream.connectors.presets.anthropic import ANTHROPIC
from opensearch_ml_stream.connectors.presets.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

PRESETS: dict[str, StreamSpec] = {spec.name: spec for spec in (OPENAI_CHAT, ANTHROPIC)}
