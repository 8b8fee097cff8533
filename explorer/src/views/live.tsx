// The change feed of a branch as it happens.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { BeforeAfter } from "../changes";
import type { Commit, FeedChange, FeedPage } from "../documents";
import { number, plural, short, titleOf } from "../format";
import { useLink, useLoad, useShared } from "../store";
import { Actor, Ago, CommitId, Delta, Empty, EntityLink, Failure, Op, Page, TypeName } from "../ui";

const EVERY = 1_500;
const KEPT = 100;
const ROWS = 20;

type Block = FeedPage["blocks"][number];

export function Live() {
  const { graph, branch, setOffline } = useShared();
  const link = useLink();
  const [blocks, setBlocks] = useState<Block[]>([]);
  const [isPaused, setPaused] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const cursor = useRef<string | null>(null);
  useEffect(() => {
    cursor.current = null;
    setBlocks([]);
  }, [graph, branch]);
  useEffect(() => {
    if (isPaused) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const poll = async () => {
      try {
        const found: Block[] = [];
        let page = await graph.get<FeedPage>("/changes", { branch, cursor: cursor.current, limit: 500 }, abort.signal);
        found.push(...page.blocks);
        while (page.next_page_token) {
          page = await graph.get<FeedPage>("/changes", { branch, page_token: page.next_page_token, limit: 500 }, abort.signal);
          found.push(...page.blocks);
        }
        cursor.current = page.cursor ?? cursor.current;
        setError(null);
        setOffline(false);
        if (found.length) setBlocks((before) => joined([...before, ...found]).slice(-KEPT));
      } catch (failure) {
        if (abort.signal.aborted) return;
        if (failure instanceof ApiError && failure.isOffline) setOffline(true);
        else setError(failure as Error);
        // Nothing older can be followed: begin again with what comes next.
        if (failure instanceof ApiError && failure.status === 410) cursor.current = null;
      }
      if (!abort.signal.aborted) timer = setTimeout(poll, EVERY);
    };
    void poll();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [graph, branch, isPaused]);
  return (
    <Page
      title="Live"
      about={
        <>
          <span class={`pulse ${isPaused ? "paused" : ""}`} aria-hidden="true" /> {isPaused ? "Paused." : `Commits on ${branch} appear here as they are made.`}
        </>
      }
      actions={
        <>
          <button type="button" class="button" onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Continue" : "Pause"}
          </button>
          {blocks.length > 0 && (
            <button type="button" class="button quiet" onClick={() => setBlocks([])}>
              Clear
            </button>
          )}
        </>
      }
    >
      {error && <Failure error={error} />}
      <div aria-live="polite">
        {blocks.length === 0 ? (
          <Empty title="Waiting for the next commit">
            Write to <b>{branch}</b> from anywhere: the command line, Python, or the <a href={link("console")}>console</a>.
          </Empty>
        ) : (
          [...blocks].reverse().map((block) => <Happened key={block.cause.graph_commit_id} block={block} />)
        )}
      </div>
    </Page>
  );
}

/** Pages may end inside a commit. */
function joined(blocks: Block[]): Block[] {
  const found = new Map<string, Block>();
  for (const block of blocks) {
    const id = block.cause.graph_commit_id;
    const before = found.get(id);
    found.set(id, before ? { ...before, changes: [...before.changes, ...block.changes] } : block);
  }
  return [...found.values()];
}

function Happened({ block }: { block: Block }) {
  const { graph } = useShared();
  const { cause, changes } = block;
  // The feed tells rows and actor; the message is told by the commit.
  const commit = useLoad((signal) => graph.get<Commit>(`/commits/${encodeURIComponent(cause.graph_commit_id)}`, {}, signal), [graph, cause.graph_commit_id]);
  const count = (op: FeedChange["op"]) => changes.filter((one) => one.op === op).length;
  return (
    <section class="panel happened">
      <header>
        <h2>
          <CommitId id={cause.graph_commit_id} /> {commit.data && titleOf(commit.data)} <span class="dim">by</span> <Actor name={cause.actor_id} />
        </h2>
        <div class="actions">
          <Delta counts={{ inserted: count("insert"), updated: count("update"), deleted: count("delete") }} />
          <span class="dim">
            <Ago micros={cause.authored_at} />
          </span>
        </div>
      </header>
      {changes.length === 0 && <p class="dim">{short(cause.graph_commit_id)} changed no rows.</p>}
      <ul class="changes">
        {changes.slice(0, ROWS).map((one) => (
          <li key={`${one.kind} ${one.type.name} ${one.id}`} class={one.op}>
            <div class="change-head">
              <Op op={one.op} />
              {one.kind === "node" ? <TypeName name={one.type.name} /> : <span class="type plain">{one.type.name}</span>}
              <EntityLink type={one.type.name} id={one.id} />
            </div>
            {one.op === "update" && <BeforeAfter before={one.before?.properties ?? null} after={one.after?.properties ?? null} type={one.type.name} />}
          </li>
        ))}
      </ul>
      {changes.length > ROWS && <p class="dim">and {plural(changes.length - ROWS, "other row")} ({number(changes.length)} in all)</p>}
    </section>
  );
}
