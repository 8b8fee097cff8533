// Two states side by side: counts by type, changed rows, properties before and after.

import { useState } from "preact/hooks";
import { ChangeList } from "../changes";
import type { Diff } from "../documents";
import { number, short } from "../format";
import { RefField } from "../ref-field";
import { go, useLink, useLoad, useShared } from "../store";
import { Delta, Empty, Page, Panel, Show, TypeName } from "../ui";

const PAGE = 50;

export function Compare() {
  const { route, branch, branches } = useShared();
  const link = useLink();
  const to = route.params.to ?? (branch === "main" ? (branches.find((name) => name !== "main") ?? "main") : branch);
  const from = route.params.from ?? "main";
  const move = (params: Record<string, string>) => go(link("compare", [], { from, to, ...params }));
  return (
    <Page title="Compare" about="What is different in one state, seen from another.">
      <div class="compare-form">
        <RefField key={`from ${from}`} label="From" value={from} onChange={(value) => move({ from: value })} />
        <button type="button" class="button" aria-label="Swap" onClick={() => move({ from: to, to: from })}>
          ⇄
        </button>
        <RefField key={`to ${to}`} label="To" value={to} onChange={(value) => move({ to: value })} />
        {branches.includes(from) && branches.includes(to) && from !== to && (
          <a class="button" href={link("merge", [], { source: to, target: from, at: null })}>
            Merge {to} into {from}
          </a>
        )}
      </div>
      {from === to ? <Empty title="Choose two different states" /> : <Differences key={`${from}\n${to}`} from={from} to={to} />}
    </Page>
  );
}

function Differences({ from, to }: { from: string; to: string }) {
  const { graph, schema } = useShared();
  const [type, setType] = useState<string | null>(null);
  const all = useLoad(
    async (signal) => {
      const first = await graph.post<Diff>("/diff", { from, to, limit: 1 }, signal);
      const stats = await Promise.all(
        first.stats.types_affected.map(async (name) => {
          const { stats: one } = await graph.post<Diff>("/diff", { from, to, limit: 1, type_names: [name] }, signal);
          return { name, counts: { inserted: one.inserts, updated: one.updates, deleted: one.deletes } };
        }),
      );
      return { ...first, byType: stats };
    },
    [graph, from, to],
  );
  return (
    <Show of={all} what="Comparing">
      {(found) =>
        found.byType.length === 0 ? (
          <Empty title="Nothing is different" />
        ) : (
          <div class="columns reversed">
            <Panel title="By type">
              <ul class="counts choose">
                <li>
                  <button type="button" class="link" aria-pressed={type === null} onClick={() => setType(null)}>
                    All types
                  </button>
                  <Delta counts={{ inserted: found.stats.inserts, updated: found.stats.updates, deleted: found.stats.deletes }} />
                </li>
                {found.byType.map((one) => (
                  <li key={one.name}>
                    <button type="button" class="link" aria-pressed={type === one.name} onClick={() => setType(one.name)}>
                      {schema.nodes.some((node) => node.name === one.name) ? <TypeName name={one.name} /> : one.name}
                    </button>
                    <Delta counts={one.counts} />
                  </li>
                ))}
              </ul>
              <p class="dim">
                From <code>{short(found.from_commit)}</code> to <code>{short(found.to_commit)}</code>
              </p>
            </Panel>
            <ChangedRows key={type ?? ""} from={from} to={to} type={type} />
          </div>
        )
      }
    </Show>
  );
}

function ChangedRows({ from, to, type }: { from: string; to: string; type: string | null }) {
  const { graph } = useShared();
  const [cursors, setCursors] = useState<(string | null)[]>([null]);
  const cursor = cursors[cursors.length - 1] ?? null;
  const rows = useLoad((signal) => graph.post<Diff>("/diff", { from, to, rows: true, limit: PAGE, cursor, type_names: type ? [type] : [] }, signal), [graph, from, to, type, cursor]);
  return (
    <Panel title="Rows">
      <Show of={rows} what="Reading the rows">
        {(found) => {
          const total = found.stats.inserts + found.stats.updates + found.stats.deletes;
          return (
            <>
              <ChangeList changes={found.changes} isOpen={total <= 8} />
              {total > PAGE && (
                <nav class="pager" aria-label="Pages">
                  <button type="button" class="button quiet" disabled={cursors.length === 1} onClick={() => setCursors(cursors.slice(0, -1))}>
                    Previous
                  </button>
                  <span>
                    {number((cursors.length - 1) * PAGE + 1)}–{number((cursors.length - 1) * PAGE + found.changes.length)} of {number(total)}
                  </span>
                  <button type="button" class="button quiet" disabled={!found.next_cursor} onClick={() => setCursors([...cursors, found.next_cursor])}>
                    Next
                  </button>
                </nav>
              )}
            </>
          );
        }}
      </Show>
    </Panel>
  );
}
