// The schema as the page uses it: types, what names a node, and queries made from it.

import type { Values } from "./documents";

export interface Prop {
  name: string;
  scalar: string;
  dimension: number | null;
  list: boolean;
  nullable: boolean;
  values: string[] | null;
  isKey: boolean;
  isIndexed: boolean;
  embeds: string | null;
  description: string | null;
}

export interface NodeType {
  kind: "node";
  name: string;
  props: Prop[];
  key: string[];
  /** The property that is shown as the name of a node; null for its id. */
  label: string | null;
  description: string | null;
}

export interface EdgeType {
  kind: "edge";
  name: string;
  from: string;
  to: string;
  props: Prop[];
  description: string | null;
}

export interface Schema {
  nodes: NodeType[];
  edges: EdgeType[];
  source: string;
}

interface RawType {
  scalar: string | Record<string, number>;
  nullable: boolean;
  list: boolean;
  enum_values: string[] | null;
}

interface RawNamed {
  name: string;
  annotations?: { name: string; value: unknown }[];
  properties: { name: string; prop_type: RawType; annotations?: { name: string; value: unknown }[] }[];
  constraints?: Record<string, unknown>[];
  from_type?: string;
  to_type?: string;
}

export function readSchema(document: { schema_source: string; schema_ir: Values }): Schema {
  const raw = document.schema_ir as { nodes?: RawNamed[]; edges?: RawNamed[] };
  const nodes = (raw.nodes ?? []).map((one): NodeType => {
    const key = keyOf(one);
    const props = one.properties.map((prop) => readProp(prop, key));
    return { kind: "node", name: one.name, props, key, label: labelOf(props, key), description: note(one.annotations) };
  });
  const edges = (raw.edges ?? []).map(
    (one): EdgeType => ({
      kind: "edge",
      name: one.name,
      from: one.from_type ?? "",
      to: one.to_type ?? "",
      props: one.properties.map((prop) => readProp(prop, [])),
      description: note(one.annotations),
    }),
  );
  return { nodes, edges, source: document.schema_source };
}

function keyOf(raw: RawNamed): string[] {
  for (const constraint of raw.constraints ?? []) if (Array.isArray(constraint.Key)) return constraint.Key as string[];
  return [];
}

function note(annotations: RawNamed["annotations"]): string | null {
  const found = annotations?.find((one) => one.name === "description")?.value;
  return typeof found === "string" ? found : null;
}

function readProp(raw: RawNamed["properties"][number], key: string[]): Prop {
  const { scalar, nullable, list, enum_values } = raw.prop_type;
  const [name, dimension] = typeof scalar === "string" ? [scalar, null] : (Object.entries(scalar)[0] ?? ["?", null]);
  const marks = raw.annotations ?? [];
  const embeds = marks.find((one) => one.name === "embed")?.value;
  return {
    name: raw.name,
    scalar: name,
    dimension,
    list,
    nullable,
    values: enum_values,
    isKey: key.includes(raw.name),
    isIndexed: marks.some((one) => one.name === "index"),
    embeds: typeof embeds === "string" ? embeds : null,
    description: note(marks),
  };
}

export function typeText(prop: Prop): string {
  let text = prop.values ? `enum(${prop.values.join(", ")})` : prop.scalar;
  if (prop.dimension !== null) text += `(${prop.dimension})`;
  if (prop.list) text = `[${text}]`;
  return prop.nullable ? `${text}?` : text;
}

const isText = (prop: Prop): boolean => prop.scalar === "String" && !prop.list && prop.values === null;

function labelOf(props: Prop[], key: string[]): string | null {
  const texts = props.filter(isText);
  for (const name of ["name", "title", "label", "headline", "subject"]) if (texts.some((one) => one.name === name)) return name;
  const indexed = texts.find((one) => one.isIndexed && !one.isKey);
  return indexed?.name ?? (key.length === 1 ? (key[0] ?? null) : null);
}

export const textProps = (type: NodeType): Prop[] => {
  const indexed = type.props.filter((prop) => isText(prop) && prop.isIndexed);
  return indexed.length ? indexed : type.props.filter((prop) => isText(prop) && prop.name === type.label);
};

export const vectorProp = (type: NodeType): Prop | null =>
  type.props.find((prop) => prop.scalar === "Vector" && !prop.list) ?? null;

/** The word of an edge type in a query. */
export const edgeWord = (edge: EdgeType): string => `"${edge.name.slice(0, 1).toLowerCase()}${edge.name.slice(1)}"`;

/** One edge type as seen from a node type. */
export interface Hop {
  edge: EdgeType;
  direction: "out" | "in";
  other: string;
}

export function hopsOf(schema: Schema, type: string): Hop[] {
  const found: Hop[] = [];
  for (const edge of schema.edges) {
    if (edge.from === type) found.push({ edge, direction: "out", other: edge.to });
    if (edge.to === type) found.push({ edge, direction: "in", other: edge.from });
  }
  return found;
}

export const labelColumn = (schema: Schema, type: string, variable: string): string => {
  const label = schema.nodes.find((one) => one.name === type)?.label;
  return label ? `$${variable}.${label}` : `$${variable}.@id`;
};

/** Neighbours of nodes along one hop: their edge, id and name. */
export function neighbourQuery(schema: Schema, type: string, hop: Hop): string {
  const word = edgeWord(hop.edge);
  const pattern = hop.direction === "out" ? `$a $e: ${word} $b` : `$b $e: ${word} $a`;
  return `query neighbours($ids: [String], $size: I64, $from: I64) {
    match { $a: ${type}  $b: ${hop.other}  $a.@id in $ids  ${pattern} }
    return { $a.@id as node, $e.@id as edge, $b.@id as id, ${labelColumn(schema, hop.other, "b")} as label }
    order { id, edge } limit $size offset $from
}`;
}

/** How many edges of each hop a node has, as columns h0, h1, … */
export function countQuery(type: string, hops: Hop[]): string {
  const counts = hops.map((hop, place) => {
    const word = edgeWord(hop.edge);
    const pattern = hop.direction === "out" ? `$a $_: ${word} $_` : `$_ $_: ${word} $a`;
    return `count { ${pattern} } as h${place}`;
  });
  return `query degrees($id: String) { match { $a: ${type}  $a.@id = $id } return { ${counts.join(", ")} } }`;
}

export function pageQuery(schema: Schema, type: string): string {
  return `query page($size: I64, $from: I64) {
    match { $a: ${type} }
    return { $a.@id as id, ${labelColumn(schema, type, "a")} as label }
    order { id } limit $size offset $from
}`;
}
