// The node types as boxes and the edge types as lines between them.

import { useMemo } from "preact/hooks";
import { plural } from "../format";
import type { EdgeType, Schema } from "../schema";
import { go, useLink, useShared } from "../store";
import { typeColour } from "../theme";

const WIDTH = 148;
const HEIGHT = 52;

interface Place {
  x: number;
  y: number;
}

/** Places that keep connected types close and all boxes apart. The same schema always gets the same ones. */
function arrange(schema: Schema): Map<string, Place> {
  const names = schema.nodes.map((one) => one.name);
  const degree = (name: string) => schema.edges.filter((edge) => edge.from === name || edge.to === name).length;
  names.sort((a, b) => degree(b) - degree(a) || a.localeCompare(b));
  const radius = 90 + names.length * 26;
  const places = new Map<string, Place>(
    names.map((name, place) => {
      const angle = (2 * Math.PI * place) / names.length;
      return [name, { x: radius * 1.3 * Math.cos(angle), y: radius * 0.62 * Math.sin(angle) }];
    }),
  );
  for (let turn = 0; turn < 300; turn += 1) {
    const heat = 1 - turn / 300;
    const moves = new Map<string, Place>(names.map((name) => [name, { x: 0, y: 0 }]));
    for (const a of names)
      for (const b of names) {
        if (a >= b) continue;
        const one = places.get(a)!;
        const two = places.get(b)!;
        // A box is wider than high, so distances across count less.
        const dx = (two.x - one.x) / 1.7 || 0.1;
        const dy = two.y - one.y || 0.1;
        const distance = Math.max(20, Math.hypot(dx, dy));
        const joined = schema.edges.some((edge) => (edge.from === a && edge.to === b) || (edge.from === b && edge.to === a));
        const force = (joined ? (distance - 165) * 0.06 : 0) - 22_000 / distance ** 2;
        const [fx, fy] = [(dx / distance) * force * 1.7, (dy / distance) * force];
        moves.get(a)!.x += fx;
        moves.get(a)!.y += fy;
        moves.get(b)!.x -= fx;
        moves.get(b)!.y -= fy;
      }
    for (const name of names) {
      const at = places.get(name)!;
      const move = moves.get(name)!;
      const pull = 0.012;
      at.x += Math.max(-24, Math.min(24, move.x - at.x * pull * 0.6)) * heat;
      at.y += Math.max(-24, Math.min(24, move.y - at.y * pull * 1.6)) * heat;
    }
  }
  separate(names, places);
  return places;
}

/** Move boxes that still overlap. */
function separate(names: string[], places: Map<string, Place>): void {
  for (let turn = 0; turn < 60; turn += 1)
    for (const a of names)
      for (const b of names) {
        if (a >= b) continue;
        const one = places.get(a)!;
        const two = places.get(b)!;
        const across = WIDTH + 84 - Math.abs(two.x - one.x);
        const down = HEIGHT + 40 - Math.abs(two.y - one.y);
        if (across <= 0 || down <= 0) continue;
        if (across < down * 1.6) {
          const shift = (across / 2) * (two.x >= one.x ? 1 : -1);
          one.x -= shift;
          two.x += shift;
        } else {
          const shift = (down / 2) * (two.y >= one.y ? 1 : -1);
          one.y -= shift;
          two.y += shift;
        }
      }
}

export function SchemaDiagram({ counts }: { counts: Map<string, number> }) {
  const { schema } = useShared();
  const link = useLink();
  const places = useMemo(() => arrange(schema), [schema]);
  const groups = useMemo(() => grouped(schema.edges), [schema]);
  const xs = [...places.values()].map((one) => one.x);
  const ys = [...places.values()].map((one) => one.y);
  const left = Math.min(...xs) - WIDTH / 2 - 12;
  const right = Math.max(...xs) + WIDTH / 2 + 12;
  const top = Math.min(...ys) - HEIGHT / 2 - 46;
  const bottom = Math.max(...ys) + HEIGHT / 2 + 14;
  return (
    <div class="diagram">
      <svg viewBox={`${left} ${top} ${right - left} ${bottom - top}`} role="img" aria-label={describe(schema)}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
            <path d="M0 0 8 4 0 8Z" class="arrow" />
          </marker>
        </defs>
        {groups.map((edges) => (
          <Line key={edges[0]!.name} edges={edges} places={places} />
        ))}
        {schema.nodes.map((one) => {
          const at = places.get(one.name)!;
          const rows = counts.get(`node:${one.name}`);
          return (
            <g key={one.name} transform={`translate(${at.x - WIDTH / 2} ${at.y - HEIGHT / 2})`} class="box" onClick={() => go(link("type", [one.name]))}>
              <title>{one.description ?? one.name}</title>
              <rect width={WIDTH} height={HEIGHT} rx="9" />
              <rect width="5" height={HEIGHT - 16} x="8" y="8" rx="2.5" fill={typeColour(one.name)} class="mark" />
              <text x="22" y="22" class="name">
                {cut(one.name, 16)}
              </text>
              <text x="22" y="40" class="sub">
                {rows === undefined ? plural(one.props.length, "property", "properties") : plural(rows, "node")}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

const describe = (schema: Schema): string =>
  `Diagram of the schema: ${schema.nodes.map((one) => one.name).join(", ")}; ${schema.edges.map((one) => `${one.name} from ${one.from} to ${one.to}`).join(", ")}`;

/** Edge types between the same two types share a line. */
function grouped(edges: EdgeType[]): EdgeType[][] {
  const found = new Map<string, EdgeType[]>();
  for (const edge of edges) {
    const key = `${edge.from}\n${edge.to}`;
    found.set(key, [...(found.get(key) ?? []), edge]);
  }
  return [...found.values()];
}

function Line({ edges, places }: { edges: EdgeType[]; places: Map<string, Place> }) {
  const first = edges[0]!;
  const start = places.get(first.from);
  const end = places.get(first.to);
  if (!start || !end) return null;
  const names = edges.map((one) => one.name);
  const label = names.length > 3 ? `${names.slice(0, 2).join(", ")} +${names.length - 2}` : names.join(", ");
  if (start === end) {
    const x = start.x + WIDTH / 2 - 34;
    const y = start.y - HEIGHT / 2;
    return (
      <g class="line">
        <path d={`M${x - 22} ${y} C${x - 26} ${y - 36} ${x + 26} ${y - 36} ${x + 20} ${y - 2}`} marker-end="url(#arrow)" />
        <text x={x} y={y - 31} text-anchor="middle">
          {label}
        </text>
      </g>
    );
  }
  const from = border(start, end);
  const to = border(end, start);
  // Lines in both directions bend apart.
  const bend = 14;
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const mid = { x: (from.x + to.x) / 2 - ((to.y - from.y) / length) * bend, y: (from.y + to.y) / 2 + ((to.x - from.x) / length) * bend };
  return (
    <g class="line">
      <path d={`M${from.x} ${from.y} Q${mid.x} ${mid.y} ${to.x} ${to.y}`} marker-end="url(#arrow)" />
      <text x={(from.x + 2 * mid.x + to.x) / 4} y={(from.y + 2 * mid.y + to.y) / 4 + 3} text-anchor="middle">
        {label}
      </text>
    </g>
  );
}

/** Where the line from the middle of a box to another point leaves the box. */
function border(box: Place, other: Place): Place {
  const dx = other.x - box.x;
  const dy = other.y - box.y;
  const scale = Math.min(Math.abs((WIDTH / 2 + 3) / (dx || 1e-9)), Math.abs((HEIGHT / 2 + 3) / (dy || 1e-9)));
  return { x: box.x + dx * scale, y: box.y + dy * scale };
}
