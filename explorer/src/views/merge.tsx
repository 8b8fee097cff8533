// A merge before it happens: what it would change, its conflicts, and a choice for each.

import { useState } from "preact/hooks";
import { ApiError } from "../api";
import type { Conflict, MergeOutput, Permissions } from "../documents";
import { plural } from "../format";
import { go, useLink, useLoad, useShared } from "../store";
import { CommitId, Delta, Empty, Failure, Page, Panel, Select, Show, TypeName } from "../ui";
import { Undo } from "./commit";
import { type Choice, ConflictCard, isOpen, keyOfConflict, patchOf } from "./conflict";

export function Merge() {
  const { route, branches, branch } = useShared();
  const link = useLink();
  const source = route.params.source ?? (branch === "main" ? (branches.find((name) => name !== "main") ?? "") : branch);
  const target = route.params.target ?? "main";
  const move = (params: Record<string, string>) => go(link("merge", [], { source, target, at: null, ...params }));
  return (
    <Page title="Merge" about="See what a merge would do before anything is written.">
      {branches.length < 2 ? (
        <Empty title="There is one branch">Create another one to merge: omnigraph branch create NAME.</Empty>
      ) : (
        <>
          <div class="compare-form">
            <Select label="Merge" value={source} options={branches.includes(source) ? branches : [source, ...branches]} onChange={(value) => move({ source: value })} />
            <span class="into" aria-hidden="true">
              →
            </span>
            <Select label="into" value={target} options={branches.includes(target) ? branches : [target, ...branches]} onChange={(value) => move({ target: value })} />
            <a class="button" href={link("compare", [], { from: target, to: source, at: null })}>
              Compare
            </a>
          </div>
          {source === target ? <Empty title="Choose two different branches" /> : <Planned key={`${source}\n${target}`} source={source} target={target} />}
        </>
      )}
    </Page>
  );
}

function Planned({ source, target }: { source: string; target: string }) {
  const { graph } = useShared();
  const [merged, setMerged] = useState<MergeOutput | null>(null);
  const plan = useLoad(
    async (signal) => {
      const allowed = await graph.get<Permissions>("/permissions", { branch: source, target }, signal);
      if (!allowed.merge) return { allowed, plan: null };
      return { allowed, plan: await graph.post<MergeOutput>("/branches/merge", { source, target, dry_run: true, granularity: "property" }, signal) };
    },
    [graph, source, target],
  );
  if (merged) return <Merged result={merged} source={source} target={target} />;
  return (
    <Show of={plan} what="Trying the merge">
      {(found) =>
        found.plan === null ? (
          <Empty title={`Your token may not merge into ${target}`}>You can still compare the two branches.</Empty>
        ) : (
          <Decide source={source} target={target} plan={found.plan} mayChangeSource={found.allowed.change} onMerged={setMerged} onAgain={plan.reload} />
        )
      }
    </Show>
  );
}

interface DecideProps {
  source: string;
  target: string;
  plan: MergeOutput;
  mayChangeSource: boolean;
  onMerged: (result: MergeOutput) => void;
  onAgain: () => void;
}

function Decide({ source, target, plan, mayChangeSource, onMerged, onAgain }: DecideProps) {
  const { graph, schema, refresh } = useShared();
  const [choices, setChoices] = useState<Record<string, Choice>>({});
  const [message, setMessage] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const conflicts = plan.conflicts ?? [];
  const open = conflicts.filter((one) => isOpen(one, choices[keyOfConflict(one)]));
  const stuck = conflicts.filter((one) => one.row_id === null || !("ours" in one));
  if (plan.outcome === "already_up_to_date") return <Empty title={`${target} has everything of ${source}`}>There is nothing to merge.</Empty>;

  const all = (take: "ours" | "theirs") => setChoices(Object.fromEntries(conflicts.map((one) => [keyOfConflict(one), { take, values: {} }])));
  const merge = async () => {
    setBusy(true);
    setError(null);
    try {
      let left: Conflict[] = conflicts;
      const patches = conflicts.flatMap((one) => patchOf(schema, one, choices[keyOfConflict(one)]) ?? []);
      if (patches.length) {
        const data = `${patches.map((one) => JSON.stringify(one)).join("\n")}\n`;
        await graph.post("/load", { data, branch: source, mode: "patch", message: "Values chosen for a merge" });
        const again = await graph.post<MergeOutput>("/branches/merge", { source, target, dry_run: true, granularity: "property" });
        left = again.conflicts ?? [];
      }
      const resolutions = left.map((one) => {
        const take = choices[keyOfConflict(one)]?.take;
        return { table_key: one.table_key, row_id: one.row_id, take: take === "value" ? "theirs" : (take ?? "theirs") };
      });
      onMerged(await graph.post<MergeOutput>("/branches/merge", { source, target, granularity: "property", resolutions, message: message.trim() || null }));
      refresh();
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setBusy(false);
    }
  };
  const rows = Object.entries(plan.counts);
  return (
    <>
      {error && <Failure error={error} retry={onAgain} />}
      <div class="columns reversed">
        <div>
          <Panel title="What it brings">
            {rows.length ? (
              <ul class="counts">
                {rows.map(([key, counts]) => (
                  <li key={key}>
                    {key.startsWith("node:") ? <TypeName name={key.slice(5)} /> : <span>{key.slice(5)}</span>}
                    <Delta counts={counts} />
                  </li>
                ))}
              </ul>
            ) : (
              <p class="dim">Nothing besides the conflicts.</p>
            )}
          </Panel>
          <Panel title="Merge">
            <div class="merge-form">
              <p role="status">
                {conflicts.length === 0 ? (
                  "No conflicts."
                ) : open.length ? (
                  <b class="warn">{plural(open.length, "conflict")} to decide</b>
                ) : (
                  "All conflicts are decided."
                )}
              </p>
              <label class="field">
                <span class="label">Commit message</span>
                <input value={message} placeholder={`Merge ${source}`} onInput={(event) => setMessage(event.currentTarget.value)} />
              </label>
              <button type="button" class="button primary" disabled={isBusy || open.length > 0} onClick={() => void merge()}>
                Merge into {target}
              </button>
            </div>
          </Panel>
        </div>
        <div>
          {conflicts.length > 1 && (
            <p class="actions all-choices">
              <button type="button" class="button small" onClick={() => all("ours")}>
                Keep all of {target}
              </button>
              <button type="button" class="button small" onClick={() => all("theirs")}>
                Take all of {source}
              </button>
            </p>
          )}
          {stuck.length > 0 && <p class="note">A conflict without sides is a rule that both branches together break. Change one of the branches, then come back.</p>}
          {conflicts.map((one) => (
            <ConflictCard
              key={keyOfConflict(one)}
              conflict={one}
              source={source}
              target={target}
              choice={choices[keyOfConflict(one)]}
              mayWriteValues={mayChangeSource}
              onChoose={(choice) => setChoices((before) => ({ ...before, [keyOfConflict(one)]: choice }))}
            />
          ))}
          {conflicts.length === 0 && (
            <Panel title="Conflicts">
              <Empty title="No conflicts">Both branches changed different things.</Empty>
            </Panel>
          )}
        </div>
      </div>
    </>
  );
}

function Merged({ result, source, target }: { result: MergeOutput; source: string; target: string }) {
  const { graph } = useShared();
  const id = result.graph_commit_id;
  const commit = useLoad(async (signal) => (id ? graph.get<{ graph_commit_id: string; parent_commit_id: string | null }>(`/commits/${id}`, {}, signal) : null), [graph, id]);
  return (
    <>
      <Panel title="Merged">
        <p role="status">
          {source} is merged into {target}
          {id && (
            <>
              {" "}
              as commit <CommitId id={id} />
            </>
          )}
          .
        </p>
      </Panel>
      {commit.data && <Undo commit={commit.data} on={target} />}
    </>
  );
}
