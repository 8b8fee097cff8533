// The documents of the API, as far as the page reads them.

import type { Diagnostic } from "./api";

export type Values = Record<string, unknown>;

export interface Session {
  actor_id: string | null;
  version: string;
  graphs: string[];
}

export interface Permissions {
  actor_id: string | null;
  branch: string;
  target: string;
  read: boolean;
  change: boolean;
  merge: boolean;
}

export interface Counts {
  inserted: number;
  updated: number;
  deleted: number;
}

export interface Commit {
  graph_commit_id: string;
  manifest_branch: string | null;
  manifest_version: number;
  parent_commit_id: string | null;
  merged_parent_commit_id: string | null;
  actor_id: string | null;
  created_at: number;
  operation: string;
  message: string | null;
  counts: Record<string, Counts>;
}

export interface Snapshot {
  branch: string;
  graph_commit_id: string | null;
  tables: { table_key: string; row_count: number; table_version: number }[];
}

export interface TableStatus {
  table_key: string;
  rows: number;
  bytes: number;
  fragments: number;
  indexes: { column: string; kind: string; unindexed_rows: number }[];
  missing_indexes: unknown[];
  embeddings: Values[];
}

export interface Status {
  graph_commit_id: string;
  tables: TableStatus[];
  advice: string[];
  cached_bytes: number;
  format_version: number;
}

export interface ReadOutput {
  query_name: string;
  row_count: number;
  columns?: string[];
  rows: Values[];
  graph_commit_id: string | null;
  results?: Record<string, { columns: string[]; row_count: number; rows: Values[] }>;
}

export interface ChangeOutput {
  query_name: string;
  affected_nodes: number;
  affected_edges: number;
  graph_commit_id: string | null;
  returned?: { statement: number; columns: string[]; rows: Values[] }[];
}

export interface Entity {
  entity_kind: "node" | "edge";
  type_name: string;
  entity_id: string;
  endpoints?: { from: string; to: string };
  properties: Values;
  graph_commit_id: string;
}

export interface EntityChange {
  graph_commit_id: string;
  created_at: number;
  actor_id: string | null;
  operation: string;
  op: "insert" | "update" | "delete";
  before: Values | null;
  after: Values | null;
}

export interface RowChange {
  table_key: string;
  kind: "node" | "edge";
  type_name: string;
  id: string;
  op: "insert" | "update" | "delete";
  endpoints?: { src: string; dst: string };
  before?: Values | null;
  after?: Values | null;
}

export interface Diff {
  from: string;
  to: string;
  from_commit: string;
  to_commit: string;
  changes: RowChange[];
  stats: { inserts: number; updates: number; deletes: number; types_affected: string[] };
  next_cursor: string | null;
}

export interface Conflict {
  table_key: string;
  row_id: string | null;
  kind: string;
  message: string;
  base?: Values | null;
  ours?: Values | null;
  theirs?: Values | null;
}

export interface MergeOutput {
  outcome: "already_up_to_date" | "fast_forward" | "merged" | "conflicts";
  graph_commit_id: string | null;
  counts: Record<string, Counts>;
  conflicts?: Conflict[];
  conflicts_total?: number;
}

export interface CheckOutput {
  queries: { name: string; mutation: boolean; params: { name: string; type: string; has_default: boolean }[] }[];
  diagnostics: Diagnostic[];
}

export interface PlanStep {
  op: string;
  text: string;
  estimated_rows: number;
  actual_rows?: number | null;
  ms?: number | null;
  children: PlanStep[];
}

export interface FeedChange {
  kind: "node" | "edge";
  type: { name: string };
  id: string;
  op: "insert" | "update" | "delete";
  before?: { properties: Values; endpoints?: Values };
  after?: { properties: Values; endpoints?: Values };
}

export interface FeedPage {
  blocks: {
    cause: { graph_commit_id: string; actor_id: string | null; authored_at: number; authored_branch: string };
    changes: FeedChange[];
  }[];
  next_page_token?: string;
  cursor?: string;
  caught_up?: boolean;
}
