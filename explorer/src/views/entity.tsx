// One node or edge: its properties, what is connected with it, and its history.

import { useState } from "preact/hooks";
import { BeforeAfter, propsOf } from "../changes";
import type { Entity, EntityChange, ReadOutput } from "../documents";
import { number, plural } from "../format";
import { type Hop, countQuery, hopsOf, neighbourQuery, typeText, vectorProp } from "../schema";
import { useLink, useLoad, useShared } from "../store";
import { Actor, Ago, CommitId, CopyButton, Empty, EntityLink, Op, Page, Pager, Panel, Show, TypeName, Value } from "../ui";

export function EntityView() {
  const { graph, route, state, branch, at, schema } = useShared();
  const [type = "", id = ""] = route.parts;
  const entity = useLoad((signal) => graph.get<Entity>(`/entities/${encodeURIComponent(type)}/${encodeURIComponent(id)}`, { ...state }, signal), [graph, type, id, branch, at]);
  return (
    <>
      <Show of={entity} what="Reading">
        {(found) => (
          <Page title={nameOf(found, schema.nodes.find((one) => one.name === found.type_name)?.label ?? null)} about={<About entity={found} />} actions={<Actions entity={found} />}>
            <div class="columns even">
              <div>
                <Properties entity={found} />
                <EntityHistory type={type} id={id} />
              </div>
              <div>{found.entity_kind === "node" ? <Neighbours key={`${type} ${id}`} type={found.type_name} id={found.entity_id} /> : <Ends entity={found} />}</div>
            </div>
          </Page>
        )}
      </Show>
      {entity.error && (
        <div class="view">
          <EntityHistory type={type} id={id} />
        </div>
      )}
    </>
  );
}

function nameOf(entity: Entity, label: string | null): string {
  const text = label === null ? null : entity.properties[label];
  return typeof text === "string" && text ? text : entity.entity_id;
}

function About({ entity }: { entity: Entity }) {
  return (
    <>
      {entity.entity_kind === "node" ? <TypeName name={entity.type_name} /> : <span class="type plain">{entity.type_name}</span>} <code class="id">{entity.entity_id}</code>{" "}
      <CopyButton text={() => entity.entity_id}>Copy id</CopyButton>
    </>
  );
}

function Actions({ entity }: { entity: Entity }) {
  const link = useLink();
  const { schema } = useShared();
  if (entity.entity_kind === "edge") return null;
  const type = schema.nodes.find((one) => one.name === entity.type_name);
  const vector = type && vectorProp(type);
  return (
    <>
      <a class="button primary" href={link("graph", [entity.type_name, entity.entity_id])}>
        Neighbourhood
      </a>
      {vector && entity.properties[vector.name] != null && (
        <a class="button" href={link("search", [], { mode: "vector", like: `${entity.type_name}/${entity.entity_id}` })}>
          Similar
        </a>
      )}
    </>
  );
}

function Properties({ entity }: { entity: Entity }) {
  const { schema } = useShared();
  const props = propsOf(schema, entity.type_name);
  const names = [...props.keys(), ...Object.keys(entity.properties).filter((name) => !props.has(name))];
  return (
    <Panel title="Properties">
      {names.length === 0 ? (
        <p class="dim">This type has no properties.</p>
      ) : (
        <table class="values properties">
          <tbody>
            {names.map((name) => {
              const prop = props.get(name);
              return (
                <tr key={name}>
                  <th scope="row" title={prop && typeText(prop)}>
                    {name}
                    {prop?.isKey && <span class="badge">key</span>}
                  </th>
                  <td>
                    <Value value={entity.properties[name]} prop={prop} most={4000} />
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

function Ends({ entity }: { entity: Entity }) {
  const { schema } = useShared();
  const edge = schema.edges.find((one) => one.name === entity.type_name);
  if (!edge || !entity.endpoints) return null;
  return (
    <Panel title="Ends">
      <dl class="facts">
        <dt>From</dt>
        <dd>
          <TypeName name={edge.from} /> <EntityLink type={edge.from} id={entity.endpoints.from} />
        </dd>
        <dt>To</dt>
        <dd>
          <TypeName name={edge.to} /> <EntityLink type={edge.to} id={entity.endpoints.to} />
        </dd>
      </dl>
    </Panel>
  );
}

function Neighbours({ type, id }: { type: string; id: string }) {
  const { graph, schema, state, branch, at } = useShared();
  const hops = hopsOf(schema, type);
  const counts = useLoad(
    async (signal) => {
      if (!hops.length) return [];
      const read = await graph.post<ReadOutput>("/query", { query: countQuery(type, hops), params: { id }, ...state }, signal);
      return hops.map((_, place) => Number(read.rows[0]?.[`h${place}`] ?? 0));
    },
    [graph, type, id, branch, at],
  );
  return (
    <Panel title="Neighbours">
      <Show of={counts} what="Counting neighbours">
        {(found) =>
          found.every((count) => count === 0) ? (
            <Empty title="Nothing is connected with this node" />
          ) : (
            <>
              {hops.map((hop, place) => {
                const count = found[place] ?? 0;
                return count ? <NeighbourList key={`${hop.edge.name} ${hop.direction}`} type={type} id={id} hop={hop} count={count} /> : null;
              })}
            </>
          )
        }
      </Show>
    </Panel>
  );
}

const SIZE = 10;

function NeighbourList({ type, id, hop, count }: { type: string; id: string; hop: Hop; count: number }) {
  const { graph, schema, state, branch, at } = useShared();
  const [from, setFrom] = useState(0);
  const rows = useLoad(
    async (signal) => (await graph.post<ReadOutput>("/query", { query: neighbourQuery(schema, type, hop), params: { ids: [id], size: SIZE, from }, ...state }, signal)).rows,
    [graph, type, id, hop.edge.name, hop.direction, from, branch, at],
  );
  return (
    <section class="hop" aria-label={`${hop.edge.name} ${hop.direction}`}>
      <h3>
        <span class="direction" title={hop.direction === "out" ? "from this node" : "to this node"}>{hop.direction === "out" ? "→" : "←"}</span> {hop.edge.name} <TypeName name={hop.other} />
        <span class="count">{number(count)}</span>
      </h3>
      <Show of={rows}>
        {(found) => (
          <ul class="neighbours">
            {found.map((row) => (
              <li key={String(row.edge)}>
                <EntityLink type={hop.other} id={String(row.id)} label={row.label == null ? null : String(row.label)} />
                {hop.edge.props.length > 0 && (
                  <EdgeLink type={hop.edge.name} id={String(row.edge)} />
                )}
              </li>
            ))}
          </ul>
        )}
      </Show>
      <Pager from={from} size={SIZE} count={count} onMove={setFrom} />
    </section>
  );
}

function EdgeLink({ type, id }: { type: string; id: string }) {
  const link = useLink();
  return (
    <a class="dim edge-link" href={link("entity", [type, id])}>
      edge
    </a>
  );
}

function EntityHistory({ type, id }: { type: string; id: string }) {
  const { graph, branch, at } = useShared();
  const link = useLink();
  const history = useLoad(
    async (signal) => (await graph.get<{ changes: EntityChange[] }>(`/entities/${encodeURIComponent(type)}/${encodeURIComponent(id)}/history`, { branch }, signal)).changes.reverse(),
    [graph, type, id, branch],
  );
  return (
    <Panel title={`History on ${branch}`}>
      <Show of={history} what="Reading the history">
        {(changes) => (
          <>
            <p class="dim inset">{plural(changes.length, "commit")} changed this. Pick one to see it as it was.</p>
            <ol class="timeline">
              {changes.map((change) => (
                <li key={change.graph_commit_id} class={`${change.op} ${at === change.graph_commit_id ? "here" : ""}`}>
                  <div class="row">
                    <Op op={change.op} />
                    <span class="dim">by</span> <Actor name={change.actor_id} /> <Ago micros={change.created_at} />
                    <span class="spring" />
                    <CommitId id={change.graph_commit_id} />
                    {at === change.graph_commit_id ? (
                      <span class="badge here">shown now</span>
                    ) : (
                      change.op !== "delete" && (
                        <a class="button small" href={link("entity", [type, id], { at: change.graph_commit_id })}>
                          Go here
                        </a>
                      )
                    )}
                  </div>
                  {change.op === "update" && <BeforeAfter before={change.before} after={change.after} type={type} />}
                </li>
              ))}
            </ol>
          </>
        )}
      </Show>
    </Panel>
  );
}

