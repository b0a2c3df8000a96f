"""Streams of hosted providers: as in `recorded_streams`, each in the provider's own words."""

from pathlib import Path

from tests.providers.recorded_streams import RECORDED, Recorded, tokens, tool

_FOLDER = Path(__file__).parents[1] / "transcripts"
_INTERACTIONS = "gemini/v1beta/interactions"
_RUN = "cloudflare/ai/run"


def _file(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()


HOSTED = (
    Recorded("gemini interactions", _INTERACTIONS, _file("gemini_interactions.sse"), "Zürich and 世界", "tool_calls",
             "requires_action", reasoning="**Plan**\nLook it up.", model="gemini-3.5-flash",
             tools=[tool("un6k8t18", "get_weather", '{"location": "Zürich"}'), tool("un6k8t19", "get_time", "{}")],
             usage=tokens(18, 335, cached_tokens=4, reasoning_tokens=245)),
    Recorded("gemini interactions, contents", _INTERACTIONS, _file("gemini_interactions_contents.sse"), "Sure.",
             "tool_calls", "completed", reasoning="Hm.", tools=[tool("c1", "f", '{"a":[1]}')], usage=tokens(3, 6),
             model="gemini-3-flash-preview"),
    Recorded("groq", "groq/v1/chat/completions", _file("groq.sse"), "Hi there", "tool_calls", "tool_calls",
             reasoning="So.", tools=[tool("m1", "get_weather", '{"city":"Paris"}')], usage=tokens(249, 10),
             model="openai/gpt-oss-20b", good_from=6),
    Recorded("xai", "xai/v1/chat/completions", _file("xai.sse"), "42.", "stop", "stop", reasoning="First, think.",
             usage=tokens(32, 103, cached_tokens=6, reasoning_tokens=94), model="grok-4", good_from=5),
    Recorded("perplexity", "perplexity/chat/completions", _file("perplexity.sse"), "There are many[1].", "stop", "stop",
             usage=tokens(14, 6), model="sonar-pro", good_from=4),
    Recorded("together", "together/v1/chat/completions", _file("together.sse"), "Hello!", "stop", "eos",
             usage=tokens(45, 3, cached_tokens=0), model="meta-llama/Llama-3.3-70B-Instruct-Turbo", good_from=3),
    Recorded("fireworks", "fireworks/v1/chat/completions", _file("fireworks.sse"), "Fire", "length", "length",
             reasoning="Ok", usage=tokens(10, 20, cached_tokens=3), model="accounts/fireworks/models/qwen3-8b",
             good_from=4),
    Recorded("hugging face", "huggingface/v1/chat/completions", _file("huggingface.sse"), "Hugs", "stop", "stop",
             usage=tokens(36, 3), model="meta-llama/Llama-3.1-8B-Instruct", good_from=3),
    Recorded("databricks", "databricks/invocations", _file("databricks.sse"), "Sol.", "tool_calls", "tool_calls",
             reasoning="The Sun, in Latin", tools=[tool("tooluse_1", "note", '{"a": 1}')], usage=tokens(20, 14),
             model="claude-sonnet-4", good_from=7),
    Recorded("dashscope", "dashscope/generation", _file("dashscope.sse"), "你好了", "tool_calls", "tool_calls",
             reasoning="嗯。", usage=tokens(22, 15, cached_tokens=5, reasoning_tokens=2),
             tools=[tool("call_1", "get_weather", '{"city": "杭州"}'), tool("call_2", "get_time", "{}")]),
    Recorded("dashscope text", "dashscope/generation", _file("dashscope_text.sse"), "Sea view", "length", "length",
             usage=tokens(3, 3)),
    Recorded("watsonx chat", "watsonx/text/chat", _file("watsonx_chat.sse"), "Ciao", "tool_calls", "tool_calls",
             tools=[tool("chatcmpl-tool-1", "sum", '{"a": 2}')], usage=tokens(38, 3),
             model="meta-llama/llama-4-maverick-17b-128e-instruct-fp8", good_from=5),
    Recorded("watsonx generation", "watsonx/text/generation", _file("watsonx_generation.sse"), "40 km.", "stop",
             "eos_token", usage=tokens(68, 3), model="ibm/granite-13b-instruct-v2"),
    Recorded("workers ai", _RUN, _file("workers_ai.sse"), "Hello World4", "tool_calls", None,
             tools=[tool(None, "get_weather", '{"city":"Ulm"}'), tool(None, "get_time", "{}")],
             usage=tokens(30, 12, cached_tokens=0)),
    Recorded("workers ai, fragments", _RUN, _file("workers_ai_fragments.sse"), "", "tool_calls", "tool_calls",
             tools=[tool("call_1", "f", '{"a":1}')], usage=tokens(8, 4), good_from=5),
    Recorded("workers ai, chat", "cloudflare/v1/chat/completions", _file("workers_ai_chat.sse"), "Hello!", "stop",
             "stop", reasoning="Simple.", usage=tokens(45, 2), model="@cf/openai/gpt-oss-20b", good_from=5),
)  # fmt: skip

ALL_STREAMS = (*RECORDED, *HOSTED)
