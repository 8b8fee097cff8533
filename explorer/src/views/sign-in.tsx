// What is shown without a valid token: a form, and nothing of the graph.

import { useState } from "preact/hooks";
import { ApiError, keepToken, readToken } from "../api";
import { Failure } from "../ui";

export function SignIn({ error, again }: { error: Error; again: () => void }) {
  const [token, setToken] = useState("");
  const isRefused = error instanceof ApiError && error.status === 401;
  const isOld = error instanceof ApiError && error.status === 404;
  if (isOld)
    return (
      <main class="door">
        <Failure error={new Error("This server offers only HTTP contract 0.7. The explorer needs 0.13: start the server with --http-api both.")} />
      </main>
    );
  if (!isRefused)
    return (
      <main class="door">
        <Failure error={error} retry={again} />
      </main>
    );
  return (
    <main class="door">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(token.trim());
          again();
        }}
      >
        <h1>OmniGraph</h1>
        <p>This server asks for a token. It is kept until you close this tab.</p>
        {error.message.startsWith("invalid") && readToken() === null && (
          <p class="problem" role="alert">
            The server does not know this token.
          </p>
        )}
        <label class="field">
          <span class="label">Token</span>
          <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} required autofocus />
        </label>
        <button class="button primary" type="submit">
          Sign in
        </button>
      </form>
    </main>
  );
}
