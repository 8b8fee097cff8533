"""Examples of every command, which its help and the reference page end with.

A test parses each of them, so no example has an option that its command does not take. Loaded only
when help is shown. Tests: tests/unit/cli/test_help.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "query": (
        "omnigraph query team.omni --query team.gq --name friends_of -p name=Ada",
        "omnigraph query team.omni -e 'query all() { match { $p: Person } return { $p.name } }'",
        "omnigraph query team.omni --query team.gq --name friends_of -p name=Ada --snapshot main~1",
    ),
    "explain": (
        "omnigraph explain team.omni --query team.gq --name friends_of -p name=Ada",
        "omnigraph explain team.omni --query team.gq --name friends_of -p name=Ada --analyze",
    ),
    "alias": ("omnigraph alias who ada",),
    "mutate": (
        "omnigraph mutate team.omni --query team.gq --name add_person -p name=Ada -m 'first person'",
        "omnigraph mutate team.omni --query team.gq --name add_person -p name=Bo --branch review/june",
    ),
    "load": (
        "omnigraph load team.omni --data seed.jsonl --mode merge",
        "omnigraph load team.omni --data 'people/*.parquet' --mapping people.yaml --mode append",
        "omnigraph load team.omni --data june.jsonl --mode merge --branch review/june --from main",
    ),
    "export": (
        "omnigraph export team.omni > backup.jsonl",
        "omnigraph export team.omni --format parquet --out backup",
        "omnigraph export team.omni --type Person --snapshot main~1",
    ),
    "blob get": ("omnigraph blob get Note n1 scan --uri team.omni --out scan.pdf",),
    "blob stat": ("omnigraph blob stat Note n1 scan --uri team.omni",),
    "snapshot": ("omnigraph snapshot team.omni --branch review/june",),
    "branch create": ("omnigraph branch create review/june --from main --uri team.omni",),
    "branch list": ("omnigraph branch list team.omni",),
    "branch delete": ("omnigraph branch delete review/june --uri team.omni",),
    "branch reset": ("omnigraph branch reset review/june main --uri team.omni",),
    "branch merge": ("omnigraph branch merge review/june --into main --uri team.omni",),
    "merge": (
        "omnigraph merge review/june --uri team.omni --dry-run",
        "omnigraph merge review/june --uri team.omni --granularity property --delete-branch",
        "omnigraph merge review/june --uri team.omni --conflicts open.json",
    ),
    "diff": (
        "omnigraph diff main review/june --uri team.omni",
        "omnigraph diff main~1 main --uri team.omni --rows --type Person",
    ),
    "changes": (
        "omnigraph changes team.omni --limit 10",
        "omnigraph changes team.omni --since main~3 --rows",
        "omnigraph changes team.omni --follow",
    ),
    "changes poll": ("omnigraph changes poll team.omni --limit 100 --json",),
    "changes baseline": ("omnigraph changes baseline team.omni --out baseline.jsonl",),
    "log": (
        "omnigraph log team.omni --oneline",
        "omnigraph log team.omni --graph --limit 20",
    ),
    "bisect": (
        "omnigraph bisect team.omni --query orphans.gq",
        "omnigraph bisect team.omni --query checks.gq --name no_orphans --good v1 --bad main",
    ),
    "revert": (
        "omnigraph revert main --uri team.omni --dry-run",
        "omnigraph revert 9TWWDDX7 --uri team.omni -m 'wrong file'",
    ),
    "cherry-pick": ("omnigraph cherry-pick review/june --onto main --uri team.omni",),
    "commit list": ("omnigraph commit list team.omni --filter actor=ada --since 2026-01-31",),
    "commit show": ("omnigraph commit show main~1 --uri team.omni",),
    "commit changes": ("omnigraph commit changes main --uri team.omni --json",),
    "tag create": ("omnigraph tag create v1 main --uri team.omni",),
    "tag list": ("omnigraph tag list team.omni",),
    "tag delete": ("omnigraph tag delete v1 --uri team.omni",),
    "pin create": ("omnigraph pin create before-import --uri team.omni",),
    "pin list": ("omnigraph pin list team.omni",),
    "pin delete": ("omnigraph pin delete before-import --uri team.omni",),
    "status": ("omnigraph status team.omni", "omnigraph status team.omni --json"),
    "graphs list": ("omnigraph graphs list --server https://graphs.example.org",),
    "shell": (
        "omnigraph shell team.omni",
        "omnigraph shell https://graphs.example.org --branch review/june",
    ),
    "schema show": (
        "omnigraph schema show team.omni",
        "omnigraph schema show team.omni --diagram svg > schema.svg",
    ),
    "schema apply": ("omnigraph schema apply team.omni --schema next.pg -m 'add nicknames'",),
    "schema plan": ("omnigraph schema plan team.omni --schema next.pg",),
    "init": (
        "omnigraph init --schema team.pg team.omni",
        "omnigraph init --schema team.pg s3://bucket/team.omni",
    ),
    "ensure-indices": ("omnigraph ensure-indices team.omni",),
    "embed": (
        "omnigraph embed team.omni --dry-run",
        "omnigraph embed --input notes.jsonl --output embedded.jsonl --spec embed.json",
    ),
    "analyze": (
        "omnigraph analyze pagerank team.omni --edge Knows --top 10",
        "omnigraph analyze k_hop team.omni -p hops=3 --format csv",
        "omnigraph analyze pagerank team.omni --node Person --write score=rank -m 'ranks'",
    ),
    "optimize": ("omnigraph optimize team.omni",),
    "cleanup": (
        "omnigraph cleanup team.omni --older-than 30d --dry-run",
        "omnigraph cleanup team.omni --keep 20 --older-than 30d --confirm",
    ),
    "repair": ("omnigraph repair team.omni", "omnigraph repair team.omni --confirm"),
    "verify": ("omnigraph verify team.omni",),
    "lint": (
        "omnigraph lint --query team.gq --schema team.pg",
        "omnigraph lint team.omni --query team.gq",
    ),
    "explore": (
        "omnigraph explore team.omni",
        "omnigraph explore team.omni --read-only --no-browser",
    ),
    "mcp": (
        "omnigraph mcp team.omni --as claude",
        "omnigraph mcp --server https://host:8080 --read-only",
    ),
    "queries validate": ("omnigraph queries validate --target team",),
    "queries list": ("omnigraph queries list --target team",),
    "cluster validate": ("omnigraph cluster validate --config deploy",),
    "cluster plan": ("omnigraph cluster plan --config deploy",),
    "cluster apply": ("omnigraph cluster apply --config deploy --as ada",),
    "cluster approve": ("omnigraph cluster approve graph.team --config deploy --as ada",),
    "cluster status": ("omnigraph cluster status --config deploy",),
    "cluster observe": ("omnigraph cluster observe --config deploy",),
    "cluster refresh": ("omnigraph cluster refresh --config deploy",),
    "cluster import": ("omnigraph cluster import --config deploy",),
    "cluster force-unlock": ("omnigraph cluster force-unlock 01JZ0V2K --config deploy",),
    "policy validate": ("omnigraph policy validate --config omnigraph.yaml",),
    "policy test": ("omnigraph policy test --config omnigraph.yaml",),
    "policy explain": ("omnigraph policy explain --actor amy --action change --branch main",),
    "fmt": ("omnigraph fmt team.pg team.gq", "omnigraph fmt --check team.gq"),
    "login": ("omnigraph login prod < token.txt",),
    "logout": ("omnigraph logout prod",),
    "profile list": ("omnigraph profile list",),
    "profile show": ("omnigraph profile show", "omnigraph profile show prod"),
    "config migrate": ("omnigraph config migrate", "omnigraph config migrate --write"),
    "spark warm": ("omnigraph spark warm",),
    "completion": (
        "omnigraph completion bash > ~/.local/share/bash-completion/completions/omnigraph",
        "omnigraph completion zsh > ~/.zfunc/_omnigraph",
    ),
    "errors": ("omnigraph errors T6", "omnigraph errors"),
    "version": ("omnigraph version --json",),
}


def examples_of(command: str) -> tuple[str, ...]:
    """The examples of a command, by its name in the table of commands."""
    return EXAMPLES.get(command, ())
