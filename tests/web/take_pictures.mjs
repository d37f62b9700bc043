// The pictures of docs/images: empty, busy, and without a daemon; wide and narrow, light and dark.
//
//   node take_pictures.mjs FOLDER [SECONDS]
import path from "node:path";

import { NARROW, Site, WIDE, openBrowser, openPage, waitForText } from "./browser.mjs";

const FOLDER = process.argv[2];
const SECONDS = Number(process.argv[3] ?? 75); // of history, so that there is something in the picture

async function picture(browser, site, name, options, prepare = async () => {}) {
  const page = await openPage(browser, site.url, options);
  await page.waitForFunction(() => document.querySelector("#chart").childElementCount > 0);
  await prepare(page);
  await page.screenshot({ path: path.join(FOLDER, `web-${name}.png`), fullPage: options.whole ?? false });
  await page.close();
}

const browser = await openBrowser();
const empty = await Site.open({ devices: 1, sessions: 0 });
await new Promise((resolve) => setTimeout(resolve, 4000));
await picture(browser, empty, "empty-wide", { size: WIDE });
await picture(browser, empty, "empty-narrow", { size: NARROW });
await empty.close();

const busy = await Site.open({ devices: 4, sessions: 40 });
await new Promise((resolve) => setTimeout(resolve, 1000 * SECONDS));
const tall = { size: { width: WIDE.width, height: 760 } };
const minute = async (page) => {
  await page.evaluate(() => document.querySelector('[data-span="60"]').click());
  await new Promise((resolve) => setTimeout(resolve, 2500));
};
await picture(browser, busy, "busy-wide", tall, minute);
await picture(browser, busy, "busy-wide-dark", { ...tall, dark: true }, minute);
const memory = async (page) => {
  await minute(page);
  await page.evaluate(() => document.querySelector("#memory").scrollIntoView({ behavior: "instant" }));
};
await picture(browser, busy, "memory-wide", { size: { ...WIDE, height: 950 } }, memory);
await picture(browser, busy, "busy-narrow", { size: NARROW }, minute);
await picture(browser, busy, "memory-narrow", { size: NARROW }, memory);
await busy.endDaemon();
const lost = (page) => waitForText(page, "#problem", "No answer: no longwired answers");
await picture(browser, busy, "error-wide", { size: WIDE }, lost);
await picture(browser, busy, "error-narrow", { size: NARROW }, lost);
await busy.close();
await browser.close();
