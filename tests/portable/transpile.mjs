// Makes a JavaScript module of a component: node transpile.mjs core.wasm FOLDER writes FOLDER/core.js.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [component, folder] = process.argv.slice(2);
// Installed beside the folder that is written, not beside this file.
const require = createRequire(pathToFileURL(join(process.cwd(), "here.js")));
const { transpile, writeFiles } = await import(pathToFileURL(require.resolve("@bytecodealliance/jco-transpile")));
const { files } = await transpile(component, { name: "core", outDir: folder });
await writeFiles(files);
writeFileSync(join(folder, "package.json"), '{"type": "module"}\n');
