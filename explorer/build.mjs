// Builds the page into the package: node build.mjs [FOLDER]
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
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

// What the page was built from: the SHA-256 of every source's path and text, in order of the paths.
const files = (await readdir(`${here}src`, { recursive: true, withFileTypes: true }))
  .filter((one) => one.isFile())
  .map((one) => `${one.parentPath}/${one.name}`.slice(here.length));
const digest = createHash("sha256");
for (const name of [...files, "build.mjs", "package-lock.json", "package.json", "tsconfig.json"].sort())
  digest.update(`${name}\0`).update(await readFile(`${here}${name}`)).update("\0");
await writeFile(`${out}/build.json`, `${JSON.stringify({ sources: digest.digest("hex") })}\n`);
