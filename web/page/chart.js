// A picture of a device's memory over time: areas upon each other, the device's work below. SVG, so
// that it is sharp at any zoom.
import { bytes, time } from "./format.js";

const SPACE = "http://www.w3.org/2000/svg";
const LEFT = 72, RIGHT = 12, TOP = 10, AXIS = 22, BUSY = 56, GAP = 14;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800]; // seconds between clock times

function make(parent, name, attributes, text = null) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

export class Chart {
  constructor(svg) { this.svg = svg; }

  // data: an answer of /api/memory; layers: {kind: class, letter, values}, from below;
  // begin, end: what is shown.
  draw(data, layers, begin, end) {
    Object.assign(this, { data, begin, end });
    const box = this.svg.getBoundingClientRect();
    this.width = Math.max(box.width, 200);
    this.height = Math.max(box.height, 160);
    this.bottom = this.height - AXIS - BUSY - GAP;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren();
    this.#grid();
    this.#areas(layers);
    this.#busy();
    this.#axis();
  }

  x(seconds) {
    const part = (seconds - this.begin) / (this.end - this.begin);
    return LEFT + Math.min(Math.max(part, 0), 1) * (this.width - LEFT - RIGHT);
  }

  // The time at a place of the window.
  timeAt(clientX) {
    const box = this.svg.getBoundingClientRect();
    const x = (clientX - box.left) * this.width / box.width;
    const part = Math.min(Math.max((x - LEFT) / (this.width - LEFT - RIGHT), 0), 1);
    return this.begin + part * (this.end - this.begin);
  }

  #y(value) {
    const part = this.data.total ? Math.min(value / this.data.total, 1) : 0;
    return this.bottom - part * (this.bottom - TOP);
  }

  #grid() {
    for (let i = 0; i <= 4; ++i) {
      const value = this.data.total * i / 4, y = this.#y(value);
      make(this.svg, "line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y });
      make(this.svg, "text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, bytes(value));
    }
    const top = this.bottom + GAP, low = top + BUSY;
    make(this.svg, "rect", { class: "frame", x: LEFT, y: top, height: BUSY, width: this.width - LEFT - RIGHT });
    make(this.svg, "text", { x: LEFT - 6, y: top + 11, "text-anchor": "end" }, "busy");
    make(this.svg, "text", { x: LEFT - 6, y: low, "text-anchor": "end" }, "0 %");
  }

  // Runs of columns in which something is known.
  #runs() {
    const runs = [];
    let from = -1;
    for (let i = 0; i <= this.data.known.length; ++i) {
      const known = i < this.data.known.length && this.data.known[i];
      if (known && from < 0) from = i;
      if (!known && from >= 0) { runs.push([from, i]); from = -1; }
    }
    return runs;
  }

  #edge(column) { return this.x(this.data.begin + column * this.data.step); }

  #areas(layers) {
    const below = this.data.known.map(() => 0);
    const runs = this.#runs();
    for (const layer of layers) {
      let path = "";
      for (const [from, to] of runs) {
        const up = [], down = [];
        for (let i = from; i < to; ++i) {
          const left = this.#edge(i).toFixed(1), right = this.#edge(i + 1).toFixed(1);
          const high = this.#y(below[i] + layer.values[i]).toFixed(1), low = this.#y(below[i]).toFixed(1);
          up.push(`${left} ${high}L${right} ${high}`);
          down.unshift(`${right} ${low}L${left} ${low}`);
        }
        path += `M${up.join("L")}L${down.join("L")}Z`;
      }
      if (path) make(this.svg, "path", { class: layer.kind, d: path });
      this.#letter(layer, below);
      layer.values.forEach((value, i) => { below[i] += value; });
    }
  }

  // In the middle of the widest time in which there is room for it.
  #letter(layer, below) {
    let best = null, from = -1;
    for (let i = 0; i <= layer.values.length; ++i) {
      const room = i < layer.values.length && this.data.known[i] &&
        this.#y(below[i]) - this.#y(below[i] + layer.values[i]) >= 15;
      if (room && from < 0) from = i;
      if (room || from < 0) continue;
      if (!best || i - from > best[1] - best[0]) best = [from, i];
      from = -1;
    }
    if (!best || this.#edge(best[1]) - this.#edge(best[0]) < 14) return;
    const at = Math.floor((best[0] + best[1]) / 2);
    const y = (this.#y(below[at]) + this.#y(below[at] + layer.values[at])) / 2 + 4;
    make(this.svg, "text", { class: "letter", x: (this.#edge(best[0]) + this.#edge(best[1])) / 2, y }, layer.letter);
  }

  #busy() {
    const low = this.bottom + GAP + BUSY;
    let path = "";
    for (const [from, to] of this.#runs()) {
      for (let i = from; i < to; ++i) {
        const y = (low - this.data.busy[i] * BUSY).toFixed(1);
        path += `${i === from ? "M" : "L"}${this.#edge(i).toFixed(1)} ${y}L${this.#edge(i + 1).toFixed(1)} ${y}`;
      }
    }
    if (path) make(this.svg, "path", { class: "busy", d: path });
  }

  #axis() {
    const span = this.end - this.begin, room = (this.width - LEFT - RIGHT) / 78;
    const step = STEPS.find((one) => span / one <= room) ?? 3600;
    for (let at = Math.ceil(this.begin / step) * step; at <= this.end; at += step) {
      const x = this.x(at);
      if (x > this.width - RIGHT - 26 || x < LEFT + 20) continue;
      make(this.svg, "line", { class: "grid", x1: x, x2: x, y1: TOP, y2: this.bottom });
      make(this.svg, "text", { x, y: this.height - 6, "text-anchor": "middle" }, time(at));
    }
  }

  cursor(seconds) {
    this.svg.querySelector(".cursor")?.remove();
    const x = this.x(seconds);
    make(this.svg, "line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: this.height - AXIS });
  }

  // What is dragged over; null takes it away.
  chosen(from, to) {
    this.svg.querySelector(".chosen")?.remove();
    if (from === null) return;
    const left = this.x(Math.min(from, to)), right = this.x(Math.max(from, to));
    make(this.svg, "rect", { class: "chosen", x: left, y: TOP, width: right - left, height: this.height - AXIS - TOP });
  }
}
