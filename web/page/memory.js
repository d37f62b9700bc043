// Memory over time: which part of it is shown, and its table.
import { bytes, fileName, percent, plain, time } from "./format.js";
import { Chart } from "./chart.js";
import { Table } from "./tables.js";

const SPANS = [[60, "1 min"], [300, "5 min"], [900, "15 min"], [3600, "1 hour"]];
const SHORTEST = 10; // seconds
const LETTERS = "ABCDEFGHIJK";

const find = (id) => document.querySelector("#" + id);

export class Memory {
  span = 300;
  end = null; // of what is shown; null: now
  newest = 0; // second of the newest sample
  oldest = 0;
  asked = 0;

  constructor(fetchJson) {
    this.fetchJson = fetchJson;
    this.chart = new Chart(find("chart"));
    this.table = new Table(find("legend"), [
      { title: "Whose", base: "name" }, { title: "Memory", base: "number" },
      { title: "Most", base: "number" }, { title: "GPU", base: "number" }]);
    this.device = find("device");
    this.device.addEventListener("change", () => this.ask());
    for (const [seconds, title] of SPANS) this.#addSpan(seconds, title);
    find("earlier").addEventListener("click", () => this.move(-this.span / 2));
    find("later").addEventListener("click", () => this.move(this.span / 2));
    find("live").addEventListener("click", () => { this.end = null; this.ask(); });
    this.slider = find("cursor");
    this.slider.addEventListener("input", () => { this.at = Number(this.slider.value); this.showAt(); });
    this.#listenToDrags();
    new ResizeObserver(() => this.data && this.draw()).observe(find("chart"));
  }

  #addSpan(seconds, title) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    button.dataset.span = seconds;
    button.addEventListener("click", () => {
      if (this.end !== null) this.end = Math.min(this.end + (seconds - this.span) / 2, this.newest);
      this.span = seconds;
      this.ask();
    });
    find("spans").append(button);
  }

  #listenToDrags() {
    const svg = this.chart.svg;
    svg.addEventListener("pointerdown", (event) => {
      if (!this.data) return;
      this.from = this.chart.timeAt(event.clientX);
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!this.data) return;
      const now = this.chart.timeAt(event.clientX);
      if (this.from) return this.chart.chosen(this.from, now);
      this.at = now;
      this.showAt();
    });
    svg.addEventListener("pointerup", (event) => {
      if (!this.from) return;
      const to = this.chart.timeAt(event.clientX), span = Math.abs(to - this.from);
      this.chart.chosen(null);
      if (span >= SHORTEST / 2) {
        this.end = Math.max(this.from, to);
        this.span = Math.max(span, SHORTEST);
        this.ask();
      }
      this.from = null;
    });
    svg.addEventListener("pointercancel", () => { this.from = null; this.chart.chosen(null); });
    svg.addEventListener("dblclick", () => { this.span = 3600; this.end = null; this.ask(); });
  }

  move(seconds) {
    const end = (this.end ?? this.newest) + seconds;
    this.end = end >= this.newest ? null : Math.max(end, this.oldest + this.span / 2);
    this.ask();
  }

  // From each answer of /api/now.
  show({ picture, history }) {
    this.newest = history.end;
    this.oldest = history.begin;
    const devices = picture?.devices ?? [];
    const names = devices.map((one) => `${one.device}: ${plain(one.name)}`);
    if (names.join("\n") !== this.names) {
      this.names = names.join("\n");
      const chosen = this.device.value;
      this.device.replaceChildren(...devices.map((one, i) => new Option(names[i], one.device)));
      if (devices.some((one) => String(one.device) === chosen)) this.device.value = chosen;
    }
    if (this.end === null && !this.from) return this.ask();
  }

  async ask() {
    for (const button of find("spans").children) {
      button.setAttribute("aria-pressed", Number(button.dataset.span) === Math.round(this.span));
    }
    find("live").setAttribute("aria-pressed", this.end === null);
    if (!this.newest || this.device.value === "") return;
    const number = ++this.asked;
    const end = Math.round(this.end ?? this.newest) + 1, begin = end - Math.round(this.span);
    const columns = Math.min(300, end - begin);
    const data = await this.fetchJson(
      `api/memory?device=${this.device.value}&begin=${begin}&end=${end}&columns=${columns}`);
    if (number !== this.asked || !data || this.from) return; // a drag is not disturbed
    Object.assign(this, { data, shownBegin: begin, shownEnd: end });
    this.draw();
  }

  // The sessions that had most have an area each; what the others have together is one.
  layers() {
    const layers = this.data.sessions.map((one, i) => ({
      kind: "c" + i, letter: LETTERS[i], values: one.memory, gpu: one.gpu, most: one.most,
      name: `session ${one.session} of ${plain(one.tenant)}: ${fileName(one.program)}`,
    }));
    const others = this.data.leased.map((value, i) =>
      Math.max(0, value - this.data.sessions.reduce((sum, one) => sum + one.memory[i], 0)));
    const step = this.data.total / 65535 * (this.data.sessions.length + 1); // of rounding
    if (others.some((value) => value > step)) {
      const many = this.data.left_out ? `${this.data.left_out} more sessions` : "other sessions";
      layers.push({ kind: "others", letter: "+", values: others, most: Math.max(...others), name: many });
    }
    if (this.data.idle.some((value) => value > 0)) {
      layers.push({ kind: "idle", letter: "–", values: this.data.idle, most: Math.max(...this.data.idle),
        name: "idle, kept for the next session" });
    }
    return layers;
  }

  draw() {
    this.shown = this.layers();
    this.chart.draw(this.data, this.shown, this.shownBegin, this.shownEnd);
    find("window").textContent = `${time(this.shownBegin)} to ${time(this.shownEnd - 1)}`;
    this.slider.min = this.shownBegin;
    this.slider.max = this.shownEnd - 1;
    this.slider.step = this.data.step;
    this.showAt();
  }

  // The figures at the cursor; without one at the end.
  showAt() {
    if (!this.data) return;
    const inside = this.at >= this.shownBegin && this.at < this.shownEnd;
    const at = inside ? this.at : this.shownEnd - 1;
    const column = Math.min(Math.floor((at - this.data.begin) / this.data.step), this.data.known.length - 1);
    const text = time(this.data.begin + column * this.data.step);
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", text);
    if (inside) this.chart.cursor(at);
    const known = this.data.known[column];
    const rows = this.shown.map((one) => ({
      key: one.kind,
      cells: [this.#whose(one), known ? bytes(one.values[column]) : "not known", bytes(one.most),
        known && one.gpu ? percent(one.gpu[column]) : "–"],
    }));
    const sum = this.shown.reduce((all, one) => all + one.values[column], 0);
    rows.push({ key: "free", cells: [`not in use at ${text}`,
      known ? bytes(Math.max(0, this.data.total - sum)) : "not known", "", ""] });
    this.table.show(rows, "");
  }

  #whose(one) {
    const whole = document.createElement("span"), swatch = document.createElement("span");
    swatch.className = "swatch " + one.kind;
    swatch.textContent = one.letter;
    whole.append(swatch, one.name);
    return whole;
  }
}
