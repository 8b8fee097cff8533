// Fetching what is connected with nodes, in bounded steps.

import type { GraphApi } from "../api";
import type { ReadOutput } from "../documents";
import { type Hop, type Schema, countQuery, hopsOf, labelColumn, neighbourQuery } from "../schema";
import { type Drawing, addEdge, addNode, keyOf } from "./canvas";

/** Neighbours that one expansion fetches along one hop. */
export const STEP = 40;
/** Nodes that a drawing may have. */
export const MOST_NODES = 2_000;

export type State = { branch: string } | { snapshot: string };

export interface Source {
  graph: GraphApi;
  schema: Schema;
  state: State;
}

export interface Degree {
  hop: Hop;
  count: number;
}

export async function degrees({ graph, schema, state }: Source, type: string, id: string, signal?: AbortSignal): Promise<Degree[]> {
  const hops = hopsOf(schema, type);
  if (!hops.length) return [];
  const read = await graph.post<ReadOutput>("/query", { query: countQuery(type, hops), params: { id }, ...state }, signal);
  return hops.map((hop, place) => ({ hop, count: Number(read.rows[0]?.[`h${place}`] ?? 0) }));
}

/** The name of a node; null if there is no such node. */
export async function nameOf({ graph, schema, state }: Source, type: string, id: string, signal?: AbortSignal): Promise<string | null> {
  const query = `query name($id: String) { match { $a: ${type}  $a.@id = $id } return { ${labelColumn(schema, type, "a")} as label } }`;
  const read = await graph.post<ReadOutput>("/query", { query, params: { id }, ...state }, signal);
  const row = read.rows[0];
  return row === undefined ? null : String(row.label ?? id);
}

/** Add the neighbours along one hop to a drawing; how many rows came. */
export async function expandHop(source: Source, drawing: Drawing, type: string, ids: string[], hop: Hop, from: number, size: number, signal?: AbortSignal): Promise<number> {
  const { graph, schema, state } = source;
  const params = { ids, size, from };
  const read = await graph.post<ReadOutput>("/query", { query: neighbourQuery(schema, type, hop), params, ...state }, signal);
  for (const row of read.rows) {
    const near = keyOf(type, String(row.node));
    if (drawing.order >= MOST_NODES && !drawing.hasNode(keyOf(hop.other, String(row.id)))) break;
    const key = addNode(drawing, { type: hop.other, id: String(row.id), label: String(row.label ?? row.id) }, near);
    if (!drawing.hasNode(near)) continue;
    const [start, end] = hop.direction === "out" ? [near, key] : [key, near];
    addEdge(drawing, `${hop.edge.name}\n${row.edge}`, hop.edge.name, start, end);
  }
  return read.rows.length;
}

/** Add all neighbours of a node, up to a step along each hop. */
export async function expandNode(source: Source, drawing: Drawing, type: string, id: string, from: number, signal?: AbortSignal): Promise<void> {
  await Promise.all(hopsOf(source.schema, type).map((hop) => expandHop(source, drawing, type, [id], hop, from, STEP, signal)));
}

/** The shortest path in a drawing, whatever the direction of edges; null without one. */
export function pathIn(drawing: Drawing, from: string, to: string, isHidden: (edgeType: string) => boolean): string[] | null {
  const before = new Map<string, string | null>([[from, null]]);
  let wave = [from];
  while (wave.length && !before.has(to)) {
    const next: string[] = [];
    for (const node of wave)
      drawing.forEachEdge(node, (_, data, source, target) => {
        const other = source === node ? target : source;
        if (before.has(other) || isHidden(String(data.kind))) return;
        before.set(other, node);
        next.push(other);
      });
    wave = next;
  }
  if (!before.has(to)) return null;
  const path: string[] = [];
  for (let at: string | null = to; at !== null; at = before.get(at) ?? null) path.unshift(at);
  return path;
}

const PATH_STEPS = 3;
const PATH_WAVE = 400;

/** A shortest path between two nodes of the graph, found from both sides; what it needs is added to the drawing. */
export async function findPath(source: Source, drawing: Drawing, from: string, to: string, isHidden: (edgeType: string) => boolean, signal: AbortSignal): Promise<string[] | null> {
  const found = newSearch(drawing);
  let waves: [string[], string[]] = [[from], [to]];
  const seen: [Set<string>, Set<string>] = [new Set([from]), new Set([to])];
  for (let step = 0; step < PATH_STEPS * 2; step += 1) {
    const known = pathIn(found, from, to, isHidden);
    if (known) {
      copyPath(found, drawing, known);
      return known;
    }
    const side = waves[0].length <= waves[1].length ? 0 : 1;
    const before = new Set(found.nodes());
    await expandWave(source, found, waves[side], isHidden, signal);
    const next = found.nodes().filter((key) => !before.has(key) && !seen[side].has(key)).slice(0, PATH_WAVE);
    // Nodes that the other side has seen already join the wave as well.
    for (const key of waves[side]) for (const other of found.neighbors(key)) if (!seen[side].has(other) && !next.includes(other) && next.length < PATH_WAVE) next.push(other);
    next.forEach((key) => seen[side].add(key));
    waves = side === 0 ? [next, waves[1]] : [waves[0], next];
    if (!next.length) break;
  }
  const last = pathIn(found, from, to, isHidden);
  if (last) copyPath(found, drawing, last);
  return last;
}

const newSearch = (drawing: Drawing): Drawing => drawing.copy() as Drawing;

async function expandWave(source: Source, found: Drawing, wave: string[], isHidden: (edgeType: string) => boolean, signal: AbortSignal): Promise<void> {
  const byType = new Map<string, string[]>();
  for (const key of wave) {
    const { kind, entity } = found.getNodeAttributes(key);
    byType.set(String(kind), [...(byType.get(String(kind)) ?? []), String(entity)]);
  }
  await Promise.all(
    [...byType].flatMap(([type, ids]) =>
      hopsOf(source.schema, type)
        .filter((hop) => !isHidden(hop.edge.name))
        .map((hop) => expandHop(source, found, type, ids, hop, 0, 2_000, signal)),
    ),
  );
}

function copyPath(from: Drawing, to: Drawing, path: string[]): void {
  path.forEach((key, place) => {
    const { kind, entity, label } = from.getNodeAttributes(key);
    addNode(to, { type: String(kind), id: String(entity), label: String(label) }, path[place - 1]);
  });
  for (let place = 1; place < path.length; place += 1)
    from.forEachEdge(path[place - 1]!, path[place]!, (key, data, source, target) => addEdge(to, key, String(data.kind), source, target));
}
