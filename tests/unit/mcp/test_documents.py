"""What a tool returns: keys, bounds, errors."""

from __future__ import annotations

import msgspec

from omnigraph.mcp.backend import ToolReply
from omnigraph.mcp.documents import MAX_BYTES, bounded, camel_case, error_document


def test_keys_of_the_document_are_in_camel_case_and_those_of_the_graph_are_not():
    document = {"row_count": 1, "rows": [{"p.first_name": 1}], "commit": {"graph_commit_id": "c"}}
    assert camel_case(document) == {
        "rowCount": 1,
        "rows": [{"p.first_name": 1}],
        "commit": {"graphCommitId": "c"},
    }


def test_an_answer_that_fits_is_left_as_it_is():
    document = {"rows": [{"a": 1}] * 10, "row_count": 10}
    assert bounded(document, 10) is document


def test_rows_beyond_the_limit_are_left_out_and_counted():
    found = bounded({"rows": list(range(30)), "row_count": 30}, 7)
    assert (found["rows"], found["shown"], found["truncated"]) == (list(range(7)), 7, True)
    assert found["row_count"] == 30


def test_bytes_are_bounded_whatever_the_number_of_rows():
    found = bounded({"changes": ["x" * 10_000] * 100})
    assert found["truncated"]
    assert MAX_BYTES - 11_000 < len(msgspec.json.encode(found)) <= MAX_BYTES + 100


def test_a_page_that_was_cut_cannot_be_continued_behind_what_is_missing():
    page = {"changes": ["x" * 10_000] * 100, "next_page_token": "t", "next_cursor": "c"}
    assert not {"next_page_token", "next_cursor"} & bounded(page).keys()
    assert bounded(page | {"changes": ["x"]})["next_page_token"] == "t"


def test_one_element_that_is_too_large_leaves_none():
    found = bounded({"rows": ["x" * (MAX_BYTES + 1)]})
    assert (found["rows"], found["shown"]) == ([], 0)


def test_an_error_says_whether_it_may_have_happened():
    lost = error_document(ToolReply(0, {"error": "gone"}, is_outcome_unknown=True))
    assert (lost["outcomeUnknown"], lost["requestDispatched"], lost["status"]) == (True, True, None)
    unsent = error_document(ToolReply(0, {"error": "no server"}, was_sent=False))
    assert (unsent["outcomeUnknown"], unsent["requestDispatched"]) == (False, False)


def test_errors_are_bounded():
    long = error_document(ToolReply(400, {"error": "x" * 10_000, "rows": ["y" * MAX_BYTES]}))
    assert (len(long["error"]), long["body"]) == (4_000, None)
    assert error_document(ToolReply(409, {"error": "no", "rows": [1]}))["body"]["rows"] == [1]


def test_a_body_that_is_not_json_is_shown():
    assert error_document(ToolReply(502, "Bad Gateway"))["error"] == "Bad Gateway"
