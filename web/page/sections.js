// The tables of the page, from an answer of /api/now.
import { age, bytes, bytesOf, count, duration, fileName, percent, perSecond, plain, time } from "./format.js";
import { Pool } from "./pool.js";
import { Table, bar } from "./tables.js";

const PAGE = 100; // sessions that are shown at first
const NAMES = 2; // in a list of tenants, sessions

const table = (id) => document.querySelector(`#${id} table`);
const names = (list) => list.slice(0, NAMES).map(plain).join(", ") +
  (list.length > NAMES ? ` and ${list.length - NAMES} more` : "");

class Devices {
  table = new Table(table("devices"), [
    { title: "Device", base: "number" }, { title: "Name", base: "name" }, { title: "Busy" },
    { title: "Memory" }, { title: "Sessions", base: "number" }, { title: "State" }]);

  show({ picture }) {
    this.table.show((picture?.devices ?? []).map((one) => ({
      key: one.device,
      cells: [one.device, plain(one.name), bar(one.busy, null, percent(one.busy)),
        bar(one.memory_total ? one.memory / one.memory_total : 0, null,
          bytesOf(one.memory, one.memory_total)),
        one.sessions, one.cordoned ? { text: "cordoned", kind: "warn" } : "in use"],
    })), "No device is known.");
  }
}

class Tenants {
  table = new Table(table("tenants"), [
    { title: "Tenant", base: "name" }, { title: "Share" }, { title: "Due", base: "number" },
    { title: "Waiting", base: "number" }, { title: "Held back by", base: "name" },
    { title: "Sessions", base: "number" }, { title: "Memory", base: "number" }]);

  show({ picture }) {
    this.table.show((picture?.tenants ?? []).map((one) => {
      const memory = one.memory_limit === null ? bytes(one.memory)
        : bytesOf(one.memory, one.memory_limit);
      return {
        key: one.tenant,
        cells: [plain(one.tenant), bar(one.share_had, one.share_due, percent(one.share_had)),
          percent(one.share_due), one.waiting, this.held(one), one.sessions, memory],
      };
    }), "There are no tenants.");
  }

  held(one) {
    if (one.waiting === 0) return { text: "nobody", kind: "none" };
    const who = one.held_back_by.length ? names(one.held_back_by) : "another tenant";
    return { text: who, kind: "warn" };
  }
}

class Waits {
  table = new Table(table("waits"), [
    { title: "Device", base: "number" }, { title: "Waits", base: "name" },
    { title: "For", base: "name" }]);

  show({ waits }) {
    this.table.show(waits.map((one) => ({
      key: one.device,
      cells: [one.device, this.list(one.waiting, one.waiting_count, ""),
        this.list(one.working, one.working_count, "another tenant's work, or a turn's end")],
    })), "Nobody waits.");
  }

  list(sessions, all, none) {
    if (sessions.length === 0) return { text: none, kind: "none" };
    const first = sessions.slice(0, NAMES).map((one) =>
      `${plain(one.tenant)}: session ${one.session} (${fileName(one.program)})`);
    return first.join(", ") + (all > first.length ? ` and ${all - first.length} more` : "");
  }
}

class Sessions {
  order = "gpu_seconds_per_second";
  descending = true;
  most = PAGE;
  data = [];

  constructor() {
    const number = "number", name = "name";
    this.table = new Table(table("sessions"), [
      { title: "Session", base: number, sort: "session" },
      { title: "Program", base: name, sort: "program" },
      { title: "Identity", base: name, sort: "identity" },
      { title: "Tenant", base: name, sort: "tenant" }, { title: "Host", base: name, sort: "host" },
      { title: "Device", base: number }, { title: "GPU", base: number, sort: this.order },
      { title: "Memory", base: number, sort: "memory" },
      { title: "Sent", base: number, sort: "bytes_up_per_second" },
      { title: "Received", base: number, sort: "bytes_down_per_second" },
      { title: "Round trips", base: number, sort: "round_trips_per_second" },
      { title: "Gate", sort: "gate" }], (column) => this.sort(column));
    this.table.setOrder(this.order, true);
    this.filter = document.querySelector("#filter");
    this.filter.addEventListener("input", () => this.draw());
    this.more = document.querySelector("#more");
    this.more.addEventListener("click", () => { this.most *= 4; this.draw(); });
  }

  sort(column) {
    this.descending = column === this.order ? !this.descending : typeof this.data[0]?.[column] !== "string";
    this.order = column;
    this.table.setOrder(column, this.descending);
    this.draw();
  }

  show({ picture }) {
    this.data = picture?.sessions ?? [];
    this.draw();
  }

  draw() {
    const wanted = this.filter.value.toLowerCase();
    const fits = (one) => [String(one.session), one.program, one.identity, one.tenant, one.host]
      .some((text) => text.toLowerCase().includes(wanted));
    const rows = this.data.filter(fits).sort((one, other) => this.compare(one, other));
    const shown = rows.slice(0, this.most);
    this.table.show(shown.map((one) => this.row(one)),
      this.data.length ? "No session fits the filter." : "No sessions.");
    document.querySelector("#shown").textContent = rows.length === shown.length
      ? `${rows.length} of ${this.data.length}` : `the first ${shown.length} of ${rows.length}`;
    this.more.hidden = rows.length === shown.length;
  }

  compare(one, other) {
    const a = one[this.order], b = other[this.order];
    let result = 0;
    if (typeof a === "string") result = a < b ? -1 : a > b ? 1 : 0;
    else result = (a ?? -1) - (b ?? -1);
    return (this.descending ? -result : result) || one.session - other.session;
  }

  row(one) {
    const held = one.held ? { text: "held back", kind: "warn" } : one.gate;
    const gate = one.gate === "stopped" ? { text: "stopped", kind: "alarm" } : held;
    return {
      key: one.session,
      cells: [one.session, fileName(one.program), plain(one.identity), plain(one.tenant),
        plain(one.host), one.devices.join(", ") || "–", percent(one.gpu_seconds_per_second),
        bytes(one.memory), perSecond(one.bytes_up_per_second),
        perSecond(one.bytes_down_per_second), count(one.round_trips_per_second), gate],
    };
  }
}

class Latencies {
  table = new Table(table("latencies"), [
    { title: "What", base: "name" }, { title: "Over" }, { title: "Count", base: "number" },
    { title: "50 %", base: "number" }, { title: "95 %", base: "number" },
    { title: "99 %", base: "number" }]);

  show({ latencies }) {
    const rows = [];
    for (const one of latencies ?? []) {
      for (const [span, title] of [["minute", "a minute"], ["hour", "an hour"], ["all", "all time"]]) {
        const figures = one[span];
        rows.push({
          key: one.name + "/" + span,
          cells: [plain(one.name), title, count(figures.count).replace(".0", ""),
            duration(figures.p50), duration(figures.p95),
            (figures.beyond ? "over " : "") + duration(figures.p99)],
        });
      }
    }
    this.table.show(rows, latencies === null ? "Only administrators see latencies."
      : "longwired has timed nothing yet.");
  }
}

class Events {
  static #MOST = 500;
  events = [];
  table = new Table(table("events"), [
    { title: "Time" }, { title: "What" }, { title: "Event", base: "name" }]);

  constructor() {
    this.kind = document.querySelector("#kind");
    this.kind.addEventListener("change", () => this.draw());
  }

  get last() { return this.events.at(-1)?.number ?? 0; }
  forget() { this.events = []; }

  show({ events }) {
    if (events.length === 0 && this.drawn) return;
    this.events = this.events.concat(events).slice(-Events.#MOST);
    this.draw();
  }

  draw() {
    this.drawn = true;
    const wanted = this.kind.value;
    const shown = this.events.filter((one) => !wanted || one.kind === wanted).reverse();
    this.table.show(shown.map((one) => ({
      key: one.number,
      cells: [time(one.seconds), { text: one.kind, kind: one.kind === "refused" ? "alarm" : "" },
        plain(one.text)],
    })), "Nothing has happened since longwire-web was started.");
  }
}

export const events = new Events();
const sections = [new Devices(), new Tenants(), new Waits(), new Sessions(), new Latencies(), events,
  new Pool()];

export function showAll(answer) {
  for (const section of sections) section.show(answer);
}

export function serverText({ picture }) {
  if (!picture) return "Waiting for longwired";
  const many = picture.sessions.length;
  return `longwired ${plain(picture.version)} on ${plain(picture.host)}, up ${age(picture.uptime_seconds)}, ` +
    `${many} ${many === 1 ? "session" : "sessions"}`;
}
