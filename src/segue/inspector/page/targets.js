// The targets: a card for each, with what it would lose, how much of its window is used and what the input costs.

import { $, LOSSES, LOSS_MEANINGS, LOSS_WORDS, make, makeFacts, number, plural } from "./elements.js";

const FULL_WORDS = { content: "content dropped", opaque: "provider data dropped", none: "format only" };
const SHORT_WORDS = { content: "content dropped", opaque: "provider data", none: "format" };

export function describeCounts(summary) {
  if (summary.problem) return `cannot be sent: ${summary.problem}`;
  const counts = LOSSES.filter((loss) => summary.counts[loss]).map((loss) => `${FULL_WORDS[loss]}: ${summary.sizes[loss]}`);
  return counts.join(", ") || "no changes";
}

// `isShort` is for a card: a limit with few digits keeps the length on one line.
export function describeLength(length, isShort = false) {
  if (!length) return { length: "length not known", cost: "price not known", cut: "", fits: true };
  const { whole, limit, fits, cost } = length;
  const share = limit ? Math.round((100 * whole) / limit) : 0;
  const percent = whole && !share ? (isShort ? "<1" : "under 1") : number(share);
  const words = limit ? `${number(whole)} of ${isShort ? compact(limit) : number(limit)} tokens (${percent} %)` : `${number(whole)} tokens`;
  return { length: words, cost: cost === undefined ? "price not known" : `≈ ${money(cost)} for the input`, cut: fits ? "" : describeCut(length), fits };
}

function describeCut({ sent, tooSmall, shortened, leftOut }) {
  if (tooSmall) return `what has to be sent alone has ≈ ${number(sent)}`;
  const places = [leftOut ? `messages before ${number(leftOut)} left out` : "", shortened > leftOut ? `before ${number(shortened)} shortened` : ""].filter(Boolean);
  return `cut to ≈ ${number(sent)}${places.length ? `: ${places.join(", ")}` : ""}`;
}

function compact(count) {
  if (count >= 999_500) return `${Number((count / 1e6).toPrecision(3))}M`;
  return count >= 10_000 ? `${Math.round(count / 1000)}k` : number(count);
}

export function money(dollars) {
  if (dollars >= 0.1) return `$${dollars.toFixed(2)}`;
  return dollars ? `$${Number(dollars.toPrecision(2))}` : "$0";
}

export function makeCard(target, { selected, at, select, remove }) {
  const { name, summary, problem } = target;
  const inside = [make("span", { class: "name" }, name)];
  if (problem) inside.push(make("span", { class: "chip content" }, problem));
  else if (!summary) inside.push(make("span", { class: "quiet" }, "inspecting …"));
  else inside.push(makeChips(summary), ...makeLength(summary.length));
  return make("li", { class: "card" },
    make("button", { type: "button", class: "choose", "aria-pressed": String(selected), onclick: select, title: at < 9 ? `Key ${at + 1}` : null }, ...inside),
    make("button", { type: "button", class: "remove", "aria-label": `Remove ${name}`, onclick: remove }, "×"));
}

function makeChips(summary) {
  if (summary.problem) return make("span", { class: "chips" }, make("span", { class: "chip content" }, "cannot be sent"));
  const chips = LOSSES.filter((loss) => summary.counts[loss]).map((loss) =>
    make("span", { class: `chip ${loss}`, title: `${FULL_WORDS[loss]}: ${LOSS_MEANINGS[loss]}` }, `${SHORT_WORDS[loss]}: ${summary.sizes[loss]}`));
  return make("span", { class: "chips" }, ...(chips.length ? chips : [make("span", { class: "chip none" }, "no changes")]));
}

function makeLength(length) {
  if (!length) return [];
  const { length: text, cost, cut, fits } = describeLength(length, true);
  const filled = length.limit ? Math.min(1, length.whole / length.limit) : 0;
  const bar = make("span", { class: `gauge${fits ? "" : " over"}`, "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.width = `${100 * filled}%`;
  return [length.limit ? bar : null,
    make("span", { class: "length" }, make("span", {}, fits ? null : make("b", { class: "over" }, "does not fit: "), `≈ ${text}`), " ", make("span", {}, cost)),
    cut ? make("span", { class: "length" }, cut) : null].filter(Boolean);
}

// The table of all targets: how many changes of each kind.
export function drawMatrix(targets) {
  const summaries = targets.map((target) => target.summary).filter(Boolean);
  const kinds = new Map();
  for (const summary of summaries) for (const kind of summary.kinds) kinds.set(`${kind.loss} ${kind.code}`, kind);
  const columns = [...kinds.values()].sort((a, b) => LOSSES.indexOf(a.loss) - LOSSES.indexOf(b.loss) || a.code.localeCompare(b.code));
  const cell = (count, loss) => make("td", { class: loss, "data-count": count }, count ? number(count) : "·");
  $("matrix").tHead.replaceChildren(make("tr", {}, make("th", { scope: "col" }, "Target"),
    ...LOSSES.map((loss) => make("th", { scope: "col", title: LOSS_MEANINGS[loss] }, LOSS_WORDS[loss])),
    ...columns.map((kind) => make("th", { scope: "col", title: kind.sentence }, kind.code.replaceAll("_", " "), make("small", {}, `${kind.dropped} dropped`)))));
  $("matrix").tBodies[0].replaceChildren(...summaries.map((summary) => make("tr", {}, make("th", { scope: "row" }, summary.name),
    ...LOSSES.map((loss) => cell(summary.counts[loss], loss)),
    ...columns.map((kind) => cell(summary.kinds.find((other) => other.code === kind.code && other.loss === kind.loss)?.count ?? 0, kind.loss)))));
}

export function drawFacts(summary, facts, source) {
  const { length, cost, cut, fits } = describeLength(summary.length);
  const rows = [["Protocol", summary.protocol], ["Source format", source]];
  if (summary.problem) rows.push(["Cannot be sent", summary.problem]);
  if (summary.options?.length) rows.push(["Takes the options", summary.options.join(", ")]);
  rows.push(["Estimated length", fits ? length : `does not fit: ${length}; ${cut}`], ["Estimated cost", cost]);
  const line = [summary.protocol];
  if (facts.bytes !== undefined) {
    rows.push(["URL", facts.url ?? "none: this model has no base URL"], ["Body", `${number(facts.bytes)} bytes`], ["Prompt cache", describeCache(facts.cache)]);
    if (facts.required.length) rows.push(["Required", facts.required.join("; ")]);
    if (facts.dropped.length) rows.push(["No longer seen", make("ol", {}, ...facts.dropped.map((text) => make("li", {}, text)))]);
    rows.push(["Check", facts.violations.join("; ") || "no known violations"]);
    line.push(`${number(facts.bytes)} bytes`, ...(facts.cache ? [`${facts.cache.turns} of ${facts.cache.of} turns may be cached`] : []),
      facts.violations.length ? plural(facts.violations.length, "known violation") : "no known violations");
    if (facts.required.length) line.push("has requirements");
  }
  $("facts-line").textContent = line.join(" · ");
  $("facts").replaceChildren(...makeFacts(rows));
}

function describeCache(cache) {
  if (!cache) return "this model has not answered in this conversation, so nothing is cached";
  const before = cache.turns < cache.sentBefore ? `, which had ${cache.sentBefore}` : "";
  return `${cache.turns} of ${cache.of} turns are the same as in the last request to this model${before}`;
}
