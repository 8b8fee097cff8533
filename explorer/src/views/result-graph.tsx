// The nodes of a result, with the edges that the query follows between them.

import { useMemo, useState } from "preact/hooks";
import type { Values } from "../documents";
import { patterns } from "../editor/language";
import { GraphCanvas, addEdge, addNode, newDrawing } from "../graph/canvas";
import { go, useLink } from "../store";
import { Empty } from "../ui";

const MOST = 1_000;
const NONE: Set<string> = new Set();

interface Props {
  rows: Values[];
  columns: string[];
  types: Map<string, string>;
  text: string;
}

export function ResultGraph({ rows, columns, types, text }: Props) {
  const link = useLink();
  const [selected, setSelected] = useState<string | null>(null);
  const shown = columns.filter((name) => types.has(name));
  const graph = useMemo(() => {
    const drawing = newDrawing();
    const steps = patterns(text).filter(({ left, right }) => shown.includes(left) && shown.includes(right));
    for (const row of rows.slice(0, MOST)) {
      const keys = new Map<string, string>();
      for (const name of shown) {
        const id = row[name];
        if (typeof id !== "string") continue;
        const label = columns.find((column) => column.startsWith(`${name}.`) && typeof row[column] === "string");
        keys.set(name, addNode(drawing, { type: types.get(name) ?? "", id, label: label ? String(row[label]) : id }));
      }
      for (const { left, edge, right } of steps) {
        const [from, to] = [keys.get(left), keys.get(right)];
        if (from && to) addEdge(drawing, `${edge}\n${from}\n${to}`, edge, from, to);
      }
    }
    return drawing;
  }, [rows, text]);
  if (!shown.length) return <Empty title="This result has no nodes">Return a node variable, such as <code>$a</code>, to see nodes here.</Empty>;
  return (
    <div class="result-graph">
      <GraphCanvas graph={graph} version={0} selected={selected} path={null} hiddenNodes={NONE} hiddenEdges={NONE} onSelect={setSelected} />
      {selected && (
        <p class="inset">
          <button
            type="button"
            class="button"
            onClick={() => {
              const { kind, entity } = graph.getNodeAttributes(selected);
              go(link("entity", [String(kind), String(entity)]));
            }}
          >
            Open {String(graph.getNodeAttribute(selected, "label"))}
          </button>
        </p>
      )}
    </div>
  );
}
