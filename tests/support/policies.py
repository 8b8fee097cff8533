"""The policy of the specification's examples."""

from __future__ import annotations

from typing import Final

TEAM_POLICY: Final = """\
version: 1
groups:
  team: [amy, root]
  admins: [root]
protected_branches: [main]
rules:
  - id: team-read
    allow: {actors: {group: team}, actions: [read], branch_scope: any}
  - id: team-write
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: team-branch
    allow: {actors: {group: team}, actions: [branch_create], target_branch_scope: unprotected}
  - id: admin-write
    allow: {actors: {group: admins}, actions: [change, export], branch_scope: any}
  - id: admin-ops
    allow:
      actors: {group: admins}
      actions: [schema_apply, branch_merge, branch_delete]
      target_branch_scope: any
"""
"""amy writes where nothing is protected, root everywhere."""
