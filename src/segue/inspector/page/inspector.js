// The page of the inspector: gets the request for each target from the local server, and shows the differences.
"use strict";

const LOSSES = ["content", "opaque", "none"];
const SHOWN_WIRE = 200_000; // characters of a body that are shown; copying takes all of it
const BATCH = 150; // rows drawn in one step, so that the page stays responsive

const $ = (id) => document.getElementById(id);
const state = { targets: [], answer: null, selected: 0, drawing: 0, wire: new Map() };

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

async function ask(path, question) {
  const options = question && { method: "POST", body: JSON.stringify(question), headers: { "content-type": "application/json" } };
  const reply = await fetch(path, options);
  if (reply.ok) return reply;
  const answer = await reply.json().catch(() => ({ error: `the server answered with status ${reply.status}` }));
  throw new Error(answer.error);
}

// -- the form ----------------------------------------------------------------------------------------------------------

function question(targets) {
  return { text: $("text").value, source: $("source").value || null, targets, reasoning: $("reasoning").value };
}

function addTarget(name) {
  const wanted = name.trim();
  if (!wanted || state.targets.includes(wanted)) return;
  state.targets.push(wanted);
  drawTargets();
}

function drawTargets() {
  $("targets").replaceChildren(...state.targets.map((name) =>
    make("li", {}, name, make("button", {
      type: "button", "aria-label": `Remove ${name}`, onclick: () => {
        state.targets = state.targets.filter((other) => other !== name);
        drawTargets();
        $("target").focus();
      },
    }, "×"))));
}

async function openFile(file) {
  $("text").value = await file.text();
  showSize();
}

async function listSessions() {
  const sessions = await (await ask("api/sessions")).json();
  $("sessions").hidden = sessions.length === 0;
  $("session").append(...sessions.map((each) => make("option", { value: each.source },
    `${each.source.split(":")[0]}: ${each.title}${each.project ? ` (${each.project})` : ""}`)));
}

async function openSession() {
  if (!$("session").value) return;
  $("problem").textContent = "";
  const read = await (await ask("api/session", { text: $("session").value })).json();
  $("text").value = read.text;
  $("left-out").textContent = read.leftOut.join(" ");
  showSize();
}

function showSize() {
  const length = $("text").value.length;
  $("size").textContent = length ? `${length.toLocaleString("en")} characters` : "";
}

async function inspect(event) {
  event?.preventDefault();
  if ($("target").value.trim()) {
    addTarget($("target").value);
    $("target").value = "";
  }
  $("problem").textContent = "";
  if (!state.targets.length) {
    $("problem").textContent = "Choose at least one target model.";
    $("target").focus();
    return;
  }
  $("inspect").disabled = true;
  try {
    const reply = await ask("api/inspect", question(state.targets));
    state.answer = await reply.json();
    state.wire.clear();
    state.selected = 0;
    draw();
  } catch (error) {
    $("overview").hidden = $("detail").hidden = true;
    $("problem").textContent = error.message;
  } finally {
    $("inspect").disabled = false;
  }
}

// -- the matrix --------------------------------------------------------------------------------------------------------

function draw() {
  $("overview").hidden = $("detail").hidden = false;
  const targets = state.answer.targets;
  const codes = new Map();
  for (const target of targets)
    for (const change of target.changes) codes.set(`${change.loss} ${change.code}`, change);
  const kinds = [...codes.values()].sort((a, b) =>
    LOSSES.indexOf(a.loss) - LOSSES.indexOf(b.loss) || a.code.localeCompare(b.code));
  $("matrix").tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "Target"),
    ...LOSSES.map((loss) => make("th", { scope: "col" }, inWords(loss))),
    ...kinds.map((kind) => make("th", { scope: "col", title: kind.sentence }, kind.code.replaceAll("_", " "), make("small", {}, `${kind.dropped} dropped`)))));
  $("matrix").tBodies[0].replaceChildren(...targets.map((target, at) => make("tr", {
    tabindex: at === state.selected ? "0" : "-1", "aria-selected": String(at === state.selected),
    onclick: () => select(at), onkeydown: (event) => moveRow(event, at),
  }, make("th", { scope: "row" }, target.name),
    ...LOSSES.map((loss) => cell(target.counts[loss], loss)),
    ...kinds.map((kind) => cell(target.changes.filter((change) => change.code === kind.code && change.loss === kind.loss).length, kind.loss)))));
  drawDetail();
}

function inWords(loss) {
  return { content: "content dropped", opaque: "provider data dropped", none: "nothing dropped" }[loss];
}

function cell(count, loss) {
  return make("td", { class: loss, "data-count": count }, count ? String(count) : "·");
}

function moveRow(event, at) {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Enter: at, " ": at }[event.key];
  if (to === undefined || !state.answer.targets[to]) return;
  event.preventDefault();
  select(to);
  $("matrix").tBodies[0].rows[to].focus();
}

function select(at) {
  state.selected = at;
  [...$("matrix").tBodies[0].rows].forEach((row, index) => {
    row.setAttribute("aria-selected", String(index === at));
    row.tabIndex = index === at ? 0 : -1;
  });
  drawDetail();
}

// -- one target --------------------------------------------------------------------------------------------------------

function fact(name, ...value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, ...value));
}

function drawDetail() {
  const target = state.answer.targets[state.selected];
  $("detail-title").textContent = target.name;
  $("wire-box").hidden = true;
  const facts = [fact("Protocol", target.protocol), fact("Source format", state.answer.source)];
  if (target.problem) facts.push(fact("Cannot be sent", target.problem));
  else facts.push(...factsOf(target));
  $("facts").replaceChildren(...facts);
  drawRows(target);
}

function factsOf(target) {
  const facts = [fact("URL", target.url || "none: this model has no base URL")];
  const length = target.fits ? target.length : make("strong", {}, target.length);
  if (target.limit) {
    facts.push(fact("Length", length, " ",
      make("meter", { min: 0, max: target.limit, high: target.limit * 0.9, value: target.tokens, "aria-label": "Share of the context window" })));
  } else facts.push(fact("Length", length));
  facts.push(fact("Body", `${target.bytes.toLocaleString("en")} bytes`));
  const cache = target.cache;
  facts.push(fact("Prompt cache", cache
    ? `${cache.turns} of ${cache.of} turns are the same as in the last request to this model` + (cache.turns < cache.sentBefore ? `, which had ${cache.sentBefore}` : "")
    : "this model has not answered in this conversation, so nothing is cached"));
  if (target.needed.length) facts.push(fact("Required", target.needed.join("; ")));
  facts.push(fact("Check", target.violations.length ? target.violations.join("; ") : "no known violations"));
  return facts;
}

function drawRows(target) {
  const drawing = ++state.drawing;
  const list = $("rows");
  list.replaceChildren();
  list.classList.toggle("only", $("only").getAttribute("aria-pressed") === "true");
  const byMessage = new Map();
  const others = [];
  for (const change of target.changes) {
    if (change.message === null) others.push(change);
    else byMessage.set(change.message, [...(byMessage.get(change.message) ?? []), change]);
  }
  const rows = target.rows ?? state.answer.stored.map((_, at) => [at, null, false]);
  if (others.length || state.answer.system || target.system)
    list.append(row(others, textSide("system", state.answer.system), textSide("system", target.system, state.answer.system === target.system)));
  let at = 0;
  const step = () => {
    if (drawing !== state.drawing) return; // another target was chosen in the meantime
    const part = document.createDocumentFragment();
    for (const end = Math.min(at + BATCH, rows.length); at < end; at++) {
      const [stored, sent, same] = rows[at];
      const given = stored === null ? null : state.answer.stored[stored];
      const changes = stored === null ? [] : byMessage.get(stored) ?? [];
      const received = sent === null ? null : target.sent?.[sent] ?? given;
      part.append(row(changes, side(given, stored, "not stored"), side(received, sent, "not sent", same), stored === null || sent === null));
    }
    list.append(part);
    if (at < rows.length) requestAnimationFrame(step);
    else list.dataset.done = "yes";
  };
  delete list.dataset.done;
  step();
}

function row(changes, stored, sent, differs = false) {
  const marks = changes.length && make("ul", { class: "changes", "aria-label": "Changes" }, ...changes.map((change) =>
    make("li", { class: change.loss }, make("b", {}, `${change.dropped} dropped`), " ",
      make("code", {}, change.code), ` at ${change.where}: ${change.sentence}`, change.detail ? ` (${change.detail})` : "")));
  const item = make("li", { class: changes.length || differs ? "changed" : "" }, stored, sent);
  if (marks) item.append(marks);
  return item;
}

function textSide(who, text, same = false) {
  return make("div", { class: same ? "side same" : "side" }, make("div", { class: "who" }, who), make("div", { class: "piece" }, same ? "unchanged" : text || "none"));
}

function side(message, number, absent, same = false) {
  if (!message) return make("div", { class: "side same" }, absent);
  const failed = message.failed ? " failed" : "";
  const head = make("div", { class: "who" }, `${number} ${message.role} `, make("small", {}, (message.origin ?? "") + failed));
  if (same) return make("div", { class: "side same" }, head, "unchanged");
  return make("div", { class: "side" }, head, ...message.pieces.map(piece));
}

function piece(it) {
  const label = { thinking: "thinking ", toolCall: `call ${it.name} `, image: "image ", file: "file ", native: "native " }[it.kind];
  const more = it.more ? ` … ${it.more.toLocaleString("en")} more characters` : "";
  return make("div", { class: `piece ${it.kind}` }, label ? make("b", {}, label) : null, it.text, more ? make("span", { class: "quiet" }, more) : null,
    it.signed ? make("span", { class: "quiet" }, " (signed)") : null);
}

// -- navigation --------------------------------------------------------------------------------------------------------

function moveChange(by) {
  const changed = [...$("rows").querySelectorAll("li.changed")];
  if (!changed.length) return;
  const here = changed.findIndex((item) => item.classList.contains("here"));
  const to = here < 0 ? (by > 0 ? 0 : changed.length - 1) : (here + by + changed.length) % changed.length;
  changed[here]?.classList.remove("here");
  changed[to].classList.add("here");
  changed[to].tabIndex = -1;
  changed[to].focus({ preventScroll: true });
  changed[to].scrollIntoView({ block: "center" });
}

async function showWire() {
  const box = $("wire-box");
  box.hidden = !box.hidden;
  if (box.hidden) return;
  $("copied").textContent = ""; // not after the wait: meanwhile the text may have been copied
  const text = await wireText();
  $("wire-json").textContent = text.length > SHOWN_WIRE ? `${text.slice(0, SHOWN_WIRE)}\n… ${(text.length - SHOWN_WIRE).toLocaleString("en")} more characters; copying takes all of it` : text;
}

async function wireText() {
  const name = state.answer.targets[state.selected].name;
  if (!state.wire.has(name)) {
    const reply = await ask("api/wire", question([state.targets[state.selected]])).catch((error) => error);
    state.wire.set(name, reply instanceof Error ? reply.message : await reply.text());
  }
  return state.wire.get(name);
}

async function copyWire() {
  const text = await wireText();
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = `${text.length.toLocaleString("en")} characters copied`;
  } catch {
    $("copied").textContent = "The browser does not allow copying; select the text and copy it.";
  }
}

function pressKey(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    inspect(event);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select") || !state.answer) return;
  const act = { j: () => moveChange(1), k: () => moveChange(-1), w: showWire }[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
}

// -- the start ---------------------------------------------------------------------------------------------------------

async function start() {
  $("question").addEventListener("submit", inspect);
  $("add").addEventListener("click", () => {
    addTarget($("target").value);
    $("target").value = "";
    $("target").focus();
  });
  $("target").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    $("add").click();
  });
  $("file").addEventListener("change", () => $("file").files[0] && openFile($("file").files[0]));
  $("session").addEventListener("change", () => openSession().catch((error) => { $("problem").textContent = error.message; }));
  $("text").addEventListener("input", showSize);
  $("text").addEventListener("dragover", (event) => {
    event.preventDefault();
    $("text").classList.add("over");
  });
  $("text").addEventListener("dragleave", () => $("text").classList.remove("over"));
  $("text").addEventListener("drop", (event) => {
    event.preventDefault();
    $("text").classList.remove("over");
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
  $("only").addEventListener("click", () => {
    const only = $("only").getAttribute("aria-pressed") !== "true";
    $("only").setAttribute("aria-pressed", String(only));
    $("rows").classList.toggle("only", only);
  });
  $("next").addEventListener("click", () => moveChange(1));
  $("previous").addEventListener("click", () => moveChange(-1));
  $("wire").addEventListener("click", showWire);
  $("copy").addEventListener("click", copyWire);
  document.addEventListener("keydown", pressKey);
  const begun = await (await ask("api/start")).json();
  $("source").append(...begun.protocols.map((name) => make("option", { value: name }, `${name} request`)));
  $("models").append(...begun.protocols.map((name) => make("option", { value: name })),
    ...begun.models.map((model) => make("option", { value: model.name }, model.protocol)));
  if (begun.opened) {
    $("text").value = begun.opened;
    showSize();
  }
  await listSessions();
}

start().catch((error) => { $("problem").textContent = error.message; });
