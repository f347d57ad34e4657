"""What every `task_graph_projection_v0` has to be, whatever it is drawn from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

KINDS = {
    "deliverable", "gate", "gate_summary", "lease", "validation", "repair", "handoff", "evidence",
}  # fmt: skip
STATES = {"open", "ready", "blocked", "done", "waiting", "unknown"}
RELATIONS = {
    "depends_on", "blocks", "validates", "repairs", "audits", "continues", "hands_off_to",
    "supersedes",
}  # fmt: skip
REFS = {"todo_ids", "gate_ids", "lease_ids", "goal_ids", "run_ids", "review_packet_ids"}
SOURCES = {
    "event_ledger", "active_goal_state", "todos", "gates", "leases", "run_history",
}  # fmt: skip
FORBIDDEN = {"write_command", "agent_command", "raw_log", "raw_transcript"}

SECRETS = {
    "a path": "/home/ada/notes/zebra.md",
    "a home": "~/notes/zebra.md",
    "another root": "/data/team/zebra",
    "a drive": "C:\\Users\\ada\\zebra.txt",
    "a share": "\\\\server\\share\\zebra",
    "a file URI": "file:///home/ada/zebra",
    "an AWS key": "AKIAIOSFODNN7EXAMPLE",
    "a token": "token=abcdefghijklmnop",
    "a GitHub token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "a GitLab token": "glpat-abcdefghijklmnopqrst",
    "a password": "password=hunter2222",
    "a database": "postgres://ada:hunter2222@db/app",
    "a PEM header": "-----BEGIN RSA PRIVATE KEY----- MIIEowIBAAKCAQEA",
    "a bearer": "Authorization: Bearer abc123def456ghi7",
}
"""Texts that leave through no redacted output, by what they are."""

SHOWN = {
    "an AWS key": "AKIA", "a PEM header": "MIIE", "a password": "hunter", "a database": "hunter",
    "a token": "abcdefghijklmnop", "a GitHub token": "ghp_", "a GitLab token": "glpat-",
    "a bearer": "abc123",
}  # fmt: skip


def leaks(text: str, what: str) -> bool:
    """Tells whether a printed text still has what it must not show."""
    return SHOWN.get(what, "zebra") in text


def conforms(graph: dict[str, Any]) -> None:
    """Checks everything that the schema promises, whatever the project."""
    assert graph["schema_version"] == "task_graph_projection_v0"
    assert graph["mode"] == "read_only"
    assert graph["goal_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", graph["generated_at"])
    derived = graph["derived_from"]
    assert set(derived["source_of_truth"]) == SOURCES
    assert derived["status_item_goal_id"] == graph["goal_id"]
    assert derived["run_history_window"] == "compact_latest_runs"
    assert re.fullmatch("[0-9a-f]{40}", derived["ledger_commit"])
    truth = dict(graph["truth_contract"])
    assert truth.pop("recompute_rule")
    assert truth == {
        "event_ledger_is_source_of_truth": True, "projection_is_writable": False,
        "write_api": False,
    }  # fmt: skip
    nodes = {node["node_id"]: node for node in graph["nodes"]}
    assert nodes
    assert len(nodes) == len(graph["nodes"])
    for node in graph["nodes"]:
        _is_node(node)
    edges = {edge["edge_id"] for edge in graph["edges"]}
    assert len(edges) == len(graph["edges"])
    for edge in graph["edges"]:
        _is_edge(edge, nodes)
    _adds_up(graph)
    assert not FORBIDDEN & set(_texts(graph))
    assert json.loads(json.dumps(graph)) == graph


def _is_node(node: dict[str, Any]) -> None:
    assert node["kind"] in KINDS
    assert node["node_id"].startswith(f"{node['kind']}:")
    assert node["state"] in STATES
    assert node["title"].strip() == node["title"] != ""
    assert len(node["title"]) <= 160
    assert node["title"].isprintable() or "\n" not in node["title"]
    assert node["refs"]
    for name, values in node["refs"].items():
        assert name in REFS
        assert 0 < len(values) <= 4
        assert all(value and len(value) <= 120 and value[0] != "/" for value in values)


def _is_edge(edge: dict[str, Any], nodes: dict[str, Any]) -> None:
    start, end, relation = edge["from_node_id"], edge["to_node_id"], edge["relation"]
    assert relation in RELATIONS
    assert edge["edge_id"] == f"{relation}:{start}>{end}"
    assert start in nodes
    assert end in nodes
    assert start != end
    assert 0 < len(edge["reason"]) <= 180
    if relation == "blocks" and nodes[start]["kind"] == "gate":
        assert nodes[start]["refs"]["todo_ids"] == nodes[end]["refs"]["todo_ids"]


def _adds_up(graph: dict[str, Any]) -> None:
    limits = graph["limits"]
    shown = sum(node["kind"] == "gate" and node["state"] != "done" for node in graph["nodes"])
    assert shown <= limits["user_gate_node_limit"]
    assert shown + limits["user_gate_truncated_count"] == limits["user_gate_open_count"]
    summaries = [node for node in graph["nodes"] if node["kind"] == "gate_summary"]
    assert [node["title"].split()[0] for node in summaries] == (
        [str(limits["user_gate_truncated_count"])] if limits["user_gate_truncated_count"] else []
    )
    for group in ("predecessor", "dependent", "child", "lineage"):
        count, left = limits[f"{group}_count"], limits[f"{group}_truncated_count"]
        assert 0 <= left <= max(count - limits[f"{group}_node_limit"], 0)
    redacted = sum("[secret]" in n["title"] or "[path]" in n["title"] for n in graph["nodes"])
    assert redacted <= limits["redacted_title_count"] <= len(graph["nodes"])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else ():
        yield from _texts(item)
    for item in value if isinstance(value, list) else ():
        yield from _texts(item)
