// Colours and completion for `.gq`.

import { StreamLanguage, HighlightStyle, syntaxHighlighting, type StreamParser } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";
import { type Schema, typeText } from "../schema";

const KEYWORDS = new Set(
  "query match return order limit offset having optional not exists count and or in is null as asc desc distinct nulls first last insert update delete upsert set where contains starts_with ends_with shortest by case when then else end true false from to".split(" "),
);
const FUNCTIONS = new Set(
  "search match_text fuzzy bm25 nearest rrf count sum avg min max collect lower upper trim length size substring matches abs floor ceil round to_string to_int to_float to_date to_datetime date_add date_trunc date_diff date_part contains_any contains_all coalesce now".split(" "),
);
const TYPES = new Set("String Bool I32 I64 U32 U64 F32 F64 Date DateTime Vector Blob".split(" "));

const parser: StreamParser<object> = {
  name: "gq",
  startState: () => ({}),
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match("//") || stream.match("#")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\$[A-Za-z_]\w*/)) return "variableName";
    if (stream.match(/^@\w+/)) return "meta";
    if (stream.match(/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
    const word = stream.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) {
      const text = word[0];
      if (TYPES.has(text)) return "typeName";
      if (FUNCTIONS.has(text) && stream.peek() === "(") return "macroName";
      if (KEYWORDS.has(text)) return "keyword";
      return /^[A-Z]/.test(text) ? "typeName" : "propertyName";
    }
    stream.next();
    return null;
  },
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
};

export const gq = StreamLanguage.define(parser);

export const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
    { tag: tags.string, color: "var(--code-string)" },
    { tag: tags.number, color: "var(--code-number)" },
    { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
    { tag: tags.variableName, color: "var(--code-variable)" },
    { tag: tags.typeName, color: "var(--code-type)" },
    { tag: tags.macroName, color: "var(--code-function)" },
    { tag: tags.meta, color: "var(--code-function)" },
  ]),
);

/** The types that the text gives its variables, by `$a: Type` and by the ends of edges. */
export function variableTypes(text: string, schema: Schema): Map<string, string> {
  const found = new Map<string, string>();
  const isType = new Set(schema.nodes.map((one) => one.name));
  for (const [, name, type] of text.matchAll(/\$(\w+)\s*:\s*([A-Z]\w*)/g)) if (name && type && isType.has(type)) found.set(name, type);
  for (const { left, right, edge } of patterns(text)) {
    const declared = schema.edges.find((one) => lowered(one.name) === lowered(edge));
    if (!declared) continue;
    if (declared.from !== declared.to) {
      const isTurned = found.get(left) === declared.to || found.get(right) === declared.from;
      const [start, end] = isTurned ? [right, left] : [left, right];
      if (!found.has(start)) found.set(start, declared.from);
      if (!found.has(end)) found.set(end, declared.to);
    } else {
      for (const name of [left, right]) if (!found.has(name)) found.set(name, declared.from);
    }
  }
  found.delete("_");
  return found;
}

const lowered = (name: string): string => name.slice(0, 1).toLowerCase() + name.slice(1);

/** `$a edge $b`, as often as the text has it. */
export function patterns(text: string): { left: string; edge: string; right: string }[] {
  return [...text.matchAll(/\$(\w+)\s+(?:\$\w+\s*:\s*)?(?:shortest\s+)?<?"?([A-Za-z]\w*)"?>?(?:\{\d+,\d+\})?\s+(?=\$(\w+))/g)].map((one) => ({
    left: one[1] ?? "",
    edge: one[2] ?? "",
    right: one[3] ?? "",
  }));
}

export function completion(schema: () => Schema): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const known = schema();
    const text = context.state.doc.toString();
    const dotted = context.matchBefore(/\$\w+\.@?\w*/);
    if (dotted) {
      const name = /\$(\w+)\./.exec(dotted.text)?.[1] ?? "";
      return { from: dotted.from + name.length + 2, options: propertyOptions(known, variableTypes(text, known).get(name)), validFor: /^@?\w*$/ };
    }
    const variable = context.matchBefore(/\$\w*/);
    if (variable) {
      const names = new Set([...text.matchAll(/\$(\w+)/g)].map((one) => one[1] ?? "").filter((name) => `$${name}` !== variable.text));
      return { from: variable.from, options: [...names].map((name) => ({ label: `$${name}`, type: "variable" })), validFor: /^\$\w*$/ };
    }
    const word = context.matchBefore(/\w+/);
    if (!word && !context.explicit) return null;
    return { from: word?.from ?? context.pos, options: wordOptions(known), validFor: /^\w*$/ };
  };
}

function propertyOptions(schema: Schema, type: string | undefined): Completion[] {
  const found = type === undefined ? [...schema.nodes, ...schema.edges] : [...schema.nodes, ...schema.edges].filter((one) => one.name === type);
  const options = new Map<string, Completion>();
  for (const one of found)
    for (const prop of one.props) options.set(prop.name, { label: prop.name, type: "property", detail: `${typeText(prop)}${type ? "" : ` of ${one.name}`}` });
  options.set("@id", { label: "@id", type: "property", detail: "id" });
  return [...options.values()];
}

function wordOptions(schema: Schema): Completion[] {
  return [
    ...schema.nodes.map((one) => ({ label: one.name, type: "class", detail: "node type", boost: 2 })),
    ...schema.edges.map((one) => ({ label: lowered(one.name), type: "method", detail: `${one.from} → ${one.to}`, boost: 2 })),
    ...[...KEYWORDS].map((label) => ({ label, type: "keyword" })),
    ...[...FUNCTIONS].map((label) => ({ label, type: "function" })),
    ...[...TYPES].map((label) => ({ label, type: "type" })),
  ];
}
