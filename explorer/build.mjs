// Builds the page into the package: node build.mjs [FOLDER]
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? `${here}../src/omnigraph/server/page`;
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  define: { "process.env.NODE_ENV": '"production"' },
};

await mkdir(out, { recursive: true });
await build({ ...common, entryPoints: ["src/main.tsx"], outfile: `${out}/app.js`, jsx: "automatic", jsxImportSource: "preact" });
await build({ ...common, entryPoints: ["src/graph/layout.worker.ts"], outfile: `${out}/layout.js` });
await build({ ...common, entryPoints: ["src/style/app.css"], outfile: `${out}/app.css` });
await copyFile(`${here}src/index.html`, `${out}/index.html`);
await copyFile(`${here}src/icon.svg`, `${out}/icon.svg`);
