// One conflict: the row in the merge base and on both sides, and which of them wins.

import { propsOf } from "../changes";
import type { Conflict, Values } from "../documents";
import { same } from "../format";
import { type Prop, type Schema, typeText } from "../schema";
import { useShared } from "../store";
import { EntityLink, TypeName, Value } from "../ui";

export interface Choice {
  take: "ours" | "theirs" | "base" | "value";
  /** What was typed for each property, for `value`. */
  values: Record<string, string>;
}

export const keyOfConflict = (one: Conflict): string => `${one.table_key}\n${one.row_id ?? one.message}`;

const HIDDEN = new Set(["id", "src", "dst"]);

/** The properties that differ between the three. */
function disputed(one: Conflict): string[] {
  const sides = [one.base, one.ours, one.theirs];
  const names = new Set(sides.flatMap((side) => Object.keys(side ?? {})).filter((name) => !HIDDEN.has(name)));
  return [...names].filter((name) => !(same(one.ours?.[name], one.theirs?.[name]) && same(one.base?.[name], one.ours?.[name]))).sort();
}

/** Properties for which a value can be typed. */
function writable(schema: Schema, one: Conflict): Prop[] {
  if (!one.table_key.startsWith("node:") || !one.ours || !one.theirs) return [];
  const props = propsOf(schema, one.table_key.slice(5));
  return disputed(one)
    .map((name) => props.get(name))
    .filter((prop): prop is Prop => prop !== undefined && !prop.isKey && prop.scalar !== "Blob" && prop.scalar !== "Vector");
}

export function isOpen(one: Conflict, choice: Choice | undefined): boolean {
  if (!choice || one.row_id === null || !("ours" in one)) return true;
  return choice.take === "value" && Object.keys(choice.values).length === 0;
}

/** The record that writes chosen values to the source; null if none were typed. */
export function patchOf(schema: Schema, one: Conflict, choice: Choice | undefined): object | null {
  if (choice?.take !== "value" || !one.theirs) return null;
  const type = one.table_key.slice(5);
  const declared = schema.nodes.find((node) => node.name === type);
  const data: Values = {};
  for (const name of declared?.key ?? []) data[name] = one.theirs[name];
  if (!declared?.key.length) data.id = one.row_id;
  const props = propsOf(schema, type);
  for (const [name, text] of Object.entries(choice.values)) data[name] = parsed(text, props.get(name));
  return { type, data };
}

function parsed(text: string, prop: Prop | undefined): unknown {
  if (text === "" && prop?.nullable) return null;
  const isText = prop && !prop.list && ["String", "Date", "DateTime"].includes(prop.scalar);
  if (isText) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface Props {
  conflict: Conflict;
  source: string;
  target: string;
  choice: Choice | undefined;
  mayWriteValues: boolean;
  onChoose: (choice: Choice) => void;
}

export function ConflictCard({ conflict, source, target, choice, mayWriteValues, onChoose }: Props) {
  const { schema } = useShared();
  const type = conflict.table_key.split(":")[1] ?? "";
  const isNode = conflict.table_key.startsWith("node:");
  const props = propsOf(schema, type);
  const names = disputed(conflict);
  const hasSides = conflict.row_id !== null && "ours" in conflict;
  const free = mayWriteValues ? writable(schema, conflict) : [];
  const group = `choice ${keyOfConflict(conflict)}`;
  const sides = [
    ["base", "Merge base", conflict.base],
    ["ours", target, conflict.ours],
    ["theirs", source, conflict.theirs],
  ] as const;
  return (
    <section class="panel conflict" aria-label={`Conflict in ${type} ${conflict.row_id ?? ""}`}>
      <header>
        <h2>
          {isNode ? <TypeName name={type} /> : <span class="type plain">{type}</span>} {conflict.row_id !== null && <EntityLink type={type} id={conflict.row_id} />}
        </h2>
        <span class="badge">{conflict.kind.replaceAll("_", " ")}</span>
      </header>
      <p class="dim">{conflict.message}</p>
      {hasSides && (
        <div class="scroll">
          <table class="values sides">
            <thead>
              <tr>
                <th scope="col">Property</th>
                {sides.map(([take, title, values]) => (
                  <th key={take} scope="col" class={choice?.take === take ? "chosen" : undefined}>
                    <label>
                      <input type="radio" name={group} checked={choice?.take === take} onChange={() => onChoose({ take, values: choice?.values ?? {} })} /> {title}
                      {!values && <span class="badge">not there</span>}
                    </label>
                  </th>
                ))}
                {free.length > 0 && (
                  <th scope="col" class={choice?.take === "value" ? "chosen" : undefined}>
                    <label>
                      <input type="radio" name={group} checked={choice?.take === "value"} onChange={() => onChoose({ take: "value", values: choice?.values ?? {} })} /> Another value
                    </label>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {names.map((name) => {
                const prop = props.get(name);
                return (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    {sides.map(([take, , values]) => (
                      <td key={take} class={choice?.take === take ? "chosen" : undefined}>
                        {values ? <Value value={values[name]} prop={prop} /> : <span class="null">not there</span>}
                      </td>
                    ))}
                    {free.length > 0 && (
                      <td class={choice?.take === "value" ? "chosen" : undefined}>
                        {free.some((one) => one.name === name) && (
                          <input
                            aria-label={`Value of ${name}`}
                            placeholder={prop && typeText(prop)}
                            value={choice?.values[name] ?? ""}
                            onInput={(event) => onChoose({ take: "value", values: { ...choice?.values, [name]: event.currentTarget.value } })}
                          />
                        )}
                      </td>
                    )}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {choice?.take === "value" && <p class="dim">The value is first written to {source} as a commit of its own, then merged.</p>}
    </section>
  );
}
