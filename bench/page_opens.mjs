// How long the page of longwire-web takes to open with 100 devices and 1,000 sessions, from the
// request to all tables filled: "page_opens SECONDS s", the median of nine.
//
//   LONGWIRE_BUILD=build-release node bench/page_opens.mjs
import { Site, openBrowser, openPage } from "../tests/web/browser.mjs";

const TIMES = 9;

const browser = await openBrowser();
const site = await Site.open({ devices: 100, sessions: 1000 });
await new Promise((resolve) => setTimeout(resolve, 3000)); // until it has something to show
const seconds = [];
for (let i = 0; i < TIMES; ++i) {
  const page = await openPage(browser, site.url);
  seconds.push(await page.evaluate(() => {
    const filled = document.querySelectorAll("#sessions tbody tr").length === 100;
    return filled ? Number(document.documentElement.dataset.after) / 1000 : NaN;
  }));
  await page.close();
}
seconds.sort((one, other) => one - other);
console.log(`page_opens ${seconds[(TIMES - 1) / 2].toFixed(3)} s`);
await site.close();
await browser.close();
