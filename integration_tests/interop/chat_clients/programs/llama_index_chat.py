"""LlamaIndex's OpenAILike. (Its Anthropic takes names of Anthropic's own models alone.)"""

import os

from checks import COUNTRY_QUESTION, QUESTION, WEATHER_QUESTION, Country, get_weather, run
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

SYSTEM = ChatMessage("You are terse.", role="system")


def llm(model):
    url, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    more = {"is_chat_model": True, "is_function_calling_model": True, "max_retries": 0}
    return OpenAILike(model, api_base=url, api_key=key, **more)


def text(model):
    answer = llm(model).chat([SYSTEM, ChatMessage(QUESTION)])
    return [answer.message.content, answer.raw.usage.prompt_tokens, answer.raw.usage.completion_tokens]


def words(model):
    pieces = [chunk.delta for chunk in llm(model).stream_chat([ChatMessage(QUESTION)]) if chunk.delta]
    assert len(pieces) > 1
    return "".join(pieces)


def tools(model):
    weather, messages = FunctionTool.from_defaults(get_weather), [ChatMessage(WEATHER_QUESTION)]
    *_, answer = llm(model).stream_chat_with_tools([weather], chat_history=messages)
    [call] = llm(model).get_tool_calls_from_response(answer)
    result = get_weather(**call.tool_kwargs)
    told = ChatMessage(result, role="tool", additional_kwargs={"tool_call_id": call.tool_id})
    answer = llm(model).chat_with_tools([weather], chat_history=[*messages, answer.message, told])
    return answer.message.content


def structured(model):
    return llm(model).as_structured_llm(Country).complete(COUNTRY_QUESTION).raw.model_dump()


if __name__ == "__main__":
    run(text=text, words=words, tools=tools, structured=structured)
