// What a query returned: a table, JSON, a graph, or its plan.

import { useMemo, useState } from "preact/hooks";
import type { ChangeOutput, PlanStep, ReadOutput, Values } from "../documents";
import { variableTypes } from "../editor/language";
import { number, plural } from "../format";
import { useShared } from "../store";
import { CommitId, CopyButton, Empty, EntityLink, Panel, Value } from "../ui";
import { ResultGraph } from "./result-graph";

export type Outcome =
  | { kind: "read"; read: ReadOutput; text: string; ms: number }
  | { kind: "change"; change: ChangeOutput }
  | { kind: "plan"; plan: PlanStep; ms?: number }
  | { kind: "failed"; error: Error };

const SHOWN = 500;

export function Results({ outcome }: { outcome: Exclude<Outcome, { kind: "failed" }> }) {
  if (outcome.kind === "plan") return <Plan plan={outcome.plan} ms={outcome.ms} />;
  if (outcome.kind === "change") return <Change change={outcome.change} />;
  return <Read outcome={outcome} />;
}

function Read({ outcome }: { outcome: Extract<Outcome, { kind: "read" }> }) {
  const { schema } = useShared();
  const [form, setForm] = useState<"table" | "json" | "graph">("table");
  const { read, text } = outcome;
  const columns = read.columns ?? Object.keys(read.rows[0] ?? {});
  const types = useMemo(() => variableTypes(text, schema), [text, schema]);
  return (
    <Panel
      title={`${plural(read.row_count, "row")} in ${number(Math.round(outcome.ms))} ms`}
      actions={
        <>
          <CopyButton text={() => JSON.stringify(read.rows, null, 2)}>Copy JSON</CopyButton>
          <div class="tabs" role="group" aria-label="Show as">
            {(["table", "json", "graph"] as const).map((one) => (
              <button key={one} type="button" aria-pressed={form === one} onClick={() => setForm(one)}>
                {{ table: "Table", json: "JSON", graph: "Graph" }[one]}
              </button>
            ))}
          </div>
        </>
      }
    >
      {form === "graph" ? (
        <ResultGraph rows={read.rows} columns={columns} types={types} text={text} />
      ) : form === "json" ? (
        <pre class="source" tabIndex={0}>{JSON.stringify(read.rows.slice(0, SHOWN), null, 2)}</pre>
      ) : (
        <Rows columns={columns} rows={read.rows} types={types} />
      )}
      {form !== "graph" && read.rows.length > SHOWN && <p class="dim inset">The first {SHOWN} rows are shown. Add a limit or an offset to see others.</p>}
    </Panel>
  );
}

export function Rows({ columns, rows, types }: { columns: string[]; rows: Values[]; types?: Map<string, string> }) {
  if (!rows.length) return <Empty title="No rows">The query ran and nothing matched.</Empty>;
  const isNumeric = new Set(columns.filter((name) => rows.every((row) => row[name] == null || typeof row[name] === "number")));
  return (
    <div class="scroll table-scroll" tabIndex={0} role="region" aria-label="Rows">
      <table class="rows">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col" class={isNumeric.has(name) ? "number" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row, place) => (
            <tr key={place}>
              {columns.map((name) => {
                const type = types?.get(name);
                const value = row[name];
                return (
                  <td key={name} class={isNumeric.has(name) ? "number" : undefined}>
                    {type && typeof value === "string" ? <EntityLink type={type} id={value} /> : <Value value={value} most={160} />}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Change({ change }: { change: ChangeOutput }) {
  return (
    <Panel title="Committed">
      <p class="inset">
        {plural(change.affected_nodes, "node")} and {plural(change.affected_edges, "edge")} changed
        {change.graph_commit_id ? (
          <>
            {" "}
            in commit <CommitId id={change.graph_commit_id} />.
          </>
        ) : (
          "; there was nothing to commit."
        )}
      </p>
      {change.returned?.map((one) => (
        <Rows key={one.statement} columns={one.columns} rows={one.rows} />
      ))}
    </Panel>
  );
}

function Plan({ plan, ms }: { plan: PlanStep; ms?: number }) {
  return (
    <Panel title={ms === undefined ? "Plan" : `Plan, run in ${ms.toFixed(1)} ms`}>
      <ul class="plan">
        <Step step={plan} />
      </ul>
    </Panel>
  );
}

function Step({ step }: { step: PlanStep }) {
  return (
    <li>
      <div class="step">
        <span class="step-op">{step.op}</span>
        <code>{step.text}</code>
        <span class="step-rows">
          about {number(Math.round(step.estimated_rows))}
          {step.actual_rows != null && <b> · {plural(step.actual_rows, "row")}</b>}
          {step.ms != null && <span class="dim"> · {step.ms.toFixed(2)} ms</span>}
        </span>
      </div>
      {step.children.length > 0 && (
        <ul>
          {step.children.map((child, place) => (
            <Step key={place} step={child} />
          ))}
        </ul>
      )}
    </li>
  );
}
