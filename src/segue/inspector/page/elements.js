// Makes the elements of the page: a message, its pieces of content, and its changes. All text is set as text, never as HTML.

export const LOSSES = ["content", "opaque", "none"];
export const LOSS_MEANINGS = {
  content: "what a model would read",
  opaque: "what a provider reads and no model does, such as a signature or a user id",
  none: "only form or place",
};
export const LOSS_WORDS = { content: "content dropped", opaque: "provider data dropped", none: "nothing dropped" };
const ROLES = { toolResult: "tool result" };
const KINDS = { thinking: "thinking", toolCall: "call", image: "image", file: "file", native: "native block", tools: "tools" };

export const $ = (id) => document.getElementById(id);
export const number = (value) => value.toLocaleString("en");
export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// The rows of a list of facts: a name and a value, which may be an element.
export function makeFacts(rows) {
  return rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
}

// `actions` are `words`, what the sides are called, `imageUrl(key)` and `expand(at, piece, side)`; `short` is the length after which a text can be shortened again.
export function makeRow(row, size, actions, short) {
  const changed = row.changes.length > 0 || !row.same;
  const worst = LOSSES.find((loss) => row.changes.some((change) => change.loss === loss));
  const item = make("li", {
    class: `row${changed ? " changed" : ""}${worst ? ` worst-${worst}` : ""}${row.same ? " same" : ""}`,
    "data-at": row.at, "aria-posinset": row.at + 1, "aria-setsize": size, tabindex: "-1",
  });
  const newId = row.stored && row.sent && row.stored.id !== row.sent.id; // of a tool result
  const context = { at: row.at, actions, short, newId };
  item.append(makeSide(row.stored, "stored", actions.words.noLeft, context));
  if (row.same) item.append(make("div", { class: "side sent unchanged" }, actions.words.same));
  else item.append(makeSide(row.sent, "sent", actions.words.noRight, context));
  if (row.changes.length) item.append(makeChanges(row));
  return item;
}

// A run of messages that are not sent, as one row.
export function makeFold(row, last, size, actions) {
  const item = make("li", { class: "row changed fold worst-content", "data-at": row.at, "aria-posinset": row.at + 1, "aria-setsize": size, tabindex: "-1" },
    make("div", { class: "side stored" }, `${plural(last - row.at + 1, "message")}, from messages[${row.stored?.number}]`,
      make("button", { type: "button", class: "expand", onclick: () => actions.unfold(row.at) }, "show them")),
    make("div", { class: "side sent absent" }, actions.words.noRight));
  if (row.changes.length) item.append(makeChanges(row));
  return item;
}

function makeSide(message, side, absent, context) {
  if (!message) return make("div", { class: `side ${side} absent` }, absent);
  const head = make("div", { class: "who" }, make("b", {}, ROLES[message.role] ?? message.role), " ",
    message.origin ? make("span", {}, message.origin) : null, message.failed ? make("span", { class: "failed" }, " failed") : null, " ",
    context.newId ? make("code", { class: "id" }, make(side === "stored" ? "del" : "ins", {}, message.id), " ") : null,
    message.number === undefined ? null : make("code", { class: "quiet" }, `messages[${message.number}]`));
  const pieces = message.pieces.map((piece, at) => makePiece(piece, at, side, context));
  if (!pieces.length) pieces.push(make("p", { class: "piece quiet" }, "empty"));
  const { right, left } = context.actions.words;
  return make("div", { class: `side ${side}`, "data-side": right }, make("span", { class: "unseen" }, `${side === "stored" ? left : right}: `), head, ...pieces);
}

// One message by itself, such as a reply. `left` is what it is called, `imageUrl(key)` the address of an image.
export function makeMessage(message, words) {
  const actions = { words: { ...words, dropped: "" }, imageUrl: words.imageUrl, expand: () => {} };
  return make("div", { class: "row same one" }, makeSide({ ...message, number: undefined }, "stored", "", { at: 0, actions, short: Infinity }));
}

function makePiece(piece, index, side, context) {
  const marks = new Set(piece.marks ?? []);
  const tag = side === "stored" ? "del" : "ins";
  const marked = (key, ...content) => (marks.has(key) ? make(tag, {}, ...content) : make("span", {}, ...content));
  const box = make("div", { class: `piece ${piece.kind}${piece.state ? ` ${piece.state}` : ""}`, "data-piece": `${side}-${index}` });
  const label = KINDS[piece.kind] ?? (marks.has("kind") ? piece.kind : null);
  if (label) box.append(make("span", { class: "label" }, marked("kind", label)), " ");
  if (piece.name) box.append(make("b", {}, marked("name", piece.name)), " ");
  if (piece.id) box.append(make("code", { class: "id quiet" }, marked("id", piece.id)), " ");
  if (piece.state) box.append(make("span", { class: "label state" }, piece.state === "dropped" ? context.actions.words.dropped : "added"), " ");
  if (piece.image) box.append(makeImage(piece, context.actions));
  else box.append(make("span", { class: "words" }, ...piece.parts.map((part, at) => (at % 2 && part ? make(tag, {}, part) : part))));
  if (piece.signed) box.append(" ", make("span", { class: "label" }, marked("signed", "signature")));
  else if (marks.has("signed") && side === "sent") box.append(" ", make("span", { class: "label state" }, "without signature"));
  if (piece.more) box.append(makeExpand(`… show ${number(piece.more)} more characters${piece.changedLater ? ", with changes" : ""}`, context, index, side));
  else if (piece.parts.join("").length > context.short) box.append(makeExpand("show less", context, index, side));
  return box;
}

function makeExpand(text, context, index, side) {
  const longer = text !== "show less";
  return make("button", { type: "button", class: "expand", onclick: () => context.actions.expand(context.at, `${side}-${index}`, longer) }, text);
}

function makeImage(piece, actions) {
  const text = piece.parts.join("");
  const link = make("a", { target: "_blank", rel: "noopener", class: "picture" },
    make("img", { alt: `image, ${text}`, loading: "lazy", onerror: () => link.replaceWith(`${text}; not a picture that browsers show`) }));
  Promise.resolve(actions.imageUrl(piece.image)).then((url) => {
    link.href = link.firstChild.src = url;
  });
  return make("figure", {}, link, make("figcaption", { class: "quiet" }, text));
}

function makeChanges(row) {
  const kinds = new Map(); // changes of one kind are one item, with their number and their places
  for (const change of row.changes) {
    const kind = `${change.loss} ${change.code}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), change]);
  }
  const place = (change) => `${change.where}${change.detail ? ` (${change.detail})` : ""}`;
  const items = [...kinds.values()].map((changes) => make("li", { class: changes[0].loss, "data-count": changes.length },
    changes.length > 1 ? `${number(changes.length)} × ` : "",
    make("b", { title: LOSS_MEANINGS[changes[0].loss] }, `${changes[0].dropped} dropped`), " ", make("code", {}, changes[0].code), ` at ${changes.map(place).join(", ")}: ${changes[0].sentence}`));
  if (row.moreChanges) items.push(make("li", { class: "quiet" }, `and ${number(row.moreChanges)} more`));
  return make("ul", { class: "changes", "aria-label": "Changes" }, ...items);
}
