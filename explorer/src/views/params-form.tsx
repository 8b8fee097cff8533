// A field for each parameter of a query.

import type { CheckOutput } from "../documents";

type Param = CheckOutput["queries"][number]["params"][number];

interface Props {
  params: Param[];
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
}

export function ParamsForm({ params, values, onChange }: Props) {
  return (
    <fieldset class="params">
      <legend>Parameters</legend>
      {params.map((one) => (
        <label class="field" key={one.name}>
          <span class="label">
            ${one.name} <span class="dim">{one.type}{one.has_default ? ", optional" : ""}</span>
          </span>
          {base(one.type) === "Bool" ? (
            <select value={values[one.name] ?? ""} onChange={(event) => onChange({ ...values, [one.name]: event.currentTarget.value })}>
              <option value="">not set</option>
              <option>true</option>
              <option>false</option>
            </select>
          ) : (
            <input
              value={values[one.name] ?? ""}
              placeholder={placeholder(one.type)}
              inputMode={isNumber(one.type) ? "decimal" : undefined}
              onInput={(event) => onChange({ ...values, [one.name]: event.currentTarget.value })}
            />
          )}
        </label>
      ))}
    </fieldset>
  );
}

const base = (type: string): string => type.replace(/\?$/, "");
const isNumber = (type: string): boolean => /^[IUF]\d+\??$/.test(type);
const isList = (type: string): boolean => /^(\[|Vector)/.test(type);

function placeholder(type: string): string {
  if (isList(type)) return type.startsWith("Vector") ? "[0.1, 0.2, …]" : '["a", "b"]';
  return { Date: "2026-01-31", DateTime: "2026-01-31T08:00:00Z" }[base(type)] ?? "";
}

/** The values that a request sends. What cannot be read as its type is sent as text, for the checker to refuse. */
export function paramValues(params: Param[], values: Record<string, string>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const { name, type } of params) {
    const text = values[name] ?? "";
    if (text === "" && (base(type) !== "String" || type.endsWith("?"))) continue;
    if (base(type) === "Bool") found[name] = text === "true";
    else if (isNumber(type) || isList(type)) {
      try {
        found[name] = JSON.parse(text);
      } catch {
        found[name] = text;
      }
    } else found[name] = text;
  }
  return found;
}
