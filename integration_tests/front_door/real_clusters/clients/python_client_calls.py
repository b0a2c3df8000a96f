"""What a program does with opensearch-py, in parts: each gives back the client's results, to be compared."""

from collections.abc import Iterator
from typing import Any

from opensearchpy import exceptions, helpers

_MAPPINGS = {"properties": {"title": {"type": "text"}, "number": {"type": "integer"}, "kind": {"type": "keyword"}}}


def documents(client: Any, index: str) -> Iterator[Any]:
    """An index made and described; documents written, read, changed and deleted, and the client's own exceptions."""
    yield client.ping()
    yield client.info()
    yield client.indices.create(index=index, body={"mappings": _MAPPINGS})
    yield client.indices.exists(index=index), client.indices.exists(index=f"{index}-none")
    yield client.index(index=index, id="1", body={"title": "first", "number": 1}, refresh=True)
    yield client.index(index=index, id="a/b c%", body={"title": "naïve ☃", "number": 2}, refresh="wait_for")
    yield client.get(index=index, id="a/b c%")
    yield client.exists(index=index, id="1"), client.exists(index=index, id="none")
    yield client.update(index=index, id="1", body={"doc": {"number": 10}})
    yield client.mget(body={"ids": ["1", "a/b c%", "none"]}, index=index)
    yield _raised(lambda: client.get(index=index, id="none"))
    yield _raised(lambda: client.create(index=index, id="1", body={}))
    yield _raised(lambda: client.index(index=index, body={"number": "no number"}))
    yield client.delete(index=index, id="1")
    yield client.indices.get(index=index)
    yield client.indices.put_mapping(index=index, body={"properties": {"more": {"type": "date"}}})
    yield client.indices.put_settings(index=index, body={"index": {"refresh_interval": "30s"}})
    yield client.indices.get_settings(index=index, flat_settings=True)


def searches(client: Any, index: str) -> Iterator[Any]:
    """A bulk, and what finds its documents: searches, counts, scrolls and points in time."""
    client.indices.create(index=index, body={"mappings": _MAPPINGS})
    actions = [
        {"_index": index, "_id": str(n), "title": f"title {n}", "number": n, "kind": "ab"[n % 2]} for n in range(500)
    ]
    yield helpers.bulk(client, actions, chunk_size=200, refresh=True)
    yield helpers.bulk(client, [{"_index": index, "number": "none"}], raise_on_error=False)[0]
    yield client.search(index=index, body={"query": {"match": {"title": "title"}}, "sort": ["number"], "size": 20})
    yield client.search(index=index, body={"size": 0, "aggs": {"kinds": {"terms": {"field": "kind"}}}})
    yield client.search(index=index, q="number:7", filter_path="hits.hits._id")
    yield client.msearch(body=[{"index": index}, {"size": 1, "sort": ["number"]}, {"index": "none-of-this"}, {}])
    yield client.count(index=index, body={"query": {"range": {"number": {"gte": 250}}}})
    yield sorted(hit["_id"] for hit in helpers.scan(client, index=index, size=90))
    yield client.explain(index=index, id="3", body={"query": {"term": {"kind": "b"}}})
    yield client.field_caps(index=index, fields="*")
    point = client.create_pit(index=index, keep_alive="1m")
    yield client.search(body={"pit": {"id": point["pit_id"]}, "size": 3, "sort": ["number"]})
    yield client.delete_pit(body={"pit_id": [point["pit_id"]]})
    yield _raised(lambda: client.search(index=index, body={"query": {"no_such_query": {}}}))
    yield client.delete_by_query(index=index, body={"query": {"term": {"kind": "a"}}}, refresh=True)
    yield client.update_by_query(index=index, body={"script": "ctx._source.number = 0"}, refresh=True)
    yield client.reindex(body={"source": {"index": index}, "dest": {"index": f"{index}-copy"}}, refresh=True)
    yield client.count(index=f"{index}-copy")


def administration(client: Any, index: str) -> Iterator[Any]:
    """Aliases, templates, pipelines, scripts, the cluster's and `_cat`'s views."""
    template = {"index_patterns": [f"{index}-t*"], "template": {"mappings": _MAPPINGS}}
    yield client.indices.create(index=index)
    yield client.indices.put_alias(index=index, name=f"{index}-alias")
    yield client.indices.get_alias(index=index)
    yield client.indices.put_index_template(name=index, body=template)
    yield client.indices.create(index=f"{index}-templated")
    yield client.indices.get_mapping(index=f"{index}-templated")
    yield client.indices.delete_index_template(name=index)
    yield client.ingest.put_pipeline(id=index, body={"processors": [{"set": {"field": "seen", "value": True}}]})
    yield client.ingest.simulate(id=index, body={"docs": [{"_source": {"number": 1}}]})
    yield client.ingest.delete_pipeline(id=index)
    yield client.put_script(id=index, body={"script": {"lang": "mustache", "source": {"size": "{{n}}"}}})
    yield client.search_template(index=index, body={"id": index, "params": {"n": 1}})
    yield client.delete_script(id=index)
    yield client.indices.analyze(body={"analyzer": "english", "text": "Running through the doors"})
    yield client.cluster.health(index=index)
    yield client.cluster.get_settings(flat_settings=True, include_defaults=False)
    yield client.cat.indices(index=f"{index}*", h="index,docs.count,health", s="index", v=True)
    yield client.cat.aliases(name=f"{index}*", format="json")
    yield client.cat.count(index=index, h="count")
    yield client.cat.plugins(h="component,version")
    yield sorted(client.nodes.info(metric="http")["nodes"].popitem()[1])
    yield client.indices.forcemerge(index=index, max_num_segments=1)
    yield client.indices.close(index=index), client.indices.open(index=index)


def snapshots(client: Any, index: str) -> Iterator[Any]:
    """A repository in a folder of the server, a snapshot of an index, and the index restored under another name."""
    repository, renamed = f"{index}-repository", {"rename_pattern": "(.+)", "rename_replacement": "$1-restored"}
    client.bulk(body=[{"index": {"_index": index}}, {"number": 1}], refresh=True)
    yield client.snapshot.create_repository(repository=repository, body={"type": "fs", "settings": {"location": index}})
    yield client.snapshot.verify_repository(repository=repository)["nodes"].popitem()[1]
    yield client.snapshot.create(
        repository=repository, snapshot="one", body={"indices": index}, wait_for_completion=True
    )
    yield client.snapshot.get(repository=repository, snapshot="one")
    yield client.snapshot.status(repository=repository, snapshot="one")["snapshots"][0]["state"]
    yield client.cat.snapshots(repository=repository, h="id,status")
    yield client.snapshot.restore(
        repository=repository, snapshot="one", body={"indices": index, **renamed}, wait_for_completion=True
    )
    yield client.count(index=f"{index}-restored")
    yield _raised(lambda: client.snapshot.get(repository=repository, snapshot="two"))
    yield (
        client.snapshot.delete(repository=repository, snapshot="one"),
        client.snapshot.delete_repository(repository=repository),
    )


PARTS = (documents, searches, administration, snapshots)


def _raised(call: Any) -> tuple[str, object, object]:
    """The exception of a call that must fail."""
    try:
        call()
    except exceptions.TransportError as error:
        return type(error).__name__, error.status_code, error.info
    raise AssertionError("it has not failed")
