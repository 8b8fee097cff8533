// Search by words, by meaning, or both, with the scores of each row.

import { useState } from "preact/hooks";
import type { Entity, ReadOutput } from "../documents";
import { plural } from "../format";
import { type NodeType, labelColumn, textProps, vectorProp } from "../schema";
import { go, useLink, useLoad, useShared } from "../store";
import { Empty, EntityLink, Failure, Loading, Page, Panel, Select, TypeName } from "../ui";

type Mode = "text" | "vector" | "hybrid";
const MODES: [Mode, string, string][] = [
  ["text", "Words", "ranked by BM25"],
  ["vector", "Meaning", "nearest vectors"],
  ["hybrid", "Both", "words and vectors, fused"],
];
const LIMIT = 20;

interface Hit {
  type: string;
  id: string;
  label: string;
  snippet: string | null;
  scores: { name: string; value: number | null }[];
}

interface Answer {
  hits: Hit[];
  failures: Error[];
}

export function Search() {
  const { route, schema } = useShared();
  const link = useLink();
  const { q = "", like, type = "" } = route.params;
  const mode = (MODES.find(([name]) => name === route.params.mode)?.[0] ?? "text") as Mode;
  const [text, setText] = useState(q);
  const able = schema.nodes.filter((one) => (mode === "text" ? textProps(one).length > 0 : mode === "vector" ? vectorProp(one) !== null : vectorProp(one) !== null && textProps(one).length > 0));
  const wanted = able.filter((one) => !type || one.name === type);
  const move = (params: Record<string, string | null>) => go(link("search", [], { q: text, mode, type: type || null, like: like ?? null, ...params }));
  return (
    <Page title="Search">
      <form
        class="search-form"
        onSubmit={(event) => {
          event.preventDefault();
          move({ q: text.trim(), like: null });
        }}
      >
        <input aria-label="Search for" type="search" placeholder={like ? `Like ${like}` : "What to look for"} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <div class="tabs" role="group" aria-label="Search by">
          {MODES.map(([name, title, about]) => (
            <button key={name} type="button" aria-pressed={name === mode} title={about} onClick={() => move({ mode: name })}>
              {title}
            </button>
          ))}
        </div>
        <Select label="Type" hideLabel value={type} options={[["", "All types"], ...able.map((one): [string, string] => [one.name, one.name])]} onChange={(name) => move({ type: name || null })} />
        <button type="submit" class="button primary">
          Search
        </button>
      </form>
      {able.length === 0 ? (
        <Empty title="No type can be searched this way">{mode === "text" ? "Mark a String property with @index." : "Declare a Vector property."}</Empty>
      ) : !q && !like ? (
        <Empty title="Search the graph">{`Looks through ${wanted.map((one) => one.name).join(", ")}.`}</Empty>
      ) : (
        <Found key={`${mode} ${type} ${q} ${like ?? ""}`} mode={mode} types={wanted} text={q} like={like ?? null} />
      )}
    </Page>
  );
}

function Found({ mode, types, text, like }: { mode: Mode; types: NodeType[]; text: string; like: string | null }) {
  const { graph, schema, state, branch, at } = useShared();
  const answer = useLoad(
    async (signal): Promise<Answer> => {
      const around = like ? await vectorOf(like, signal) : null;
      if (around && mode === "text") return { hits: [], failures: [new Error("Choose Meaning to search by a vector.")] };
      const done = await Promise.allSettled(
        types
          .filter((one) => around === null || vectorProp(one)?.dimension === around.length)
          .map(async (one) => {
            const { query, scores } = queryFor(one, around && mode === "hybrid" && !text ? "vector" : mode, around);
            const read = await graph.post<ReadOutput>("/query", { query, params: { text }, ...state }, signal);
            return read.rows.map((row): Hit => hitOf(one, row, scores, text));
          }),
      );
      const hits = done.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
      hits.sort((a, b) => better(a, b, around && mode === "hybrid" && !text ? "vector" : mode));
      return { hits: hits.filter((one) => `${one.type}/${one.id}` !== like).slice(0, LIMIT * 2), failures: done.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : [])) };
    },
    [graph, branch, at, mode, types.map((one) => one.name).join(), text, like],
  );
  async function vectorOf(address: string, signal: AbortSignal): Promise<number[]> {
    const [type = "", ...rest] = address.split("/");
    const declared = schema.nodes.find((one) => one.name === type);
    const entity = await graph.get<Entity>(`/entities/${encodeURIComponent(type)}/${encodeURIComponent(rest.join("/"))}`, { ...state }, signal);
    const vector = declared && entity.properties[vectorProp(declared)?.name ?? ""];
    if (!Array.isArray(vector)) throw new Error(`${address} has no vector.`);
    return vector as number[];
  }
  function queryFor(type: NodeType, how: Mode, around: number[] | null): { query: string; scores: string[] } {
    const texts = textProps(type).map((prop) => prop.name);
    const vector = vectorProp(type)?.name ?? "";
    const label = labelColumn(schema, type.name, "a");
    const goal = around ? `[${around.map(plainNumber).join(", ")}]` : "$text";
    const near = `nearest($a.${vector}, ${goal})`;
    const words = texts.map((name) => `bm25($a.${name}, $text)`);
    const head = `query find($text: String) { match { $a: ${type.name}`;
    const shown = `return { $a.@id as id, ${label} as label${texts.map((name, place) => `, $a.${name} as t${place}`).join("")}`;
    if (how === "vector") return { query: `${head} } ${shown}, ${near} as s0 } order { ${near} } limit ${LIMIT} }`, scores: ["distance"] };
    if (how === "hybrid") {
      const best = words[0] ?? "";
      const fused = `rrf(${near}, ${best})`;
      return { query: `${head} } ${shown}, ${fused} as s0, ${near} as s1, ${best} as s2 } order { ${fused} } limit ${LIMIT} }`, scores: ["fused", "distance", `words in ${texts[0]}`] };
    }
    const match = texts.map((name) => `search($a.${name}, $text)`).join(" or ");
    const sum = words.map((one) => `coalesce(${one}, 0)`).join(" + ");
    const score = words.length === 1 ? words[0]! : sum;
    return { query: `${head}  ${match} } ${shown}, ${words.map((one, place) => `${one} as s${place}`).join(", ")} } order { ${score}${words.length === 1 ? "" : " desc"} } limit ${LIMIT} }`, scores: texts.map((name) => `in ${name}`) };
  }
  if (answer.error) return <Failure error={answer.error} retry={answer.reload} />;
  if (!answer.data) return <Loading what="Searching" />;
  const { hits, failures } = answer.data;
  return (
    <>
      {failures.map((one) => (
        <Failure key={one.message} error={one} />
      ))}
      {hits.length === 0 && failures.length === 0 && <Empty title="Nothing found">Other words, another type, or another way to search may find it.</Empty>}
      {hits.length > 0 && (
        <Panel title={plural(hits.length, "result")}>
          <ol class="hits">
            {hits.map((hit) => (
              <li key={`${hit.type} ${hit.id}`}>
                <div class="hit">
                  <div class="row">
                    <TypeName name={hit.type} />
                    <EntityLink type={hit.type} id={hit.id} label={hit.label} />
                  </div>
                  {hit.snippet && <p class="dim">{hit.snippet}</p>}
                </div>
                <dl class="scores">
                  {hit.scores.map((one) => (
                    <div key={one.name}>
                      <dt>{one.name}</dt>
                      <dd>{one.value === null ? "–" : one.value.toFixed(one.name === "fused" ? 4 : 3)}</dd>
                    </div>
                  ))}
                </dl>
              </li>
            ))}
          </ol>
        </Panel>
      )}
    </>
  );
}

const plainNumber = (value: number): string => {
  const text = value.toFixed(9).replace(/0+$/, "");
  return text.endsWith(".") ? `${text}0` : text;
};

function hitOf(type: NodeType, row: Record<string, unknown>, scores: string[], text: string): Hit {
  const label = String(row.label ?? row.id);
  const texts = textProps(type).map((_, place) => row[`t${place}`]).filter((one): one is string => typeof one === "string" && one !== label);
  return {
    type: type.name,
    id: String(row.id),
    label,
    snippet: texts.length ? around(texts[0]!, text) : null,
    scores: scores.map((name, place) => ({ name, value: typeof row[`s${place}`] === "number" ? (row[`s${place}`] as number) : null })),
  };
}

/** The part of a text around the first of the words. */
function around(text: string, words: string): string {
  const first = words.toLowerCase().split(/\W+/).filter(Boolean).map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0).sort((a, b) => a - b)[0];
  const start = Math.max(0, (first ?? 0) - 60);
  return `${start > 0 ? "…" : ""}${text.slice(start, start + 180)}${start + 180 < text.length ? "…" : ""}`;
}

const sum = (hit: Hit): number => hit.scores.reduce((all, one) => all + (one.value ?? 0), 0);

function better(a: Hit, b: Hit, mode: Mode): number {
  const [one, two] = [a.scores[0]?.value ?? null, b.scores[0]?.value ?? null];
  if (mode === "text") return sum(b) - sum(a);
  if (one === null || two === null) return one === two ? 0 : one === null ? 1 : -1;
  return mode === "vector" ? one - two : two - one;
}
