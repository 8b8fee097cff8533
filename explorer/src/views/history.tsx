// The commits of all branches as a graph. Picking one takes the whole page there.

import { useMemo } from "preact/hooks";
import type { Commit } from "../documents";
import { branchOf, short, titleOf } from "../format";
import { go, useLink, useLoad, useShared } from "../store";
import { Actor, Ago, CommitDelta, Empty, Page, Show } from "../ui";
import { graphOf, LaneGraph, ROW } from "./lanes";

const MOST_BRANCHES = 12;
const STEP = 60;

export function HistoryView() {
  const { graph, branches, branch, route } = useShared();
  const link = useLink();
  const limit = Number(route.params.limit) || STEP;
  const only = route.params.only === "branch";
  const wanted = only ? [branch] : [...new Set(["main", branch, ...branches])].filter((name) => branches.includes(name)).slice(0, MOST_BRANCHES);
  const commits = useLoad(
    async (signal) => {
      const lists = await Promise.all(wanted.map((name) => graph.get<{ commits: Commit[] }>("/commits", { branch: name, limit, merged: true }, signal)));
      const all = new Map(lists.flatMap((one) => one.commits).map((one) => [one.graph_commit_id, one]));
      const heads = new Map(wanted.map((name, place) => [name, lists[place]!.commits.at(-1)?.graph_commit_id ?? ""]));
      const listed = [...all.values()].sort((a, b) => b.created_at - a.created_at || b.graph_commit_id.localeCompare(a.graph_commit_id));
      return { listed, heads, isCut: lists.some((one) => one.commits.length >= limit) };
    },
    [graph, wanted.join("\n"), limit],
  );
  return (
    <Page
      title="History"
      about="Pick a commit to see the whole graph as it was."
      actions={
        <div class="tabs" role="group" aria-label="Branches">
          <a href={link("history")} aria-current={!only}>
            All branches
          </a>
          <a href={link("history", [], { only: "branch" })} aria-current={only}>
            {branch}
          </a>
        </div>
      }
    >
      <Show of={commits} what="Reading the history">
        {({ listed, heads, isCut }) =>
          listed.length === 0 ? (
            <Empty title="No commits yet" />
          ) : (
            <>
              <CommitGraph commits={listed} heads={heads} />
              {isCut && (
                <p>
                  <a class="button" href={link("history", [], { only: only ? "branch" : null, limit: String(limit + 120) })}>
                    Older commits
                  </a>
                </p>
              )}
            </>
          )
        }
      </Show>
    </Page>
  );
}

function CommitGraph({ commits, heads }: { commits: Commit[]; heads: Map<string, string> }) {
  const { at, branch, route } = useShared();
  const link = useLink();
  const drawn = useMemo(() => graphOf(commits), [commits]);
  const here = at ?? heads.get(branch);
  const travel = (commit: Commit, isHead: boolean) =>
    link("history", [], { ...route.params, branch: isHead ? headName(heads, commit.graph_commit_id) : knownBranch(heads, commit, branch), at: isHead ? null : commit.graph_commit_id });
  return (
    <div class="commit-graph panel">
      <LaneGraph drawn={drawn} here={here} />
      <ol style={{ paddingLeft: `${drawn.width}px` }}>
        {commits.map((commit) => {
          const id = commit.graph_commit_id;
          const names = [...heads].filter(([, head]) => head === id).map(([name]) => name);
          const isHere = id === here || short(id) === at;
          return (
            <li key={id} style={{ height: `${ROW}px` }} class={isHere ? "here" : undefined}>
              <div class="row">
                <a class="what" href={link("commit", [id])}>
                  {titleOf(commit)}
                </a>
                {names.map((name) => (
                  <span key={name} class="badge head">
                    {name}
                  </span>
                ))}
                {commit.operation === "merge" && <span class="badge">merge</span>}
                <CommitDelta commit={commit} />
              </div>
              <div class="row small">
                <code>{short(id)}</code>
                <span class="dim">{branchOf(commit)}</span>
                <Actor name={commit.actor_id} />
                <Ago micros={commit.created_at} />
                <span class="spring" />
                {isHere ? (
                  <span class="badge here">shown now</span>
                ) : (
                  <button type="button" class="button small travel" onClick={() => go(travel(commit, names.length > 0))} aria-label={`Go to ${short(id)}: ${titleOf(commit)}`}>
                    Go here
                  </button>
                )}
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

const headName = (heads: Map<string, string>, id: string): string | null => {
  const names = [...heads].filter(([, head]) => head === id).map(([name]) => name);
  const name = names.includes("main") ? "main" : names[0];
  return name === "main" ? null : (name ?? null);
};

const knownBranch = (heads: Map<string, string>, commit: Commit, branch: string): string | null => {
  const name = branchOf(commit);
  const found = heads.has(name) ? name : branch;
  return found === "main" ? null : found;
};
