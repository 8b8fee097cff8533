// ForceAtlas2 in a worker: gets positions and edges, sends positions back until the layout has settled.

import iterate from "graphology-layout-forceatlas2/iterate";
import { inferSettings } from "graphology-layout-forceatlas2";

export interface LayoutRequest {
  /** x and y of each node. */
  positions: Float32Array;
  sizes: Float32Array;
  /** Indexes of the ends of each edge. */
  edges: Uint32Array;
  rounds: number;
}

const PER_NODE = 10;
const PER_EDGE = 3;
let turn = 0;

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  turn += 1;
  run(data, turn);
};

function run({ positions, sizes, edges, rounds }: LayoutRequest, mine: number): void {
  const count = positions.length / 2;
  const nodes = new Float32Array(count * PER_NODE);
  for (let place = 0; place < count; place += 1) {
    const at = place * PER_NODE;
    nodes[at] = positions[place * 2]!;
    nodes[at + 1] = positions[place * 2 + 1]!;
    nodes[at + 6] = 1; // mass
    nodes[at + 7] = 1; // convergence
    nodes[at + 8] = sizes[place]!;
  }
  const links = new Float32Array((edges.length / 2) * PER_EDGE);
  for (let place = 0; place < edges.length / 2; place += 1) {
    const [source, target] = [edges[place * 2]!, edges[place * 2 + 1]!];
    links[place * PER_EDGE] = source * PER_NODE;
    links[place * PER_EDGE + 1] = target * PER_NODE;
    links[place * PER_EDGE + 2] = 1;
    nodes[source * PER_NODE + 6]! += 1;
    nodes[target * PER_NODE + 6]! += 1;
  }
  const settings = {
    linLogMode: false,
    outboundAttractionDistribution: false,
    adjustSizes: count < 400,
    edgeWeightInfluence: 1,
    strongGravityMode: true,
    ...inferSettings(count),
    gravity: 0.08,
    scalingRatio: 12,
    barnesHutTheta: 0.6,
  };
  let done = 0;
  const step = () => {
    if (mine !== turn) return;
    const until = performance.now() + 30;
    do {
      iterate(settings, nodes, links);
      done += 1;
    } while (done < rounds && performance.now() < until);
    const moved = new Float32Array(count * 2);
    for (let place = 0; place < count; place += 1) {
      moved[place * 2] = nodes[place * PER_NODE]!;
      moved[place * 2 + 1] = nodes[place * PER_NODE + 1]!;
    }
    self.postMessage({ positions: moved, isDone: done >= rounds }, { transfer: [moved.buffer] });
    if (done < rounds) setTimeout(step, 0);
  };
  step();
}
