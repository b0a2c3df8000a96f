"""Grammars of the small languages that users write, for the search for slow inputs."""

import json
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

JSON = {
    "value": ["1", "-0.5", "true", "null", '"a"', '""', "[]", "{}", "[<items>]", "{<members>}", '"<chars>"'],
    "items": ["<value>", "<items>,<items>"],
    "members": ['"<name>":<value>', '"<name>":<value>,"<name>":<value>', '"a":<value>,"b":<value>'],
    "name": ["a", "b", "<name><name>"],
    "chars": ["a", "b", " ", ",", "[", "é", "\\n", "\\ud800", "<chars><chars>"],
}

FIELDS = {
    **JSON,
    "patterns": ["<pattern>", "-<pattern>", "<patterns>,<patterns>"],
    "pattern": ["<part>", "<pattern>.<pattern>", "**.<pattern>"],
    "part": ["a", "b", "*", "**", "a*", "<part><part>"],
}

REGEX = {
    "regex": [
        "a",
        "b",
        ".",
        "\\\\d",
        "[ab]",
        "[^a]",
        "(<regex>)",
        "<regex><regex>",
        "<regex>|<regex>",
        "<regex><times>",
    ],
    "times": ["*", "+", "?", "*?", "{2}", "{3,}", "{0,20}", "{100}"],
}

PATH = {
    **JSON,
    **REGEX,
    "path": ["$", "<path><segment>", "<path>.<function>(<argument>)"],
    "function": ["length", "sum", "concat", "append", "keys", "last", "stddev"],
    "argument": ["", "<path>", '"a"', "1,<path>"],
    "segment": [".a", ".b", "[0]", ".*", "..*", "..a", "..[<selectors>]", "[<selectors>]", "['a','b']"],
    "selectors": ["<selector>", "<selectors>,<selectors>"],
    "selector": ["0", "-1", "'a'", "*", "1:", "::-1", "?<test>"],
    "test": [
        "<query>",
        "<test>&&<test>",
        "<test>||<test>",
        "(<test>)",
        "!<test>",
        "count(<query>)>1",
        "length(@)<2",
        "match(@,'a*b')",
        "@ =~ /a*b/i",
        "search(@.a,@.b)",
        "@.a==$.b",
        "@==$",
        "@ in $.a",
        "@ subsetof $",
        "<query> noneof <query>",
        "@ size 1",
        "value(<query>)==1",
    ],
    "query": ["@", "$", "<query><segment>"],
}

PROCESSORS = {
    **PATH,
    "chain": ["[<processors>]"],
    "processors": ["<processor>", "<processors>,<processors>"],
    "processor": [
        '{"type":"to_string"}',
        '{"type":"to_string","escape_json":true}',
        '{"type":"regex_replace","pattern":"<regex>","replacement":"<name>"}',
        '{"type":"regex_replace","pattern":"(a)","replacement":"$1$1<name>"}',
        '{"type":"regex_capture","pattern":"(<regex>)","groups":"[0,1]"}',
        '{"type":"jsonpath_filter","path":"<path>"}',
        '{"type":"jsonpath_filter","path":"$.c","default":<value>}',
        '{"type":"extract_json"}',
        '{"type":"remove_jsonpath","path":"<path>"}',
        '{"type":"remove_jsonpath","paths":["<path>","<path>"]}',
        '{"type":"set_field","path":"<path>","source_path":"<path>"}',
        '{"type":"set_field","path":"<path>.a","value":<value>}',
        '{"type":"process_and_set","path":"<path>","processors":<chain>}',
        '{"type":"for_each","path":"<path>","processors":<chain>}',
        '{"type":"conditional","path":"<path>","routes":[{"regex:<regex>":<chain>,">5":<chain>}],"default":<chain>}',
    ],
}


def parse(text: str) -> Any:
    """Parse a generated document. InvalidRequest if it is nested too deeply, as where documents come from."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidRequest("nested too deeply") from None
