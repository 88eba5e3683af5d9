// The list of messages. Only the part around the screen is in the page: rows are in chunks, a chunk is filled when it
// comes near the screen and emptied, with its height kept, when it leaves. So the work does not grow with the conversation.

import { make, makeFold, makeRow } from "./elements.js";

const CHUNK = 24; // rows that are loaded and drawn together; library.py has the same numbers
const NEAR = 900; // pixels around the screen in which chunks are filled
const SHORT = 1200; // characters of a text that are shown at first
const LONGER = 30; // how many times as many each time more is asked for

export class RowList {
  // `load(rows, length)` gives the data of rows; `imageUrl(key)` the address of an image; `fail(error)` shows a problem;
  // `unfold(at)` shows the rows of a run that is shown as one.
  constructor(box, { load, imageUrl, fail, unfold }) {
    this.box = box;
    this.load = load;
    this.fail = fail;
    this.actions = { imageUrl, expand: (at, piece, longer) => this.expand(at, piece, longer), unfold };
    this.folds = new Map(); // the first row of a run that is one row -> the last one
    this.rows = [];
    this.size = 0;
    this.generation = 0;
    this.showing = null; // the promise of the rows that were asked for last
    this.observer = new IntersectionObserver((entries) => this.scrolled(entries), { rootMargin: `${NEAR}px 0px` });
  }

  // Shows these rows, of `size` in all; resolves when the first ones can be seen. `first` are these, if they are there.
  show(rows, size, first) {
    this.showing = this.replace(rows, size, first);
    return this.showing;
  }

  // Resolves when the rows that were asked for last are in the page.
  async settled() {
    for (let seen = null; seen !== this.showing; ) {
      seen = this.showing;
      await seen;
    }
  }

  async replace(rows, size, first) {
    this.generation += 1;
    this.observer.disconnect();
    this.rows = rows;
    this.size = size;
    this.lengths = new Map();
    this.loading = new Map();
    this.here = null;
    delete this.box.dataset.done;
    this.chunks = [];
    for (let start = 0; start < rows.length; start += CHUNK) {
      const chunk = make("div", { class: "chunk empty" });
      chunk.style.setProperty("--count", Math.min(CHUNK, rows.length - start));
      chunk.dataset.start = start;
      this.chunks.push(chunk);
    }
    const generation = this.generation;
    if (this.chunks[0] && !first) first = await this.rowsOf(this.chunks[0]).catch((error) => this.fail(error));
    if (generation !== this.generation) return;
    if (first) this.draw(this.chunks[0], first); // before it is shown, so that the page does not jump
    this.box.replaceChildren(...this.chunks);
    this.measure();
    for (const chunk of this.chunks) this.observer.observe(chunk);
    this.box.dataset.done = "yes";
  }

  measure() {
    const filled = this.chunks[0]?.offsetHeight;
    if (filled) this.box.style.setProperty("--row", `${filled / Math.min(CHUNK, this.rows.length)}px`);
  }

  scrolled(entries) {
    for (const { target, isIntersecting } of entries) {
      target.near = isIntersecting;
      if (isIntersecting) this.fill(target);
      else this.empty(target);
    }
  }

  async rowsOf(chunk) {
    const start = Number(chunk.dataset.start);
    const wanted = this.rows.slice(start, start + CHUNK);
    const long = wanted.filter((at) => this.lengths.has(at));
    const [rows, ...expanded] = await Promise.all([this.load(wanted, SHORT), ...long.map((at) => this.load([at], this.lengths.get(at)))]);
    const byPlace = new Map(expanded.flat().map((row) => [row.at, row]));
    return rows.map((row) => byPlace.get(row.at) ?? row);
  }

  async fill(chunk) {
    if (!chunk.classList.contains("empty")) return;
    if (!this.loading.has(chunk)) this.loading.set(chunk, this.rowsOf(chunk).finally(() => this.loading.delete(chunk)));
    const generation = this.generation;
    const rows = await this.loading.get(chunk).catch((error) => this.fail(error));
    // It may have left the screen, or another target may have been chosen, in the meantime.
    if (rows && generation === this.generation && chunk.near && chunk.classList.contains("empty")) this.draw(chunk, rows);
  }

  draw(chunk, rows) {
    const items = rows.map((row) => (this.folds.has(row.at) ? makeFold(row, this.folds.get(row.at), this.size, this.actions) : makeRow(row, this.size, this.actions, SHORT)));
    const from = rows[0]?.at, to = rows.at(-1)?.at;
    chunk.replaceChildren(make("ol", { "aria-label": `Stored and sent messages, side by side: ${from + 1} to ${to + 1} of ${this.size}` }, ...items));
    chunk.classList.remove("empty");
    chunk.style.height = "";
    if (this.here !== null) this.find(this.here)?.classList.add("here");
  }

  empty(chunk) {
    if (chunk.classList.contains("empty") || chunk.contains(document.activeElement)) return;
    chunk.style.height = `${chunk.offsetHeight}px`;
    chunk.classList.add("empty");
    chunk.replaceChildren();
  }

  find(at) {
    return this.box.querySelector(`li.row[data-at="${at}"]`);
  }

  // Scrolls to a row, loads it if needed, and gives its element.
  async reveal(at, block = "center") {
    const place = this.rows.indexOf(at);
    if (place < 0) return null;
    const chunk = this.chunks[Math.floor(place / CHUNK)];
    for (let tries = 0; tries < 3 && chunk.classList.contains("empty"); tries += 1) { // the observer may call it far while it loads
      chunk.near = true;
      await this.fill(chunk);
    }
    const found = this.find(at);
    found?.scrollIntoView({ block });
    return found;
  }

  async mark(at, { focus = true } = {}) {
    this.here = at;
    await this.settled(); // a row that is about to be replaced would lose the mark
    if (this.here !== at) return; // another row is marked, or others are shown, in the meantime
    this.box.querySelector("li.here")?.classList.remove("here");
    const item = await this.reveal(at);
    item?.classList.add("here");
    if (focus) item?.focus({ preventScroll: true });
  }

  // The row at the top of the screen, below what is pinned there.
  top(below) {
    return [...this.box.querySelectorAll("li.row")].find((item) => item.getBoundingClientRect().bottom > below + 8);
  }

  async expand(at, piece, longer) {
    const length = longer ? (this.lengths.get(at) ?? SHORT) * LONGER : SHORT;
    const [row] = (await this.load([at], length).catch((error) => this.fail(error))) ?? [];
    const item = this.find(at);
    if (!row || !item) return;
    if (longer) this.lengths.set(at, length);
    else this.lengths.delete(at);
    const drawn = makeRow(row, this.size, this.actions, SHORT);
    drawn.classList.toggle("here", item.classList.contains("here"));
    item.replaceWith(drawn);
    const shown = drawn.querySelector(`[data-piece="${piece}"]`);
    (shown?.querySelector("button.expand") ?? drawn).focus({ preventScroll: true });
    if (!longer) drawn.scrollIntoView({ block: "nearest" });
  }
}
