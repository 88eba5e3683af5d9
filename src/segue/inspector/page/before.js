// The comparison with the request before: the first difference, the reasoning that it invalidates, and what it costs.

import { $, makeFacts, number, plural } from "./elements.js";
import { money } from "./targets.js";

// `open(body, name)` opens a conversation and gives its key; `compare(key)` compares the chosen target's request with it.
export class Before {
  constructor({ open, compare }) {
    this.open = open;
    this.compare = compare;
    this.key = null;
    this.asked = 0;
    $("before").addEventListener("submit", (event) => {
      event.preventDefault();
      if ($("before-text").value.trim()) this.read($("before-text").value, "");
      else this.show("There is no text: paste the request before, or open its file.");
    });
    $("before-file").addEventListener("change", () => {
      const file = $("before-file").files[0];
      if (file) this.read(file, file.name);
      $("before-file").value = ""; // so that the same file can be read again
    });
    $("before").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.stopPropagation();
      $("before").requestSubmit();
    });
    $("before-box").addEventListener("toggle", () => $("before-box").open && this.refresh());
  }

  focus() {
    $("before-box").open = true;
    $("before-text").focus();
  }

  async read(body, name) {
    this.key = null;
    try {
      this.key = await this.open(body, name);
    } catch (error) {
      this.show(error.message);
    }
    await this.refresh();
  }

  // Compares again, for another target or another conversation.
  async refresh() {
    if (!this.key || !$("before-box").open) return;
    const asked = ++this.asked;
    const answer = await this.compare(this.key).catch((error) => ({ problem: error.message }));
    if (asked !== this.asked) return;
    if (answer.problem) this.show(answer.problem);
    else this.show(describe(answer), rowsOf(answer));
  }

  show(sentence, rows = []) {
    $("before-answer").textContent = sentence;
    $("before-facts").replaceChildren(...makeFacts(rows));
  }
}

function describe({ where, message }) {
  return where ? `${message}, first at ${where}: the request before is not continued.` : "This request continues the one before: what was cached is read from the cache.";
}

function rowsOf(answer) {
  const rows = [];
  if (answer.where) {
    rows.push(["First difference", answer.where]);
    rows.push(["Reasoning that is not valid behind it", counted(answer.invalid, answer.reasoning)]);
    const price = answer.cost === undefined ? "price not known" : `${money(answer.cost)} more than from the cache`;
    rows.push(["Read anew", answer.tokens ? `≈ ${plural(answer.tokens, "token")}, ${price}` : "nothing"]);
  }
  if (answer.withheld) rows.push(["Reasoning left out of this request", counted(answer.withheld, answer.leftOut)]);
  return rows;
}

function counted(count, places) {
  if (!count) return "none";
  const more = count > places.length ? `; and ${number(count - places.length)} more` : "";
  return `${plural(count, "block")}: ${places.join("; ")}${more}`;
}
