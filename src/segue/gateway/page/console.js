// The console of a gateway: live requests, one request opened, conversations, figures over time, what was new in replies.

import { $, make, number, plural } from "./elements.js";
import { plot } from "./plots.js";

const PAGE = 100;
const EVERY = 2000;
const LOSS = { content: "content", opaque: "opaque", none: "none" };
let key = "";
let next = null; // where the older requests begin
let isNewest = true;
let shown = "";

async function ask(path, options = {}) {
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const reply = await fetch(path, { ...options, headers });
  const body = await reply.json();
  if (reply.status === 401) $("key-form").hidden = false;
  if (!reply.ok) throw new Error(body.error);
  $("key-form").hidden = true;
  return body;
}

const dollars = (value) => (value === undefined || value === null ? "" : `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`);
const seconds = (ms) => (ms === undefined || ms === null ? "" : `${(ms / 1000).toFixed(2)} s`);
const short = (name) => (name.length > 12 ? `${name.slice(0, 12)}…` : name);
const read = (usage) => (usage ? (usage.input || 0) + (usage.cacheRead || 0) + (usage.cacheWrite || 0) : 0);
const billed = (row) => row.spent || row.usage;
const guessed = (part) => (part ? `, ${dollars(part)} of it estimated` : "");
function cost(row) {
  const bill = billed(row);
  if (!bill) return "";
  return `${bill.cost ? dollars(bill.cost.total) : "unknown"}${row.figures === "estimated" ? " est." : ""}`;
}
const losses = (row) => (row.changes || []).filter((change) => change.loss !== "none");
const moment = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
const share = (cached, all) => (all ? `${Math.round((100 * cached) / all)} %` : "");

function cell(text, attributes = {}) {
  return make("td", attributes, text);
}

function tried(row) {
  const failed = (row.attempts || []).filter((attempt) => attempt.kind).map((attempt) => attempt.kind.replaceAll("_", " "));
  return `${(row.attempts || []).length}${failed.length ? ` (${[...new Set(failed)].join(", ")})` : ""}`;
}

function result(row) {
  const mark = row.outcome === "done" ? "none" : row.outcome === "aborted" ? "opaque" : "content";
  return make("span", { class: `chip ${mark}` }, `${row.outcome} ${row.status}`);
}

function requestRow(row, keys) {
  const usage = row.usage;
  return make(
    "tr", { "data-id": row.id },
    cell(make("button", { type: "button", "aria-label": `Open the request of ${moment(row.time)}`, onclick: () => openRequest(row.id) }, moment(row.time))),
    cell(row.client || "unknown"),
    cell(row.key || (keys ? keys[row.id] : ""), { class: "of-all" }),
    cell(make("button", { type: "button", "aria-label": `Open the conversation ${row.conversation}`, onclick: () => openThread(row.conversation) }, short(row.conversation))),
    cell(row.asked),
    cell(row.model || "none"),
    cell(result(row)),
    cell(tried(row)),
    cell(seconds(row.firstByteMs), { class: "figure" }),
    cell(usage ? `${number(read(usage))} / ${number(usage.output || 0)}` : "", { class: "figure" }),
    cell(usage ? share(usage.cacheRead || 0, read(usage)) : "", { class: "figure" }),
    cell(cost(row), { class: "figure", title: row.figures || "" }),
    cell(losses(row).length ? String(losses(row).length) : "", { class: "figure" }),
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
  $("status").textContent = found.requests.length ? `${plural(found.requests.length, "request")} shown` : words ? "No request has these words." : "There is no request yet.";
  if (first === shown) return;
  shown = first;
  const focused = document.activeElement?.closest?.("tr[data-id]")?.dataset.id;
  $("rows").replaceChildren(...found.requests.map((row) => requestRow(row, found.keys)));
  if (focused) document.querySelector(`tr[data-id="${CSS.escape(focused)}"] button`)?.focus();
}

function facts(pairs) {
  const kept = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return make("dl", {}, ...kept.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function changeList(changes, empty) {
  if (!changes.length) return make("p", { class: "quiet" }, empty);
  const text = (change) => `${change.code.replaceAll("_", " ")} at ${change.path.join(".")}${change.cause || change.detail ? `: ${change.cause || change.detail}` : ""}`;
  return make("ul", {}, ...changes.map((change) => make("li", {}, make("span", { class: `chip ${LOSS[change.loss]}` }, change.loss), " ", text(change))));
}

function json(value) {
  return make("pre", { tabindex: "0" }, JSON.stringify(value, null, 1));
}

function folded(title, value) {
  return make("details", {}, make("summary", {}, title), value === null ? make("p", { class: "quiet" }, "nothing") : json(value));
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
    openBox(
      `Request ${row.id}`,
      facts([
        ["Time", moment(row.time)], ["Client", row.client], ["Protocol", row.protocol], ["Asked for", row.asked], ["Answered by", row.model],
        ["Result", `${row.outcome} ${row.status}`], ["First byte", seconds(row.firstByteMs)], ["Duration", seconds(row.durationMs)],
        ["Tokens in / out", usage ? `${number(read(usage))} / ${number(usage.output || 0)}` : ""], ["From the cache", usage ? share(usage.cacheRead || 0, read(usage)) : ""],
        ["Cost", cost(row)], ["Figures", row.figures], ["Saved by the cache", dollars(row.saved)], ["Turns with their state", row.restored], ["Bytes passed on unchanged", row.straight ? "yes" : ""],
        ["Problem", row.error],
      ]),
      make("h3", {}, "Attempts"),
      make("ol", {}, ...(row.attempts || []).map((each) => make("li", {},
        `${each.model} (${each.reason}${each.account ? `, account ${each.account}` : ""}): ${each.kind ? `${each.kind.replaceAll("_", " ")}${each.status ? ` ${each.status}` : ""}${each.code ? ` ${each.code}` : ""}` : "answered"}, ${seconds(each.durationMs || 0)}${each.requestId ? `, id ${each.requestId}` : ""}`))),
      make("h3", {}, "Changes"),
      changeList(row.changes || [], "Nothing was changed."),
      (row.drift || []).length ? make("p", {}, `New in the reply: ${row.drift.join(", ")}`) : null,
      make("p", {}, make("button", { type: "button", onclick: () => openThread(row.conversation) }, "Open the conversation")),
      ...(row.alike ? byRequest(row.id) : []),
      make("h3", {}, "Contents"),
      content,
    );
    try {
      const found = await ask(`/segue/requests/${encodeURIComponent(id)}/content`);
      content.replaceChildren(
        folded("What the client sent", found.received ?? null), folded("What the model was sent", found.sent ?? null), folded("The reply", found.reply ?? null),
        bytes("Bytes of the client", found.received_bytes), bytes("Bytes of the provider", found.reply_bytes),
        found.redacted ? make("p", { class: "quiet" }, "Texts are replaced by their lengths.") : replayForm(id, found.sent ?? null, found.reply ?? null),
      );
    } catch (error) {
      content.replaceChildren(make("p", { class: "quiet" }, error.message));
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

function replayForm(id, sent, reply) {
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
      const cost = made.usage ? `: ${number(read(made.usage))} / ${number(made.usage.output || 0)} tokens ${dollars(made.usage.cost?.total)}, ${seconds(made.durationMs)}` : "";
      shownHere.replaceChildren(
        changeList(made.changes, `Nothing would be changed for ${made.model}.`),
        ...(send ? [beside(["The reply", reply], [`The reply of ${made.model}${cost}`, made.reply ?? made.problem])] : []),
        beside(["Was sent", sent], [`${send ? "Was sent" : "Would be sent"} to ${made.model}`, made.sent]),
      );
    } catch (error) {
      shownHere.replaceChildren(make("p", { role: "alert" }, error.message));
    }
  });
  return make("div", {}, form, shownHere);
}

function beside(...columns) {
  return make("div", { class: "beside" }, ...columns.map(([title, value]) => make("div", {}, make("h3", {}, title), json(value))));
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
        result(row), ` ${row.usage ? `${number(read(row.usage))} / ${number(row.usage.output || 0)} tokens` : ""} ${cost(row)}`,
        losses(row).length ? ` ${plural(losses(row).length, "change")}` : "");
    });
    const say = make("p", { role: "status" });
    openBox(
      `Conversation ${id}`,
      make("p", { class: "line" },
        make("button", { type: "button", onclick: () => save(id, say) }, "Export as a segue session"),
        make("button", { type: "button", onclick: () => erase(`/segue/conversations/${encodeURIComponent(id)}`, "all requests, contents and states of this conversation", say) }, "Erase"), say),
      make("ol", {}, ...turns),
    );
  });
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
  const field = make("input", { list: "models", autocomplete: "off", "aria-label": label, placeholder: "the model that the client names" });
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
    cell(moment(conversation.time)),
    cell(make("button", { type: "button", "aria-label": `Open the conversation ${conversation.id}`, onclick: () => openThread(conversation.id) }, short(conversation.id))),
    cell(conversation.client || "unknown"),
    cell(conversation.model || "no model yet"),
    cell(sums ? number(sums.requests) : "", { class: "figure" }),
    cell(sums ? share(sums.cached, sums.input) : "", { class: "figure" }),
    cell(`${dollars(sums?.cost)}${sums?.estimated ? " est." : ""}`, { class: "figure", title: sums ? `${dollars(sums.cost)}${guessed(sums.estimated)}` : "" }),
    cell(dollars(sums?.saved), { class: "figure" }),
    cell(form),
  );
}

async function readConversations() {
  const found = await ask("/segue/conversations");
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
  $("sums").textContent = `${plural(sum("requests"), "request")}, ${plural(sum("errors"), "error")}, ${dollars(sum("cost"))}${guessed(sum("estimatedCost"))}${isCut ? "; older requests are left out" : ""}`;
  $("plots").replaceChildren(
    plot("Cost", times, step, [["dollars", line("cost")]], dollars, { bars: true }),
    plot("First byte", times, step, [["half of them within", line("firstByte")], ["95 of 100 within", line("slowFirstByte")]], seconds),
    plot("From the cache", times, step, [["input tokens", line("cacheShare", 100)]], percent, { most: 100 }),
    plot("Requests and errors", times, step, [["requests", line("requests")], ["errors", line("errors")]], (value) => number(Math.round(value)), { bars: true }),
  );
}

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
  await act(() => (view === "requests" ? showRequests() : view === "series" ? showSeries() : showConversations()));
}

for (const button of document.querySelectorAll("nav [data-view]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("nav [data-view]")) {
      other.setAttribute("aria-pressed", String(other === button));
      $(other.dataset.view).hidden = other !== button;
    }
    $("status").textContent = "";
    refresh(button.dataset.view);
  });
}

let waiting = 0;
$("find").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => act(() => showRequests()), 80);
});
$("hours").addEventListener("change", () => act(showSeries));
$("search").addEventListener("submit", (event) => event.preventDefault());
$("older").addEventListener("click", () => act(() => showRequests(next)));
$("newest").addEventListener("click", () => act(() => showRequests()));
$("close").addEventListener("click", () => $("opened-box").close());
$("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  key = $("key").value;
  await refresh();
  await act(readConversations);
});

setInterval(() => {
  const isShown = !$("requests").hidden && $("live").checked && isNewest && !document.hidden && $("key-form").hidden;
  if (isShown && !$("opened-box").open) refresh();
}, EVERY);

await refresh("requests");
if ($("key-form").hidden) await act(readConversations); // the models to choose from; showing would replace a field that someone already fills
