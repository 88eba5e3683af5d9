// The keys of clients: made, listed with what they spent, and revoked. Only the admin key may; a new key is shown once.

import { $, make, number, plural } from "./elements.js";
import { dollars, provenance } from "./costs.js";

const PATH = "/segue/admin/keys";
const DAY = 24 * 3600 * 1000;

function limits(key) {
  const parts = Object.entries(key.budgets ?? {}).flatMap(([period, budget]) => [
    budget.dollars === undefined ? "" : `${dollars(key.spent[period].dollars)} of ${dollars(budget.dollars)} a ${period}`,
    budget.tokens === undefined ? "" : `${number(key.spent[period].tokens)} of ${plural(budget.tokens, "token")} a ${period}`,
  ]);
  if (key.requestsPerMinute) parts.push(`${plural(key.requestsPerMinute, "request")} a minute`);
  if (key.tokensPerMinute) parts.push(`${plural(key.tokensPerMinute, "token")} a minute`);
  if (key.models) parts.push(`models ${key.models.join(", ")}`);
  if (key.routes) parts.push(`routes ${key.routes.join(", ")}`);
  if (key.expires) parts.push(`until ${new Date(key.expires).toLocaleDateString()}`);
  return parts.filter(Boolean).join("; ").replaceAll("a total", "in all") || "no limits";
}

function keyRow(key, revoke) {
  const { dollars: cost, tokens, estimatedDollars } = key.spent.total;
  const isValid = key.state === "valid";
  const cell = (label, attributes, ...children) => make("td", { "data-label": label, ...attributes }, ...children);
  return make("tr", { class: isValid ? "" : "over" },
    make("th", { scope: "row" }, key.name, make("small", {}, `…${key.hint}`)),
    cell("State", {}, make("span", { class: `chip ${isValid ? "none" : "content"}` }, key.state)),
    cell("Spent", { class: "figure" }, make("b", {}, dollars(cost)), make("small", {}, provenance(cost, estimatedDollars))),
    cell("Tokens", { class: "figure" }, number(tokens)),
    cell("Requests", { class: "figure" }, number(key.requests ?? 0)),
    cell("Limits", { class: "wide" }, limits(key)),
    cell("", {}, isValid ? make("button", { type: "button", class: "danger", "aria-label": `Revoke ${key.name}`, onclick: () => revoke(key) }, "Revoke") : ""));
}

// `ask(path, options)` asks the gateway, `act(work)` shows what fails.
export class Keys {
  constructor({ ask, act }) {
    this.ask = ask;
    this.act = act;
    $("new-key").addEventListener("submit", (event) => {
      event.preventDefault();
      act(() => this.create());
    });
    $("copy-key").addEventListener("click", () => navigator.clipboard.writeText($("made-key").value).then(() => this.say("The key is copied."), () => $("made-key").select()));
  }

  say(text) {
    $("status").textContent = text;
  }

  async show() {
    const { keys } = await this.ask(PATH);
    const rows = keys.length ? keys.map((key) => keyRow(key, (chosen) => this.act(() => this.revoke(chosen)))) : [make("tr", {}, make("td", { colspan: 7, class: "quiet" }, "There are no keys."))];
    $("key-rows").replaceChildren(...rows);
    $("new-key").hidden = false;
  }

  async create() {
    const dollarsAMonth = Number($("key-budget").value);
    const days = Number($("key-days").value);
    const models = $("key-models").value.split(/[\s,]+/).filter(Boolean);
    const wanted = { name: $("key-name").value.trim(), ...(dollarsAMonth > 0 && { budgets: { month: { dollars: dollarsAMonth } } }), ...(days > 0 && { expires: Date.now() + days * DAY }), ...(models.length && { models }) };
    const made = await this.ask(PATH, { method: "POST", body: JSON.stringify(wanted) });
    $("new-key").reset();
    $("made").hidden = false;
    $("made-name").textContent = made.name;
    $("made-key").value = made.key;
    $("made-notice").textContent = made.notice ?? "";
    $("made-key").focus();
    await this.show();
    this.say(`The key ${made.name} is made.`);
  }

  async revoke(key) {
    if (!window.confirm(`Revoke the key ${key.name}? Its clients are refused from now on. This cannot be undone.`)) return;
    await this.ask(`${PATH}/${encodeURIComponent(key.id)}`, { method: "DELETE" });
    await this.show();
    this.say(`The key ${key.name} is revoked.`);
  }

  // What was made is not shown to whoever looks at the page next.
  hide() {
    $("made").hidden = true;
    $("made-key").value = "";
  }
}
