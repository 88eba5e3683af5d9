// Before a switch: what the next turns cost at each model, what is lost, and from when on a switch pays. All of it is estimated.

import { make, number, plural } from "./elements.js";

const dollars = (value) => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
const money = (cost) => (cost ? `≈ ${dollars(cost.expected)}` : "price not known");
const interval = (cost) => (cost ? `${dollars(cost.low)} to ${dollars(cost.high)}` : "");
const small = (...children) => make("small", {}, ...children);

// `found` is a plan as JSON. The present model comes first; a switch pays from a turn on, or not within those that are planned.
export function makePlan(found) {
  const present = found.present?.model;
  const rows = [found.present, ...found.models.filter((each) => each.model !== present)].filter(Boolean);
  if (!rows.length) return make("p", {}, "No model of the conversation is known, and no target is a model: add a target.");
  const columns = ["Model", "Next turn", `Next ${plural(found.turns, "turn")}`, "Lost", "Pays"];
  return make("div", { class: "plan" },
    make("p", { class: "quiet" }, "Estimated from the conversation so far; nine in ten fall into the interval. ", present ? `${present} answers now.` : "No model answers now, so there is nothing to compare with."),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Cost and losses by model" },
      make("table", {},
        make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, ...rows.map((each) => planRow(each, each.model === present, Boolean(present)))))));
}

function planRow(each, isPresent, hasPresent) {
  const [first] = each.requests;
  const cell = (label, ...children) => make("td", { "data-label": label }, ...children);
  const name = make("th", { scope: "row" }, each.model, " ", isPresent ? small("answers now") : "");
  if (!first) return make("tr", { class: "unfit" }, name, cell("Next turn", "does not fit"), cell("Later", ""), cell("Lost", each.reason ?? ""), cell("Pays", ""));
  const size = first.input + first.cacheRead + first.cacheWrite;
  return make("tr", { class: isPresent ? "present" : "" }, name,
    cell("Next turn", make("b", {}, money(first.cost)), small(interval(first.cost)), small(`${number(size)} tokens, ${number(first.cacheRead)} from the cache`)),
    cell("Later", money(each.cost), small(interval(each.cost))),
    cell("Lost", each.lost),
    cell("Pays", pays(each, isPresent, hasPresent)));
}

function pays(each, isPresent, hasPresent) {
  if (isPresent) return each.warmSeconds > 0 ? `cache warm for ${duration(each.warmSeconds)}` : "cache cold";
  if (!hasPresent || !each.cost) return "";
  const back = each.costOfReturn ? `; to return then costs ${money(each.costOfReturn)}` : "";
  if (each.breakEven === null) return `not within these turns${back}`;
  return `${each.breakEven === 0 ? "from the next turn on" : `from turn ${number(each.breakEven + 1)} on`}${back}`;
}

function duration(seconds) {
  return seconds >= 3600 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.max(1, Math.round(seconds / 60))} min`;
}
