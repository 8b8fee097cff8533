// The nodes of one type, in pages.

import { useState } from "preact/hooks";
import type { ReadOutput, Snapshot } from "../documents";
import { number } from "../format";
import { pageQuery } from "../schema";
import { useLink, useLoad, useShared } from "../store";
import { Empty, EntityLink, Page, Pager, Panel, Show, TypeName, Value } from "../ui";

const SIZE = 50;

export function TypeView() {
  const { graph, schema, state, branch, at, route } = useShared();
  const link = useLink();
  const name = route.parts[0] ?? "";
  const type = schema.nodes.find((one) => one.name === name);
  const [from, setFrom] = useState(0);
  const columns = (type?.props ?? []).filter((prop) => prop.scalar !== "Vector" && prop.scalar !== "Blob" && prop.name !== type?.label).slice(0, 5);
  const rows = useLoad(
    async (signal) => {
      if (!type) return null;
      const [snapshot, read] = await Promise.all([
        graph.get<Snapshot>("/snapshot", { ...state }, signal),
        graph.post<ReadOutput>("/query", { query: withColumns(pageQuery(schema, name), columns.map((one) => one.name)), params: { size: SIZE, from }, ...state }, signal),
      ]);
      return { count: snapshot.tables.find((one) => one.table_key === `node:${name}`)?.row_count ?? 0, rows: read.rows };
    },
    [graph, branch, at, name, from],
  );
  if (!type)
    return (
      <Page title={name}>
        <Empty title="There is no such type">
          <a href={link("overview")}>Go to the overview</a>
        </Empty>
      </Page>
    );
  return (
    <Page title={name} about={type.description ?? undefined}>
      <Show of={rows}>
        {(found) =>
          found === null || found.rows.length === 0 ? (
            <Empty title={`There are no nodes of type ${name} in this state`} />
          ) : (
            <Panel title={`${number(found.count)} nodes`} actions={<TypeName name={name} />}>
              <div class="scroll">
                <table class="rows">
                  <thead>
                    <tr>
                      <th scope="col">{type.label ?? "id"}</th>
                      {columns.map((one) => (
                        <th key={one.name} scope="col">
                          {one.name}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {found.rows.map((row) => (
                      <tr key={String(row.id)}>
                        <td>
                          <EntityLink type={name} id={String(row.id)} label={row.label == null ? null : String(row.label)} />
                        </td>
                        {columns.map((one) => (
                          <td key={one.name}>
                            <Value value={row[`p_${one.name}`]} most={80} />
                          </td>
                        ))}
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <Pager from={from} size={SIZE} count={found.count} onMove={setFrom} />
            </Panel>
          )
        }
      </Show>
    </Page>
  );
}

const withColumns = (query: string, names: string[]): string =>
  query.replace(" as label }", ` as label${names.map((name) => `, $a.${name} as p_${name}`).join("")} }`);
