// Bundle each of the page's entries (static/chatcore/pages) into static/chatcore/built, which is
// committed, so that nobody needs Node.js to serve. With --watch: at each change, and readable.

import { createHash } from "node:crypto";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const STATIC = "chatcore/static/chatcore";
const OUT = `${STATIC}/built`;
const LIST = `${OUT}/BUILT.json`;
const isWatching = process.argv.includes("--watch");

const hash = async (path) =>
  createHash("sha256")
    .update(await readFile(join(ROOT, path)))
    .digest("hex");

const hashAll = async (paths) =>
  Object.fromEntries(
    await Promise.all([...paths].sort().map(async (path) => [path, await hash(path)])),
  );

// A build of its own for each entry: a page loads one script, and further ones when it needs them.
const buildOptions = (entry) => ({
  absWorkingDir: ROOT,
  entryPoints: [entry],
  outdir: OUT,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  chunkNames: "chunk-[hash]",
  minify: !isWatching,
  sourcemap: isWatching && "inline",
  legalComments: isWatching ? "none" : "eof",
  external: ["*.woff2"],
  metafile: true,
  logLevel: "warning",
});

// Return the files that a file imports before it runs, and those that they import.
function listParts(path, outputs) {
  const imports = outputs[path].imports.filter(({ kind }) => kind === "import-statement");
  return [...new Set(imports.flatMap((part) => [part.path, ...listParts(part.path, outputs)]))];
}

await rm(join(ROOT, OUT), { recursive: true, force: true });
const names = await readdir(join(ROOT, STATIC, "pages"));
const entries = [
  ...names.map((name) => `${STATIC}/pages/${name}`),
  `${STATIC}/js/highlight_worker.js`,
];
const results = await Promise.all(entries.map((entry) => esbuild.build(buildOptions(entry))));
const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
const outputs = Object.assign({}, ...results.map(({ metafile }) => metafile.outputs));
const list = {
  // What a page names beside its script, so that all is fetched at once.
  parts: Object.fromEntries(
    entries.map((path) => [
      basename(path),
      listParts(`${OUT}/${basename(path)}`, outputs).map((part) => basename(part)),
    ]),
  ),
  // What was built of what, by SHA-256; a test reads it.
  inputs: await hashAll(new Set(["tools/build.mjs", "tools/package-lock.json", ...inputs])),
  outputs: await hashAll(Object.keys(outputs)),
};
await writeFile(join(ROOT, LIST), `${JSON.stringify(list, null, 2)}\n`);
console.error(
  `esbuild ${esbuild.version}: ${entries.length} entries, ${Object.keys(outputs).length} files.`,
);
if (isWatching)
  for (const entry of entries) await (await esbuild.context(buildOptions(entry))).watch();
