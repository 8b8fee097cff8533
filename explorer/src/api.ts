// Requests to the server that this page came from, in HTTP contract 0.13 with all fields.

export interface Diagnostic {
  severity: string;
  code?: string;
  message: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
  hint?: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | undefined,
    readonly diagnostics: Diagnostic[],
  ) {
    super(message);
  }

  get isOffline(): boolean {
    return this.status === 0;
  }
}

const BASE = new URL(".", location.href.split("#")[0]);
const TOKEN_KEY = "omnigraph.token";

export function readToken(): string | null {
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN_KEY);
  else sessionStorage.setItem(TOKEN_KEY, token);
}

export type Query = Record<string, string | number | boolean | null | undefined>;

function address(path: string, query?: Query): URL {
  const url = new URL(path.replace(/^\//, ""), BASE);
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, String(value));
  return url;
}

async function send(method: string, url: URL, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {
    "Omnigraph-Http-Api": "0.13",
    Accept: "application/vnd.omnigraph+json",
  };
  const token = readToken();
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The server cannot be reached.", "offline", []);
  }
}

async function answered<T>(response: Response): Promise<T> {
  const text = await response.text();
  let document: any;
  try {
    document = JSON.parse(text);
  } catch {
    document = undefined;
  }
  if (response.ok && document !== undefined) return document as T;
  const message = document?.exception?.message ?? document?.error ?? `The server answered ${response.status}.`;
  throw new ApiError(response.status, String(message), document?.exception?.code ?? document?.code, document?.diagnostics ?? []);
}

export async function server<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return answered<T>(await send("GET", address(path, query), undefined, signal));
}

export class GraphApi {
  constructor(readonly id: string) {}

  private path(path: string): string {
    return `graphs/${encodeURIComponent(this.id)}${path}`;
  }

  async get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
    return answered<T>(await send("GET", address(this.path(path), query), undefined, signal));
  }

  async post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return answered<T>(await send("POST", address(this.path(path)), body, signal));
  }
}
