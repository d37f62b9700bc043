// A browser, the page, and a daemon to look at: what the tests of the page start.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const BUILD = path.resolve(process.env.LONGWIRE_BUILD ?? path.join(import.meta.dirname, "../../build"));
// CMakeLists.txt has npm put them there.
const require = createRequire(path.join(BUILD, "tests/web/package.json"));
const puppeteer = require("puppeteer-core");
export const axe = require("axe-core").source;

const PATIENCE = 60000; // milliseconds: the machine may have other work

// Starts a program and waits for a line of its output.
function start(program, words, line) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  return new Promise((resolve, reject) => {
    const failed = () => reject(new Error(`${program} did not say ${line}: ${text}`));
    const timer = setTimeout(failed, PATIENCE);
    const hear = (bytes) => {
      text += bytes;
      const found = text.match(line);
      if (!found) return;
      clearTimeout(timer);
      resolve({ child, found });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", failed);
    child.on("exit", failed);
  });
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.removeAllListeners("exit");
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  setTimeout(() => child.kill("SIGKILL"), 10000).unref();
  await Promise.race([gone, ended]);
}

// longwire-web, and a daemon with so many devices and sessions at its control socket.
export class Site {
  static async open({ devices = 2, sessions = 12, program = null } = {}) {
    const site = new Site();
    site.folder = mkdtempSync(path.join(tmpdir(), "longwire-page-"));
    site.control = path.join(site.folder, "control");
    site.shape = [String(devices), String(sessions), ...(program === null ? [] : [program])];
    await site.startDaemon();
    const { child, found } = await start(path.join(BUILD, "dist/bin/longwire-web"),
      ["--listen", "127.0.0.1:0", "--control", site.control], /ready at (\S+)/);
    site.web = child;
    site.url = found[1];
    return site;
  }

  async startDaemon() {
    this.daemon = (await start(path.join(BUILD, "web/web_crowd"), [this.control, ...this.shape], /READY/)).child;
  }
  async endDaemon() { await end(this.daemon); }
  async close() {
    await end(this.web);
    await end(this.daemon);
    rmSync(this.folder, { recursive: true });
  }
}

export const WIDE = { width: 1440, height: 680 };
export const NARROW = { width: 390, height: 844 };

export async function openBrowser() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Root has no sandbox; what is opened is our own page.
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-GB"],
    timeout: PATIENCE, protocolTimeout: 3 * PATIENCE,
  });
}

// A tab that has the page, with what it complained of.
export async function openPage(browser, url, { size = WIDE, dark = false } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.problems = [];
  page.on("pageerror", (problem) => page.problems.push(String(problem)));
  page.on("console", (message) => {
    const expected = message.text().includes("Failed to load resource");
    if (message.type() === "error" && !expected) page.problems.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) page.problems.push(`it asks elsewhere: ${request.url()}`);
  });
  await page.setViewport(size);
  await page.emulateTimezone("UTC");
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  return page;
}

export async function waitForText(page, selector, text) {
  await page.waitForFunction((selector, text) =>
    document.querySelector(selector)?.textContent.includes(text), {}, selector, text);
}
