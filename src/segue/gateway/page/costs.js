// What requests cost, by key, model, day and client: a table each, with a bar, and whether the figure is measured.

import { make, number, plural } from "./elements.js";

const TITLES = { key: "By key", model: "By model", day: "By day (UTC)", client: "By client" };

export const dollars = (value) => (value === undefined || value === null ? "" : `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`);

// Whether a sum is of the providers' own figures: all of it, a part of it, or nothing.
export function provenance(cost, estimated) {
  if (!estimated) return cost ? "measured" : "";
  return estimated >= cost ? "estimated" : `${dollars(estimated)} of it estimated`;
}

export function makeCosts(by) {
  return Object.entries(TITLES).map(([group, title]) => makeGroup(title, by[group]));
}

function makeGroup(title, rows) {
  const most = Math.max(0, ...rows.map((row) => row.cost));
  const head = ["Name", "Cost", "Requests", "Tokens in / out"];
  const body = rows.length ? rows.map((row) => makeCost(row, most)) : [make("tr", {}, make("td", { colspan: head.length, class: "quiet" }, "No requests."))];
  return make("section", { class: "group", "aria-label": title },
    make("h2", {}, title),
    make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Cost ${title.toLowerCase()}` },
      make("table", {},
        make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", class: at ? "figure" : "" }, name)))),
        make("tbody", {}, ...body))));
}

function makeCost(row, most) {
  const bar = make("span", { class: "gauge", "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.width = `${most ? (100 * row.cost) / most : 0}%`;
  const unknown = row.unpriced ? make("small", {}, `${number(row.unpriced)} without a known price`) : null;
  return make("tr", {},
    make("th", { scope: "row" }, row.name, bar, make("small", { class: "narrow" }, `${plural(row.requests, "request")}, ${number(row.input)} / ${number(row.output)} tokens`)),
    make("td", { class: "figure" }, make("b", {}, dollars(row.cost)), make("small", {}, provenance(row.cost, row.estimated)), unknown),
    make("td", { class: "figure" }, number(row.requests)),
    make("td", { class: "figure" }, `${number(row.input)} / ${number(row.output)}`));
}
