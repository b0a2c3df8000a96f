"""Search by meaning on any OpenSearch: the sidecar embeds, OpenSearch stores the vectors and compares them.

    opensearch-ml-stream serve --store http://localhost:9200 &
    python examples/semantic_search.py --model=MODEL_ID "Which animal purrs?"

MODEL_ID is a model over a connector for embeddings, such as one made from the blueprint `openai-embedding`. Each line
of `--file` is a document; without it there are a few built-in ones. The comparison is exact, by a script over every
document, and needs no plugin; with many documents use a knn index instead.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from opensearchpy import OpenSearch
from opensearchpy.helpers import bulk

from opensearch_ml_stream.client import StreamingMLClient

DOCUMENTS = (
    "A kitten sleeps most of the day.",
    "The stock market fell sharply on Monday.",
    "Bread rises because yeast makes gas.",
)

# The cosine of the angle between two vectors, plus one as a score must not be negative.
SIMILARITY = """
    double dot = 0, own = 0, asked = 0;
    List vector = params._source.vector;
    for (int i = 0; i < params.vector.length; i++) {
        dot += vector[i] * params.vector[i];
        own += vector[i] * vector[i];
        asked += params.vector[i] * params.vector[i];
    }
    return own == 0 || asked == 0 ? 0 : 1 + dot / Math.sqrt(own * asked);
"""


def index_documents(cluster: OpenSearch, index: str, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
    """Puts the texts with their vectors into a new index. The vectors are only stored: nothing looks them up."""
    vector = {"type": "float", "index": False, "doc_values": False}
    mappings = {"properties": {"text": {"type": "text"}, "vector": vector}}
    cluster.indices.delete(index=index, params={"ignore_unavailable": "true"})
    cluster.indices.create(index=index, body={"mappings": mappings})
    pairs = zip(texts, vectors, strict=True)
    documents = [{"_index": index, "_source": {"text": text, "vector": vector}} for text, vector in pairs]
    bulk(cluster, documents, refresh=True)


def search(cluster: OpenSearch, index: str, vector: Sequence[float], size: int) -> list[tuple[float, str]]:
    """The scores (0 to 2) and texts nearest in meaning, best first."""
    script = {"source": SIMILARITY, "params": {"vector": vector}}
    query = {"script_score": {"query": {"match_all": {}}, "script": script}}
    found = cluster.search(index=index, body={"query": query, "size": size, "_source": ["text"]})
    return [(hit["_score"], hit["_source"]["text"]) for hit in found["hits"]["hits"]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Search by meaning, with embeddings of the sidecar.")
    parser.add_argument("query")
    parser.add_argument("--model", required=True, help="id of a model for embeddings")
    parser.add_argument("--sidecar", default="http://localhost:9510")
    parser.add_argument("--opensearch", default="http://localhost:9200")
    parser.add_argument("--index", default="semantic-search-example", help="made anew; what it holds is lost")
    parser.add_argument("--file", type=Path, help="documents, one a line")
    parser.add_argument("--size", type=int, default=3, help="how many results")
    given = parser.parse_args()
    texts = [line for line in given.file.read_text().splitlines() if line.strip()] if given.file else DOCUMENTS
    with OpenSearch(given.sidecar) as sidecar, OpenSearch(given.opensearch) as cluster:
        ml = StreamingMLClient(sidecar)
        index_documents(cluster, given.index, texts, ml.embed(given.model, texts))
        [vector] = ml.embed(given.model, [given.query])
        for score, text in search(cluster, given.index, vector, given.size):
            sys.stdout.write(f"{score:.3f}  {text}\n")


if __name__ == "__main__":
    main()
