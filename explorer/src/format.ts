// Values, times and numbers as text.

import type { Commit, Counts } from "./documents";
import type { Prop } from "./schema";

const DAY = 86_400_000;

export const number = (value: number): string => value.toLocaleString("en-US");

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  let rest = value;
  while (rest >= 1000 && place < units.length - 1) {
    rest /= 1000;
    place += 1;
  }
  return `${place && rest < 10 ? rest.toFixed(1) : Math.round(rest)} ${units[place]}`;
}

/** A time in microseconds, as ISO text in UTC. */
export function moment(micros: number): string {
  return new Date(micros / 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

export function ago(micros: number): string {
  const seconds = Math.max(0, (Date.now() - micros / 1000) / 1000);
  const steps: [number, string][] = [
    [86_400 * 365, "year"],
    [86_400 * 30, "month"],
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ];
  for (const [size, name] of steps) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${name}${count > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

export const short = (commit: string): string => commit.slice(-8);

export const branchOf = (commit: Pick<Commit, "manifest_branch">): string => commit.manifest_branch ?? "main";

export const titleOf = (commit: Pick<Commit, "message" | "operation" | "counts">): string =>
  commit.message?.trim() || `${named(commit.operation)}${about(commit.counts)}`;

/** An operation as words: "ensure_indices" is "Ensure indices". */
const named = (operation: string): string => operation.charAt(0).toUpperCase() + operation.slice(1).replaceAll("_", " ");

function about(counts: Record<string, Counts>): string {
  const names = Object.keys(counts).map((key) => key.split(":")[1]);
  if (!names.length) return "";
  return ` ${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""}`;
}

export function total(counts: Record<string, Counts>): Counts {
  const sum = { inserted: 0, updated: 0, deleted: 0 };
  for (const one of Object.values(counts)) {
    sum.inserted += one.inserted;
    sum.updated += one.updated;
    sum.deleted += one.deleted;
  }
  return sum;
}

/** A value as one line of text. A stored Date is days, a stored DateTime microseconds or milliseconds. */
export function valueText(value: unknown, prop?: Prop, most = 200): string {
  const text = full(value, prop);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function full(value: unknown, prop?: Prop): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) {
    if (prop?.scalar === "Vector") return `[${value.slice(0, 4).map(compact).join(", ")}${value.length > 4 ? `, … ${value.length} values` : ""}]`;
    return `[${value.map((one) => full(one, prop)).join(", ")}]`;
  }
  if (typeof value === "number" && prop?.scalar === "Date") return new Date(value * DAY).toISOString().slice(0, 10);
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : compact(value);
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

const compact = (value: unknown): string => (typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value));

/** Whether two values are equal as JSON. */
export const same = (left: unknown, right: unknown): boolean => JSON.stringify(left ?? null) === JSON.stringify(right ?? null);

export const plural = (count: number, one: string, many = `${one}s`): string => `${number(count)} ${count === 1 ? one : many}`;
