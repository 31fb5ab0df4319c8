"use strict";
// Translates as one types. Each request gets a number; answers to all but the latest are dropped.

const byId = (id) => document.getElementById(id);
const PAUSE = 250; // milliseconds without a key before a request is sent
let latest = 0;
let running = null;
let timer = null;
let lines = [];
let models = [];

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function say(message, isError = false) {
  byId("status").textContent = message;
  byId("status").classList.toggle("error", isError);
}

async function ask(path, text, signal) {
  const [source, target] = byId("pair").value.split(" ");
  const fields = { q: text, source, target };
  if (byId("key").value) fields.api_key = byId("key").value;
  const answer = await fetch(path, {
    method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields),
  });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

// Text with replaced words marked. The server counts characters, JavaScript UTF-16 units: hence the array.
function marked(hypothesis) {
  const characters = Array.from(hypothesis.text), parts = document.createDocumentFragment();
  let end = 0;
  for (const word of hypothesis.replaced) {
    parts.append(characters.slice(end, word.start).join(""));
    const from = word.how === "copy" ? "copied from" : "from the dictionary, for";
    parts.append(element("mark", characters.slice(word.start, word.end).join(""),
      { title: `unknown word: ${from} “${word.source_word}”` }));
    end = word.end;
  }
  parts.append(characters.slice(end).join(""));
  return parts;
}

function showModel() {
  const { name, summary, examples } = models.find((one) => `${one.source} ${one.target}` === byId("pair").value);
  document.title = byId("name").textContent = name;
  byId("summary").textContent = summary;
  const buttons = examples.map((text) => {
    const button = element("button", text, { type: "button", title: text });
    button.addEventListener("click", () => { byId("text").value = text; translate(); });
    return button;
  });
  byId("examples").replaceChildren(...(buttons.length ? [element("span", "Try:"), ...buttons] : []));
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE);
}

async function translate() {
  const mine = ++latest, text = byId("text").value;
  if (running) running.abort();
  running = new AbortController();
  if (!text.trim()) {
    byId("translation").replaceChildren();
    byId("details").hidden = byId("rare").hidden = true;
    say("");
    return;
  }
  say("Translating …");
  try {
    const begin = performance.now(), found = await ask("n-best", text, running.signal);
    if (mine !== latest) return;
    lines = found;
    showTranslation();
    say(`${Math.round(performance.now() - begin)} ms`);
  } catch (error) {
    if (mine === latest && error.name !== "AbortError") say(error.message, true);
  }
}

function showTranslation() {
  const parts = lines.flatMap((line, i) => [...(i ? ["\n"] : []), marked(line.hypotheses[0])]);
  byId("translation").replaceChildren(...parts);
  const filled = lines.map((line, i) => [line, i]).filter(([line]) => line.source.trim());
  byId("line").replaceChildren(...filled.map(([line, i]) => element("option", line.source, { value: i })));
  byId("line-label").hidden = filled.length < 2;
  byId("line").value = filled[filled.length - 1][1];
  byId("details").hidden = false;
  const rare = filled.find(([line]) => line.rare), language = byId("pair").selectedOptions[0].text.split(" → ")[0];
  byId("rare").hidden = !rare;
  byId("rare").textContent = rare && `“${rare[0].source}” is unlike the text that the model was trained on: it has `
    + `rare words. Is it ${language}, and about the same things? Check its translation.`;
  showLine();
}

async function showLine() {
  const mine = latest, line = lines[byId("line").value];
  byId("hypotheses").tBodies[0].replaceChildren(...line.hypotheses.map((hypothesis) => {
    const row = element("tr"), cell = element("td");
    cell.append(marked(hypothesis));
    row.append(element("td", hypothesis.score.toFixed(3)), cell);
    return row;
  }));
  try {
    const attention = await ask("attention", line.source, running.signal);
    if (mine === latest && line === lines[byId("line").value]) showAttention(attention);
  } catch (error) { // an ensemble has none
    if (mine === latest) byId("attention").hidden = true;
  }
}

function showAttention(attention) {
  const buttons = attention.target.map((token, position) => {
    const button = element("button", token, { type: "button", "aria-pressed": "false" });
    for (const event of ["mouseenter", "focus", "click"]) {
      button.addEventListener(event, () => showWeights(attention, position));
    }
    return button;
  });
  byId("target").replaceChildren(...buttons);
  byId("attention").hidden = false;
  showWeights(attention, 0);
}

function showWeights(attention, position) {
  [...byId("target").children].forEach((button, i) => button.setAttribute("aria-pressed", i === position));
  const caption = element("caption", `attention of “${attention.target[position]}”`);
  const head = element("tr", undefined);
  head.append(element("th", "layer"), ...attention.source.map((token) => element("th", token, { scope: "col" })));
  const rows = attention.layers.map(({ layer, weights }) => {
    const row = element("tr");
    row.append(element("th", String(layer), { scope: "row" }), ...weights[position].map((weight) => {
      const cell = element("td", weight.toFixed(2));
      cell.style.setProperty("--weight", weight); // allowed by the CSP, unlike a style attribute
      return cell;
    }));
    return row;
  });
  byId("layers").replaceChildren(caption, head, ...rows);
}

async function start() {
  const [languages, settings, known] = await Promise.all(
    ["languages", "frontend/settings", "models"].map(async (path) => (await fetch(path)).json()));
  const names = Object.fromEntries(languages.map(({ code, name }) => [code, name]));
  const pairs = languages.flatMap(({ code, targets }) => targets.map((target) => [code, target]));
  byId("pair").replaceChildren(...pairs.map(([source, target]) =>
    element("option", `${names[source]} → ${names[target]}`, { value: `${source} ${target}` })));
  byId("pair").value = `${settings.language.source.code} ${settings.language.target.code}`;
  models = known;
  showModel();
  byId("text").maxLength = settings.charLimit;
  byId("key-label").hidden = !settings.keyRequired;
  byId("text").addEventListener("input", later);
  byId("key").addEventListener("input", later);
  byId("pair").addEventListener("change", () => { showModel(); translate(); });
  byId("line").addEventListener("change", showLine);
  if (byId("text").value) translate(); // kept by the browser over a reload
}

start().catch((error) => say(`The server does not answer: ${error.message}`, true));
