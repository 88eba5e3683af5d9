// Validates lists of UI messages with the AI SDK, converts them for a model, and prints what was validated.
//
// node vercel_loader.mjs FOLDER messages.json ...    FOLDER has the package `ai` in node_modules.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, ...names] = process.argv.slice(2);
const place = createRequire(`${folder}/`).resolve("ai");
const { validateUIMessages, convertToModelMessages } = await import(pathToFileURL(place).href);
for (const name of names) {
  const messages = await validateUIMessages({ messages: JSON.parse(readFileSync(name, "utf8")) });
  if ((await convertToModelMessages(messages)).length === 0) throw new Error(`${name}: nothing to send`);
  console.log(JSON.stringify(messages));
}
