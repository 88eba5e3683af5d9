// What a request and its reply said, as the inspector shows messages; and changes of one kind as one item.

import { LOSS_MEANINGS, make, makeMessage, number } from "./elements.js";
import { RowList } from "./rows.js";

const WORDS = { left: "Received", right: "Sent to the model", dropped: "not sent", noLeft: "Not received: added for the model", noRight: "Not sent", same: "sent unchanged" };

// Changes by kind: how many, what is dropped, what it means, and where.
export function makeKinds(kinds, empty) {
  if (!kinds.length) return make("p", { class: "quiet" }, empty);
  const items = kinds.map((kind) => {
    const more = kind.count > kind.places.length ? `, and ${number(kind.count - kind.places.length)} more` : "";
    return make("li", { class: kind.loss, "data-count": kind.count },
      kind.count > 1 ? `${number(kind.count)} × ` : "",
      make("b", { title: LOSS_MEANINGS[kind.loss] }, `${kind.dropped} dropped`), " ", make("code", {}, kind.code), ` ${kind.sentence} `,
      make("details", {}, make("summary", {}, kind.count > 1 ? "where" : kind.places[0]), kind.count > 1 ? `${kind.places.join(", ")}${more}` : ""));
  });
  return make("ul", { class: "changes", "aria-label": "Changes by kind" }, ...items.map(unfolded));
}

// One place needs no fold.
function unfolded(item) {
  const fold = item.querySelector("details");
  if (item.dataset.count === "1") fold.replaceWith(make("span", { class: "quiet" }, `at ${fold.querySelector("summary").textContent}`));
  return item;
}

export function makeReply(message) {
  return makeMessage(message, { left: "Reply", right: "", imageUrl: () => "" });
}

// `ask(path, options)` asks the gateway; `fetchImage(path)` gives the address of an image.
export async function showContents(box, id, { ask, fetchImage }) {
  const path = `/segue/requests/${encodeURIComponent(id)}`;
  const found = await ask(`${path}/view`);
  const imageUrl = (key) => fetchImage(`${path}/images/${key}`);
  const list = make("div", { class: "rows" });
  const parts = [];
  if (found.reply) parts.push(make("h3", {}, "The reply"), makeMessage(found.reply, { left: "Reply", right: "", imageUrl }));
  if (found.problem) parts.push(make("p", { class: "quiet" }, `The request: ${found.problem}.`));
  else parts.push(make("h3", {}, found.isSent ? "Received, and what the model was sent" : "Received; nothing was sent"), list);
  box.replaceChildren(...parts);
  if (found.problem) return;
  const rows = new RowList(list, {
    load: (wanted, length) => ask(`${path}/rows`, { method: "POST", body: JSON.stringify({ rows: wanted, length }) }),
    imageUrl,
    fail: (error) => list.replaceChildren(make("p", { role: "alert" }, error.message)),
    unfold: async (at) => {
      rows.folds.delete(at);
      await draw();
    },
  });
  rows.actions.words = found.isSent ? WORDS : { ...WORDS, same: "", noRight: "" };
  rows.folds = new Map(found.summary.notSent);
  const draw = (first) => {
    const hidden = new Set([...rows.folds].flatMap(([start, end]) => Array.from({ length: end - start }, (_, at) => start + 1 + at)));
    const all = Array.from({ length: found.summary.rows }, (_, at) => at).filter((at) => !hidden.has(at));
    return rows.show(all, found.summary.rows, hidden.size ? undefined : first);
  };
  await draw(found.rows.length ? found.rows : undefined);
}
