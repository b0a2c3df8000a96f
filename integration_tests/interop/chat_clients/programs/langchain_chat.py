"""LangChain's chat models of OpenAI and Anthropic."""

from checks import COUNTRY_QUESTION, QUESTION, WEATHER_QUESTION, Country, get_weather, run
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

weather = tool(get_weather)
SYSTEM = SystemMessage("You are terse.")


def checks(prefix, chat):
    def text(model):
        answer = chat(model).invoke([SYSTEM, HumanMessage(QUESTION)])
        return [answer.text, answer.usage_metadata["input_tokens"], answer.usage_metadata["output_tokens"]]

    def stream(model):
        chunks = list(chat(model).stream(QUESTION))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        assert len([chunk for chunk in chunks if chunk.text]) > 1
        return [whole.text, whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]]

    def tools(model):
        bound = chat(model).bind_tools([weather])
        messages = [SYSTEM, HumanMessage(WEATHER_QUESTION)]
        answer = bound.invoke(messages)
        [call] = answer.tool_calls
        return bound.invoke([*messages, answer, weather.invoke(call)]).text

    def structured(model):
        return chat(model).with_structured_output(Country).invoke(COUNTRY_QUESTION).model_dump()

    return {f"{prefix}_{check.__name__}": check for check in (text, stream, tools, structured)}


def of_openai(model):
    return ChatOpenAI(model=model, max_retries=0, stream_usage=True)


def of_responses(model):
    return ChatOpenAI(model=model, max_retries=0, use_responses_api=True)


def of_anthropic(model):
    return ChatAnthropic(model=model, max_retries=0, max_tokens=100)


if __name__ == "__main__":
    run(**checks("openai", of_openai), **checks("responses", of_responses), **checks("anthropic", of_anthropic))
