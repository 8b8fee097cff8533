// A field for a branch, a commit, or any other name of a state.

import { useState } from "preact/hooks";
import { useShared } from "./store";

export function RefField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const { branches } = useShared();
  const isBranch = branches.includes(value);
  const [isFree, setFree] = useState(!isBranch);
  const [text, setText] = useState(value);
  return (
    <div class="field ref-field">
      <label class="field">
        <span class="label">{label}</span>
        <select
          value={isFree ? "\n" : value}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            setFree(chosen === "\n");
            if (chosen !== "\n") onChange(chosen);
          }}
        >
          {branches.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
          <option value={"\n"}>a commit…</option>
        </select>
      </label>
      {isFree && (
        <input
          aria-label={`${label}: commit`}
          placeholder="commit, main~2, main@{2026-01-31}"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onChange={(event) => event.currentTarget.value.trim() && onChange(event.currentTarget.value.trim())}
        />
      )}
    </div>
  );
}
