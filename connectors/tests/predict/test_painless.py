"""One script for many inputs: how its source is put together, and how its results are read."""

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.painless import combine_calls, split_results


def test_a_length_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        split_results("1" * 5_000 + ":a", 1)


def test_the_inputs_are_parameters_and_the_source_is_the_same_for_all_of_them() -> None:
    one, two = combine_calls("return params.x;", [{"x": 1}]), combine_calls("return params.x;", [{"x": 2}, {"x": 3}])
    assert one.source == two.source
    assert two.params == {"inputs": [{"x": 2}, {"x": 3}]}


@pytest.mark.parametrize(
    ("functions", "body"),
    [
        ("", "return params.x;"),
        ("String a(def x) { return '}' + x; }", " return a(params.x);"),
        ('def a() { /* } */ return "\\"}"; } List<String> b(Map m, int[] n) { if (true) { return null; } }', " a();"),
        ("", "if (params.x) { return 1; } return 2;"),
        ("", "for (def x : params.y) { return x; }"),
        ("", "String text = '{'; return text;"),
        ("", "String a(def x) { return x; "),
        ("String a(def x) { return x; }", " String b(def x) { if (x) { return '}'; "),
    ],
)
def test_leading_functions_stay_functions_and_the_rest_becomes_one_more(functions: str, body: str) -> None:
    source = combine_calls(functions + body, []).source
    assert source.startswith(f"{functions} def mlOne(def params) {{ {body}\n}} ")


def test_results_are_read_by_their_length_in_utf_16_units() -> None:
    text = "2:ab-0:4:\U0001f600\U0001f6005:-1:é\n"
    assert split_results(text, 5) == ["ab", None, "", "\U0001f600\U0001f600", "-1:é\n"]


@pytest.mark.parametrize(("text", "count"), [("2:ab", 2), ("2:abc", 1), (None, 1), ("x", 1), ("9:a", 2), ("-1:a-", 2)])
def test_a_string_that_is_no_such_list_is_refused(text: str | None, count: int) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        split_results(text, count)
