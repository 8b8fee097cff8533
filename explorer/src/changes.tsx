// Changed rows, each with its values before and after.

import { useState } from "preact/hooks";
import type { RowChange, Values } from "./documents";
import { plural, same } from "./format";
import type { Prop, Schema } from "./schema";
import { useShared } from "./store";
import { EntityLink, Op, TypeName, Value } from "./ui";

const HIDDEN = new Set(["id", "src", "dst"]);

export function propsOf(schema: Schema, type: string): Map<string, Prop> {
  const found = [...schema.nodes, ...schema.edges].find((one) => one.name === type);
  return new Map((found?.props ?? []).map((prop) => [prop.name, prop]));
}

/** The properties that differ, or all of an added or removed row. */
export function changedNames(before: Values | null | undefined, after: Values | null | undefined): string[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})].filter((name) => !HIDDEN.has(name)));
  return [...names].filter((name) => (before && after ? !same(before[name], after[name]) : (before ?? after)?.[name] != null)).sort();
}

export function ChangeList({ changes, isOpen = false }: { changes: RowChange[]; isOpen?: boolean }) {
  return (
    <ul class="changes">
      {changes.map((change) => (
        <ChangeRow key={`${change.table_key} ${change.id}`} change={change} isOpen={isOpen} />
      ))}
    </ul>
  );
}

function ChangeRow({ change, isOpen: isOpenAtFirst }: { change: RowChange; isOpen: boolean }) {
  const { schema } = useShared();
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const names = changedNames(change.before, change.after);
  const label = nameOf(schema, change);
  return (
    <li class={change.op}>
      <div class="change-head">
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} aria-label={`${isOpen ? "Hide" : "Show"} the values of ${change.id}`}>
          <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        </button>
        <Op op={change.op} />
        {change.kind === "node" ? <TypeName name={change.type_name} /> : <span class="type plain">{change.type_name}</span>}
        <EntityLink type={change.type_name} id={change.id} label={label} />
        {!isOpen && change.op === "update" && <span class="dim">{names.join(", ")}</span>}
      </div>
      {isOpen && <BeforeAfter before={change.before ?? null} after={change.after ?? null} type={change.type_name} />}
    </li>
  );
}

function nameOf(schema: Schema, change: RowChange): string {
  if (change.endpoints) return `${change.endpoints.src} → ${change.endpoints.dst}`;
  const label = schema.nodes.find((one) => one.name === change.type_name)?.label;
  const values = change.after ?? change.before;
  const text = label && values ? values[label] : null;
  return typeof text === "string" && text ? text : change.id;
}

/** The values of a row side by side. */
export function BeforeAfter({ before, after, type }: { before: Values | null; after: Values | null; type: string }) {
  const { schema } = useShared();
  const props = propsOf(schema, type);
  const names = changedNames(before, after);
  if (!names.length) return <p class="dim inset">{before && after ? "No property differs." : "No properties are set."}</p>;
  const isBoth = before !== null && after !== null;
  return (
    <div class="scroll inset">
      <table class="values">
        <thead>
          <tr>
            <th scope="col">Property</th>
            {before && <th scope="col">Before</th>}
            {after && <th scope="col">After</th>}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {before && (
                <td class={isBoth ? "old" : undefined}>
                  <Value value={before[name]} prop={props.get(name)} />
                </td>
              )}
              {after && (
                <td class={isBoth ? "new" : undefined}>
                  <Value value={after[name]} prop={props.get(name)} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const changeSummary = (stats: { inserts: number; updates: number; deletes: number }): string =>
  `${plural(stats.inserts, "row")} added, ${stats.updates} changed, ${stats.deletes} removed`;

