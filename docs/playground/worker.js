// Runs segue in the browser: the files of the library, compiled, in Pyodide.

import { loadPyodide } from "./{runtime}/pyodide.mjs";

const START = `
import sys
sys.path.insert(0, "/segue.zip")
from pathlib import Path
from segue.inspector.answers import Answers
from segue.inspector.library import Library
from segue.models.catalogue import packaged_catalogue

_catalogue = packaged_catalogue()
_answers = Answers(Library(_catalogue), _catalogue, example=Path("/example.jsonl"))

def answer(path, given, body):
    found = _answers.answer(path, given.to_py(), body.to_bytes())
    return found.status, found.kind, found.data

answer
`;

async function load(name) {
  const reply = await fetch(new URL(name, import.meta.url));
  if (!reply.ok) throw new Error(`${name}: status ${reply.status}`);
  return reply.arrayBuffer();
}

async function start() {
  postMessage({ progress: "Loading Python …" });
  const [python, msgspec, library, example] = await Promise.all([loadPyodide(), load("msgspec.whl"), load("segue.zip"), load("example.jsonl")]);
  postMessage({ progress: "Starting segue …" });
  python.unpackArchive(msgspec, "whl");
  python.FS.writeFile("/segue.zip", new Uint8Array(library));
  python.FS.writeFile("/example.jsonl", new Uint8Array(example));
  const answer = python.runPython(START);
  postMessage({ progress: "" });
  return answer;
}

const started = start();
started.catch((error) => postMessage({ failed: String(error) }));

onmessage = async ({ data: { id, path, given, body } }) => {
  const answer = await started;
  const found = answer(path, given, new Uint8Array(body));
  const [status, kind, data] = found.toJs({ create_pyproxies: false });
  found.destroy();
  postMessage({ id, status, kind, body: data }, [data.buffer]);
};
