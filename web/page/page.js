// Asks longwire-web every second and shows what it says.
import { age, plain } from "./format.js";
import { Memory } from "./memory.js";
import { events, serverText, showAll } from "./sections.js";

const EVERY = 1000, PATIENCE = 8000; // milliseconds
const OLD = 3; // seconds after which an answer is said to be old

const find = (id) => document.querySelector("#" + id);
let paused = false, asking = false, unreachable = "", run = null;

async function fetchJson(path) {
  try {
    const response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE), cache: "no-store" });
    if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
    unreachable = "";
    return await response.json();
  } catch (problem) {
    unreachable = problem instanceof TypeError || problem.name === "TimeoutError"
      ? "longwire-web does not answer; is it running?" : plain(problem.message);
    return null;
  }
}

const memory = new Memory(fetchJson);

function say(text) {
  const state = find("state");
  if (state.textContent !== text) state.textContent = text;
}

function showProblem(text) {
  const box = find("problem");
  if (box.textContent !== text) box.textContent = text;
  box.hidden = text === "";
}

function problemOf(answer) {
  if (!answer) return `${unreachable} The figures below are old.`;
  if (answer.problem) {
    const old = answer.picture ? ` The figures below are ${age(Date.now() / 1000 - answer.answered)} old.` : "";
    return `No answer: ${plain(answer.problem)}.${old}`;
  }
  if (answer.picture?.problem) return `longwired has a problem: ${plain(answer.picture.problem)}`;
  return answer.picture?.draining ? "Draining: no new sessions are opened." : "";
}

async function look() {
  if (asking) return;
  asking = true;
  const answer = await fetchJson(`api/now?events_after=${events.last}`);
  asking = false;
  if (answer && answer.run !== run) {
    run = answer.run;
    if (events.last) {
      events.forget();
      return look();
    }
  }
  showProblem(problemOf(answer));
  if (!answer) return say("No answer");
  const seconds = Date.now() / 1000 - answer.answered;
  say(answer.problem || !answer.picture ? "No answer of longwired"
    : seconds > OLD ? `Answer of ${age(seconds)} ago` : "Live");
  showAll(answer);
  find("server").textContent = serverText(answer);
  const who = answer.viewer.identity;
  find("versions").textContent = `longwire-web ${answer.version} keeps an hour of seconds; this page changes nothing.` +
    (who ? ` You are ${plain(who)} of ${plain(answer.viewer.tenant)}.` : "");
  document.documentElement.dataset.ready = "yes";
  document.documentElement.dataset.after ??= Math.round(performance.now()); // milliseconds
  await memory.show(answer);
}

function setAppearance(value) {
  const dark = value === "dark" ||
    (value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
}

const appearance = find("appearance");
appearance.value = localStorage.getItem("appearance") ?? "auto";
appearance.addEventListener("change", () => {
  localStorage.setItem("appearance", appearance.value);
  setAppearance(appearance.value);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setAppearance(appearance.value));
setAppearance(appearance.value);

find("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.currentTarget.setAttribute("aria-pressed", paused);
  if (paused) say("Paused");
  else look();
});

look();
setInterval(() => { if (!paused && !document.hidden) look(); }, EVERY);
document.addEventListener("visibilitychange", () => { if (!paused && !document.hidden) look(); });
