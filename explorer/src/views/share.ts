// A query as part of an address.

export interface SharedQuery {
  text: string;
  params: Record<string, string>;
  name: string | null;
}

export function pack(query: SharedQuery): string {
  const bytes = new TextEncoder().encode(JSON.stringify(query));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** What `pack` was given; null for any other text. */
export function unpack(text: string | undefined): SharedQuery | null {
  if (!text) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const found = JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (one) => one.charCodeAt(0)))) as Partial<SharedQuery>;
    if (typeof found.text !== "string") return null;
    const params = Object.entries(found.params ?? {}).map(([name, value]) => [name, String(value)]);
    return { text: found.text, params: Object.fromEntries(params), name: typeof found.name === "string" ? found.name : null };
  } catch {
    return null;
  }
}
