"""What Dashboards asks its cluster, as calls of opensearch-js: at its start, for saved objects, in its applications."""

from collections.abc import Sequence

from integration_tests.front_door.real_clusters.clients.opensearch_js import Call

_VERSIONS = ["nodes.*.version", "nodes.*.http.publish_address", "nodes.*.ip"]
_SAVED_OBJECTS = {
    "dynamic": "strict",
    "properties": {
        "type": {"type": "keyword"},
        "updated_at": {"type": "date"},
        "dashboard": {"properties": {"title": {"type": "text"}, "hits": {"type": "integer"}}},
    },
}


def start(index: str) -> Sequence[Call]:
    """The versions of the nodes, and the index of saved objects with its alias, template and migration."""
    first, second = f"{index}_1", f"{index}_2"
    created = {"mappings": _SAVED_OBJECTS, "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1"}}
    moved = {"source": {"index": first}, "dest": {"index": second}}
    actions = [{"remove": {"index": first, "alias": index}}, {"add": {"index": second, "alias": index}}]
    return [
        ("ping", {}),
        ("info", {}),
        ("nodes.info", {"filter_path": _VERSIONS}),
        ("indices.get", {"index": first, "ignore_unavailable": True}),
        ("cat.templates", {"format": "json", "name": f"{index}_template*"}),
        ("indices.create", {"index": first, "body": created}),
        ("indices.create", {"index": first, "body": created}),
        ("indices.putAlias", {"index": first, "name": index}),
        ("indices.getAlias", {"name": index}),
        ("indices.existsAlias", {"name": f"{index}_none"}),
        ("indices.exists", {"index": index}),
        ("bulk", {"refresh": True, "body": _objects(first, range(40))}),
        ("indices.create", {"index": second, "body": created}),
        ("reindex", {"body": moved, "refresh": True, "wait_for_completion": True}),
        ("indices.updateAliases", {"body": {"actions": actions}}),
        ("indices.getMapping", {"index": second}),
        ("count", {"index": index}),
        ("reindex", {"body": moved, "wait_for_completion": False}),
        ("tasks.get", {"task_id": "$task", "wait_for_completion": True}),
    ]


def saved_objects(index: str) -> Sequence[Call]:
    """Dashboards written, read, found, changed in two ways, and deleted."""
    wanted = {"query": {"bool": {"filter": [{"term": {"type": "dashboard"}}]}}, "sort": [{"dashboard.hits": "asc"}]}
    scripted = {"script": {"source": "ctx._source.dashboard.hits += 1", "lang": "painless"}}
    new = {"type": "dashboard", "dashboard": {"title": "Ünïcode ☃ dashboard", "hits": 0}}
    item = f"dashboard:{index}/a b?c#d%25"  # an id with all that a path must encode
    return [
        ("indices.create", {"index": index, "body": {"mappings": _SAVED_OBJECTS}}),
        ("create", {"index": index, "id": item, "refresh": "wait_for", "body": new}),
        ("create", {"index": index, "id": item, "refresh": "false", "body": new}),
        ("get", {"index": index, "id": item}),
        ("getSource", {"index": index, "id": item}),
        ("exists", {"index": index, "id": item}),
        ("get", {"index": index, "id": "none"}),
        ("update", {"index": index, "id": item, "body": {"doc": {"dashboard": {"hits": 7}}}, "_source": "true"}),
        ("update", {"index": index, "id": item, "body": scripted, "if_seq_no": 99, "if_primary_term": 1}),
        ("index", {"index": index, "id": "wrong", "body": {"unknown": 1}}),
        ("bulk", {"refresh": True, "body": _objects(index, range(25))}),
        ("mget", {"body": {"docs": [{"_index": index, "_id": "dashboard:3"}, {"_index": index, "_id": "none"}]}}),
        ("search", {"index": index, "size": 10, "body": wanted, "rest_total_hits_as_int": True}),
        ("search", {"index": index, "scroll": "1m", "size": 10, "body": wanted}),
        ("scroll", {"body": {"scroll": "1m", "scroll_id": "$_scroll_id"}}),
        ("scroll", {"body": {"scroll": "1m", "scroll_id": "$_scroll_id"}}),
        ("clearScroll", {"body": {"scroll_id": ["$_scroll_id"]}}),
        ("updateByQuery", {"index": index, "refresh": True, "body": scripted}),
        ("deleteByQuery", {"index": index, "refresh": True, "body": {"query": {"term": {"dashboard.hits": 4}}}}),
        ("delete", {"index": index, "id": item, "refresh": "true"}),
        ("delete", {"index": index, "id": item}),
    ]


def applications(index: str) -> Sequence[Call]:
    """Discover, visualizations, index patterns, Dev Tools' completions, and requests of plugins."""
    histogram = {"size": 0, "aggs": {"hits": {"histogram": {"field": "dashboard.hits", "interval": 5}}}}
    searches = [{"index": index}, histogram, {"index": "none-of-this"}, {"query": {"match_all": {}}}]
    health = {"method": "GET", "path": "/_cluster/health", "querystring": {"local": "true"}}
    return [
        ("indices.create", {"index": index, "body": {"mappings": _SAVED_OBJECTS}}),
        ("bulk", {"refresh": True, "body": _objects(index, range(30))}),
        ("msearch", {"body": searches, "max_concurrent_shard_requests": 5}),
        ("search", {"index": index, "body": histogram, "track_total_hits": True, "timeout": "30000ms"}),
        ("search", {"index": index, "body": {"query": {"wrong": {}}}}),
        ("createPit", {"index": index, "keep_alive": "1m"}),
        ("search", {"body": {"pit": {"id": "$pit_id"}, "size": 3, "sort": [{"dashboard.hits": "desc"}]}}),
        ("deletePit", {"body": {"pit_id": ["$pit_id"]}}),
        ("fieldCaps", {"index": f"{index}*", "fields": "*"}),
        ("fieldCaps", {"index": "none-of-this", "fields": "*", "allow_no_indices": False}),
        ("indices.getMapping", {"index": f"{index}*"}),
        ("indices.getFieldMapping", {"index": index, "fields": "*"}),
        ("indices.getSettings", {"index": index, "flat_settings": True}),
        ("indices.stats", {"index": index, "metric": "docs"}),
        ("indices.analyze", {"body": {"analyzer": "standard", "text": "Tokens, as Dev Tools asks"}}),
        ("indices.validateQuery", {"index": index, "q": "dashboard.title:Title", "explain": True}),
        ("cat.indices", {"index": index, "h": ["index", "docs.count"], "v": True}),
        ("cat.aliases", {"format": "json", "name": index}),
        ("cluster.health", {"index": index, "level": "shards"}),
        ("transport.request", health),
        ("transport.request", {"method": "GET", "path": f"/_resolve/index/{index}*"}),
        ("transport.request", {"method": "POST", "path": f"/{index}/_search", "body": {"size": 1}}),
        ("transport.request", {"method": "GET", "path": "/_plugins/_sql/none"}),
        ("transport.request", {"method": "HEAD", "path": f"/{index}"}),
    ]


def _objects(index: str, numbers: range) -> list[object]:
    """A bulk's actions: a saved dashboard for each number."""
    actions: list[object] = []
    for number in numbers:
        actions.append({"index": {"_index": index, "_id": f"dashboard:{number}"}})
        actions.append({"type": "dashboard", "dashboard": {"title": f"Title {number}", "hits": number}})
    return actions
