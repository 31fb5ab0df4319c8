"use strict";
// Translates as one types; a new request aborts the one before.

const byId = (id) => document.getElementById(id);
const PAUSE = 250; // milliseconds without a key before a request is sent
let running = new AbortController();
let timer = null;
let sentences = [], models = [];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function say(message, isError = false) {
  byId("status").textContent = message;
  byId("status").classList.toggle("error", isError);
}

async function ask(path, text) {
  const { source, target } = models[byId("pair").value], { signal } = running;
  const answer = await fetch(path, {
    method: "POST", signal, headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ q: text, source, target, api_key: byId("key").value }),
  });
  if (answer.ok) return answer.json();
  if (answer.status === 403) byId("key-label").hidden = false;
  const { error } = await answer.json().catch(() => ({}));
  throw new Error(error || `The server has answered with status ${answer.status}.`);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(byId("translation").textContent);
  } catch { // browsers have a clipboard for https and localhost only
    getSelection().selectAllChildren(byId("translation"));
    document.execCommand("copy");
  }
  say("Copied.");
}

// Spaces that text keeps are characters for which no font has a picture: convs2s/text/words/tokenization.py.
const showSpaces = (token) => token.replace(/[\u{F0000}-\u{F3000}]/gu, "␣");

function showModel() {
  const { name, summary, examples } = models[byId("pair").value];
  document.title = byId("name").textContent = name;
  byId("summary").textContent = summary;
  const buttons = examples.map((text) => {
    const button = element("button", { type: "button", title: text }, text);
    button.addEventListener("click", () => { byId("text").value = text; translate(); });
    return button;
  });
  byId("examples").replaceChildren(...(buttons.length ? ["Try:", ...buttons] : []));
}

function translateLater() {
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE);
}

async function translate() {
  const text = byId("text").value, begin = performance.now();
  running.abort();
  running = new AbortController();
  say(text.trim() && "Translating …");
  if (!text.trim()) {
    byId("translation").replaceChildren();
    byId("details").hidden = byId("copy").hidden = true;
    return;
  }
  try {
    const lines = await ask("n-best", text);
    sentences = lines.flatMap((line) => line.sentences || [line]).filter(({ source }) => source.trim());
    byId("translation").textContent = lines.map((line) => line.hypotheses[0].text).join("\n");
    showSentences();
    const unknown = lines.reduce((count, line) => count + (line.unknownCharacters || 0), 0);
    const copied = unknown ? `, unknown characters (never seen in training) copied: ${unknown}` : "";
    say(`${Math.round(performance.now() - begin)} ms${copied}`);
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  }
}

function showSentences() {
  const options = sentences.map(({ source }, i) => element("option", { value: i }, source));
  byId("sentence").replaceChildren(...options);
  byId("sentence-label").hidden = sentences.length < 2;
  byId("sentence").value = sentences.length - 1;
  byId("details").hidden = byId("copy").hidden = false;
  showSentence();
}

async function showSentence() {
  const sentence = sentences[byId("sentence").value];
  byId("hypotheses").tBodies[0].replaceChildren(...sentence.hypotheses.map((hypothesis) => element("tr", {},
    element("td", {}, hypothesis.score.toFixed(3)), element("td", {}, hypothesis.text))));
  try {
    const attention = await ask("attention", sentence.source);
    if (sentence === sentences[byId("sentence").value]) showAttention(attention);
  } catch (error) { // an ensemble has none, nor has a sentence that is too long for the model
    if (error.name !== "AbortError") byId("attention").hidden = true;
  }
}

function showAttention({ source, target, layers }) {
  const attention = { source: source.map(showSpaces), target: target.map(showSpaces), layers };
  byId("target").replaceChildren(...attention.target.map((token, position) => {
    const button = element("button", { type: "button" }, token);
    for (const event of ["mouseenter", "focus", "click"]) {
      button.addEventListener(event, () => showWeights(attention, position));
    }
    return button;
  }));
  byId("attention").hidden = false;
  showWeights(attention, 0);
}

function showWeights(attention, position) {
  [...byId("target").children].forEach((button, i) => button.setAttribute("aria-pressed", i === position));
  const rows = Object.entries(attention.layers).map(([layer, weights]) => element("tr", {},
    element("th", { scope: "row" }, layer), ...weights[position].map((weight) => {
      const cell = element("td", {}, weight.toFixed(2));
      cell.style.setProperty("--weight", weight); // allowed by the CSP, unlike a style attribute
      return cell;
    })));
  byId("layers").replaceChildren(
    element("caption", {}, `attention of “${attention.target[position]}”`),
    element("tr", {}, element("th", {}, "layer"),
      ...attention.source.map((token) => element("th", { scope: "col" }, token))),
    ...rows);
}

async function start() {
  models = await (await fetch("models")).json();
  byId("pair").replaceChildren(...models.map(({ languages }, i) => element("option", { value: i }, languages)));
  showModel();
  byId("text").addEventListener("input", translateLater);
  byId("key").addEventListener("input", translateLater);
  byId("pair").addEventListener("change", () => { showModel(); translate(); });
  byId("sentence").addEventListener("change", showSentence);
  byId("copy").addEventListener("click", copy);
  if (byId("text").value) translate(); // kept by the browser over a reload
}

start().catch((error) => say(`The server does not answer: ${error.message}`, true));
