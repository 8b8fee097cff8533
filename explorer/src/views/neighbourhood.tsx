// A node and what is around it. Every click adds what is connected with the clicked node.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ReadOutput } from "../documents";
import { number, plural } from "../format";
import { GraphCanvas, addNode, keyOf, newDrawing, type Drawing } from "../graph/canvas";
import { type Degree, MOST_NODES, STEP, degrees, expandHop, expandNode, findPath, nameOf, type Source } from "../graph/expand";
import { type NodeType, labelColumn, textProps } from "../schema";
import { useLink, useShared } from "../store";
import { Empty, EntityLink, Failure, Page, Panel, Select, TypeName } from "../ui";

export function Neighbourhood() {
  const { route } = useShared();
  const [type, id] = route.parts;
  if (!type || !id) return <Start />;
  return <Explored key={`${type}\n${id}`} type={type} id={id} />;
}

/** Without a node: find one to begin with. */
function Start() {
  const { graph, schema, state } = useShared();
  const link = useLink();
  const [type, setType] = useState(schema.nodes[0]?.name ?? "");
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ id: string; label: string }[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const chosen = schema.nodes.find((one) => one.name === type);
  const find = async () => {
    if (!chosen) return;
    try {
      setError(null);
      setFound(await search(chosen));
    } catch (failure) {
      setError(failure as Error);
    }
  };
  const search = async (wanted: NodeType) => {
    const label = labelColumn(schema, wanted.name, "a");
    const filters = [wanted.label ?? wanted.key[0], ...textProps(wanted).map((prop) => prop.name)].filter((name): name is string => name !== undefined);
    const where = text.trim() ? `(${["$a.@id = $text", ...new Set(filters.map((name) => `lower($a.${name}) contains lower($text)`))].join(" or ")})` : "";
    const query = `query find($text: String) { match { $a: ${wanted.name}  ${where} } return { $a.@id as id, ${label} as label } order { id } limit 30 }`;
    const read = await graph.post<ReadOutput>("/query", { query, params: { text: text.trim() }, ...state });
    return read.rows.map((row) => ({ id: String(row.id), label: String(row.label ?? row.id) }));
  };
  useEffect(() => void find(), [type]);
  return (
    <Page title="Neighbourhood" about="Choose a node to begin with.">
      <Panel title="Where to begin">
        <form
          class="begin"
          onSubmit={(event) => {
            event.preventDefault();
            void find();
          }}
        >
          <Select label="Type" value={type} options={schema.nodes.map((one) => one.name)} onChange={setType} />
          <label class="field grow">
            <span class="label">Name or id</span>
            <input value={text} onInput={(event) => setText(event.currentTarget.value)} placeholder="Part of the name, or the id" />
          </label>
          <button type="submit" class="button primary">
            Find
          </button>
        </form>
        {error && <Failure error={error} />}
        {found && found.length === 0 && <Empty title="Nothing found" />}
        {found && found.length > 0 && (
          <ul class="begin-list">
            {found.map((one) => (
              <li key={one.id}>
                <a href={link("graph", [type, one.id])}>
                  <TypeName name={type} /> {one.label}
                </a>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </Page>
  );
}

const NO_NODES: Set<string> = new Set();

function Explored({ type, id }: { type: string; id: string }) {
  const shared = useShared();
  const { graph, schema, branch, at } = shared;
  const source: Source = useMemo(() => ({ graph, schema, state: at ? { snapshot: at } : { branch } }), [graph, schema, branch, at]);
  const drawing = useMemo(newDrawing, [graph, schema, branch, at, type, id]);
  const start = keyOf(type, id);
  const [version, setVersion] = useState(0);
  const [selected, setSelected] = useState<string | null>(start);
  const [expanded, setExpanded] = useState<Map<string, number>>(new Map());
  const [hiddenNodes, setHiddenNodes] = useState<Set<string>>(NO_NODES);
  const [hiddenEdges, setHiddenEdges] = useState<Set<string>>(NO_NODES);
  const [path, setPath] = useState<string[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const abort = useRef(new AbortController());
  useEffect(() => {
    abort.current = new AbortController();
    return () => abort.current.abort();
  }, [drawing]);

  const run = async (work: (signal: AbortSignal) => Promise<void>) => {
    const { signal } = abort.current;
    setBusy(true);
    setError(null);
    try {
      await work(signal);
      if (!signal.aborted) setVersion((one) => one + 1);
    } catch (failure) {
      if (!signal.aborted) setError(failure as Error);
    } finally {
      if (!signal.aborted) setBusy(false);
    }
  };
  const expand = (key: string) =>
    run(async (signal) => {
      const { kind, entity } = drawing.getNodeAttributes(key);
      const from = expanded.get(key) ?? 0;
      await expandNode(source, drawing, String(kind), String(entity), from, signal);
      setExpanded((before) => new Map(before).set(key, from + STEP));
    });
  useEffect(() => {
    setExpanded(new Map());
    setSelected(start);
    setPath(null);
    void run(async (signal) => {
      const label = await nameOf(source, type, id, signal);
      if (label === null) throw new Error(`There is no ${type} '${id}' in this state.`);
      addNode(drawing, { type, id, label });
      await expandNode(source, drawing, type, id, 0, signal);
      setExpanded(new Map([[start, STEP]]));
    });
  }, [drawing, source]);

  const select = (key: string | null) => {
    setSelected(key);
    setPath(null);
    if (key !== null && !expanded.has(key) && drawing.order < MOST_NODES) void expand(key);
  };
  const title = drawing.hasNode(start) ? String(drawing.getNodeAttribute(start, "label")) : id;
  return (
    <div class="view wide explorer" data-version={version}>
      <header class="view-head">
        <div>
          <h1>Around {title}</h1>
          <p class="about" aria-live="polite">
            {plural(drawing.order, "node")}, {plural(drawing.size, "edge")}
            {isBusy && " · loading…"}
            {drawing.order >= MOST_NODES && ` · ${number(MOST_NODES)} nodes are the most that are drawn`}
          </p>
        </div>
      </header>
      {error && <Failure error={error} />}
      <div class="explored">
        <div class="panel stage">
          <GraphCanvas graph={drawing} version={version} selected={selected} path={path ? new Set(path) : null} hiddenNodes={hiddenNodes} hiddenEdges={hiddenEdges} onSelect={select} />
        </div>
        <aside>
          {selected && drawing.hasNode(selected) && (
            <Selected key={selected} source={source} drawing={drawing} node={selected} version={version} onExpandHop={(hop, from) => run(async (signal) => void (await expandHop(source, drawing, String(drawing.getNodeAttribute(selected, "kind")), [String(drawing.getNodeAttribute(selected, "entity"))], hop.hop, from, 100, signal)))} isBusy={isBusy} />
          )}
          <PathPanel
            drawing={drawing}
            start={start}
            selected={selected}
            version={version}
            path={path}
            onFind={(from, type, id) =>
              run(async (signal) => {
                const label = await nameOf(source, type, id, signal);
                if (label === null) throw new Error(`There is no ${type} '${id}' in this state.`);
                const found = await findPath(source, drawing, from, addNode(drawing, { type, id, label }, from), (name) => hiddenEdges.has(name), signal);
                setPath(found);
                if (!found) throw new Error("No path was found within six steps.");
              })
            }
            onClear={() => setPath(null)}
          />
          <Filters drawing={drawing} version={version} hiddenNodes={hiddenNodes} hiddenEdges={hiddenEdges} onNodes={setHiddenNodes} onEdges={setHiddenEdges} />
          <NodeList drawing={drawing} version={version} hidden={hiddenNodes} selected={selected} onSelect={select} />
        </aside>
      </div>
    </div>
  );
}

interface SelectedProps {
  source: Source;
  drawing: Drawing;
  node: string;
  version: number;
  onExpandHop: (hop: Degree, from: number) => Promise<void>;
  isBusy: boolean;
}

function Selected({ source, drawing, node, version, onExpandHop, isBusy }: SelectedProps) {
  const link = useLink();
  const { kind, entity, label } = drawing.getNodeAttributes(node) as { kind: string; entity: string; label: string };
  const [found, setFound] = useState<Degree[] | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    degrees(source, kind, entity, abort.signal).then(setFound, () => undefined);
    return () => abort.abort();
  }, [source, kind, entity]);
  void version;
  const shown = (one: Degree): number => {
    let count = 0;
    const counted = (_: string, data: Record<string, unknown>) => {
      if (data.kind === one.hop.edge.name) count += 1;
    };
    if (one.hop.direction === "out") drawing.forEachOutEdge(node, counted);
    else drawing.forEachInEdge(node, counted);
    return count;
  };
  return (
    <Panel title="Selected" actions={<a href={link("entity", [kind, entity])}>Open</a>}>
      <p>
        <TypeName name={kind} /> <EntityLink type={kind} id={entity} label={label} />
      </p>
      <ul class="counts">
        {(found ?? []).map((one) => {
          const here = shown(one);
          return one.count ? (
            <li key={`${one.hop.edge.name} ${one.hop.direction}`}>
              <span>
                {one.hop.direction === "out" ? "→" : "←"} {one.hop.edge.name}
              </span>
              <span class="count">
                {here < one.count ? `${number(here)} of ${number(one.count)}` : number(one.count)}
                {here < one.count && (
                  <button type="button" class="button small" disabled={isBusy || drawing.order >= MOST_NODES} onClick={() => void onExpandHop(one, here)}>
                    {one.count - here > 100 ? "100 more" : "Rest"}
                  </button>
                )}
              </span>
            </li>
          ) : null;
        })}
      </ul>
    </Panel>
  );
}

interface PathProps {
  drawing: Drawing;
  start: string;
  selected: string | null;
  version: number;
  path: string[] | null;
  onFind: (from: string, type: string, id: string) => void;
  onClear: () => void;
}

/** A path from the first node, or from the last one that was marked, to the selected node. */
function PathPanel({ drawing, start, selected, path, onFind, onClear }: PathProps) {
  const { schema } = useShared();
  const [from, setFrom] = useState(start);
  const [type, setType] = useState(schema.nodes[0]?.name ?? "");
  const [id, setId] = useState("");
  const label = (key: string) => (drawing.hasNode(key) ? String(drawing.getNodeAttribute(key, "label")) : (key.split("\n")[1] ?? ""));
  return (
    <Panel title="Path" actions={path && <button type="button" class="button quiet small" onClick={onClear}>Clear</button>}>
      <div class="path-form">
        <p>
          From <b>{label(from)}</b>{" "}
          {selected && selected !== from && (
            <button type="button" class="link" onClick={() => setFrom(selected)}>
              use the selected node
            </button>
          )}
        </p>
        {selected && selected !== from && (
          <button type="button" class="button" onClick={() => onFind(from, String(drawing.getNodeAttribute(selected, "kind")), String(drawing.getNodeAttribute(selected, "entity")))}>
            To {label(selected)}
          </button>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            onFind(from, type, id.trim());
          }}
        >
          <Select label="Type of the other end" hideLabel value={type} options={schema.nodes.map((one) => one.name)} onChange={setType} />
          <input aria-label="Id of the other end" placeholder="to this id" required value={id} onInput={(event) => setId(event.currentTarget.value)} />
          <button type="submit" class="button">
            Find
          </button>
        </form>
        {path && (
          <ol class="path">
            {path.map((key) => (
              <li key={key}>
                <TypeName name={String(drawing.getNodeAttribute(key, "kind"))} /> {label(key)}
              </li>
            ))}
          </ol>
        )}
      </div>
    </Panel>
  );
}

interface FilterProps {
  drawing: Drawing;
  version: number;
  hiddenNodes: Set<string>;
  hiddenEdges: Set<string>;
  onNodes: (hidden: Set<string>) => void;
  onEdges: (hidden: Set<string>) => void;
}

function Filters({ drawing, hiddenNodes, hiddenEdges, onNodes, onEdges }: FilterProps) {
  const nodes = tally(drawing.mapNodes((_, data) => String(data.kind)));
  const edges = tally(drawing.mapEdges((_, data) => String(data.kind)));
  const toggled = (hidden: Set<string>, name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    return next;
  };
  return (
    <Panel title="Show">
      <fieldset class="filters">
        <legend class="sr-only">Types to show</legend>
        {nodes.map(([name, count]) => (
          <label key={name}>
            <input type="checkbox" checked={!hiddenNodes.has(name)} onChange={() => onNodes(toggled(hiddenNodes, name))} />
            <TypeName name={name} />
            <span class="count">{number(count)}</span>
          </label>
        ))}
        {edges.map(([name, count]) => (
          <label key={name}>
            <input type="checkbox" checked={!hiddenEdges.has(name)} onChange={() => onEdges(toggled(hiddenEdges, name))} />
            <span>{name}</span>
            <span class="count">{number(count)}</span>
          </label>
        ))}
      </fieldset>
    </Panel>
  );
}

function tally(names: string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a.localeCompare(b));
}

const LISTED = 60;

/** The same nodes as text, for keyboards and screen readers. */
function NodeList({ drawing, hidden, selected, onSelect }: { drawing: Drawing; version: number; hidden: Set<string>; selected: string | null; onSelect: (key: string) => void }) {
  const nodes = drawing.nodes().filter((key) => !hidden.has(String(drawing.getNodeAttribute(key, "kind"))));
  return (
    <Panel title="Nodes">
      <ul class="node-list">
        {nodes.slice(0, LISTED).map((key) => (
          <li key={key}>
            <button type="button" class="link" aria-pressed={key === selected} onClick={() => onSelect(key)}>
              <TypeName name={String(drawing.getNodeAttribute(key, "kind"))} plain /> {String(drawing.getNodeAttribute(key, "label"))}
            </button>
          </li>
        ))}
      </ul>
      {nodes.length > LISTED && <p class="dim">and {number(nodes.length - LISTED)} more</p>}
    </Panel>
  );
}

