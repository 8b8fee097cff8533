// One commit: what it changed, where it came from, and what can be done with it.

import { useState } from "preact/hooks";
import { ApiError } from "../api";
import { ChangeList } from "../changes";
import type { Commit, Diff, MergeOutput } from "../documents";
import { branchOf, moment, number, short, titleOf } from "../format";
import { go, useLink, useLoad, useShared } from "../store";
import { Actor, Ago, CommitId, CopyButton, Delta, Empty, Failure, Page, Panel, Show, TypeName } from "../ui";

const PAGE = 50;

export function CommitView() {
  const { graph, route, branch } = useShared();
  const link = useLink();
  const id = route.parts[0] ?? "";
  const commit = useLoad((signal) => graph.get<Commit>(`/commits/${encodeURIComponent(id)}`, {}, signal), [graph, id]);
  return (
    <Show of={commit} what="Reading the commit">
      {(found) => (
        <Page
          title={titleOf(found)}
          about={
            <>
              <code>{found.graph_commit_id}</code> <CopyButton text={() => found.graph_commit_id}>Copy id</CopyButton>
            </>
          }
          actions={
            <>
              <a class="button primary" href={link("overview", [], { at: found.graph_commit_id, branch: branchOf(found) === branch ? branch : null })}>
                See the graph at this commit
              </a>
              {found.parent_commit_id && (
                <a class="button" href={link("compare", [], { from: found.parent_commit_id, to: found.graph_commit_id, at: null })}>
                  Compare
                </a>
              )}
            </>
          }
        >
          <div class="columns reversed">
            <div>
              <Panel title="About">
                <dl class="facts">
                  <dt>Operation</dt>
                  <dd>{found.operation}</dd>
                  <dt>Branch</dt>
                  <dd>{branchOf(found)}</dd>
                  <dt>Actor</dt>
                  <dd>
                    <Actor name={found.actor_id} />
                  </dd>
                  <dt>Time</dt>
                  <dd title={moment(found.created_at)}>
                    {moment(found.created_at)} <span class="dim">(<Ago micros={found.created_at} />)</span>
                  </dd>
                  {found.parent_commit_id && (
                    <>
                      <dt>Parent</dt>
                      <dd>
                        <CommitId id={found.parent_commit_id} />
                      </dd>
                    </>
                  )}
                  {found.merged_parent_commit_id && (
                    <>
                      <dt>Merged</dt>
                      <dd>
                        <CommitId id={found.merged_parent_commit_id} />
                      </dd>
                    </>
                  )}
                </dl>
              </Panel>
              <Panel title="Rows by type">
                {Object.keys(found.counts).length ? (
                  <ul class="counts">
                    {Object.entries(found.counts).map(([key, counts]) => (
                      <li key={key}>
                        {key.startsWith("node:") ? <TypeName name={key.slice(5)} /> : <span>{key.slice(5)}</span>}
                        <Delta counts={counts} />
                      </li>
                    ))}
                  </ul>
                ) : (
                  <p class="dim">This commit changed no rows.</p>
                )}
              </Panel>
              <Undo commit={found} />
            </div>
            <CommitChanges commit={found} />
          </div>
        </Page>
      )}
    </Show>
  );
}

function CommitChanges({ commit }: { commit: Commit }) {
  const { graph } = useShared();
  const [cursors, setCursors] = useState<(string | null)[]>([null]);
  const cursor = cursors[cursors.length - 1] ?? null;
  const diff = useLoad(
    async (signal) =>
      commit.parent_commit_id === null
        ? null
        : graph.post<Diff>("/diff", { from: commit.parent_commit_id, to: commit.graph_commit_id, rows: true, limit: PAGE, cursor }, signal),
    [graph, commit.graph_commit_id, cursor],
  );
  return (
    <Panel title="Changes">
      <Show of={diff} what="Comparing with the parent">
        {(found) =>
          found === null ? (
            <Empty title="The first commit has nothing before it" />
          ) : found.changes.length === 0 ? (
            <Empty title="This commit changed no rows" />
          ) : (
            <>
              <ChangeList changes={found.changes} isOpen={found.changes.length <= 5} />
              {(found.next_cursor || cursors.length > 1) && (
                <nav class="pager" aria-label="Pages">
                  <button type="button" class="button quiet" disabled={cursors.length === 1} onClick={() => setCursors(cursors.slice(0, -1))}>
                    Previous
                  </button>
                  <span>
                    from row {number((cursors.length - 1) * PAGE + 1)} of {number(found.stats.inserts + found.stats.updates + found.stats.deletes)}
                  </span>
                  <button type="button" class="button quiet" disabled={!found.next_cursor} onClick={() => setCursors([...cursors, found.next_cursor])}>
                    Next
                  </button>
                </nav>
              )}
            </>
          )
        }
      </Show>
    </Panel>
  );
}

/** Revert on the branch that is shown: first what it would do, then the commit. */
export function Undo({ commit, on }: { commit: Pick<Commit, "graph_commit_id" | "parent_commit_id">; on?: string }) {
  const { graph, branch: shown, permissions, refresh } = useShared();
  const branch = on ?? shown;
  const link = useLink();
  const [plan, setPlan] = useState<MergeOutput | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (!permissions.change || !commit.parent_commit_id) return null;
  const run = async (isDry: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const done = await graph.post<MergeOutput>("/revert", { ref: commit.graph_commit_id, branch, dry_run: isDry });
      if (isDry) setPlan(done);
      else {
        refresh();
        if (done.graph_commit_id) go(link("commit", [done.graph_commit_id], { branch: branch === "main" ? null : branch, at: null }));
      }
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="Revert">
      <p class="dim">
        Undo this commit on <b>{branch}</b> with a new commit. Nothing is lost: {short(commit.graph_commit_id)} stays in the history.
      </p>
      {error && <Failure error={error} />}
      {plan && !plan.conflicts?.length && (
        <ul class="counts">
          {Object.entries(plan.counts).map(([key, counts]) => (
            <li key={key}>
              <span>{key.split(":")[1]}</span>
              <Delta counts={counts} />
            </li>
          ))}
        </ul>
      )}
      {plan?.conflicts?.length ? (
        <p class="problem">{plan.conflicts_total ?? plan.conflicts.length} rows changed since, so the commit cannot be undone by itself.</p>
      ) : plan ? (
        <button type="button" class="button danger" disabled={isBusy} onClick={() => void run(false)}>
          Revert on {branch}
        </button>
      ) : (
        <button type="button" class="button" disabled={isBusy} onClick={() => void run(true)}>
          See what a revert would do
        </button>
      )}
    </Panel>
  );
}
