// Format the CSS and JavaScript of the project, or check that they are formatted (--check).
// Prettier is in tools/prettier, so that a check needs no network and no npm.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as prettier from "./prettier/standalone.mjs";
import * as babel from "./prettier/babel.mjs";
import * as estree from "./prettier/estree.mjs";
import * as postcss from "./prettier/postcss.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const STATIC = "chatcore/static/chatcore";
const FOLDERS = [`${STATIC}/css`, `${STATIC}/js`, `${STATIC}/pages`, "tests"];
const FILES = ["tools/build.mjs", "tools/format.mjs"];
const PARSERS = { ".css": "css", ".js": "babel", ".mjs": "babel" };
const PLUGINS = [babel, estree, postcss];

async function listFiles() {
  const names = await Promise.all(
    FOLDERS.map((folder) => readdir(join(ROOT, folder), { recursive: true })),
  );
  const paths = names.flatMap((list, index) => list.map((name) => join(FOLDERS[index], name)));
  const sources = paths.filter((path) => extname(path) in PARSERS && !path.includes("vendor"));
  return [...FILES, ...sources].sort().map((path) => join(ROOT, path));
}

async function format(path, options) {
  const source = await readFile(path, "utf8");
  const parser = PARSERS[extname(path)];
  const formatted = await prettier.format(source, { ...options, parser, plugins: PLUGINS });
  return { path: relative(ROOT, path), source, formatted };
}

const options = JSON.parse(await readFile(join(ROOT, ".prettierrc.json"), "utf8"));
const files = await listFiles();
const results = await Promise.all(files.map((path) => format(path, options)));
const changes = results.filter(({ source, formatted }) => source !== formatted);

if (process.argv.includes("--check")) {
  for (const { path } of changes) console.error(`Would format: ${path}`);
  process.exitCode = changes.length ? 1 : 0;
} else {
  for (const { path, formatted } of changes) await writeFile(join(ROOT, path), formatted);
}
console.error(`Prettier ${prettier.version}: ${files.length} files, ${changes.length} to format.`);
