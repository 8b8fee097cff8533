// What the graph contains, how it is doing, and what happened last.

import type { Commit, Snapshot, Status } from "../documents";
import { bytes, number, plural, titleOf } from "../format";
import { useLink, useLoad, useShared } from "../store";
import { Actor, Ago, CommitDelta, CommitId, Empty, Page, Panel, Show, TypeName } from "../ui";
import { SchemaDiagram } from "./schema-diagram";

export function Overview() {
  const { graph, state, branch, at, schema } = useShared();
  const link = useLink();
  const snapshot = useLoad((signal) => graph.get<Snapshot>("/snapshot", { ...state }, signal), [graph, branch, at]);
  const counts = new Map((snapshot.data?.tables ?? []).map((one) => [one.table_key, one.row_count]));
  const sum = (kind: string) => [...counts].filter(([key]) => key.startsWith(`${kind}:`)).reduce((all, [, rows]) => all + rows, 0);
  return (
    <Page
      title="Overview"
      about={snapshot.data && `${plural(sum("node"), "node")} of ${plural(schema.nodes.length, "type")}, ${plural(sum("edge"), "edge")} of ${plural(schema.edges.length, "type")}`}
    >
      <div class="columns">
        <div>
          <Panel title="Schema" actions={<a href={link("schema")}>Details</a>}>
            {schema.nodes.length ? <SchemaDiagram counts={counts} /> : <Empty title="The schema has no types yet" />}
          </Panel>
          <Panel title="Recent commits" actions={<a href={link("history")}>All history</a>}>
            <RecentCommits />
          </Panel>
        </div>
        <div>
          <Panel title="Node types">
            <Show of={snapshot} what="Counting">
              {() => (
                <ul class="counts">
                  {schema.nodes.map((one) => (
                    <li key={one.name}>
                      <a href={link("type", [one.name])}>
                        <TypeName name={one.name} />
                      </a>
                      <span class="count">{number(counts.get(`node:${one.name}`) ?? 0)}</span>
                    </li>
                  ))}
                </ul>
              )}
            </Show>
          </Panel>
          <Panel title="Edge types">
            <Show of={snapshot} what="Counting">
              {() => (
                <ul class="counts">
                  {schema.edges.map((one) => (
                    <li key={one.name}>
                      <span>
                        {one.name}{" "}
                        <span class="dim">
                          {one.from} → {one.to}
                        </span>
                      </span>
                      <span class="count">{number(counts.get(`edge:${one.name}`) ?? 0)}</span>
                    </li>
                  ))}
                </ul>
              )}
            </Show>
          </Panel>
          {at === null && <Health />}
        </div>
      </div>
    </Page>
  );
}

function RecentCommits() {
  const { graph, branch, at } = useShared();
  const commits = useLoad(async (signal) => {
    const listed = await graph.get<{ commits: Commit[] }>("/commits", { branch, limit: 8, until: at }, signal);
    return listed.commits.reverse();
  }, [graph, branch, at]);
  return (
    <Show of={commits}>
      {(listed) => (
        <ul class="commits">
          {listed.map((commit) => (
            <li key={commit.graph_commit_id}>
              <span class="what">{titleOf(commit)}</span>
              <CommitDelta commit={commit} />
              <span class="by">
                <CommitId id={commit.graph_commit_id} /> <Actor name={commit.actor_id} /> <Ago micros={commit.created_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Show>
  );
}

/** Storage, indexes and embeddings of the newest state. */
function Health() {
  const { graph, branch } = useShared();
  const status = useLoad((signal) => graph.get<Status>("/status", { branch }, signal), [graph, branch]);
  return (
    <Panel title="Indexes and storage">
      <Show of={status} what="Looking at the tables">
        {(found) => {
          const missing = found.tables.reduce((all, one) => all + one.missing_indexes.length, 0);
          const built = found.tables.reduce((all, one) => all + one.indexes.length, 0);
          const behind = found.tables.reduce((all, one) => all + one.indexes.reduce((rows, index) => rows + index.unindexed_rows, 0), 0);
          const embedded = found.tables.flatMap((one) => one.embeddings);
          const waiting = embedded.reduce((all, one) => all + Number(one.pending ?? 0) + Number(one.stale ?? 0), 0);
          return (
            <>
              <dl class="facts">
                <dt>Indexes</dt>
                <dd>
                  {built} built{missing > 0 && <b class="warn">, {missing} missing</b>}
                </dd>
                <dt>Rows not indexed</dt>
                <dd>{number(behind)}</dd>
                <dt>Embeddings</dt>
                <dd>{embedded.length ? (waiting ? <b class="warn">{number(waiting)} pending or stale</b> : "up to date") : "none declared"}</dd>
                <dt>On disk</dt>
                <dd>{bytes(found.tables.reduce((all, one) => all + one.bytes, 0))}</dd>
                <dt>In memory</dt>
                <dd>{bytes(found.cached_bytes)}</dd>
              </dl>
              {found.advice.map((line) => (
                <p class="advice" key={line}>
                  {line}
                </p>
              ))}
            </>
          );
        }}
      </Show>
    </Panel>
  );
}
