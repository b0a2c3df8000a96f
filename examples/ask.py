"""A question and its streamed response, over the opensearch-py client of a cluster; a 429 waits, and is asked again.

python examples/ask.py --model=MODEL_ID "Why is the sky blue?"
"""

import argparse
import sys
import time

from opensearchpy import OpenSearch

from opensearch_ml_stream.client import SidecarError, StreamingMLClient, StreamTruncated

TRIES = 3


def ask(ml: StreamingMLClient, model_id: str, question: str) -> None:
    """Writes the response word by word, then how many tokens it took."""
    for chunk in ml.predict_stream(model_id, {"inputs": question}):
        sys.stdout.write(chunk.text)
        sys.stdout.flush()
        if chunk.is_last:
            tokens = (chunk.usage or {}).get("total_tokens", "an unknown number of")
            sys.stdout.write(f"\n[{chunk.finish_reason}, {tokens} tokens]\n")


def ask_patiently(ml: StreamingMLClient, model_id: str, question: str) -> None:
    """Asks again where the server says when; nothing of the response has come by then."""
    for tries_left in reversed(range(TRIES)):
        try:
            return ask(ml, model_id, question)
        except SidecarError as error:
            if error.status != 429 or error.retry_after is None or not tries_left:
                raise
            time.sleep(error.retry_after)


def main() -> None:
    parser = argparse.ArgumentParser(description="Ask a model of the sidecar.")
    parser.add_argument("question")
    parser.add_argument("--model", required=True, help="id of a model for chats")
    parser.add_argument("--sidecar", default="http://localhost:9510")
    parser.add_argument("--opensearch", default="http://localhost:9200")
    given = parser.parse_args()
    with OpenSearch(given.opensearch) as cluster:
        ml = StreamingMLClient(cluster, url=given.sidecar)
        try:
            ask_patiently(ml, given.model, given.question)
        except StreamTruncated as error:
            sys.exit(f"\nThe response above is a part: {error}")
        except SidecarError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
