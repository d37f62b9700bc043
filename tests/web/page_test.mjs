// The page in a browser: that everybody can use it, that names do nothing in it, what it says when
// something is away. A daemon's replies come from web/crowd_main.cc.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { NARROW, Site, WIDE, axe, openBrowser, openPage, waitForText } from "./browser.mjs";

let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); });

// A site and a tab for one test.
async function withPage(t, shape, options = {}) {
  const site = await Site.open(shape);
  t.after(() => site.close());
  const page = await openPage(browser, site.url, options);
  t.after(async () => {
    await page.close();
    assert.deepEqual(page.problems, []);
  });
  return { site, page };
}

async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  }));
  assert.ok(result.passes.length > 20, "axe looked at next to nothing");
  return result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`);
}

const rows = (page, id) => page.$$eval(`#${id} tbody tr`, (all) =>
  all.map((row) => [...row.cells].map((cell) => cell.textContent)));

async function waitForChart(page) {
  await page.waitForFunction(() => document.querySelector("#chart path.c0") !== null);
}

test("nothing hinders anybody: axe finds no violation", async (t) => {
  const site = await Site.open({ devices: 2, sessions: 20 });
  t.after(() => site.close());
  for (const size of [WIDE, NARROW]) {
    for (const dark of [false, true]) {
      const page = await openPage(browser, site.url, { size, dark });
      await waitForChart(page);
      assert.equal(await page.$eval("html", (root) => root.classList.contains("dark")), dark);
      assert.deepEqual(await violations(page), [], `${size.width} wide, dark: ${dark}`);
      // Nothing sticks out: only tables scroll sideways, each in its own place.
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await page.close();
    }
  }
  await site.endDaemon();
  const page = await openPage(browser, site.url, { dark: true });
  await waitForText(page, "#problem", "No answer: no longwired answers at");
  assert.deepEqual(await violations(page), []);
  await page.close();
});

test("axe would find one", async (t) => {
  const { page } = await withPage(t, { sessions: 1 });
  await page.$eval("#server", (element) => { element.style.color = "#eeeeee"; });
  assert.match((await violations(page)).join(), /color-contrast/);
});

test("it shows what the daemon says", async (t) => {
  const { page } = await withPage(t, { devices: 2, sessions: 30 });
  await waitForText(page, "#server", "longwired 1.2.3 on gpu1.example.org");
  assert.equal((await rows(page, "devices")).length, 2);
  assert.equal((await rows(page, "tenants")).length, 10);
  const tenant = (await rows(page, "tenants"))[3];
  assert.equal(tenant[0], "tenant-3");
  assert.equal(tenant[1], "6 %");
  assert.equal(tenant[2], "10 %");
  await waitForText(page, "#latencies tbody", "session opening");
  const waits = await rows(page, "waits");
  assert.equal(waits.length, 2);
  assert.match(waits[0][1], /tenant-\d: session \d+ \(python3\.11-\d+\)/);
  await waitForText(page, "#events tbody", "refused to stranger@example.org");
  await page.waitForFunction(() => document.querySelector("#sessions tbody").textContent.includes("10 %"));
});

test("the pool that the server is in", async (t) => {
  const { page } = await withPage(t, { devices: 1, sessions: 3 });
  await waitForText(page, "#pool-about", "As gpu1 sees it. Sessions are placed by gpu2.");
  const hosts = await rows(page, "pool-hosts");
  assert.deepEqual(hosts.map((row) => [row[0], row[1], row[5]]),
    [["gpu1", "in service", "3 of 16"], ["gpu2", "drained", "3 of 16"]]);
  assert.equal(hosts[0][4], "20.0 of 80.0 GiB");
  const queue = await rows(page, "pool-queue");
  assert.deepEqual(queue.map((row) => row[0]), ["1", "2", "3", "4", "5"]);
  assert.deepEqual(queue[0], ["1", "100 s", "train-4", "tenant-4", "user-4@example.org", "2", "–",
    "gpu1: 512 MiB are missing"]);
  assert.equal(await page.$eval("#pool-link", (one) => one.hidden), false);
});

test("a program's name does nothing but be shown", async (t) => {
  const name = `/x/<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>` +
    "&lt;b&gt;\u202Egnp.exe\u0000\u001B[31m";
  const { page } = await withPage(t, { sessions: 3, program: name.replace("\u0000", "") });
  await waitForChart(page);
  await waitForText(page, "#sessions tbody", "&lt;b&gt;");
  await page.type("#filter", "onerror");
  await page.waitForFunction(() => document.querySelectorAll("#sessions tbody tr").length === 1);
  const shown = await page.$eval("main", (main) => main.textContent);
  assert.match(shown, /script>&lt;b&gt;\u{FFFD}gnp\.exe\u{FFFD}\[31m/u);
  assert.doesNotMatch(shown, /[\u202E\u001B]/);
  assert.equal(await page.title(), "Longwire");
  assert.equal(await page.$("main img, main script"), null);
});

test("the keyboard reaches everything", async (t) => {
  const { page } = await withPage(t, { sessions: 8 });
  await waitForChart(page);
  const focused = () => page.evaluate(() => {
    const element = document.activeElement;
    return element.id || element.textContent.trim();
  });
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to the figures");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.id === "main");
  const seen = [];
  for (let i = 0; i < 60; ++i) {
    await page.keyboard.press("Tab");
    seen.push(await focused());
  }
  for (const one of ["Program", "filter", "device", "1 min", "1 hour", "earlier", "live", "cursor", "kind"]) {
    assert.ok(seen.includes(one), `${one} is not among ${seen}`);
  }
  // It can be seen where one is.
  await page.focus("#live");
  await page.keyboard.press("Tab");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Tab");
  await page.keyboard.up("Shift");
  assert.equal(await page.$eval("#live", (one) => getComputedStyle(one).outlineStyle), "solid");
});

test("an order by the keyboard", async (t) => {
  const { page } = await withPage(t, { sessions: 8 });
  const head = (await page.$$("#sessions th button"))[1];
  await head.focus();
  await page.keyboard.press("Enter");
  const sorted = () => page.$$eval("#sessions th[aria-sort]", (all) =>
    all.map((one) => [one.textContent, one.getAttribute("aria-sort")]));
  assert.deepEqual(await sorted(), [["Program", "ascending"]]);
  const names = (await rows(page, "sessions")).map((row) => row[1]);
  assert.deepEqual(names, [...names].sort());
  await page.keyboard.press("Space");
  assert.deepEqual(await sorted(), [["Program", "descending"]]);
});

test("the memory of another time", async (t) => {
  const { page } = await withPage(t, { sessions: 8 });
  await waitForChart(page);
  await page.focus('[data-span="60"]');
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector('[data-span="60"]').ariaPressed === "true");
  const windowText = await page.$eval("#window", (one) => one.textContent);
  assert.match(windowText, /^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
  await page.waitForFunction(() => document.querySelectorAll("#legend tbody tr").length >= 5);
  await page.focus("#cursor");
  await page.keyboard.press("Home");
  await waitForText(page, "#legend tbody", "not known");  // longwire-web was not there a minute ago
  assert.match(await page.$eval("#cursor", (one) => one.getAttribute("aria-valuetext")), /^\d\d:\d\d:\d\d$/);
  await page.keyboard.press("End");
  await page.waitForFunction(() => !document.querySelector("#legend tbody").textContent.includes("not known"));
  await page.focus("#earlier");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#live").ariaPressed === "false");
});

test("dragging over the picture zooms", async (t) => {
  const { page } = await withPage(t, { sessions: 8 });
  await waitForChart(page);
  await page.$eval("#chart", (chart) => chart.scrollIntoView({ block: "center", behavior: "instant" }));
  const box = await (await page.$("#chart")).boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 4 });
  assert.notEqual(await page.$("#chart .chosen"), null);
  await page.mouse.up();
  await page.waitForFunction(() => document.querySelector("#live").ariaPressed === "false");
  // About a fifth of five minutes.
  await page.waitForFunction(() => {
    const [from, to] = document.querySelector("#window").textContent.split(" to ")
      .map((clock) => Date.parse(`2000-01-01T${clock}Z`) / 1000);
    const seconds = (to - from + 86400) % 86400;
    return seconds > 30 && seconds < 120;
  });
});

test("many sessions: the first hundred, and more when asked", async (t) => {
  const { page } = await withPage(t, { devices: 8, sessions: 1000 });
  await page.waitForFunction(() => document.querySelectorAll("#sessions tbody tr").length === 100);
  assert.match(await page.$eval("#shown", (one) => one.textContent), /^the first 100 of (999|1000)$/);
  await page.focus("#more");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("#sessions tbody tr").length === 400);
});

test("pausing stops what moves", async (t) => {
  const { page } = await withPage(t, { sessions: 8 });
  await waitForChart(page);
  await page.focus("#pause");
  await page.keyboard.press("Enter");
  assert.equal(await page.$eval("#pause", (one) => one.getAttribute("aria-pressed")), "true");
  assert.equal(await page.$eval("#state", (one) => one.textContent), "Paused");
  let asked = 0;
  page.on("request", () => { ++asked; });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.ok(asked <= 1, `it asked ${asked} times`);
});

test("a daemon that goes away and comes back", async (t) => {
  const { site, page } = await withPage(t, { sessions: 4 });
  await page.waitForFunction(() => document.querySelectorAll("#sessions tbody tr").length >= 3);
  await site.endDaemon();
  await waitForText(page, "#problem", "No answer: no longwired answers at");
  await waitForText(page, "#problem", "The figures below are");
  assert.equal(await page.$eval("#problem", (one) => one.hidden), false);
  await site.startDaemon();
  await page.waitForFunction(() => document.querySelector("#problem").hidden);
  await waitForText(page, "#events tbody", "longwired answers again");
});

test("longwire-web goes away", async (t) => {
  const site = await Site.open({ sessions: 2 });
  t.after(() => site.close());
  const page = await openPage(browser, site.url);
  const gone = new Promise((resolve) => site.web.once("exit", resolve));
  site.web.kill("SIGKILL");
  await gone;
  await waitForText(page, "#problem", "longwire-web does not answer; is it running?");
  await page.close();
});

test("an empty server", async (t) => {
  const { page } = await withPage(t, { devices: 1, sessions: 0 });
  await waitForText(page, "#sessions tbody", "No sessions.");
  await waitForText(page, "#waits tbody", "Nobody waits.");
  // Nor is it in a pool.
  assert.equal(await page.$eval("#pool", (one) => one.hidden), true);
  assert.equal(await page.$eval("#pool-link", (one) => one.hidden), true);
});
