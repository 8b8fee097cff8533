// The frame around every view: navigation, search, and which state of the graph is shown.

import { useEffect, useState } from "preact/hooks";
import type { Commit, Session } from "./documents";
import { ago, short, titleOf } from "./format";
import { type Route, link } from "./route";
import { type Shared, go, useLoad, useShared } from "./store";
import { readTheme, setTheme, type Theme } from "./theme";
import { Failure, Loading, Select } from "./ui";
import { Icon } from "./icons";
import { VIEWS } from "./views/all";

interface FrameProps {
  route: Route;
  session: Session;
  shared: Shared | null;
  error: Error | null;
  isOffline: boolean;
  retry: () => void;
  signOut: () => void;
}

export function Frame({ route, session, shared, error, isOffline, retry, signOut }: FrameProps) {
  const view = VIEWS.find((one) => one.name === route.view);
  const Shown = view?.component;
  useEffect(() => {
    document.title = `${view?.title ?? "Not found"} · OmniGraph`;
  }, [view]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={link(route, "overview")}>
          <Icon name="brand" />
          <span>OmniGraph</span>
        </a>
        <GraphChoice route={route} session={session} />
        <SearchBox route={route} />
        <div class="who">
          <ThemeButton />
          {session.actor_id !== null && <span class="actor" title="Who you are to this server">{session.actor_id}</span>}
          {session.actor_id !== null && (
            <button type="button" class="button quiet" onClick={signOut}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <nav class="side" aria-label="Views">
        {VIEWS.filter((one) => one.icon).map((one) => (
          <a key={one.name} href={link(route, one.name)} aria-current={one.name === route.view || one.also?.includes(route.view) ? "page" : undefined}>
            <Icon name={one.icon ?? ""} />
            <span>{one.title}</span>
          </a>
        ))}
      </nav>
      {shared && <StateBar />}
      <main id="main" tabIndex={-1}>
        {isOffline && (
          <div class="note failure offline" role="alert">
            <div>
              <strong>Offline</strong> The server cannot be reached. What you see may be old; trying again…
            </div>
            <button type="button" class="button" onClick={retry}>
              Try now
            </button>
          </div>
        )}
        {error ? <GraphFailure error={error} route={route} retry={retry} /> : !shared ? <Loading what="Opening the graph" /> : Shown ? <Shown key={route.view} /> : <NoSuchView route={route} />}
      </main>
    </div>
  );
}

function GraphFailure({ error, route, retry }: { error: Error; route: Route; retry: () => void }) {
  return (
    <div class="view">
      <Failure error={error} retry={retry} />
      {(route.params.branch || route.params.at) && (
        <p>
          <a href={link(route, "overview", [], { branch: null, at: null })}>Go to the newest state of main</a>
        </p>
      )}
    </div>
  );
}

function NoSuchView({ route }: { route: Route }) {
  return (
    <div class="view">
      <h1>There is no such view</h1>
      <p>
        <a href={link(route, "overview")}>Go to the overview</a>
      </p>
    </div>
  );
}

function GraphChoice({ route, session }: { route: Route; session: Session }) {
  const current = route.params.graph ?? session.graphs[0] ?? "";
  if (session.graphs.length < 2) return null;
  return (
    <Select
      label="Graph"
      hideLabel
      value={current}
      options={session.graphs.includes(current) ? session.graphs : [current, ...session.graphs]}
      onChange={(graph) => go(link(route, "overview", [], { graph, branch: null, at: null }))}
    />
  );
}

function SearchBox({ route }: { route: Route }) {
  const [text, setText] = useState(route.view === "search" ? (route.params.q ?? "") : "");
  return (
    <form
      class="search-box"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) go(link(route, "search", [], { q: text.trim(), mode: route.params.mode ?? null }));
      }}
    >
      <Icon name="search" />
      <input type="search" aria-label="Search the graph" placeholder="Search the graph" value={text} onInput={(event) => setText(event.currentTarget.value)} />
    </form>
  );
}

function ThemeButton() {
  const [theme, choose] = useState<Theme>(readTheme);
  const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
  return (
    <button
      type="button"
      class="button quiet icon-only"
      title={`Theme: ${theme}`}
      aria-label={`Theme: ${theme}. Change it`}
      onClick={() => {
        choose(next[theme]);
        setTheme(next[theme]);
      }}
    >
      <Icon name={theme === "dark" ? "moon" : theme === "light" ? "sun" : "system"} />
    </button>
  );
}

/** Which state everything on the page comes from. */
function StateBar() {
  const { route, graph, branches, branch, at, permissions } = useShared();
  const shown = useLoad(
    async (signal) => {
      if (at) return graph.get<Commit>(`/commits/${encodeURIComponent(at)}`, {}, signal);
      const listed = await graph.get<{ commits: Commit[] }>("/commits", { branch, limit: 1 }, signal);
      return listed.commits[listed.commits.length - 1] ?? null;
    },
    [graph, branch, at],
  );
  const names = branches.includes(branch) ? branches : [branch, ...branches];
  return (
    <div class={`state ${at ? "past" : ""}`} role="region" aria-label="State shown">
      <label class="branch">
        <Icon name="branch" />
        <span class="sr-only">Branch</span>
        <select value={branch} onChange={(event) => go(link(route, homeOf(route.view), homeOf(route.view) === route.view ? route.parts : [], { ...route.params, branch: event.currentTarget.value, at: null }))}>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {at ? (
        <>
          <span class="when">
            <Icon name="clock" /> You see the graph as of{" "}
            {shown.data ? (
              <a href={link(route, "commit", [shown.data.graph_commit_id])}>
                <b>{short(shown.data.graph_commit_id)}</b> {titleOf(shown.data)}
              </a>
            ) : (
              <b>{short(at)}</b>
            )}
            {shown.data && <span class="dim"> {ago(shown.data.created_at)}</span>}
          </span>
          <a class="button small" href={link(route, route.view, route.parts, { ...route.params, at: null })}>
            Return to now
          </a>
        </>
      ) : (
        <span class="when">
          Newest state
          {shown.data && (
            <>
              {" · "}
              <a href={link(route, "commit", [shown.data.graph_commit_id])}>
                <b>{short(shown.data.graph_commit_id)}</b> {titleOf(shown.data)}
              </a>
              <span class="dim"> {ago(shown.data.created_at)}</span>
            </>
          )}
        </span>
      )}
      {!permissions.change && <span class="badge" title="Your token may not change this branch">read only</span>}
    </div>
  );
}

/** Where a change of branch leads: a commit is on no branch in particular. */
const homeOf = (view: string): string => (view === "commit" ? "history" : view);
