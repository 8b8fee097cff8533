"""What is promised about loads and exports, as far as it can be shown without a graph."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import ExportError, LoadError, LoadSourceError
from omnigraph.export.json_lines import export_lines
from omnigraph.export.run import select_types
from tests.unit.load.loading import (
    PAGES,
    WF,
    WORKSHOP,
    WORKSHOP_RECORDS,
    CommittedTables,
    W,
    catalog_of,
    load,
    rows_of,
    workshop,
)

P = catalog_of(PAGES)


def refused(given, *args, **options):
    """The error of a load that must fail."""
    with pytest.raises(LoadError) as caught:
        load(given, *args, **options)
    return caught.value


def maker(**data):
    return json.dumps({"type": "Maker", "data": data})


def tool(code="ha-1", label="hammer", **data):
    return json.dumps({"type": "Tool", "data": {"code": code, "label": label, **data}})


def edge(name, source, target, **data):
    return json.dumps({"edge": name, "from": source, "to": target, "data": data})


def lines_of(committed, catalog, wanted=()):
    text = b""
    for declared in select_types(catalog, wanted):
        rows = committed.tables[declared.table_key].sort_by("id")
        for piece in export_lines(declared, rows.to_batches()):
            text += piece.to_pybytes()
    return text.decode()


# Records


def test_records_may_spread_over_lines_or_share_one():
    first, second = (json.dumps(json.loads(maker(handle=h)), indent=2) for h in "xy")
    result = load(f"{first}\n{second} {edge('Mentors', 'x', 'y')}")
    assert result.records == 3
    assert {k: t.rows_loaded for k, t in result.types.items()} == {
        "edge:Mentors": 1,
        "node:Maker": 2,
    }


def test_an_unknown_type_is_reported_by_record_number():
    text = "\n".join([maker(handle="x"), maker(handle="y"), '{"type":"Ghost","data":{}}'])
    assert "record 3: unknown node type 'Ghost'" in str(refused(text))


def test_a_truncated_record_is_malformed():
    error = refused(maker(handle="x") + "\n" + maker(handle="y")[:-4])
    assert "invalid JSON at record 2" in str(error)
    (problem,) = error.load_errors
    assert (problem.code, problem.record, problem.line) == ("invalid_json", 2, 2)


def test_a_record_that_is_neither_node_nor_edge_is_refused():
    assert "record 1: expected 'type' or 'edge' field" in str(refused('{"data":{}}'))


def test_an_edge_name_may_be_written_in_lower_case():
    result = load('{"edge":"borrows","from":"ada","to":"sa-1"}', W, "append", workshop())
    assert list(result.types) == ["edge:Borrows"]


def test_an_edge_without_source_is_refused():
    error = refused('{"edge":"Borrows","to":"sa-1"}')
    assert "record 1: edge missing 'from'" in str(error)
    assert error.load_errors[0].code == "missing_endpoint"


def test_an_edge_to_a_missing_node_is_refused():
    error = refused(edge("Borrows", "ada", "none"), W, "append", workshop())
    assert "record 1: edge Borrows: dst 'none' not found in Tool" in str(error)
    assert error.load_errors_total == 1


# Modes


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_the_same_key_twice_in_one_load_is_refused(mode):
    error = refused(maker(handle="dup") + maker(handle="dup"), W, mode, workshop())
    assert "@unique violation on Maker.handle: value 'dup' appears in records 1 and 2" in str(error)


def test_merge_replaces_a_row_entirely():
    result = load(maker(handle="ada", age=42), W, "merge", workshop())
    (row,) = rows_of(result, "node:Maker")
    assert row == {
        "id": "ada", "handle": "ada", "age": 42, "active": None, "joined": None,
        "level": None, "score": None, "skills": None,
    }  # fmt: skip


def test_append_of_an_existing_key_is_refused():
    error = refused(maker(handle="ada"), W, "append", workshop())
    assert "id 'ada' already exists in Maker" in str(error)
    assert error.load_errors[0].code == "exists"


def test_overwrite_concerns_the_given_types_only():
    result = load('{"type":"Shed","data":{"slug":"west"}}', W, "overwrite", workshop())
    assert {k: t.rows.num_rows for k, t in result.types.items()} == {"node:Shed": 1}


def test_plain_edges_get_new_ids_every_time():
    records = [r for r in WORKSHOP_RECORDS.splitlines() if "Borrows" in r]
    before = workshop()
    after = before.after(load("\n".join(records), W, "merge", before, load_id="again"))
    assert after.tables["edge:Borrows"].num_rows == 8


def test_merging_an_edge_with_an_id_twice_leaves_one():
    state = workshop()
    for load_id in ("one", "two"):
        given = edge("Borrows", "ada", "sa-1", id="b1")
        state = state.after(load(given, W, "merge", state, load_id=load_id))
    assert state.tables["edge:Borrows"].column("id").to_pylist().count("b1") == 1


def test_too_many_edges_of_one_source_are_refused():
    fixture = "".join(r for r in WORKSHOP_RECORDS.splitlines(True) if "StoredIn" not in r)
    state = CommittedTables(W).after(load(fixture))
    given = edge("StoredIn", "sa-1", "north") + edge("StoredIn", "sa-1", "south")
    error = refused(given, W, "append", state)
    assert "@card violation on edge StoredIn: source 'sa-1' has 2 edges (max 1)" in str(error)
    assert error.bad_records == 2


# Values


def test_a_date_may_be_a_number_of_days():
    (row,) = rows_of(load(maker(handle="x", joined=18823)), "node:Maker")
    (same,) = rows_of(load(maker(handle="x", joined="2021-07-15")), "node:Maker")
    assert row["joined"] == same["joined"] == 18823


def test_a_datetime_may_be_a_number_of_milliseconds():
    given = '{"type":"Shed","data":{"slug":"x","openedAt":%s}}'
    (row,) = rows_of(load(given % "1556697600000"), "node:Shed")
    (same,) = rows_of(load(given % '"2019-05-01T08:00:00Z"'), "node:Shed")
    assert row["openedAt"] == same["openedAt"] == 1556697600000


@pytest.mark.parametrize(
    ("catalog", "given", "fragment"),
    [
        (
            W,
            maker(handle="x", joined="15/07/2021"),
            "invalid Date literal",
        ),
        (
            P,
            '{"type":"Page","data":{"slug":"x","title":"t","vec":[1,2]}}',
            "expects 3 dimensions, got 2",
        ),
        (
            W,
            '{"type":"Tool","data":{"code":"ha-1"}}',
            "non-nullable property 'label'",
        ),
        (
            W,
            maker(age=3),
            "missing @key property 'handle'",
        ),
        (
            W,
            maker(id="x", handle="ada"),
            "explicit id 'x' that does not match @key property",
        ),
        (
            W,
            maker(handle="x", age="41"),
            "property 'age' expects I32, got string",
        ),
        (
            W,
            maker(handle="x", skills=["lathe", 3]),
            "element 2 of 'skills' expects String",
        ),
        (
            P,
            '{"type":"Page","data":{"slug":"x","title":"t","vec":[1,"x",0]}}',
            "'vec'",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused(catalog, given, fragment):
    assert fragment in str(refused(given, catalog))


def test_a_node_without_key_keeps_its_id_or_gets_one():
    catalog = catalog_of("node Loose { text: String? }")
    result = load('{"type":"Loose","data":{"id":"n1"}}{"type":"Loose"}', catalog)
    given, made = (row["id"] for row in rows_of(result, "node:Loose"))
    assert given == "n1"
    assert len(made) == 26


def test_an_unknown_property_is_ignored_with_a_warning():
    result = load("\n".join([maker(handle="x", shoe=44), maker(handle="y", shoe=None)]))
    (warning,) = result.warnings
    assert (warning.code, warning.count) == ("unknown_property", 2)
    assert "Maker" in warning.message
    assert "'shoe'" in warning.message


def test_a_blob_in_base64_holds_its_bytes_and_is_exported_as_it_came():
    catalog = catalog_of("node Doc { slug: String @key  body: Blob? }")
    result = load('{"type":"Doc","data":{"slug":"d","body":"base64:SGk="}}', catalog)
    (row,) = rows_of(result, "node:Doc")
    assert row["body"] == b"Hi"
    assert '"body":"base64:SGk="' in lines_of(CommittedTables(catalog).after(result), catalog)


def test_a_date_can_be_a_key():
    catalog = catalog_of("node Day { on: Date @key }\nedge Next: Day -> Day")
    given = '{"type":"Day","data":{"on":"2021-07-15"}}{"edge":"Next","from":"18823","to":"18823"}'
    first = load(given, catalog)
    assert [row["id"] for row in rows_of(first, "node:Day")] == ["18823"]
    exported = lines_of(CommittedTables(catalog).after(first), catalog)
    assert [row["id"] for row in rows_of(load(exported, catalog), "node:Day")] == ["18823"]


# Edges with identity


def test_an_identified_edge_is_upserted_by_merge_and_refused_by_append():
    state = CommittedTables(WF).after(load(WORKSHOP_RECORDS, WF))
    given = edge("Follows", "ada", "bo")
    for load_id in ("one", "two"):
        state = state.after(load(given, WF, "merge", state, load_id=load_id))
    assert state.tables["edge:Follows"].num_rows == 1
    assert "already exists in Follows" in str(refused(given, WF, "append", state))


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_the_same_identified_edge_twice_in_one_load_is_refused(mode):
    state = CommittedTables(WF).after(load(WORKSHOP_RECORDS, WF))
    error = refused(edge("Follows", "ada", "bo") * 2, WF, mode, state)
    assert "@unique violation on Follows.(src, dst): value '(ada, bo)'" in str(error)


def test_an_explicit_id_of_an_identified_edge_gives_way():
    state = CommittedTables(WF).after(load(WORKSHOP_RECORDS, WF))
    result = load(edge("Follows", "ada", "bo", id="x1"), WF, "merge", state)
    (row,) = rows_of(result, "edge:Follows")
    assert row["id"] == '["ada","bo"]'
    (warning,) = result.warnings
    assert (warning.code, warning.count) == ("explicit_edge_id_ignored", 1)


def test_a_unique_value_of_another_committed_row_is_refused():
    state = CommittedTables(W).after(load(tool(serial="s-9")))
    error = refused(tool("ax-1", "axe", serial="s-9"), W, "merge", state)
    assert "@unique violation on Tool.serial: value 's-9' already belongs to 'ha-1'" in str(error)
    load(tool("ha-1", "hammer", serial="s-9"), W, "merge", state)


# Errors


def ten_records():
    """Records 3, 7 and 9 are bad, each in its own way."""
    records = [maker(handle=f"m{n}") for n in range(1, 11)]
    records[2] = '{"type":"Ghost","data":{}}'
    records[6] = maker(handle="m7", age="old")
    records[8] = "{oops}"
    return "\n".join(records)


def test_every_bad_record_is_listed(tmp_path):
    path = tmp_path / "seed.jsonl"
    path.write_text(ten_records())
    error = refused(path)
    assert [(e.record, e.line, e.code) for e in error.load_errors] == [
        (3, 3, "unknown_type"),
        (7, 7, "bad_value"),
        (9, 9, "invalid_json"),
    ]
    assert str(error).splitlines() == [
        "load failed: 3 bad records of 10, nothing was loaded",
        f"  {path} record 3: unknown node type 'Ghost'",
        f"  {path} record 7: property 'age' expects I32, got string",
        f"  {path} record 9: invalid JSON at record 9: "
        "Expecting property name enclosed in double quotes (line 9, column 2)",
    ]


def test_the_list_of_errors_is_capped():
    text = "\n".join(json.dumps({"type": f"Ghost{n}"}) for n in range(150))
    error = refused(text)
    assert len(error.load_errors) == 100
    assert str(error).endswith("\n  … and 50 more")
    error = refused(text, max_errors=10)
    assert (len(error.load_errors), error.load_errors_total) == (10, 150)
    assert str(error).startswith("load failed: 150 bad records of 150, nothing was loaded\n")


def test_quarantine_takes_the_good_records_and_keeps_the_bad():
    result = load(ten_records(), quarantine=True)
    assert result.types["node:Maker"].rows_loaded == 7
    assert [bad.record for bad in result.quarantined] == [3, 7, 9]
    assert [bad.raw for bad in result.quarantined] == [
        '{"type":"Ghost","data":{}}',
        maker(handle="m7", age="old"),
        "{oops}",
    ]
    assert result.quarantined[1].to_json() == {
        "source": "<data>",
        "record": 7,
        "line": 7,
        "errors": [
            {
                "code": "bad_value",
                "message": "property 'age' expects I32, got string",
                "property": "age",
            }
        ],
        "raw": maker(handle="m7", age="old"),
    }


def test_an_edge_to_a_quarantined_node_follows_it():
    text = "\n".join([maker(handle="x"), maker(handle="y", age="old"), edge("Mentors", "x", "y")])
    result = load(text, quarantine=True)
    assert list(result.types) == ["node:Maker"]
    assert [(b.record, b.problems[0].code) for b in result.quarantined] == [
        (2, "bad_value"),
        (3, "endpoint_not_found"),
    ]


def test_reading_resumes_after_malformed_text():
    error = refused("\n".join([maker(handle="x"), "{oops}", '{"type":"Ghost"}']))
    assert [(e.record, e.code) for e in error.load_errors] == [
        (2, "invalid_json"),
        (3, "unknown_type"),
    ]


# Sources


@pytest.mark.parametrize("name", ["seed.jsonl.gz", "seed"])
def test_gzip_is_recognised_under_any_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(WORKSHOP_RECORDS.encode()))
    packed, plain = load(path), load(WORKSHOP_RECORDS)
    assert packed.types.keys() == plain.types.keys()
    assert all(packed.types[key].rows.equals(plain.types[key].rows) for key in plain.types)


def test_a_parquet_value_out_of_range_is_reported_at_its_record(tmp_path):
    path = tmp_path / "Maker.parquet"
    ages = pa.array([31, 3000000000], pa.int64())
    pq.write_table(pa.table({"handle": ["a", "b"], "age": ages}), path)
    error = refused(path)
    assert "record 2: property 'age': value out of range for I32" in str(error)


def test_tables_by_type_name_are_one_load():
    makers = pa.table({"handle": ["x", "y"]})
    mentors = pa.table({"from": ["x"], "to": ["y"]})
    result = load({"Maker": makers, "Mentors": mentors})
    assert {k: t.rows_loaded for k, t in result.types.items()} == {
        "edge:Mentors": 1,
        "node:Maker": 2,
    }


def test_a_parquet_file_that_names_no_type_needs_a_mapping(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"handle": ["a"]}), path)
    with pytest.raises(LoadSourceError, match="needs a mapping"):
        load(path)


# Export


def test_an_export_begins_with_edges_and_writes_times_as_loads_read_them():
    lines = lines_of(workshop(), W).splitlines()
    assert lines[0].startswith('{"edge":"Borrows"')
    assert '"joined":18293' in next(line for line in lines if '"handle":"ada"' in line)
    assert '"openedAt":"2019-05-01T08:00:00"' in next(
        line for line in lines if "north" in line[:40]
    )


def test_an_export_that_is_loaded_exports_the_same():
    exported = lines_of(workshop(), W)
    again = CommittedTables(W).after(load(exported, W, "overwrite"))
    assert lines_of(again, W) == exported


def test_an_unknown_export_type_is_refused():
    with pytest.raises(ExportError, match="unknown export type 'Nope'"):
        select_types(W, ["Nope"])
    with pytest.raises(ExportError, match="unknown export table 'node:Nope'"):
        select_types(W, ["node:Nope"])


def test_the_workshop_loads_without_a_complaint():
    result = load(WORKSHOP_RECORDS)
    assert result.records == 19
    assert result.warnings == ()
    assert result.quarantined == ()
    assert sum(t.rows_loaded for t in result.types.values()) == 19
    assert WORKSHOP.count("node ") + WORKSHOP.count("edge ") == len(result.types)
