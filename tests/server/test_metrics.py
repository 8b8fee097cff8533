"""What `/metrics` shows, and that the dashboard and the alerts ask for nothing else."""

from __future__ import annotations

import json
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.markdown import ROOT, Page
from tests.server.serving import serving

MONITORING = ROOT / "examples" / "monitoring"
PAGE = ROOT / "docs" / "user" / "monitoring.md"
_OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)\b")


@pytest.fixture(scope="module")
def shown(server):
    """The metrics of a server that has read, written and refused."""
    server.read("all_authors")
    server.read("all_authors")
    server.mutate("add_author", {"slug": "eve", "born": 1900})
    server.read("all_authors", branch="nope")
    server.mutate(
        "add_author", {"slug": "eve", "born": 1901}, expected_head="01ARZ3NDEKTSV4RRFFQ69G5FAV"
    )
    answer = server.get("/metrics")
    assert answer.status_code == 200
    return answer


def values(shown):
    """Values by sample name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(shown.text)
        for sample in family.samples
    }


def families(shown):
    """The metrics by the names that queries use, without the suffixes of histograms."""
    found = set()
    for family in text_string_to_metric_families(shown.text):
        found.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return found


def named(text):
    """The metrics that a text names."""
    found = re.findall(r"\b(?:omnigraph|process)_[a-z_]+[a-z]\b", text)
    return {_OF_HISTOGRAMS.sub("", name) for name in found}


@pytest.mark.acceptance("U-161", partly="a server with tokens")
def test_requests_rows_caches_and_steps_are_counted(shown):
    assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = values(shown)
    assert found["omnigraph_requests_total", ("route", "query"), ("status", "200")] >= 2
    assert found["omnigraph_requests_total", ("route", "query"), ("status", "404")] == 1
    assert found["omnigraph_request_seconds_count", ("route", "query")] >= 3
    assert found["omnigraph_commits_total", ("operation", "mutate")] == 1
    assert found["omnigraph_conflicts_total",] == 1
    assert found["omnigraph_rows_total",] >= 6
    assert found["omnigraph_cache_lookups_total", ("cache", "queries"), ("result", "hit")] >= 1
    assert found["omnigraph_lock_wait_seconds_count",] >= 1
    assert found["omnigraph_step_seconds_count", ("step", "read")] >= 2
    assert found["omnigraph_step_seconds_count", ("step", "commit")] == 1
    assert found["omnigraph_admission_admitted_total",] == 2
    assert found["omnigraph_admission_rejected_total",] == 0
    assert found["omnigraph_open_graphs",] == 1
    for kind in ("read", "write", "stream"):
        assert found["omnigraph_inflight", ("kind", kind)] == 0
    assert found["process_resident_memory_bytes",] > 10**6


def test_every_metric_that_the_dashboard_names_exists(shown):
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    wanted = set().union(*map(named, queries))
    assert len(wanted) > 10
    assert wanted - families(shown) == set()


def test_every_metric_that_the_alerts_name_exists(shown):
    wanted = named((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
    assert wanted
    assert wanted - families(shown) == set()


def test_the_page_lists_exactly_the_metrics_that_exist(shown):
    listed = {name for row in Page(PAGE).table("Metrics") for name in named(row[0])}
    ours = {name for name in families(shown) if name.startswith("omnigraph_")}
    assert listed - {name for name in listed if name.startswith("process_")} == ours


def test_metrics_need_the_token(graph_root, tmp_path):
    env = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"amy": "t-amy"}'}
    with serving(tmp_path, graph_root, env=env) as server:
        assert server.get("/metrics").status_code == 401
        answer = server.get("/metrics", headers={"Authorization": "Bearer t-amy"})
        assert answer.status_code == 200
        assert "t-amy" not in answer.text
