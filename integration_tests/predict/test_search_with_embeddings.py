"""OpenSearch's own users are served: documents embedded by the sidecar are found by meaning on a real cluster."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import blueprint_connector
from integration_tests.support.fake_provider import FakeProvider, Request, Script, json_response
from integration_tests.support.sidecars import Sidecar, running_sidecar
from opensearchpy import OpenSearch

pytestmark = pytest.mark.opensearch

EXAMPLE = Path(__file__).parents[2] / "examples" / "semantic_search.py"
# What a word is about, a dimension each; a vector counts the words.
MEANINGS = ({"kitten", "purrs", "animal"}, {"stock", "market", "money"}, {"bread", "yeast", "baking", "dough"})


def embeddings(request: Request) -> Script:
    texts = request.json()["input"]
    words_of_texts = [{word.strip(".?,").lower() for word in text.split()} for text in texts]
    vectors = [[float(len(meaning & words)) for meaning in MEANINGS] for words in words_of_texts]
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return json_response({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1}})


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with background_provider(embeddings) as running:
        yield running


@pytest.fixture
def sidecar(tmp_path: Path, opensearch_url: str, index_prefix: str) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    with running_sidecar(tmp_path, opensearch_url, settings) as running:
        yield running


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Which animal purrs?", "A kitten sleeps most of the day."),
        ("Where did my money go?", "The stock market fell sharply on Monday."),
        ("Tips for baking with dough", "Bread rises because yeast makes gas."),
    ],
)
def test_the_example_finds_what_is_meant_though_no_word_is_shared(
    sidecar: Sidecar, provider: FakeProvider, opensearch_url: str, index_prefix: str, question: str, best: str
) -> None:
    model_id = sidecar.create_model(blueprint_connector("openai-embedding", provider.url))
    index = f"{index_prefix}-documents"
    command = [sys.executable, str(EXAMPLE), question, f"--model={model_id}", "--index", index]
    command += ["--sidecar", sidecar.url, "--opensearch", opensearch_url, "--size", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"2.000  {best}"
    assert second.startswith("1.000  ")
    assert len(provider.requests) == 2  # all documents at once, then the question
    with OpenSearch(opensearch_url) as cluster:
        hits = cluster.search(index=index, body={"query": {"match": {"text": "yeast"}}})["hits"]["hits"]
    assert [hit["_source"]["vector"] for hit in hits] == [[0.0, 0.0, 2.0]]


def test_documents_come_from_a_file_too(
    sidecar: Sidecar, provider: FakeProvider, opensearch_url: str, index_prefix: str, tmp_path: Path
) -> None:
    model_id = sidecar.create_model(blueprint_connector("openai-embedding", provider.url))
    documents = tmp_path / "documents.txt"
    documents.write_text("Dough needs time.\n\nAn animal needs care.\n")
    command = [sys.executable, str(EXAMPLE), "bread", f"--model={model_id}", "--index", f"{index_prefix}-documents"]
    command += ["--sidecar", sidecar.url, "--opensearch", opensearch_url, "--file", str(documents)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines() == ["2.000  Dough needs time.", "1.000  An animal needs care."], done.stderr
