// The query console: text with the errors of the real checker, parameters, results, plans, saved queries.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, type Diagnostic } from "../api";
import type { ChangeOutput, CheckOutput, PlanStep, ReadOutput } from "../documents";
import { Editor } from "../editor/editor";
import type { Schema } from "../schema";
import { useLink, useShared } from "../store";
import { CopyButton, Failure, Loading, Page, Panel } from "../ui";
import { ParamsForm, paramValues } from "./params-form";
import { type Outcome, Results } from "./results";
import { SavedQueries } from "./saved-queries";
import { pack, unpack } from "./share";

const DRAFT = "omnigraph.draft";

const START = (schema: Schema): string => {
  const type = schema.nodes[0];
  const columns = type?.props.filter((prop) => prop.scalar !== "Vector" && prop.scalar !== "Blob").slice(0, 4).map((prop) => `$a.${prop.name}`).join(", ");
  return type ? `query first() {\n    match { $a: ${type.name} }\n    return { $a${columns ? `, ${columns}` : ""} }\n    limit 25\n}\n` : "";
};

export function Console() {
  const { graph, schema, state, branch, at, permissions, route, refresh } = useShared();
  const link = useLink();
  const shared = useMemo(() => unpack(route.params.q), [route.params.q]);
  const [text, setText] = useState(() => shared?.text ?? sessionStorage.getItem(DRAFT) ?? START(schema));
  const [params, setParams] = useState<Record<string, string>>(shared?.params ?? {});
  const [name, setName] = useState<string | null>(shared?.name ?? null);
  const [message, setMessage] = useState("");
  const [checked, setChecked] = useState<CheckOutput>({ queries: [], diagnostics: [] });
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [failed, setFailed] = useState<Diagnostic[]>([]);
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController | null>(null);
  /** The text that `checked` is about. */
  const checkedText = useRef("");

  useEffect(() => {
    if (!shared) return;
    setText(shared.text);
    setParams(shared.params);
    setName(shared.name);
  }, [shared]);
  useEffect(() => {
    sessionStorage.setItem(DRAFT, text);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      if (!text.trim()) return setChecked({ queries: [], diagnostics: [] });
      graph.post<CheckOutput>("/check", { query: text, ...state }, abort.signal).then(
        (found) => {
          checkedText.current = text;
          setChecked(found);
          setFailed([]);
        },
        () => undefined,
      );
    }, 250);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [graph, text, branch, at]);
  useEffect(() => () => running.current?.abort(), []);

  const chosen = checked.queries.find((one) => one.name === name) ?? checked.queries[0];
  const diagnostics = checked.diagnostics.length ? checked.diagnostics : failed;

  const run = async (how: "run" | "explain" | "analyze") => {
    running.current?.abort();
    const abort = (running.current = new AbortController());
    setRunning(true);
    try {
      const known = checkedText.current === text ? checked : await graph.post<CheckOutput>("/check", { query: text, ...state }, abort.signal);
      const query = known.queries.find((one) => one.name === name) ?? known.queries[0];
      const body = { query: text, name: query?.name ?? null, params: paramValues(query?.params ?? [], params) };
      if (how !== "run") {
        const plan = await graph.post<{ plan: PlanStep; total_ms?: number }>("/explain", { ...body, ...state, analyze: how === "analyze" }, abort.signal);
        setOutcome({ kind: "plan", plan: plan.plan, ms: plan.total_ms });
      } else if (query?.mutation) {
        const change = await graph.post<ChangeOutput>("/mutate", { ...body, branch, message: message.trim() || null }, abort.signal);
        setOutcome({ kind: "change", change });
        setMessage("");
        refresh();
      } else {
        const began = performance.now();
        const read = await graph.post<ReadOutput>("/query", { ...body, ...state }, abort.signal);
        setOutcome({ kind: "read", read, text, ms: performance.now() - began });
      }
      setFailed([]);
    } catch (error) {
      if (abort.signal.aborted) return;
      setOutcome({ kind: "failed", error: error as Error });
      if (error instanceof ApiError) setFailed(error.diagnostics);
    } finally {
      if (running.current === abort) setRunning(false);
    }
  };
  const mayRun = !chosen?.mutation || (permissions.change && at === null);
  return (
    <Page title="Console" wide>
      <div class="console">
        <div class="console-left">
          <section class="panel editor-panel" aria-label="Query text">
            <Editor text={text} onChange={setText} onRun={() => mayRun && void run("run")} diagnostics={diagnostics} schema={schema} />
          </section>
          {diagnostics.length > 0 && (
            <ul class="diagnostics" aria-label="Errors" aria-live="polite">
              {diagnostics.map((one) => (
                <li key={`${one.line}:${one.column}:${one.message}`}>
                  <span class="place">
                    {one.line}:{one.column}
                  </span>
                  <span>
                    {one.message}
                    {one.hint && <em> {one.hint}</em>}
                  </span>
                </li>
              ))}
            </ul>
          )}
          <div class="run-bar">
            {checked.queries.length > 1 && (
              <label class="field inline">
                <span class="label">Query</span>
                <select value={chosen?.name} onChange={(event) => setName(event.currentTarget.value)}>
                  {checked.queries.map((one) => (
                    <option key={one.name}>{one.name}</option>
                  ))}
                </select>
              </label>
            )}
            {chosen?.mutation && mayRun && <input class="message" placeholder="Commit message" aria-label="Commit message" value={message} onInput={(event) => setMessage(event.currentTarget.value)} />}
            {mayRun ? (
              <button type="button" class="button primary" disabled={isRunning || !text.trim()} onClick={() => void run("run")}>
                {chosen?.mutation ? `Commit to ${branch}` : "Run"} <kbd>Ctrl ↵</kbd>
              </button>
            ) : (
              <span class="dim">{at === null ? "Your token may not change this branch." : "The past cannot be changed. Return to now to run this."}</span>
            )}
            {!chosen?.mutation && (
              <>
                <button type="button" class="button" disabled={isRunning || !text.trim()} onClick={() => void run("explain")}>
                  Explain
                </button>
                <button type="button" class="button" disabled={isRunning || !text.trim()} onClick={() => void run("analyze")}>
                  Analyze
                </button>
              </>
            )}
            <CopyButton text={() => new URL(link("console", [], { q: pack({ text, params, name }) }), location.href).href}>Copy link</CopyButton>
          </div>
          {chosen && chosen.params.length > 0 && <ParamsForm params={chosen.params} values={params} onChange={setParams} />}
          <SavedQueries text={text} name={chosen?.name ?? ""} onOpen={setText} />
        </div>
        <div class="console-right">
          {isRunning && !outcome && <Loading what="Running" />}
          {outcome?.kind === "failed" ? (
            <Failure error={outcome.error} />
          ) : outcome ? (
            <div class={isRunning ? "stale" : undefined}>
              <Results outcome={outcome} />
            </div>
          ) : (
            !isRunning && (
              <Panel title="Results">
                <p class="dim">
                  Write a query and press Run, or <kbd>Ctrl</kbd> <kbd>Enter</kbd>. Types, edges and properties of this graph complete as you type.
                </p>
              </Panel>
            )
          )}
        </div>
      </div>
    </Page>
  );
}
