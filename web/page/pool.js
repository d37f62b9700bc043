// The hosts of the pool that the server is in, and who waits there, from an answer of /api/now.
import { age, bytes, bytesOf, fileName, percent, plain } from "./format.js";
import { Table, bar } from "./tables.js";

const MOST = 200; // rows of each table
const find = (id) => document.querySelector("#" + id);
const number = "number", name = "name";

function sum(devices, member) {
  return devices.reduce((all, device) => all + device[member], 0);
}

export class Pool {
  hosts = new Table(document.querySelector("#pool-hosts table"), [
    { title: "Host", base: name }, { title: "State", base: name }, { title: "Devices", base: number },
    { title: "Busy" }, { title: "Memory promised" }, { title: "Sessions", base: number },
    { title: "Version", base: name }, { title: "Labels", base: name }]);
  queue = new Table(document.querySelector("#pool-queue table"), [
    { title: "Place", base: number }, { title: "Waited", base: number },
    { title: "Program", base: name }, { title: "Tenant", base: name },
    { title: "Identity", base: name }, { title: "Devices", base: number },
    { title: "Memory", base: number }, { title: "Why", base: name }]);

  show({ pool }) {
    find("pool").hidden = find("pool-link").hidden = !pool;
    if (!pool) return;
    find("pool-about").textContent = this.about(pool);
    this.hosts.show(pool.hosts.slice(0, MOST).map((one) => this.host(one)), "No host is known.");
    this.queue.show([...pool.waiting]
      .sort((one, other) => (one.place ?? Infinity) - (other.place ?? Infinity))
      .slice(0, MOST).map((one, place) => this.waiter(one, place)), "Nobody waits for a place.");
  }

  about(pool) {
    if (pool.problem) return `Problem: ${plain(pool.problem)}`;
    const placer = pool.placer ? `Sessions are placed by ${plain(pool.placer)}.`
      : "No host places sessions just now.";
    const more = Math.max(pool.hosts.length, pool.waiting.length) > MOST
      ? ` Of ${pool.hosts.length} hosts and ${pool.waiting.length} waiting programs the first ${MOST} are shown.` : "";
    return `As ${plain(pool.host)} sees it. ${placer}${more}`;
  }

  host(one) {
    const promised = sum(one.devices, "memory_promised"), total = sum(one.devices, "memory_total");
    const busy = one.devices.length ? sum(one.devices, "busy") / one.devices.length : null;
    const state = one.takes_sessions ? plain(one.state) : { text: plain(one.state), kind: "warn" };
    return {
      key: one.host,
      cells: [plain(one.host), state, one.devices.length, bar(busy, null, percent(busy)),
        bar(total ? promised / total : 0, null, bytesOf(promised, total)),
        `${one.sessions} of ${one.sessions_limit}`, plain(one.version ?? "–"),
        one.labels.map(plain).join(", ")],
    };
  }

  waiter(one, place) {
    return {
      key: place,
      cells: [one.place ?? "–", age(one.waited_seconds), fileName(one.program), plain(one.tenant),
        plain(one.identity), one.devices, one.memory ? bytes(one.memory) : "–",
        plain(one.reason ?? "–")],
    };
  }
}
