// The console of a gateway: live requests, one request opened, conversations, costs, keys, figures over time, what was new in replies.

import { makeKinds, makeReply, showContents } from "./contents.js";
import { dollars, makeCosts, provenance } from "./costs.js";
import { $, make, makeFacts, number, plural } from "./elements.js";
import { Keys } from "./keys.js";
import { makePlan } from "./plan.js";
import { plot } from "./plots.js";

const PAGE = 100;
const EVERY = 2000;
let key = "";
let turn = 0; // of the user: what was asked before it neither shows nor hides the form for a key
let refused = ""; // the path that asked for a key: that another one needs none does not hide the form
let next = null; // where the older requests begin
let isNewest = true;
let shown = "";
let titles = {}; // the first words of conversations, where contents are stored
const asked = new Set(); // conversations whose titles were asked for

async function ask(path, options = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const mine = turn;
  const reply = await fetch(path, { ...options, headers });
  const body = await reply.json();
  if (mine === turn) {
    const place = path.split("?")[0];
    if (reply.status === 401) refused = place;
    else if (reply.ok && place === refused) refused = "";
    $("key-form").hidden = !refused;
  }
  if (!reply.ok) throw new Error(body.error);
  return body;
}

function takeTurn() {
  turn += 1;
  refused = "";
}

async function fetchImage(path) {
  const reply = await fetch(path, { headers: key ? { authorization: `Bearer ${key}` } : {} });
  return reply.ok ? URL.createObjectURL(await reply.blob()) : "";
}

const seconds = (ms) => (ms === undefined || ms === null ? "" : `${(ms / 1000).toFixed(2)} s`);
const short = (name) => (name.length > 12 ? `${name.slice(0, 12)}…` : name);
const read = (usage) => (usage ? (usage.input || 0) + (usage.cacheRead || 0) + (usage.cacheWrite || 0) : 0);
const billed = (row) => row.spent || row.usage;
const named = (id) => titles[id] || short(id);
// The cost of a request, and whether it is the provider's own figure.
function cost(row) {
  const bill = billed(row);
  if (!bill) return ["", ""];
  return [bill.cost ? dollars(bill.cost.total) : "price not known", row.figures || "measured"];
}
const costText = (row) => cost(row).filter(Boolean).join(" ");
const sumOf = (total, estimated) => [dollars(total), make("small", {}, provenance(total, estimated))];
const losses = (row) => (row.changes || []).filter((change) => change.loss !== "none");
const moment = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
const share = (cached, all) => (all ? `${Math.round((100 * cached) / all)} %` : "");

// A cell; `label` is what a narrow screen shows before it.
function cell(label, content, attributes = {}) {
  return make("td", { "data-label": label, ...attributes }, ...(Array.isArray(content) ? content : [content]));
}

function tried(row) {
  const failed = (row.attempts || []).filter((attempt) => attempt.kind).map((attempt) => attempt.kind.replaceAll("_", " "));
  if ((row.attempts || []).length < 2 && !failed.length) return "";
  return `${(row.attempts || []).length}${failed.length ? ` (${[...new Set(failed)].join(", ")})` : ""}`;
}

function result(row) {
  const mark = row.outcome === "done" ? "none" : row.outcome === "aborted" ? "opaque" : "content";
  return make("span", { class: `chip ${mark}` }, `${row.outcome} ${row.status}`);
}

function requestRow(row, keys) {
  const usage = row.usage;
  const [amount, figures] = cost(row);
  return make(
    "tr", { "data-id": row.id },
    cell("Time", make("button", { type: "button", "aria-label": `Open the request of ${moment(row.time)}`, onclick: () => openRequest(row.id) }, moment(row.time)), { class: "when" }),
    cell("Result", [result(row), make("small", {}, tried(row))], { class: "result" }),
    cell("Cost", [amount, make("small", {}, figures)], { class: "figure cost" }),
    cell("Conversation", make("button", { type: "button", class: "title", "aria-label": `Open the conversation ${named(row.conversation)}`, onclick: () => openThread(row.conversation) }, named(row.conversation)), { class: "words" }),
    cell("Model", [row.model || "none", row.asked === row.model ? "" : make("small", {}, `asked for ${row.asked}`)]),
    cell("Client", [row.client || "unknown", make("small", { class: "of-all" }, row.key || (keys ? keys[row.id] : ""))]),
    cell("First byte", seconds(row.firstByteMs), { class: "figure" }),
    cell("Tokens in / out", usage ? [`${number(read(usage))} / ${number(usage.output || 0)}`, make("small", {}, `${share(usage.cacheRead || 0, read(usage)) || "0 %"} cached`)] : "", { class: "figure" }),
    cell("Changes", losses(row).length ? String(losses(row).length) : "", { class: "figure" }),
  );
}

async function showRequests(before = null) {
  const words = $("find").value.trim();
  const query = new URLSearchParams({ limit: PAGE, ...(words && { q: words }), ...(before && { before }) });
  const found = await ask(`/segue/requests?${query}`);
  if (words !== $("find").value.trim()) return; // typed meanwhile
  const first = JSON.stringify(found.requests.map((row) => row.id));
  isNewest = before === null;
  next = found.next;
  $("older").disabled = next === null;
  $("newest").disabled = isNewest;
  document.body.classList.toggle("all", Boolean(found.keys));
  const held = found.configuration;
  $("held").hidden = !held;
  $("held").textContent = held ? `The changed configuration is not in use: ${held.removed.join("; ")}. To use it: ${held.accept}.` : "";
  const untitled = found.requests.map((row) => row.conversation).filter((id) => !(id in titles) && !asked.has(id));
  if (untitled.length) {
    untitled.forEach((id) => asked.add(id));
    await readConversations();
  }
  $("status").textContent = found.requests.length ? `${plural(found.requests.length, "request")} shown` : words ? "No request has these words." : "There is no request yet.";
  if (first === shown) return;
  shown = first;
  const focused = document.activeElement?.closest?.("tr[data-id]")?.dataset.id;
  $("rows").replaceChildren(...found.requests.map((row) => requestRow(row, found.keys)));
  if (focused) document.querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus();
}

function facts(pairs) {
  return make("dl", {}, ...makeFacts(pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)));
}

function json(value) {
  return make("pre", { tabindex: "0" }, JSON.stringify(value, null, 1));
}

function folded(title, value) {
  return value === null ? "" : make("details", {}, make("summary", {}, title), json(value));
}

function bytes(title, coded) {
  if (!coded) return "";
  const text = new TextDecoder().decode(Uint8Array.from(atob(coded), (each) => each.charCodeAt(0)));
  return make("details", {}, make("summary", {}, title), make("pre", { tabindex: "0" }, text));
}

function openBox(title, ...children) {
  $("opened-title").textContent = title;
  $("opened-body").replaceChildren(...children.filter((child) => child !== null));
  if (!$("opened-box").open) $("opened-box").showModal();
}

async function openRequest(id) {
  await act(async () => {
    const row = await ask(`/segue/requests/${encodeURIComponent(id)}`);
    const usage = row.usage;
    const content = make("div", { id: "content" }, make("p", { class: "quiet" }, "…"));
    const raw = make("div", { id: "raw" });
    openBox(
      `Request to ${row.model || row.asked}`,
      facts([
        ["Result", result(row)], ["Cost", costText(row)],
        ["Tokens in / out", usage ? `${number(read(usage))} / ${number(usage.output || 0)} ${row.figures || "measured"}` : ""], ["From the cache", usage ? share(usage.cacheRead || 0, read(usage)) : ""],
        ["Saved by the cache", dollars(row.saved)], ["First byte", seconds(row.firstByteMs)], ["Duration", seconds(row.durationMs)],
        ["Asked for", row.asked], ["Answered by", row.model], ["Time", moment(row.time)], ["Client", row.client], ["Protocol", row.protocol],
        ["Turns with their state", row.restored], ["Bytes passed on unchanged", row.straight ? "yes" : ""], ["Id", row.id], ["Problem", row.error],
      ]),
      make("h3", {}, "Changes"),
      makeKinds(row.kinds, "Nothing was changed."),
      content,
      make("h3", {}, "Attempts"),
      make("ol", {}, ...(row.attempts || []).map((each) => make("li", {},
        `${each.model} (${each.reason}${each.account ? `, account ${each.account}` : ""}): ${each.kind ? `${each.kind.replaceAll("_", " ")}${each.status ? ` ${each.status}` : ""}${each.code ? ` ${each.code}` : ""}` : "answered"}, ${seconds(each.durationMs || 0)}${each.requestId ? `, id ${each.requestId}` : ""}`))),
      (row.drift || []).length ? make("p", {}, `New in the reply: ${row.drift.join(", ")}`) : null,
      make("p", {}, make("button", { type: "button", onclick: () => openThread(row.conversation) }, "Open the conversation")),
      ...(row.alike ? byRequest(row.id) : []),
      raw,
    );
    try {
      await showContents(content, id, { ask, fetchImage });
      const found = await ask(`/segue/requests/${encodeURIComponent(id)}/content`);
      raw.replaceChildren(
        found.redacted ? make("p", { class: "quiet" }, "Texts are replaced by their lengths.") : replayForm(id, found.sent ?? null),
        make("h3", {}, "JSON and bytes"),
        folded("What the client sent", found.received ?? null), folded("What the model was sent", found.sent ?? null), folded("The reply in segue's form", found.reply ?? null),
        bytes("Bytes of the client", found.received_bytes), bytes("Bytes of the provider", found.reply_bytes),
      );
    } catch (error) {
      content.replaceChildren(make("h3", {}, "Contents"), make("p", { class: "quiet" }, error.message));
    }
  });
}

function byRequest(id) {
  const path = `/segue/requests/${encodeURIComponent(id)}`;
  const say = make("span", { role: "status" });
  return [
    make("h3", {}, "What continues this request"),
    switchForm(path, "Model for what continues this request", ""),
    make("p", { class: "line" }, make("button", { type: "button", onclick: () => erase(path, "what is kept of this request", say) }, "Erase"), say),
  ];
}

function replayForm(id, sent) {
  const field = make("input", { list: "models", autocomplete: "off", placeholder: "provider/model", "aria-label": "Model to replay for", required: true });
  const shownHere = make("div", { role: "status" });
  const form = make("form", { class: "line" }, field, make("button", { value: "" }, "Replay without sending"), make("button", { value: "send" }, "Send for real"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const send = event.submitter?.value === "send";
    const model = field.value.trim();
    if (send && !window.confirm(`Send this request to ${model}? It costs what the model costs; tools are not run.`)) return;
    shownHere.replaceChildren(make("p", { class: "quiet" }, send ? "It is sent …" : "…"));
    try {
      const made = await ask(`/segue/requests/${encodeURIComponent(id)}/replay`, { method: "POST", body: JSON.stringify({ model, send }) });
      const bill = made.usage ? `: ${number(read(made.usage))} / ${number(made.usage.output || 0)} tokens ${dollars(made.usage.cost?.total)}, ${seconds(made.durationMs)}` : "";
      const answer = made.shown ? makeReply(made.shown) : make("p", { role: "alert" }, made.problem ?? "There is no reply.");
      shownHere.replaceChildren(
        makeKinds(made.kinds, `Nothing would be changed for ${made.model}.`),
        ...(send ? [make("h4", {}, `The reply of ${made.model}${bill}`), answer] : []),
        beside(["Was sent", sent], [`${send ? "Was sent" : "Would be sent"} to ${made.model}`, made.sent]),
      );
    } catch (error) {
      shownHere.replaceChildren(make("p", { role: "alert" }, error.message));
    }
  });
  return make("div", {}, make("h3", {}, "For another model"), form, shownHere);
}

function beside(...columns) {
  return make("div", { class: "beside" }, ...columns.map(([title, value]) => make("div", {}, make("h4", {}, title), json(value))));
}

async function openThread(id) {
  await act(async () => {
    const { requests } = await ask(`/segue/conversations/${encodeURIComponent(id)}`);
    let before = null;
    const turns = requests.map((row) => {
      const isSwitch = before !== null && row.model !== before;
      before = row.model;
      return make("li", {},
        make("button", { type: "button", class: "plain", onclick: () => openRequest(row.id) }, moment(row.time)), " ",
        make("span", { class: isSwitch ? "switch" : "" }, isSwitch ? `switched to ${row.model}` : row.model || "none"), " ",
        result(row), ` ${costText(row)} ${row.usage ? `${number(read(row.usage))} / ${number(row.usage.output || 0)} tokens` : ""}`,
        losses(row).length ? ` ${plural(losses(row).length, "change")}` : "");
    });
    const say = make("p", { role: "status" });
    const total = requests.reduce((sum, row) => sum + (billed(row)?.cost?.total || 0), 0);
    const estimated = requests.reduce((sum, row) => sum + (row.figures === "estimated" ? billed(row)?.cost?.total || 0 : 0), 0);
    openBox(
      titles[id] || `Conversation ${id}`,
      facts([["Cost", `${dollars(total)} ${provenance(total, estimated)}`], ["Requests", number(requests.length)], ["Id", id]]),
      make("p", { class: "line" },
        make("button", { type: "button", onclick: () => save(id, say) }, "Export as a segue session"),
        make("button", { type: "button", onclick: () => erase(`/segue/conversations/${encodeURIComponent(id)}`, "all requests, contents and states of this conversation", say) }, "Erase"), say),
      planFold(id),
      make("h3", {}, "Requests"),
      make("ol", {}, ...turns),
    );
  });
}

// What a switch of this conversation would cost and lose; it is asked for when it is opened.
function planFold(id) {
  const field = make("input", { list: "models", autocomplete: "off", placeholder: "another model", "aria-label": "Model to compare" });
  const shownHere = make("div", { role: "status" });
  const form = make("form", { class: "line" }, field, make("button", {}, "Compare"));
  const fold = make("details", { class: "plan-fold" }, make("summary", {}, "Before you switch"), form, shownHere);
  const show = async (models) => {
    shownHere.replaceChildren(make("p", { class: "quiet" }, "…"));
    const path = `/segue/conversations/${encodeURIComponent(id)}/plan`;
    shownHere.replaceChildren(await ask(path, { method: "POST", body: JSON.stringify({ models }) }).then(makePlan, (error) => make("p", { class: "quiet" }, error.message)));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(field.value.trim() ? [field.value.trim()] : []);
  });
  fold.addEventListener("toggle", () => fold.open && show([]));
  return fold;
}

async function save(id, say) {
  try {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const reply = await fetch(`/segue/conversations/${encodeURIComponent(id)}/session`, { headers });
    if (!reply.ok) throw new Error((await reply.json()).error);
    const link = make("a", { href: URL.createObjectURL(await reply.blob()), download: `${id}.jsonl` });
    link.click();
    URL.revokeObjectURL(link.href);
    say.textContent = "The session is in your downloads.";
  } catch (error) {
    say.textContent = error.message;
  }
}

async function erase(path, what, say) {
  if (!window.confirm(`Erase ${what}? This cannot be undone.`)) return;
  try {
    const { erased } = await ask(path, { method: "DELETE" });
    say.textContent = `Erased: ${plural(erased, "row")}.`;
    shown = "";
    await refresh();
  } catch (error) {
    say.textContent = error.message;
  }
}

function switchForm(path, label, chosen) {
  const field = make("input", { list: "models", autocomplete: "off", "aria-label": label, placeholder: "as the client asks" });
  field.value = chosen || "";
  const form = make("form", {}, field, make("button", {}, "Switch"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const model = field.value.trim() || null;
    await act(async () => {
      await ask(path, { method: "PUT", body: JSON.stringify({ model }) });
      $("status").textContent = `The next request of this conversation goes to ${model || "the model that the client names"}.`;
    });
  });
  return form;
}

function threadRow(conversation, sums) {
  const form = conversation.alike
    ? make("span", { class: "quiet", title: "Several conversations that begin alike may be in this row" }, "by request")
    : switchForm(`/segue/conversations/${encodeURIComponent(conversation.id)}`, `Model for the conversation of ${conversation.client || "unknown"}`, conversation.chosen);
  return make(
    "tr", {},
    cell("Conversation", make("button", { type: "button", class: "title", "aria-label": `Open the conversation ${named(conversation.id)}`, onclick: () => openThread(conversation.id) }, named(conversation.id)), { class: "words when" }),
    cell("Cost", sums ? sumOf(sums.cost, sums.estimated) : "", { class: "figure cost" }),
    cell("Last request", moment(conversation.time)),
    cell("Answered by", [conversation.model || "no model yet", make("small", {}, conversation.client || "unknown")]),
    cell("Requests", sums ? number(sums.requests) : "", { class: "figure" }),
    cell("Cached", sums ? [share(sums.cached, sums.input), make("small", {}, `saved ${dollars(sums.saved)}`)] : "", { class: "figure" }),
    cell("From now on", form, { class: "wide" }),
  );
}

async function readConversations() {
  const found = await ask("/segue/conversations");
  titles = found.titles;
  $("models").replaceChildren(...found.models.map((name) => make("option", { value: name })));
  return found;
}

async function showConversations() {
  const found = await readConversations();
  $("threads").replaceChildren(...found.conversations.map((each) => threadRow(each, found.caching[each.id])));
  const names = Object.entries(found.drift);
  $("drift-names").replaceChildren(...(names.length ? names : [["Nothing so far", 0]]).map(([name, times]) => make("li", {}, times ? `${name} (${number(times)})` : name)));
}

async function showSeries() {
  const { steps, step, isCut } = await ask(`/segue/series?hours=${$("hours").value}`);
  const sum = (name) => steps.reduce((total, each) => total + (each[name] || 0), 0);
  const times = steps.map((each) => each.time);
  const line = (name, scale = 1) => steps.map((each) => (each[name] === null ? null : each[name] * scale));
  const percent = (value) => `${Math.round(value)} %`;
  $("sums").textContent = `${plural(sum("requests"), "request")}, ${plural(sum("errors"), "error")}, ${dollars(sum("cost"))} ${provenance(sum("cost"), sum("estimatedCost"))}${isCut ? "; older requests are left out" : ""}`;
  $("plots").replaceChildren(
    plot("Cost", times, step, [["dollars", line("cost")]], dollars, { bars: true }),
    plot("First byte", times, step, [["half of them within", line("firstByte")], ["95 of 100 within", line("slowFirstByte")]], seconds),
    plot("From the cache", times, step, [["input tokens", line("cacheShare", 100)]], percent, { most: 100 }),
    plot("Requests and errors", times, step, [["requests", line("requests")], ["errors", line("errors")]], (value) => number(Math.round(value)), { bars: true }),
  );
}

async function showCosts() {
  const { by, isCut } = await ask(`/segue/costs?hours=${$("cost-hours").value}`);
  const total = by.model.reduce((sum, row) => sum + row.cost, 0);
  const estimated = by.model.reduce((sum, row) => sum + row.estimated, 0);
  $("cost-sums").textContent = `${dollars(total)} ${provenance(total, estimated)}${isCut ? "; older requests are left out" : ""}`;
  $("cost-tables").replaceChildren(...makeCosts(by));
}

const keys = new Keys({ ask, act });
const VIEWS = { requests: () => showRequests(), conversations: showConversations, drift: showConversations, series: showSeries, costs: showCosts, "client-keys": () => keys.show() };

let begun = 0;
async function act(work) {
  const mine = ++begun;
  try {
    await work();
    if (mine === begun) $("problem").textContent = ""; // an older refresh must not take away what a later action said
  } catch (error) {
    $("problem").textContent = error.message;
  }
}

async function refresh(view = document.querySelector("nav [aria-pressed=true]").dataset.view) {
  await act(VIEWS[view]);
}

for (const button of document.querySelectorAll("nav [data-view]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("nav [data-view]")) {
      other.setAttribute("aria-pressed", String(other === button));
      $(other.dataset.view).hidden = other !== button;
    }
    $("status").textContent = "";
    takeTurn();
    keys.hide();
    refresh(button.dataset.view);
  });
}

let waiting = 0;
$("find").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => act(() => showRequests()), 80);
});
$("hours").addEventListener("change", () => act(showSeries));
$("cost-hours").addEventListener("change", () => act(showCosts));
$("search").addEventListener("submit", (event) => event.preventDefault());
$("older").addEventListener("click", () => act(() => showRequests(next)));
$("newest").addEventListener("click", () => act(() => showRequests()));
$("close").addEventListener("click", () => $("opened-box").close());
$("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = $("key").value;
  takeTurn();
  await refresh();
  await act(readConversations);
});

setInterval(() => {
  const isShown = !$("requests").hidden && $("live").checked && isNewest && !document.hidden && $("key-form").hidden;
  if (isShown && !$("opened-box").open) refresh();
}, EVERY);

await refresh("requests");
if ($("key-form").hidden) await act(readConversations); // the models to choose from; showing would replace a field that someone already fills
