// The commit graph: a column for each branch, a dot for each commit, lines to its parents.

import type { Commit } from "../documents";
import { branchOf } from "../format";

export const ROW = 58;
const GAP = 20;
const LEFT = 18;
const COLOURS = ["#4c78dd", "#e0803a", "#2f9e75", "#c0509f", "#8a6fd6", "#c9a227", "#d9534f", "#3ba3b8"];

interface Dot {
  id: string;
  x: number;
  y: number;
  colour: string;
}

export interface Drawn {
  dots: Dot[];
  lines: { from: Dot; to: Dot; isMerge: boolean; colour: string; isOpen: boolean }[];
  width: number;
  height: number;
}

/** Places for commits that are listed newest first. A branch keeps its column; main has the first. */
export function graphOf(commits: Commit[]): Drawn {
  const columns = new Map<string, number>([["main", 0]]);
  for (const commit of [...commits].reverse()) {
    const name = branchOf(commit);
    if (!columns.has(name)) columns.set(name, columns.size);
  }
  const dots = commits.map((commit, row): Dot => {
    const column = columns.get(branchOf(commit)) ?? 0;
    return { id: commit.graph_commit_id, x: LEFT + column * GAP, y: row * ROW + ROW / 2, colour: COLOURS[column % COLOURS.length] ?? "" };
  });
  const byId = new Map(dots.map((dot) => [dot.id, dot]));
  const height = commits.length * ROW;
  const lines: Drawn["lines"] = [];
  commits.forEach((commit, row) => {
    const from = dots[row]!;
    for (const [parent, isMerge] of [[commit.parent_commit_id, false], [commit.merged_parent_commit_id, true]] as const) {
      if (!parent) continue;
      const known = byId.get(parent);
      if (!known && isMerge) continue;
      const to = known ?? { id: parent, x: from.x, y: height, colour: from.colour };
      lines.push({ from, to, isMerge, colour: isMerge ? to.colour : from.colour, isOpen: !known });
    }
  });
  return { dots, lines, width: LEFT + columns.size * GAP + 8, height };
}

export function LaneGraph({ drawn, here }: { drawn: Drawn; here: string | undefined }) {
  return (
    <svg class="lanes" width={drawn.width} height={drawn.height} aria-hidden="true">
      {drawn.lines.map(({ from, to, isMerge, colour, isOpen }) => (
        <path key={`${from.id} ${to.id}`} d={path(from, to, isMerge)} stroke={colour} stroke-dasharray={isMerge ? "4 3" : isOpen ? "1 4" : undefined} />
      ))}
      {drawn.dots.map((dot) => (
        <g key={dot.id}>
          {dot.id === here && <circle cx={dot.x} cy={dot.y} r="10" fill={dot.colour} opacity="0.25" />}
          <circle cx={dot.x} cy={dot.y} r="5.5" fill={dot.colour} class="dot-mark" />
        </g>
      ))}
    </svg>
  );
}

function path(from: Dot, to: Dot, isMerge: boolean): string {
  if (from.x === to.x) return `M${from.x} ${from.y}V${to.y}`;
  if (isMerge) {
    // Into the column of the merged branch at once.
    const turn = Math.min(to.y, from.y + ROW);
    return `M${from.x} ${from.y}C${from.x} ${from.y + ROW * 0.6} ${to.x} ${from.y + ROW * 0.4} ${to.x} ${turn}V${to.y}`;
  }
  // Leave the column of the newer commit just above the older one.
  const turn = Math.max(from.y, to.y - ROW);
  return `M${from.x} ${from.y}V${turn}C${from.x} ${turn + ROW * 0.6} ${to.x} ${turn + ROW * 0.4} ${to.x} ${to.y}`;
}
