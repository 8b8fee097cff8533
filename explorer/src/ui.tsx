// Small parts that all views use.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "./api";
import type { Commit, Counts } from "./documents";
import { ago, moment, number, short, total, valueText } from "./format";
import type { Prop } from "./schema";
import { type Loaded, useLink } from "./store";
import { typeColour } from "./theme";

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <div class="note loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}…
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="note empty">
      <strong>{title}</strong>
      {children && <div>{children}</div>}
    </div>
  );
}

export function Failure({ error, retry }: { error: Error; retry?: () => void }) {
  const isOffline = error instanceof ApiError && error.isOffline;
  return (
    <div class={`note failure ${isOffline ? "offline" : ""}`} role="alert">
      <div>
        <strong>{isOffline ? "Offline" : "That did not work"}</strong>
        <pre>{error.message}</pre>
      </div>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** One of loading, failed, or what was loaded. */
export function Show<T>({ of, what, children }: { of: Loaded<T>; what?: string; children: (data: T) => JSX.Element | null }) {
  if (of.error !== undefined) return <Failure error={of.error} retry={of.reload} />;
  if (of.data === undefined) return <Loading what={what} />;
  return <div class={of.isLoading ? "stale" : undefined}>{children(of.data)}</div>;
}

export function Panel({ title, actions, children, id }: { title: string; actions?: ComponentChildren; children: ComponentChildren; id?: string }) {
  return (
    <section class="panel" id={id}>
      <header>
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Page({ title, about, actions, children, wide }: { title: string; about?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; wide?: boolean }) {
  return (
    <div class={`view ${wide ? "wide" : ""}`}>
      <header class="view-head">
        <div>
          <h1>{title}</h1>
          {about && <p class="about">{about}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function TypeName({ name, plain }: { name: string; plain?: boolean }) {
  return (
    <span class={plain ? "type plain" : "type"}>
      <svg class="dot" viewBox="0 0 10 10" aria-hidden="true">
        <circle cx="5" cy="5" r="5" fill={typeColour(name)} />
      </svg>
      {name}
    </span>
  );
}

export function EntityLink({ type, id, label }: { type: string; id: string; label?: string | null }) {
  const link = useLink();
  return (
    <a href={link("entity", [type, id])} class="entity-link">
      {label ?? id}
    </a>
  );
}

export function Value({ value, prop, most }: { value: unknown; prop?: Prop; most?: number }) {
  if (value === null || value === undefined) return <span class="null">null</span>;
  const kind = typeof value === "number" ? "number" : typeof value === "boolean" ? "boolean" : "text";
  return <span class={`value ${kind}`}>{valueText(value, prop, most)}</span>;
}

export function Delta({ counts }: { counts: Counts }) {
  const { inserted, updated, deleted } = counts;
  return (
    <span class="delta">
      {inserted > 0 && <span class="plus" title={`${number(inserted)} inserted`}>+{number(inserted)}</span>}
      {updated > 0 && <span class="tilde" title={`${number(updated)} updated`}>~{number(updated)}</span>}
      {deleted > 0 && <span class="minus" title={`${number(deleted)} deleted`}>−{number(deleted)}</span>}
      {inserted + updated + deleted === 0 && <span class="none">no rows</span>}
    </span>
  );
}

export function CommitDelta({ commit }: { commit: Commit }) {
  return <Delta counts={total(commit.counts)} />;
}

export function Ago({ micros }: { micros: number }) {
  return (
    <time dateTime={new Date(micros / 1000).toISOString()} title={moment(micros)}>
      {ago(micros)}
    </time>
  );
}

export function CommitId({ id }: { id: string }) {
  const link = useLink();
  return (
    <a class="commit-id" href={link("commit", [id])} title={id}>
      {short(id)}
    </a>
  );
}

export function Actor({ name }: { name: string | null }) {
  return name === null ? <span class="actor none">no actor</span> : <span class="actor">{name}</span>;
}

export const OP_WORDS = { insert: "added", update: "changed", delete: "removed" } as const;

export function Op({ op }: { op: "insert" | "update" | "delete" }) {
  return <span class={`op ${op}`}>{OP_WORDS[op]}</span>;
}

export function CopyButton({ text, children = "Copy" }: { text: () => string; children?: ComponentChildren }) {
  const [isDone, setDone] = useState(false);
  return (
    <button
      type="button"
      class="button quiet"
      onClick={() => {
        void navigator.clipboard?.writeText(text()).then(() => {
          setDone(true);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    >
      {isDone ? "Copied" : children}
    </button>
  );
}

export function Select({ label, value, options, onChange, hideLabel }: { label: string; value: string; options: (string | [string, string])[]; onChange: (value: string) => void; hideLabel?: boolean }) {
  return (
    <label class="field">
      <span class={hideLabel ? "sr-only" : "label"}>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((one) => {
          const [key, text] = typeof one === "string" ? [one, one] : one;
          return (
            <option key={key} value={key}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** Links that page through a list. */
export function Pager({ from, size, count, onMove }: { from: number; size: number; count: number; onMove: (from: number) => void }) {
  if (count <= size && from === 0) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" class="button quiet" disabled={from === 0} onClick={() => onMove(Math.max(0, from - size))}>
        Previous
      </button>
      <span>
        {number(from + 1)}–{number(Math.min(count, from + size))} of {number(count)}
      </span>
      <button type="button" class="button quiet" disabled={from + size >= count} onClick={() => onMove(from + size)}>
        Next
      </button>
    </nav>
  );
}
