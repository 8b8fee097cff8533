// What all views share: the address, who is signed in, the graph, its schema and branches.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, GraphApi } from "./api";
import type { Permissions, Session } from "./documents";
import { type Route, link, type Params, parse } from "./route";
import type { Schema } from "./schema";

export interface Shared {
  route: Route;
  session: Session;
  graph: GraphApi;
  schema: Schema;
  branches: string[];
  permissions: Permissions;
  branch: string;
  /** The commit that the page shows; null for the newest of the branch. */
  at: string | null;
  /** The state as read requests name it. */
  state: { branch: string } | { snapshot: string };
  /** Changes whenever the page has written, so that views read again. */
  version: number;
  refresh: () => void;
  setOffline: (isOffline: boolean) => void;
}

export const SharedContext = createContext<Shared | null>(null);

export function useShared(): Shared {
  const shared = useContext(SharedContext);
  if (shared === null) throw new Error("no graph is open");
  return shared;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parse(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

export function useLink(): (view: string, parts?: string[], params?: Params) => string {
  const { route } = useShared();
  return (view, parts, params) => link(route, view, parts, params);
}

export const go = (address: string): void => {
  location.hash = address;
};

export interface Loaded<T> {
  data: T | undefined;
  error: Error | undefined;
  isLoading: boolean;
  reload: () => void;
}

/** Loads whenever `deps` change; what was loaded before is kept until the answer is there. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const shared = useContext(SharedContext);
  const [state, setState] = useState<{ data?: T; error?: Error; isLoading: boolean }>({ isLoading: true });
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ data: before.data, isLoading: true }));
    loader.current(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        shared?.setOffline(false);
        setState({ data, isLoading: false });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        if (error instanceof ApiError && error.isOffline) shared?.setOffline(true);
        setState({ error: error instanceof Error ? error : new Error(String(error)), isLoading: false });
      },
    );
    return () => abort.abort();
  }, [...deps, turn, shared?.version]);
  const reload = useCallback(() => setTurn((number) => number + 1), []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload };
}
