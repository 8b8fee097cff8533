// From nothing to an open graph: who signs in, which graph, and then the views.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, GraphApi, keepToken, readToken, server } from "./api";
import type { Permissions, Session } from "./documents";
import { readSchema, type Schema } from "./schema";
import { Frame } from "./frame";
import { type Shared, SharedContext, go, useRoute } from "./store";
import { link, type Route } from "./route";
import { setTypes } from "./theme";
import { SignIn } from "./views/sign-in";
import { Loading } from "./ui";

export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    server<Session>("session", {}, abort.signal).then(
      (found) => {
        setError(null);
        setSession(found);
      },
      (failure: Error) => {
        if (abort.signal.aborted) return;
        if (failure instanceof ApiError && failure.status === 401 && readToken() !== null) keepToken(null);
        setSession(null);
        setError(failure);
      },
    );
    return () => abort.abort();
  }, [turn]);
  const again = useCallback(() => setTurn((number) => number + 1), []);
  const signOut = useCallback(() => {
    keepToken(null);
    setSession(null);
    again();
  }, [again]);
  if (error) return <SignIn error={error} again={again} />;
  if (!session) return <Loading what="Connecting" />;
  return <Opened session={session} signOut={signOut} again={again} />;
}

interface GraphState {
  schema: Schema;
  branches: string[];
  permissions: Permissions;
}

function Opened({ session, signOut, again }: { session: Session; signOut: () => void; again: () => void }) {
  const route = useRoute();
  const graphId = route.params.graph ?? session.graphs[0] ?? "";
  const branch = route.params.branch ?? "main";
  const at = route.params.at ?? null;
  const graph = useMemo(() => new GraphApi(graphId), [graphId]);
  const [found, setFound] = useState<GraphState | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [version, setVersion] = useState(0);
  const [isOffline, setOffline] = useState(false);
  const refresh = useCallback(() => setVersion((number) => number + 1), []);
  useEffect(() => {
    if (!graphId) return;
    const abort = new AbortController();
    const { signal } = abort;
    const state = at ?? branch;
    Promise.all([
      graph.get<{ schema_source: string; schema_ir: Record<string, unknown> }>("/schema", { compiled: true, snapshot: state }, signal),
      graph.get<{ branches: string[] }>("/branches", {}, signal),
      graph.get<Permissions>("/permissions", { branch }, signal),
    ]).then(
      ([document, listed, permissions]) => {
        const schema = readSchema(document);
        setTypes(schema.nodes.map((one) => one.name));
        setError(null);
        setOffline(false);
        setFound({ schema, branches: listed.branches, permissions });
      },
      (failure: Error) => {
        if (!signal.aborted) setError(failure);
      },
    );
    return () => abort.abort();
  }, [session, graph, graphId, branch, at, version]);
  useReconnect(isOffline, refresh);
  if (!graphId) return <ChooseGraph route={route} signOut={signOut} />;
  if (error instanceof ApiError && error.status === 401) return <SignIn error={error} again={again} />;
  const shared: Shared | null = found && {
    route,
    session,
    graph,
    schema: found.schema,
    branches: found.branches,
    permissions: found.permissions,
    branch,
    at,
    state: at ? { snapshot: at } : { branch },
    version,
    refresh,
    setOffline,
  };
  return (
    <SharedContext.Provider value={shared}>
      <Frame route={route} session={session} shared={shared} error={error} isOffline={isOffline} retry={refresh} signOut={signOut} />
    </SharedContext.Provider>
  );
}

/** While the server cannot be reached, ask again now and then. */
function useReconnect(isOffline: boolean, retry: () => void): void {
  useEffect(() => {
    if (!isOffline) return;
    const timer = setInterval(() => {
      server("readyz").then(retry, () => undefined);
    }, 3000);
    addEventListener("online", retry);
    return () => {
      clearInterval(timer);
      removeEventListener("online", retry);
    };
  }, [isOffline, retry]);
}

function ChooseGraph({ route, signOut }: { route: Route; signOut: () => void }) {
  const [id, setId] = useState("");
  return (
    <main class="door">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          go(link(route, "overview", [], { graph: id.trim() }));
        }}
      >
        <h1>Which graph?</h1>
        <p>This server has several graphs, and your token does not list them. Enter the id of one.</p>
        <label class="field">
          <span class="label">Graph id</span>
          <input value={id} onInput={(event) => setId(event.currentTarget.value)} required autofocus />
        </label>
        <div class="actions">
          <button class="button primary" type="submit">
            Open
          </button>
          <button class="button quiet" type="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </form>
    </main>
  );
}
