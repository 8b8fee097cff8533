// A graph drawn with WebGL. Positions come from a worker, colours from the node types.

import Graph from "graphology";
import { useEffect, useRef, useState } from "preact/hooks";
import Sigma from "sigma";
import { cssColour, typeColour } from "../theme";

export interface NodeData {
  type: string;
  id: string;
  label: string;
}

export interface EdgeData {
  type: string;
}

export const keyOf = (type: string, id: string): string => `${type}\n${id}`;

/** A graph as views fill it; `version` tells the canvas that it has changed. */
export type Drawing = Graph<Record<string, unknown>, Record<string, unknown>>;

export const newDrawing = (): Drawing => new Graph({ multi: true, type: "directed" });

export function addNode(graph: Drawing, node: NodeData, near?: string): string {
  const key = keyOf(node.type, node.id);
  if (graph.hasNode(key)) return key;
  const origin = near && graph.hasNode(near) ? graph.getNodeAttributes(near) : { x: 0, y: 0 };
  const angle = graph.order * 2.399963;
  const radius = 12 + 3 * Math.sqrt(graph.order);
  graph.addNode(key, {
    kind: node.type,
    entity: node.id,
    label: node.label,
    color: typeColour(node.type),
    size: 6,
    x: Number(origin.x) + radius * Math.cos(angle),
    y: Number(origin.y) + radius * Math.sin(angle),
  });
  return key;
}

export function addEdge(graph: Drawing, key: string, type: string, from: string, to: string): void {
  if (!graph.hasEdge(key)) graph.addDirectedEdgeWithKey(key, from, to, { kind: type, label: type, size: 1.4, type: "arrow" });
}

interface Props {
  graph: Drawing;
  version: number;
  selected: string | null;
  /** Nodes on a path that is shown; null for none. */
  path: Set<string> | null;
  hiddenNodes: Set<string>;
  hiddenEdges: Set<string>;
  onSelect: (node: string | null) => void;
}

export function GraphCanvas(props: Props) {
  const { graph, version, selected, path, hiddenNodes, hiddenEdges, onSelect } = props;
  const host = useRef<HTMLDivElement>(null);
  const sigma = useRef<Sigma | null>(null);
  const layout = useRef<Worker | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [failed, setFailed] = useState(false);
  const [isSettled, setSettled] = useState(false);

  useEffect(() => {
    let made: Sigma;
    const labels = new Labels();
    try {
      made = new Sigma(graph, host.current!, {
        allowInvalidContainer: true,
        defaultEdgeType: "arrow",
        renderEdgeLabels: true,
        labelFont: "system-ui, sans-serif",
        labelSize: 12,
        labelWeight: "500",
        edgeLabelFont: "system-ui, sans-serif",
        edgeLabelSize: 10,
        labelDensity: 0.8,
        labelGridCellSize: 90,
        labelRenderedSizeThreshold: 5,
        zIndex: true,
        minCameraRatio: 0.03,
        maxCameraRatio: 6,
        stagePadding: 60,
        nodeReducer: (node, data) => reduceNode(latest.current, node, data),
        edgeReducer: (edge, data) => reduceEdge(latest.current, edge, data),
        defaultDrawNodeHover: () => undefined,
        defaultDrawNodeLabel: labels.draw,
      });
    } catch {
      setFailed(true);
      return;
    }
    made.on("beforeRender", () => labels.begin(made, graph));
    paint(made);
    made.on("clickNode", ({ node }) => latest.current.onSelect(node));
    made.on("clickStage", () => latest.current.onSelect(null));
    made.on("enterNode", () => host.current?.classList.add("pointing"));
    made.on("leaveNode", () => host.current?.classList.remove("pointing"));
    sigma.current = made;
    const repaint = () => paint(made);
    addEventListener("themechange", repaint);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", repaint);
    return () => {
      removeEventListener("themechange", repaint);
      media.removeEventListener("change", repaint);
      made.kill();
      sigma.current = null;
    };
  }, [graph]);

  useEffect(() => {
    if (graph.order === 0) return setSettled(true);
    setSettled(false);
    sizeByDegree(graph);
    const nodes = graph.nodes();
    const worker = new Worker(new URL("explore/layout.js", document.baseURI.split("#")[0]), { type: "module" });
    layout.current = worker;
    worker.onmessage = ({ data }: MessageEvent<{ positions: Float32Array; isDone: boolean }>) => {
      const { positions, isDone } = data;
      const places = new Map(nodes.map((key, place) => [key, place]));
      graph.updateEachNodeAttributes(
        (key, attributes) => {
          const place = places.get(key);
          if (place === undefined) return attributes;
          return { ...attributes, x: positions[place * 2], y: positions[place * 2 + 1] };
        },
        { attributes: ["x", "y"] },
      );
      if (isDone) {
        setSettled(true);
        worker.terminate();
      }
    };
    const places = new Map(nodes.map((key, place) => [key, place]));
    const positions = new Float32Array(nodes.length * 2);
    const sizes = new Float32Array(nodes.length);
    nodes.forEach((key, place) => {
      const { x, y, size } = graph.getNodeAttributes(key);
      positions[place * 2] = Number(x);
      positions[place * 2 + 1] = Number(y);
      sizes[place] = Number(size);
    });
    const edges = new Uint32Array(graph.size * 2);
    let at = 0;
    graph.forEachEdge((_, __, source, target) => {
      edges[at] = places.get(source)!;
      edges[at + 1] = places.get(target)!;
      at += 2;
    });
    worker.postMessage({ positions, sizes, edges, rounds: nodes.length > 800 ? 250 : 400 });
    return () => worker.terminate();
  }, [graph, version]);

  useEffect(() => {
    sigma.current?.refresh({ skipIndexation: true });
  }, [selected, path, hiddenNodes, hiddenEdges]);

  if (failed) return <p class="note failure">This browser cannot draw with WebGL. The list beside has the same nodes.</p>;
  return (
    <div class="canvas-frame">
      <div class="canvas" ref={host} data-settled={isSettled} role="img" aria-label={`Graph of ${graph.order} nodes and ${graph.size} edges. The list beside it has the same nodes.`} />
      <div class="zoom" role="group" aria-label="Zoom">
        <button type="button" class="button small" aria-label="Zoom in" onClick={() => void sigma.current?.getCamera().animatedZoom({ duration: 150 })}>
          +
        </button>
        <button type="button" class="button small" aria-label="Zoom out" onClick={() => void sigma.current?.getCamera().animatedUnzoom({ duration: 150 })}>
          −
        </button>
        <button type="button" class="button small" onClick={() => void sigma.current?.getCamera().animatedReset({ duration: 150 })}>
          Fit
        </button>
      </div>
      {selected === null && onSelect !== undefined && <span class="sr-only">Nothing is selected.</span>}
    </div>
  );
}

const LONGEST_LABEL = 32;
const LABEL_GAP = 4;

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const overlap = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Draws the labels of a frame: each on a side of its node where it covers no other one and stays on the canvas. */
class Labels {
  private taken: Box[] | null = null;
  private nodes: () => Box[] = () => [];

  /** Begin a frame. Where nodes are is asked with its first label, when they have their new places. */
  begin(sigma: Sigma, graph: Drawing): void {
    this.taken = null;
    this.nodes = () => this.nodesOf(sigma, graph);
  }

  /** What labels avoid beside one another: in a small drawing, the nodes. */
  private nodesOf(sigma: Sigma, graph: Drawing): Box[] {
    if (graph.order > MOST_LABELLED) return [];
    return graph.nodes().flatMap((key) => {
      const shown = sigma.getNodeDisplayData(key);
      if (!shown || shown.hidden) return [];
      const { x, y } = sigma.framedGraphToViewport(shown);
      const radius = sigma.scaleSize(shown.size);
      return [{ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius }];
    });
  }

  draw = (context: CanvasRenderingContext2D, node: { label?: string | null; x: number; y: number; size: number }, settings: { labelSize: number; labelFont: string; labelWeight: string }): void => {
    if (!node.label) return;
    const taken = (this.taken ??= this.nodes());
    const text = node.label.length > LONGEST_LABEL ? `${node.label.slice(0, LONGEST_LABEL - 1)}…` : node.label;
    context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
    const width = context.measureText(text).width;
    const height = settings.labelSize;
    const room = context.canvas.clientWidth;
    const offset = node.size + LABEL_GAP;
    const places: [number, number][] = [
      [node.x + offset, node.y - height / 2],
      [node.x - offset - width, node.y - height / 2],
      [node.x - width / 2, node.y + offset - 2],
      [node.x - width / 2, node.y - offset - height + 2],
    ];
    const boxes = places.map(([left, top]): Box => ({ left, top, right: left + width, bottom: top + height }));
    const inside = boxes.filter((box) => box.left >= 0 && box.right <= room);
    const box = inside.find((one) => !taken.some((other) => overlap(one, other))) ?? inside[0] ?? boxes[0]!;
    taken.push(box);
    context.fillStyle = cssColour("--ink");
    context.fillText(text, box.left, box.bottom - height / 6);
  };
}

function paint(sigma: Sigma): void {
  sigma.setSetting("edgeLabelColor", { color: cssColour("--dim") });
  sigma.setSetting("defaultEdgeColor", cssColour("--edge"));
  sigma.refresh({ skipIndexation: true });
}

/** In a drawing of this size every node has its label; in larger ones those that have room. */
const MOST_LABELLED = 25;

function sizeByDegree(graph: Drawing): void {
  graph.forEachNode((key) => graph.setNodeAttribute(key, "size", Math.min(20, 6 + 1.6 * Math.sqrt(graph.degree(key)))));
}

function reduceNode({ selected, path, hiddenNodes, graph }: Props, node: string, data: Record<string, unknown>): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...data, type: "circle", forceLabel: graph.order <= MOST_LABELLED };
  if (hiddenNodes.has(String(data.kind))) return { ...shown, hidden: true };
  if (node === selected) return { ...shown, size: Number(data.size) + 4, forceLabel: true, zIndex: 2 };
  if (path) return path.has(node) ? { ...shown, forceLabel: true, zIndex: 2, size: Number(data.size) + 2 } : { ...shown, color: cssColour("--faded"), label: "", zIndex: 0 };
  if (selected && graph.hasNode(selected) && graph.areNeighbors(node, selected)) return { ...shown, zIndex: 1 };
  return shown;
}

function reduceEdge({ selected, path, hiddenEdges, graph }: Props, edge: string, data: Record<string, unknown>): Record<string, unknown> {
  if (hiddenEdges.has(String(data.kind))) return { ...data, hidden: true };
  const [source, target] = graph.extremities(edge);
  const isLit = path ? path.has(source) && path.has(target) : selected !== null && (source === selected || target === selected);
  if (isLit) return { ...data, color: cssColour("--accent"), size: 2.2, zIndex: 1 };
  return { ...data, label: path || selected || graph.size > 60 ? "" : data.label, color: cssColour(path ? "--faded" : "--edge") };
}
