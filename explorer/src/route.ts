// Addresses inside the page: #/view/part/part?name=value. Every view has one.

export interface Route {
  view: string;
  parts: string[];
  params: Record<string, string>;
}

export const KEPT = ["graph", "branch", "at"];
/** Parameters that say which state is shown; links keep them. */

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = splitOnce(hash.replace(/^#\/?/, ""), "?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view: view || "overview", parts, params: Object.fromEntries(new URLSearchParams(query)) };
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

export type Params = Record<string, string | null | undefined>;

/** The address of a view in the state that `from` shows; null removes a parameter. */
export function link(from: Route, view: string, parts: string[] = [], params: Params = {}): string {
  const wanted = new URLSearchParams();
  for (const name of KEPT) {
    const value = name in params ? params[name] : from.params[name];
    if (value) wanted.set(name, value);
  }
  for (const [name, value] of Object.entries(params)) if (value && !KEPT.includes(name)) wanted.set(name, value);
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  const query = wanted.toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}
