// Queries that this browser remembers.

import { useState } from "preact/hooks";
import { Panel } from "../ui";

const KEY = "omnigraph.queries";

interface Saved {
  name: string;
  text: string;
}

function read(): Saved[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is Saved => typeof one?.name === "string" && typeof one?.text === "string") : [];
  } catch {
    return [];
  }
}

export function SavedQueries({ text, name, onOpen }: { text: string; name: string; onOpen: (text: string) => void }) {
  const [saved, setSaved] = useState(read);
  const [title, setTitle] = useState("");
  const keep = (next: Saved[]) => {
    localStorage.setItem(KEY, JSON.stringify(next));
    setSaved(next);
  };
  return (
    <Panel title="Saved queries">
      <form
        class="save-query"
        onSubmit={(event) => {
          event.preventDefault();
          const chosen = title.trim() || name;
          if (!chosen || !text.trim()) return;
          keep([{ name: chosen, text }, ...saved.filter((one) => one.name !== chosen)]);
          setTitle("");
        }}
      >
        <input aria-label="Name of the saved query" placeholder={name || "Name"} value={title} onInput={(event) => setTitle(event.currentTarget.value)} />
        <button type="submit" class="button">
          Save
        </button>
      </form>
      {saved.length === 0 ? (
        <p class="dim">Queries you save stay in this browser.</p>
      ) : (
        <ul class="saved">
          {saved.map((one) => (
            <li key={one.name}>
              <button type="button" class="link" onClick={() => onOpen(one.text)}>
                {one.name}
              </button>
              <button type="button" class="button quiet small" aria-label={`Remove ${one.name}`} onClick={() => keep(saved.filter((other) => other !== one))}>
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
