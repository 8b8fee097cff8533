import { render } from "preact";
import { App } from "./app";
import { keepToken } from "./api";
import { applyTheme, readTheme } from "./theme";

/** `#token=…` is how `omnigraph explore` hands over; it leaves the address at once. */
function takeToken(): void {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return;
  keepToken(decodeURIComponent(found[1] ?? ""));
  history.replaceState(null, "", `${location.pathname}${location.search}#/overview`);
}

takeToken();
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) {
    takeToken();
    location.reload();
  }
});
applyTheme(readTheme());
const root = document.getElementById("page");
if (root) render(<App />, root);
