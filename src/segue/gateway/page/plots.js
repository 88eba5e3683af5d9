// Plots of figures over time: plain SVG, with the same figures in a table for those who do not see it.

import { make } from "./elements.js";

const WIDTH = 560;
const HEIGHT = 150;
const LEFT = 84;
const BOTTOM = 20;
const TOP = 10;

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function label(time, step) {
  const date = new Date(time);
  const isLong = step >= 6 * 3600 * 1000;
  return isLong ? date.toLocaleDateString(undefined, { month: "short", day: "numeric" }) : date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

// One plot: `series` are pairs of a name and values, null where there is none; `write` writes a value.
export function plot(title, times, step, series, write, { bars = false, most = 0 } = {}) {
  const known = series.flatMap(([, values]) => values.filter((value) => value !== null));
  const top = most || Math.max(0, ...known) || 1;
  const wide = (WIDTH - LEFT) / Math.max(1, times.length);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(value, top) / top);
  const x = (at) => LEFT + (at + 0.5) * wide;
  const drawn = [];
  for (const share of [0, 0.5, 1]) {
    drawn.push(svg("line", { x1: LEFT, x2: WIDTH, y1: y(top * share), y2: y(top * share), class: "grid" }));
    drawn.push(svg("text", { x: LEFT - 6, y: y(top * share) + 4, "text-anchor": "end" }, write(top * share)));
  }
  for (const at of [0, Math.floor(times.length / 2), times.length - 1]) {
    drawn.push(svg("text", { x: x(at), y: HEIGHT - 4, "text-anchor": at === 0 ? "start" : at === times.length - 1 ? "end" : "middle" }, label(times[at], step)));
  }
  series.forEach(([name, values], number) => {
    const says = (at) => svg("title", {}, `${label(times[at], step)} ${name}: ${write(values[at])}`);
    values.forEach((value, at) => {
      if (value === null || (bars && !value)) return;
      drawn.push(bars
        ? svg("rect", { x: x(at) - wide * 0.4, y: y(value), width: wide * 0.8, height: Math.max(1, HEIGHT - BOTTOM - y(value)), class: `series-${number}` }, says(at))
        : svg("circle", { cx: x(at), cy: y(value), r: 2.5, class: `series-${number}` }, says(at)));
    });
    if (!bars) {
      const runs = values.map((value, at) => (value === null ? null : `${at && values[at - 1] !== null ? "L" : "M"}${x(at)} ${y(value)}`));
      drawn.push(svg("path", { d: runs.filter(Boolean).join(""), class: `line-${number}` }));
    }
  });
  const latest = (values) => values.findLast((value) => value !== null);
  const spoken = known.length ? series.map(([name, values]) => `${name}: at most ${write(Math.max(0, ...values.filter((value) => value !== null)))}, last ${write(latest(values) ?? 0)}`).join("; ") : "no figures";
  const rows = times.map((time, at) => [time, series.map(([, values]) => values[at])]).filter(([, values]) => values.some((value) => value));
  return make("figure", { class: "plot" },
    make("figcaption", {}, title, ...(series.length > 1 ? series.map(([name], number) => make("span", { class: `key key-${number}` }, name)) : [])),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${spoken}` }, ...drawn),
    make("details", {}, make("summary", {}, `${title} as a table`),
      make("table", {},
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "From"), ...series.map(([name]) => make("th", { scope: "col", class: "figure" }, name)))),
        make("tbody", {}, ...rows.map(([time, values]) => make("tr", {}, make("td", {}, new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" })), ...values.map((value) => make("td", { class: "figure" }, value === null ? "" : write(value)))))))));
}
