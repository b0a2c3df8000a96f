"""Several questions at once, each with its response, over an async opensearch-py client.

    python examples/ask_several.py --model=MODEL_ID "Why is the sky blue?" "Why is grass green?"

One that fails does not end the others.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from opensearchpy import AsyncOpenSearch

from opensearch_ml_stream.client import AsyncStreamingMLClient, SidecarError


async def ask(ml: AsyncStreamingMLClient, model_id: str, question: str) -> str:
    """The whole response, put together from its chunks, or what went wrong."""
    try:
        return "".join([chunk.text async for chunk in ml.predict_stream(model_id, {"inputs": question})])
    except SidecarError as error:
        return f"failed: {error}"


async def ask_all(url: str, model_id: str, questions: Sequence[str]) -> None:
    async with AsyncOpenSearch(url) as client:
        ml = AsyncStreamingMLClient(client)
        responses = await asyncio.gather(*(ask(ml, model_id, question) for question in questions))
    for question, response in zip(questions, responses, strict=True):
        sys.stdout.write(f"{question}\n    {response}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask a model of the sidecar several questions at once.")
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--model", required=True, help="id of a model for chats")
    parser.add_argument("--sidecar", default="http://localhost:9510")
    given = parser.parse_args()
    asyncio.run(ask_all(given.sidecar, given.model, given.questions))


if __name__ == "__main__":
    main()
