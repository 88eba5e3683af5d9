// How the page of the inspector asks in the playground: a worker runs segue in this browser. Nothing is sent to a server.

import { $ } from "./elements.js";

export const STOPPED = "segue could not be started in this browser; it needs WebAssembly, and one online visit";

export const KEEPS = false; // the worker ends with the page

const LONGEST_LINK = 500_000; // characters; browsers cut longer addresses
const waiting = new Map();
let asked = 0;

// A worker of a blob has the content security policy of this page, and one of a file has none.
const source = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
worker.onmessage = ({ data: { id, status, kind, body, progress, failed } }) => {
  if (progress !== undefined) $("loading").textContent = progress;
  else if (failed !== undefined) stop(failed);
  else {
    waiting.get(id)?.resolve(new Response(body, { status, headers: { "content-type": kind } }));
    waiting.delete(id);
  }
};
worker.onerror = (event) => stop(event.message);

function stop(reason) {
  $("loading").textContent = STOPPED;
  for (const { reject } of waiting.values()) reject(new Error(reason));
  waiting.clear();
}

export async function send(path, options) {
  const [name, parameters] = path.replace(/^api\//, "").split("?");
  const body = await new Response(options?.body ?? "").arrayBuffer();
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, path: name, given: Object.fromEntries(new URLSearchParams(parameters)), body }, [body]);
  });
}

export async function imageUrl(path) {
  return URL.createObjectURL(await (await send(path)).blob());
}

// The content goes into the fragment of the address, which browsers do not send, and only when a link is asked for.
export async function share(given) {
  if (given === null) return {};
  const packed = await new Response(new Response(given).body.pipeThrough(new CompressionStream("deflate-raw"))).bytes();
  const text = packed.toBase64({ alphabet: "base64url", omitPadding: true });
  if (text.length > LONGEST_LINK) throw new Error("The content is too long for a link; send the file instead.");
  return { text };
}

export async function readShared(link) {
  if (!link.has("text")) return null;
  const packed = Uint8Array.fromBase64(link.get("text"), { alphabet: "base64url" });
  return new Response(new Response(packed).body.pipeThrough(new DecompressionStream("deflate-raw"))).text();
}

navigator.serviceWorker?.register("offline.js");
