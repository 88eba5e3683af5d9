// The page of the inspector: opens a conversation, gets the request for each target from the server, and shows the
// differences. The server keeps the conversation; the page asks for the rows that are on the screen.

import { Before } from "./before.js";
import { $, make, makeFacts, number, plural } from "./elements.js";
import { makePlan } from "./plan.js";
import { RowList } from "./rows.js";
import { describeCounts, describeLength, drawFacts, drawMatrix, makeCard } from "./targets.js";
import { KEEPS, STOPPED, imageUrl, readShared, send, share } from "./transport.js";

const HISTORY = "history:"; // begins the values of `beside` that name another conversation
const TITLE = document.title;
const SHOWN_WIRE = 200_000; // characters of a body that are shown; copying takes all of it

// `generation` counts changes of the conversation and of the settings: answers to earlier questions are dropped.
// `link` is the address that the page was opened with, until the first conversation is shown; `histories` are those that
// can stand beside the open conversation, by their keys.
const state = { document: null, first: null, targets: [], selected: null, chosen: false, generation: 0, wire: new Map(), unfolded: new Set(), sessions: [], link: readLink(), histories: new Map(), given: null, body: "" };

// What the rows say, by what stands on the left: on the side that has no message, where both are the same, and where
// nothing differs.
const WORDS = {
  stored: { left: "Stored", right: "Sent", dropped: "not sent", noLeft: "Not stored: added for this target", noRight: "Not sent", same: "sent unchanged", nothing: "Nothing is changed: this target gets every message as it is stored." },
  targets: { left: "Sent to the other target", right: "Sent", dropped: "not sent", noLeft: "Not sent", noRight: "Not sent", same: "sent unchanged", nothing: "Both targets get the same." },
  histories: { left: "The other history", right: "This history", dropped: "only here", noLeft: "Not in the other history", noRight: "Not in this history", same: "the same", nothing: "Both histories are the same." },
};

const list = new RowList($("rows"), {
  load: (rows, length) => ask("api/rows", { ...question(state.selected), ...left(), rows, length }),
  unfold: async (at) => {
    state.unfolded.add(at);
    await drawRows();
    await list.mark(at);
  },
  imageUrl: (key) => imageUrl(`api/images/${state.document.document}/${key}`),
  fail: (error) => showProblem(error.message),
});

const before = new Before({
  open: async (body, name) => (await openDocument(body, name ? { name } : {})).document,
  compare: (key) => ask("api/before", { ...question(state.selected), other: key }),
});

async function request(path, options) {
  const reply = await send(path, options).catch(() => {
    throw new Error(STOPPED);
  });
  if (reply.ok) return reply;
  const answer = await reply.json().catch(() => ({ error: `the server answered with status ${reply.status}` }));
  throw Object.assign(new Error(answer.error), answer);
}

async function ask(path, body) {
  const options = body && { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await request(path, options)).json();
}

function question(target) {
  return { document: state.document.document, target, reasoning: $("reasoning").value };
}

// What stands on the left: the stored conversation, the request for another target, or another history.
function left() {
  const value = $("beside").value;
  return isHistory(value) ? { other: value.slice(HISTORY.length) } : { beside: value };
}

function isHistory(value) {
  return value.startsWith(HISTORY);
}

function showProblem(text) {
  $("problem").textContent = text;
}

function announce(text) {
  $("status").textContent = text;
}

// -- the conversation --------------------------------------------------------------------------------------------------

async function openDocument(body, parameters) {
  return (await request(`api/open?${new URLSearchParams(parameters)}`, { method: "POST", body })).json();
}

async function open(body, parameters) {
  const filled = Object.entries({ source: $("source").value, ...parameters }).filter(([, value]) => value);
  await showAnswer(openDocument(body, filled), body);
}

async function listSessions() {
  state.sessions = (await ask("api/sessions")).map((each) => {
    const date = each.updated ? new Date(each.updated).toLocaleString("en-CA", { dateStyle: "short", timeStyle: "short", hour12: false }) : "";
    return { ...each, words: [date, each.source.split(":")[0], each.title, each.project].filter(Boolean).join(" · ") };
  });
  $("sessions").hidden = state.sessions.length === 0;
  filterSessions();
}

function filterSessions() {
  const wanted = $("session-filter").value.toLowerCase().split(/\s+/);
  const shown = state.sessions.filter(({ words }) => wanted.every((word) => words.toLowerCase().includes(word)));
  $("session").replaceChildren(...shown.map((each) => make("option", { value: each.source, "data-title": each.title }, each.words)));
  $("session").selectedIndex = shown.length ? 0 : -1;
  $("session-count").textContent = plural(shown.length, "session");
}

async function openSession() {
  const chosen = $("session").selectedOptions[0];
  if (chosen) await showAnswer(ask("api/session", { source: chosen.value, title: chosen.dataset.title }));
}

// `given` is the text, or the file, that was opened: a link can have it.
async function showAnswer(answer, given = null) {
  showProblem("");
  drawFailure(null);
  $("inspect").disabled = true;
  const isBeside = state.document && $("open-beside").checked;
  try {
    const opened = await answer;
    if (!isBeside) state.given = given;
    await (isBeside ? showHistory(opened) : showDocument(opened));
  } catch (error) {
    toggleForm(true);
    if (!isBeside) $("result").hidden = $("opened").hidden = true; // what is shown would be taken for the result
    if (error.failure) drawFailure(error.failure);
    else showProblem(error.message);
  } finally {
    $("inspect").disabled = false;
  }
}

// Shows another conversation on the left of the open one, both as they are stored.
async function showHistory(opened) {
  addHistory(opened);
  $("open-beside").checked = false;
  toggleForm(false);
  await chooseBeside(HISTORY + opened.document);
  announce(`${state.histories.get(opened.document)} is shown beside ${$("name").textContent}: ${$("place").textContent}.`);
}

function addHistory(opened) {
  const nth = opened.conversations > 1 ? ` (${opened.nth} of ${opened.conversations})` : "";
  state.histories.set(opened.document, `${opened.name || "Pasted text"}${nth}`);
}

// What was pasted is no conversation, but an error of a provider.
function drawFailure(failure) {
  $("failure").hidden = !failure;
  if (!failure) return;
  const tokens = [failure.used, failure.limit].map((count) => (count ? number(count) : "not known"));
  const rows = [["Kind", failure.kind.replaceAll("_", " ")], ["Message", failure.message], ["Seen in", failure.evidence], ["Status", failure.status],
    ["Provider", failure.provider], ["Wait", failure.retry_after && plural(failure.retry_after, "second")], ["Tokens", failure.used || failure.limit ? `${tokens[0]} of at most ${tokens[1]}` : ""]];
  $("failure-facts").replaceChildren(...makeFacts(rows.filter(([, value]) => value)));
  announce(`This is an error of a provider: ${failure.kind.replaceAll("_", " ")}.`);
}

async function showDocument(opened) {
  const { link } = state;
  state.link = new URLSearchParams();
  if (state.document) addHistory(state.document);
  state.document = opened;
  state.unfolded.clear();
  $("beside").value = "";
  $("find").value = $("found").textContent = "";
  await list.show([], 0); // what is shown would be taken for the new conversation
  $("name").textContent = opened.name || "Pasted text";
  $("about").textContent = [opened.source, plural(opened.messages, "message"), ...(opened.tools ? [plural(opened.tools, "tool")] : [])].join(" · ");
  $("opened").hidden = $("other").hidden = $("open-beside-box").hidden = false;
  $("follow-box").hidden = !opened.follows;
  $("nth-box").hidden = opened.conversations < 2;
  $("nth").value = opened.nth;
  $("nth").max = opened.conversations;
  $("nth-of").textContent = `of ${number(opened.conversations)}`;
  $("left-out").hidden = !opened.leftOut.length;
  $("left-out").querySelector("ul").replaceChildren(...opened.leftOut.map((sentence) => make("li", {}, sentence)));
  document.title = `${opened.name || "Pasted text"} · ${TITLE}`;
  drawGiven(null);
  toggleForm(false);
  if (!state.chosen) {
    const beside = link.getAll("beside").filter((value) => value && !isHistory(value));
    const names = [...new Set([...opened.targets, ...link.getAll("target"), ...beside])];
    state.targets = names.map((name) => ({ name }));
    state.selected = link.get("target") ?? names[0] ?? null;
    if (link.get("thinking")) $("reasoning").value = link.get("thinking");
    if (link.has("only")) $("only").setAttribute("aria-pressed", "true");
  }
  await inspectAll(opened.first);
  if (link.get("beside")) await chooseBeside(link.get("beside"));
  if (opened.isRequest) drawGiven(await ask("api/given", { document: opened.document }));
  if (link.get("row")) await list.mark(Number(link.get("row")));
  showPlace();
  writeLink();
}

// -- a session that its program is writing: the server looks at the file, the page asks every two seconds ----------------

let asking = false;

async function follow() {
  if (!$("follow").checked || !state.document?.follows || asking || document.hidden) return;
  asking = true;
  try {
    const opened = await ask("api/follow", question(state.selected));
    if (opened.grown) await showGrown(opened);
  } catch (error) {
    $("follow").checked = false;
    showProblem(error.message);
  } finally {
    asking = false;
  }
}

// The same view of more messages: targets, place and settings stay; who was at the end sees the new end.
async function showGrown(opened) {
  const place = window.scrollY;
  const isAtEnd = window.innerHeight + place > document.documentElement.scrollHeight - 80;
  if (state.first === state.document.document) state.first = opened.document;
  state.document = opened;
  $("about").textContent = [opened.source, plural(opened.messages, "message"), ...(opened.tools ? [plural(opened.tools, "tool")] : [])].join(" · ");
  await inspectAll();
  window.scrollTo(0, isAtEnd ? document.documentElement.scrollHeight : place);
  writeLink();
}

// -- the address of a view: the conversation, what stands beside it, the target, the settings, and the marked message ----

function readLink() {
  return new URLSearchParams(location.hash.slice(1));
}

function makeLink(shared = {}) {
  const link = new URLSearchParams(shared);
  if (KEEPS && state.document && state.document.document !== state.first) link.set("document", state.document.document);
  if ($("beside").value && (KEEPS || !isHistory($("beside").value))) link.set("beside", $("beside").value);
  if (state.selected) link.set("target", state.selected);
  if ($("reasoning").value !== "auto") link.set("thinking", $("reasoning").value);
  if ($("only").getAttribute("aria-pressed") === "true") link.set("only", "1");
  if (list.here !== null && list.here !== undefined) link.set("row", list.here);
  return new URL(`#${link}`, location.href).href;
}

function writeLink() {
  history.replaceState(null, "", makeLink());
}

async function copyLink() {
  const link = await share(state.given).then(makeLink, (error) => showProblem(error.message));
  if (!link) return;
  try {
    await navigator.clipboard.writeText(link);
    announce("The link is copied.");
  } catch {
    history.replaceState(null, "", link);
    showProblem("The browser does not allow copying; copy the address of this page.");
  }
}

// -- the search: the server finds, because only a part of the rows is in the page ----------------------------------------

const search = { text: "", rows: [], at: -1, due: 0 };

async function find(by) {
  const text = $("find").value.trim();
  search.due = text && !summary() ? by : 0; // the target is still being inspected
  if (!text || !summary()) {
    Object.assign(search, { text: "", rows: [], at: -1 });
    $("found").textContent = "";
    return;
  }
  const key = `${state.generation} ${state.selected} ${$("beside").value} ${text}`;
  if (search.text !== key) {
    const rows = await ask("api/find", { ...question(state.selected), ...left(), text });
    Object.assign(search, { text: key, rows, at: by > 0 ? -1 : rows.length });
  }
  if (!search.rows.length) {
    $("found").textContent = "not found";
    return;
  }
  search.at = (search.at + by + search.rows.length) % search.rows.length;
  const row = search.rows[search.at];
  $("found").textContent = `${number(search.at + 1)} of ${number(search.rows.length)}`;
  if (!list.rows.includes(row)) { // it is folded, or not changed
    for (const [first] of summary().notSent) state.unfolded.add(first);
    $("only").setAttribute("aria-pressed", "false");
    await drawRows();
  }
  await list.mark(row, { focus: false });
  showPlace();
}

function toggleForm(shown = $("open").hidden) {
  const hadFocus = $("open").contains(document.activeElement);
  $("open").hidden = !shown;
  $("other").setAttribute("aria-expanded", String(shown));
  $("other").textContent = shown ? "Back to the conversation" : "Open another";
  if (!shown && $("result").hidden && state.document) { // an error had hidden it
    $("result").hidden = $("opened").hidden = false;
    showProblem("");
  }
  if (shown && state.document) $("text").focus();
  else if (!shown && hadFocus) $("other").focus(); // the focus would be lost with the form
}

// -- the targets -------------------------------------------------------------------------------------------------------

// The chosen target first, and shown as soon as it is there; the others after it, one by one.
async function inspectAll(begun) {
  const generation = ++state.generation;
  state.wire.clear();
  for (const target of state.targets) target.summary = target.problem = target.facts = target.besides = null;
  $("result").hidden = false;
  const first = state.targets.find((target) => target.name === state.selected);
  const order = [first, ...state.targets.filter((target) => target !== first)].filter(Boolean);
  drawTargets();
  if (!order.length) await showSelected({});
  for (const target of order) {
    const known = target === first && begun?.summary?.name === target.name && $("reasoning").value === "auto" ? begun : null; // browsers restore forms
    if (known) target.summary = known.summary;
    else await inspectTarget(target, generation);
    if (generation !== state.generation) return;
    drawTargets();
    if (target.name === state.selected) await showSelected({ first: known?.rows });
  }
  const names = state.targets.filter((target) => target.summary).map((target) => `${target.name}: ${describeCounts(target.summary)}${fitsWords(target.summary)}`);
  drawBeside();
  await showPlan();
  if (names.length) announce(`${plural(names.length, "target")} inspected. ${names.join(". ")}.`);
  $("result").dataset.inspected = generation;
  await showFacts(state.targets.find((target) => target.name === state.selected));
}

function fitsWords(summary) {
  return summary.length?.fits === false ? ", does not fit" : "";
}

async function inspectTarget(target, generation) {
  try {
    const summary = await ask("api/inspect", question(target.name));
    if (generation === state.generation) target.summary = summary;
  } catch (error) {
    target.problem = error.message;
  }
}

// What a switch costs and loses, for all targets; it is asked for when it is looked at.
async function showPlan() {
  if (!$("plan-box").open || !state.document) return;
  const generation = state.generation;
  const targets = state.targets.filter((target) => target.summary).map((target) => target.name);
  const found = await ask("api/plan", { ...question(state.selected), targets }).then(makePlan, (error) => error.message);
  if (generation === state.generation) $("plan").replaceChildren(found);
}

async function addTarget(name) {
  showProblem("");
  if (!name) return;
  let target = state.targets.find((other) => other.name === name);
  if (!target) {
    target = { name };
    await inspectTarget(target, state.generation);
    if (target.problem) {
      showProblem(target.problem);
      return;
    }
    target.name = target.summary.protocol === name ? name : target.summary.name;
    state.targets.push(target);
    showPlan();
  }
  state.chosen = true;
  $("target").value = "";
  await select(target.name);
}

async function removeTarget(name) {
  const at = state.targets.findIndex((target) => target.name === name);
  state.targets.splice(at, 1);
  state.chosen = true;
  const next = Math.min(at, state.targets.length - 1);
  showPlan();
  const shown = state.selected === name ? select(state.targets[next]?.name ?? null) : drawTargets();
  ($("targets").querySelectorAll(".choose")[next] ?? $("target")).focus();
  await shown;
}

function drawTargets() {
  const focused = [...$("targets").querySelectorAll("button")].indexOf(document.activeElement);
  $("targets").replaceChildren(...state.targets.map((target, at) => makeCard(target, {
    selected: target.name === state.selected, at, select: () => select(target.name), remove: () => removeTarget(target.name),
  })));
  if (focused >= 0) $("targets").querySelectorAll("button")[focused]?.focus({ preventScroll: true });
  if ($("compare").open) drawMatrix(state.targets);
}

// Moves the cards sideways only: the page keeps its place.
function scrollToCard() {
  const card = $("targets").querySelector("[aria-pressed=true]")?.getBoundingClientRect();
  for (const box of card ? [$("targets"), $("bar")] : []) {
    const { left, right } = box.getBoundingClientRect();
    if (card.left < left) box.scrollLeft += card.left - left - 12;
    else if (card.right > right) box.scrollLeft += card.right - right + 12;
  }
}

// Where the part of the screen begins that shows messages.
function pinnedBottom() {
  return Math.max(0, $("tools").getBoundingClientRect().bottom);
}

async function select(name) {
  const before = list.top(pinnedBottom());
  const old = state.targets.find((target) => target.name === state.selected);
  const stored = before && window.scrollY > 40 ? old?.summary?.stored[Number(before.dataset.at)] : undefined;
  state.selected = name;
  if (isHistory($("beside").value)) $("beside").value = ""; // two histories are the same for every target
  showProblem("");
  drawTargets();
  scrollToCard();
  writeLink();
  await showSelected({ stored });
  const target = state.targets.find((other) => other.name === name);
  if (target?.summary) announce(`${name}: ${describeCounts(target.summary)}. ${describeLength(target.summary.length).length}${fitsWords(target.summary)}.`);
}

// -- the chosen target -------------------------------------------------------------------------------------------------

// `stored` is the message to stay at, `first` the first rows if they are known.
async function showSelected({ stored, first }) {
  const target = state.targets.find((other) => other.name === state.selected);
  $("more").hidden = $("tools").hidden = !target?.summary;
  if (!target?.summary) $("sent-to").textContent = target ? `Sent to ${target.name}` : "Sent";
  if (!target?.summary) {
    $("nothing").textContent = target?.problem ?? "No target is chosen: add a model or a protocol to see its request.";
    $("nothing").hidden = false;
    await list.show([], 0);
    return;
  }
  drawFacts(target.summary, target.facts ?? {}, state.document.source);
  before.refresh();
  drawBeside();
  if ($("beside").value) await showBeside();
  else await drawRows(first);
  if (typeof stored === "number" && list.here === null) await list.reveal(target.summary.stored.indexOf(stored), "start");
  if (search.due) await find(search.due);
  if ($("result").dataset.inspected === String(state.generation)) await showFacts(target);
}

// They take longer than the rest, so they are asked for after all targets were inspected.
async function showFacts(target) {
  if (!target?.summary || target.facts) return;
  const generation = state.generation;
  const facts = await ask("api/facts", question(target.name)).catch(() => null);
  if (!facts || generation !== state.generation) return;
  target.facts = facts;
  if (target.name === state.selected) drawFacts(target.summary, facts, state.document.source);
}

// The request as it was given: what its provider would refuse, and its JSON beside the one for a target.
function drawGiven(given) {
  state.body = given?.body ?? "";
  $("given").hidden = !given;
  if (!given) return;
  const count = given.violations.length ? make("b", { class: "over" }, plural(given.violations.length, "known violation")) : "No known violations";
  $("given-line").replaceChildren(count, " in the request as it is");
  $("given").querySelector("ul").replaceChildren(...given.violations.map((sentence) => make("li", {}, sentence)));
}

function summary() {
  const target = state.targets.find((other) => other.name === state.selected);
  return $("beside").value && target?.summary ? target.besides?.get($("beside").value) ?? target.summary : target?.summary;
}

// Puts the request for another target, or another history, in the place of the stored conversation.
async function showBeside() {
  const value = $("beside").value;
  const target = state.targets.find((other) => other.name === state.selected);
  if (value && target?.summary) {
    const { generation } = state;
    target.besides ??= new Map();
    if (!target.besides.has(value)) target.besides.set(value, await ask("api/inspect", { ...question(target.name), ...left() }));
    if (generation !== state.generation || value !== $("beside").value || target.name !== state.selected) return; // another is chosen
  }
  state.unfolded.clear();
  drawBeside();
  await drawRows();
}

async function chooseBeside(value) {
  const key = isHistory(value) && value.slice(HISTORY.length);
  if (key && !state.histories.has(key)) addHistory(await openDocument(null, { document: key })); // of a link
  drawBeside(value);
  await showBeside();
  writeLink();
}

function drawBeside(chosen = $("beside").value) {
  const others = state.targets.filter((target) => target.summary && target.name !== state.selected);
  const histories = [...state.histories].filter(([key]) => key !== state.document.document);
  $("beside").replaceChildren(make("option", { value: "" }, "Stored"),
    ...others.map(({ name }) => make("option", { value: name }, `Sent to ${name}`)),
    ...histories.map(([key, name]) => make("option", { value: HISTORY + key }, `History: ${name}`)));
  $("beside").value = chosen;
  if ($("beside").selectedIndex < 0) $("beside").value = "";
  const value = $("beside").value;
  const shown = isHistory(value) ? "histories" : value ? "targets" : "stored";
  $("result").dataset.beside = shown;
  $("sent-to").textContent = shown === "histories" ? `History: ${$("name").textContent}` : `Sent to ${state.selected}`;
  list.actions.words = WORDS[shown];
}

async function drawRows(first) {
  if (!summary()) return;
  const { changed, rows, problem } = summary();
  const only = $("only").getAttribute("aria-pressed") === "true";
  $("nothing").hidden = !(problem || (only && !changed.length));
  $("nothing").textContent = problem ? `Cannot be sent: ${problem}` : list.actions.words.nothing;
  $("previous").disabled = $("next").disabled = !changed.length;
  showPlace();
  const all = only ? changed : Array.from({ length: rows }, (_, at) => at);
  list.folds = new Map(summary().notSent.filter(([start]) => !state.unfolded.has(start)));
  const hidden = new Set([...list.folds].flatMap(([start, end]) => Array.from({ length: end - start }, (_, at) => start + 1 + at)));
  const isWhole = !only && !hidden.size;
  await list.show(hidden.size ? all.filter((at) => !hidden.has(at)) : all, rows, isWhole ? first : undefined);
}

function showPlace() {
  if (!summary()) return;
  const { changed, problem } = summary();
  const at = changed.indexOf(list.here);
  const words = at >= 0 ? `${number(at + 1)} of ${number(changed.length)}` : `${number(changed.length)} changed`;
  $("place").textContent = problem ? "" : changed.length ? words : "no changes";
}

async function moveChange(by) {
  await list.settled(); // the rows of the target that was chosen just before
  const shown = new Set(list.rows);
  const changed = (summary()?.changed ?? []).filter((at) => shown.has(at));
  if (!changed.length) return;
  let here = list.here;
  if (here === null) {
    const top = list.top(pinnedBottom());
    here = top && window.scrollY > 40 ? Number(top.dataset.at) - (by > 0 ? 1 : 0) : by > 0 ? -1 : Infinity;
  }
  const to = by > 0 ? changed.find((at) => at > here) ?? changed[0] : changed.findLast((at) => at < here) ?? changed.at(-1);
  await list.mark(to);
  showPlace();
  writeLink();
}

// -- the request -------------------------------------------------------------------------------------------------------

async function showWire() {
  if (!summary()) return;
  $("wire-title").textContent = `Request JSON for ${state.selected}`;
  $("copied").textContent = $("wire-json").textContent = "";
  $("wire-box").showModal();
  $("given-json").textContent = shorten(state.body);
  $("given-json").hidden = !state.body;
  $("wire-json").textContent = shorten(await wireText());
}

function shorten(text) {
  const left = text.length - SHOWN_WIRE;
  return left > 0 ? `${text.slice(0, SHOWN_WIRE)}\n… ${number(left)} more characters; copying takes all of it` : text;
}

async function wireText() {
  const name = state.selected;
  if (!state.wire.has(name)) {
    const options = { method: "POST", body: JSON.stringify(question(name)) };
    state.wire.set(name, await request("api/wire", options).then((reply) => reply.text(), (error) => error.message));
  }
  return state.wire.get(name);
}

async function copyWire() {
  const text = await wireText();
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = `${number(text.length)} characters copied`;
  } catch {
    $("copied").textContent = "The browser does not allow copying; select the text and copy it.";
  }
}

// -- keys and the start ------------------------------------------------------------------------------------------------

const KEYS = {
  j: () => moveChange(1), k: () => moveChange(-1), w: () => showWire(), b: () => before.focus(), p: () => openPlan(), o: () => $("only").click(),
  "/": () => $("find").focus(), "?": () => $("keys-box").showModal(),
};

function openPlan() {
  $("plan-box").open = true;
  $("plan-box").querySelector("summary").focus();
}

function pressKey(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !$("open").hidden) {
    event.preventDefault();
    $("open").requestSubmit();
    return;
  }
  if (event.key === "Escape" && state.document && !$("open").hidden && !$("wire-box").open) {
    toggleForm(false);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog") || $("result").hidden) return;
  const at = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
  const act = state.targets[at] ? () => select(state.targets[at].name) : KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
}

function openFile(file) {
  if (file) open(file, { name: file.name });
}

function listen() {
  $("open").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("text").value.trim()) open($("text").value, {});
    else showProblem("There is no text: paste a conversation, or open a file.");
  });
  $("file").addEventListener("change", () => openFile($("file").files[0]));
  $("open-session").addEventListener("click", () => openSession());
  $("other").addEventListener("click", () => toggleForm());
  $("nth").addEventListener("change", () => open(null, { document: state.document.document, nth: $("nth").value }));
  $("add").addEventListener("submit", (event) => {
    event.preventDefault();
    addTarget($("target").value.trim());
  });
  $("reasoning").addEventListener("change", () => inspectAll());
  $("beside").addEventListener("change", () => chooseBeside($("beside").value).catch((error) => showProblem(error.message)));
  $("example").addEventListener("click", () => showAnswer(openDocument(null, { example: "1" })));
  $("session-filter").addEventListener("input", filterSessions);
  $("session").addEventListener("dblclick", () => openSession());
  $("session").addEventListener("keydown", (event) => event.key === "Enter" && openSession());
  $("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    find(event.shiftKey ? -1 : 1).catch((error) => showProblem(error.message));
  });
  $("find").addEventListener("search", () => $("find").value || find(1));
  $("link").addEventListener("click", copyLink);
  $("keys").addEventListener("click", () => $("keys-box").showModal());
  $("keys-close").addEventListener("click", () => $("keys-box").close());
  $("follow").addEventListener("change", follow);
  setInterval(follow, 2000);
  $("only").addEventListener("click", () => {
    $("only").setAttribute("aria-pressed", String($("only").getAttribute("aria-pressed") !== "true"));
    drawRows();
    writeLink();
  });
  $("next").addEventListener("click", () => moveChange(1));
  $("previous").addEventListener("click", () => moveChange(-1));
  $("wire").addEventListener("click", showWire);
  $("copy").addEventListener("click", copyWire);
  $("close").addEventListener("click", () => $("wire-box").close());
  $("compare").addEventListener("toggle", () => $("compare").open && drawMatrix(state.targets));
  $("plan-box").addEventListener("toggle", showPlan);
  document.addEventListener("keydown", pressKey);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("over");
    openFile(event.dataTransfer.files[0]);
  });
  // What is pinned at the top must not cover what has the focus.
  new ResizeObserver(() => document.documentElement.style.setProperty("--pinned", `${$("pinned").offsetHeight}px`)).observe($("pinned"));
}

// The conversation of the link; else that of the command line, beside the second one if it has two.
async function findLinked(begun) {
  const key = state.link.get("document");
  if (key) return openDocument(null, { document: key }).catch((error) => showProblem(error.message));
  if (begun.beside && !state.link.size) state.link.set("beside", HISTORY + begun.beside.document);
  return begun.opened;
}

async function start() {
  listen();
  const begun = await (await request("api/start")).json();
  $("source").append(...begun.protocols.map((name) => make("option", { value: name }, `${name} request`)));
  $("example").hidden = !begun.example;
  state.first = begun.opened?.document ?? null;
  if (begun.beside) addHistory(begun.beside);
  const opened = await findLinked(begun);
  if (opened) await showDocument(opened);
  const models = await ask("api/models");
  $("models").append(...begun.protocols.map((name) => make("option", { value: name })), ...models.map(([name, protocol]) => make("option", { value: name }, protocol)));
  await listSessions();
  const shared = await readShared(readLink());
  if (shared) {
    $("text").value = shared;
    await open(shared, {});
  }
}

start().catch((error) => showProblem(error.message));
