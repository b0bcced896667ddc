// The page. What it shows follows from one state, which lives in the address: back undoes, and a link shares it.

import { drawComparison } from "./compare.js";
import { $, ask, h, pause } from "./dom.js";
import { feedbackForm } from "./feedback.js";
import { instructionList } from "./instructions.js";
import { drawOutcomes } from "./play.js";
import { SEARCHING, searchPanel } from "./search.js";
import { accuracyOf, BEING_PREPARED, canAnswer, doubt, titled } from "./words.js";
import { baseName, show, worldView } from "./worlds.js";

const DOMAINS = ["scene", "alchemy", "tangrams"];
const ABOUT = {
  scene: "People in coloured shirts, some with hats, stand on a stage of ten positions: they enter, leave, move and swap hats.",
  alchemy: "Seven beakers hold up to four coloured units each: pour one into another, pour units out, or mix what is inside.",
  tangrams: "Up to five figures stand in a row: remove one, put it back somewhere, or swap two. They have no names: say “the first figure”, “the last one” or “it”.",
};
const MOST_INSTRUCTIONS = 10;
const MOST_SEARCHED = 5;
const DEBOUNCE = 30;
const SEARCH_DEBOUNCE = 300;
const EXPLAIN_DEBOUNCE = 500;
const PATIENCE = 300; // after which what is there of a comparison is shown
const POLL = 1000;
const VIEWS = ["play", "search", "compare"];
const UNREAD = { kept: [], read: [] }; // no command is chosen by hand

let models = [];
let savesFeedback = false;
let state = null;
let answer = null; // of the last parse
let step = 0;
let pictures = {};
let notice = ""; // what is wrong with the address
let writing = false; // whether the newest step of the address is what is being typed
let asking = new AbortController(); // ends what was asked for an older state
let pausing = new AbortController(); // ends the pause before a search
let refreshing = Promise.resolve(); // all that the last state asked
const panel = $("panel");
const stage = worldView("First world", (world) => change({ world, ...UNREAD }));
$("stage").append(stage.element);
$("stage-text").append(stage.asText); // below what most people need
const instructions = instructionList({
  most: MOST_INSTRUCTIONS,
  onchange: (say) => type(say),
  oncommit: commit,
  onselect: (place) => goTo(place),
  attention: askAttention,
});
const searching = searchPanel(panel, (changes) => change(changes));

// The state and the address.

/** What the address says. Where its model is not here, another one of its domain stands in, or else none of it fits. */
async function fromAddress() {
  let given = new URLSearchParams(location.hash.slice(1));
  const [name, domain] = [given.get("model"), given.get("domain")];
  const fitting = readyFirst(models.filter((one) => !domain || one.domain === domain));
  const model = fitting.find((one) => one.name === name) ?? fitting[0] ?? readyFirst(models)[0];
  notice = name && name !== model.name ? `There is no model ${name} here; this is ${model.name}.` : "";
  if (!fitting.length) {
    notice = `There is no model of ${domain} here; this is ${model.name}, a model of ${model.domain}.`;
    given = new URLSearchParams({ view: given.get("view") ?? "" });
  }
  return {
    view: VIEWS.includes(given.get("view")) ? given.get("view") : "play",
    model: model.name,
    world: given.get("world") ?? (await firstWorld(model)),
    say: tooMany(given.getAll("say")),
    kept: given.getAll("kept"),
    read: given.getAll("read"),
    target: given.get("target"), // null where it follows the reading
    beam: [4, 16, 64].includes(Number(given.get("beam"))) ? Number(given.get("beam")) : 16,
    critic: given.get("critic") !== "no",
  };
}

const readyFirst = (some) => some.toSorted((one, other) => other.ready - one.ready);

function tooMany(say) {
  if (say.length > MOST_INSTRUCTIONS) notice = `The link has ${say.length} instructions; the first ${MOST_INSTRUCTIONS} are shown.`;
  return say.slice(0, MOST_INSTRUCTIONS);
}

/** The world of the first example, which the hint in the empty line fits; without examples, a random one. */
async function firstWorld(model) {
  if (model.examples.length) return model.examples[0].world;
  try {
    return (await ask(`/api/random?${new URLSearchParams({ model: model.name })}`)).world;
  } catch ({ message }) {
    notice ||= message; // a domain of one's own: its first world must be typed
    return "";
  }
}

function toAddress({ view, model: name, world, say, kept, read, target, beam, critic }) {
  const { domain } = models.find((one) => one.name === name);
  const pairs = [["view", view], ["domain", domain], ["model", name], ["world", world]];
  for (const [key, texts] of Object.entries({ say, kept, read })) pairs.push(...texts.map((text) => [key, text]));
  if (target !== null) pairs.push(["target", target]);
  if (beam !== 16) pairs.push(["beam", beam]);
  if (!critic) pairs.push(["critic", "no"]);
  return `#${new URLSearchParams(pairs)}`;
}

/** Makes the state a step of the address. */
function push() {
  const depth = (history.state?.depth ?? 0) + 1;
  history.pushState({ depth }, "", toAddress(state));
  sessionStorage.setItem("deepest", depth);
  drawButtons();
}

/** A change that can be undone. */
function change(changes) {
  if (!state) return;
  commit();
  state = { ...state, ...changes };
  push();
  drawSettings();
  instructions.update(state.say);
  refresh();
}

/** What is being typed: one step of the address, which follows until the line is left. */
function type(say) {
  const changed = say.findIndex((text, place) => text !== state.say[place]);
  const decided = state.read.length ? state.read : state.kept;
  const target = state.view === "search" ? state.target : null; // that of an example holds for its instructions only
  state = { ...state, say, kept: decided.slice(0, changed < 0 ? say.length : changed), read: [], target };
  if (writing) history.replaceState(history.state, "", toAddress(state));
  else push();
  writing = true;
  pausing.abort();
  clearTimeout(type.timer);
  type.timer = setTimeout(askNext, DEBOUNCE, state);
}

/** Lets one state's questions end before the next: a server that is behind would be asked for what nobody waits for. */
async function askNext(typed) {
  await refreshing;
  if (typed !== state) return; // more was typed meanwhile
  step = state.say.length;
  refresh();
}

function commit() {
  writing = false;
}

/** Shows what the address says, which then says all of it. */
async function open() {
  commit();
  const asked = location.href;
  const given = await fromAddress();
  if (asked !== location.href) return; // it went on meanwhile
  state = given;
  history.replaceState({ depth: history.state?.depth ?? 0 }, "", toAddress(state));
  step = state.say.length;
  drawSettings();
  instructions.update(state.say);
  await refresh();
}

addEventListener("popstate", guarded(open));

// What is shown.

const model = () => models.find(({ name }) => name === state.model);
const reading = () => answer?.readings[chosen()];

/** The reading that was chosen by hand, or else the best. */
function chosen() {
  const fits = ({ commands }) => state.read.every((tokens, place) => commands[place]?.tokens.join(" ") === tokens);
  const found = answer.readings.findIndex(fits);
  return Math.max(found, 0);
}

function refresh() {
  clearTimeout(type.timer);
  drawViews();
  asking.abort();
  asking = new AbortController();
  refreshing = askAll(state, asking.signal);
  return refreshing;
}

async function askAll(asked, signal) {
  try {
    const request = { model: asked.model, context: asked.world, instructions: asked.say, begin: asked.kept };
    const waiting = !canAnswer(model(), asked.say); // then there is only the world
    const found = await ask("/api/parse", { ...request, ...(waiting && { instructions: [], begin: [] }), explain: false }, signal);
    answer = { ...found, empty: !asked.say.length, waiting };
    pictures = found.pictures;
    step = Math.min(step, answer.readings.length ? asked.say.length : 0);
    complain(notice);
    notice = "";
    draw();
    if (asked.view === "search") await refreshSearch(asked, signal);
    if (asked.view === "compare") await refreshComparison(asked, signal);
    if (asked.view === "play") explain(request, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    complain([notice, inWords(error)].filter(Boolean).join(" "));
    notice = "";
  }
}

/** Asks, after a pause in typing, which instructions cannot be done in the worlds they meet. */
async function explain(request, signal) {
  if (!answer.readings.length) return;
  try {
    await pause(EXPLAIN_DEBOUNCE, signal);
    const { reasons, understood } = await askExplained(request, answer, signal);
    if (understood === answer.understood && !reasons.some(Boolean)) return;
    answer = { ...answer, reasons, understood };
    draw();
  } catch (error) {
    if (error.name !== "AbortError") complain(error.message);
  }
}

/** The answer with explanations; the quick one where there are none, or where they take too long. */
async function askExplained(request, quick, signal) {
  if (!model().random) return quick;
  try {
    return await ask("/api/parse", { ...request, explain: true }, signal);
  } catch (error) {
    if (error.status === 503) return quick;
    throw error;
  }
}

/** What the tokens of a command attended to, of the reading that is shown; asked once for each reading. */
function askAttention(place) {
  const found = reading();
  if (!found || !model().attention) return null;
  return async () => {
    const commands = found.commands.map(({ tokens }) => tokens.join(" "));
    const { model: name, world, say: utterances } = state;
    found.attention ??= ask("/api/attention", { model: name, context: world, instructions: utterances, commands }, asking.signal);
    const answered = await found.attention.catch((error) => {
      found.attention = undefined; // to be asked again
      if (error.name !== "AbortError") complain(error.message);
    });
    return answered?.commands[place];
  };
}

/** Whether the instructions of an example led to the world that is known to be right. */
function drawVerdict(end) {
  const verdict = $("verdict");
  verdict.hidden = state.view !== "play" || state.target === null || end === undefined;
  if (verdict.hidden) return;
  const right = end === state.target;
  const about = JSON.stringify([right, state.model, state.target]);
  if (drawVerdict.about === about) return; // the picture stays
  drawVerdict.about = about;
  verdict.className = right ? "right" : "wrong";
  verdict.replaceChildren(h("p", {}, right ? "✓ This is the right outcome." : "✗ This is not the right outcome."));
  if (!right) showTarget(verdict, state.target);
}

/** The world that should have come out, below the verdict. */
async function showTarget(verdict, target) {
  const figure = h("figure", { className: "small world" });
  const whole = h("div", {}, h("p", {}, "It should be:"), figure);
  const answered = await ask("/api/parse", { model: state.model, context: target, instructions: [] }).catch(() => null);
  if (!answered || verdict.className === "right" || target !== state.target) return; // it is no world, or something else is shown
  show(figure, answered.pictures[target], { moving: false });
  figure.dataset.world = target;
  verdict.replaceChildren(verdict.firstChild, whole);
}

/** Why instructions are impossible, where that is known; the first reading says in which worlds they are given. */
function reasonsOf(found) {
  const [best] = answer.readings;
  const same = (place) => found.commands.slice(0, place).every(({ world }, before) => world === best.commands[before].world);
  return answer.reasons.map((reason, place) => (reason && same(place) ? reason : null));
}

function draw() {
  const found = reading();
  const count = found ? found.commands.length : 0;
  const world = step ? found.commands[step - 1].world : state.world;
  stage.update(model().domain, state.world, pictures[world], step === 0, world);
  $("stepper").hidden = !count;
  $("step").max = count;
  $("step").value = step;
  $("step").setAttribute("aria-valuetext", step ? `after instruction ${step}` : "the first world");
  $("back").disabled = step === 0;
  $("forth").disabled = step === count;
  const reasons = reasonsOf(found);
  instructions.showReading(found, pictures, step, answer.unknown_words, reasons);
  drawVerdict(found?.commands.at(-1).world);
  drawExamples();
  const command = step && found.commands[step - 1];
  const words = step ? [doubt(command, reasons[step - 1]), command.words ?? command.tokens.join(" ")].filter(Boolean).join(" ") : "";
  $("stage-title").textContent = step ? `After ${step} of ${count}: ${words}` : "The world: click to change it";
  const title = document.querySelector("#stage svg title")?.textContent ?? world;
  say(`${step ? `After instruction ${step}, ${words}: ` : ""}${title}`);
  if (state.view !== "play") return;
  const choosing = ["reading", "program"].includes(document.activeElement?.name) && document.activeElement.name;
  const onrelease = state.kept.length ? () => change(UNREAD) : null;
  drawOutcomes(panel, answer, answer.readings.length ? chosen() : 0, { onchoose: choose, onrelease, reasons, feedback: feedback(found) });
  if (choosing) panel.querySelector(`input[name="${choosing}"]:checked`)?.focus();
}

/** The form for corrections; the same one as long as it is about the same outcome. */
function feedback(found) {
  if (!savesFeedback || !found) return null;
  const outcome = found.commands.at(-1).world;
  const about = JSON.stringify([state.model, state.world, state.say, outcome]);
  if (feedback.about !== about) {
    const request = { model: state.model, context: state.world, instructions: state.say };
    feedback.element = feedbackForm(request, outcome, model().domain, pictures[outcome]);
    feedback.about = about;
  }
  return feedback.element;
}

function goTo(place) {
  step = Math.max(0, Math.min(place, reading()?.commands.length ?? 0));
  draw();
}

function choose(place) {
  change({ read: answer.readings[place].commands.map(({ tokens }) => tokens.join(" ")) });
}

async function refreshSearch(asked, signal) {
  const { model: name, world, say: utterances, beam, critic } = asked;
  const target = asked.target ?? reading()?.commands.at(-1)?.world ?? world;
  searching.attach();
  const guided = models.filter(({ domain }) => domain === model().domain).flatMap((one) => one.guided.map((search) => ({ ...search, model: one.name })));
  searching.settings(asked, model(), target, pictures[target], guided);
  if (!utterances.length || answer.waiting || utterances.length > MOST_SEARCHED) {
    searching.update(null);
    searching.wait(answer.waiting ? BEING_PREPARED : "");
    if (utterances.length > MOST_SEARCHED) throw new Error(`Searches are shown for up to ${MOST_SEARCHED} instructions.`);
    return;
  }
  pausing = new AbortController();
  await pause(SEARCH_DEBOUNCE, pausing.signal);
  const slow = setTimeout(() => searching.wait(SEARCHING), 500);
  try {
    const found = await ask("/api/search", { model: name, context: world, target, instructions: utterances, beam, critic }, signal);
    searching.settings(asked, model(), target, found.pictures[target], guided);
    searching.update(found);
  } catch (error) {
    if (error.name !== "AbortError") searching.update(null);
    throw error;
  } finally {
    clearTimeout(slow);
    searching.wait("");
  }
}

/** Models that are ready answer, each card when its answer is there; `followPreparation` asks again for the others. */
async function refreshComparison(asked, signal) {
  const rivals = models.filter(({ domain }) => domain === model().domain);
  const answers = new Map(rivals.map((rival) => [rival, null]));
  const draw = () => signal.aborted || drawComparison(panel, [...answers]);
  const requestTo = ({ name }) => ({ model: name, context: asked.world, instructions: asked.say });
  const able = rivals.filter((rival) => canAnswer(rival, asked.say));
  let late = false;
  const patience = setTimeout(() => draw((late = true)), PATIENCE);
  await Promise.all(
    able.map(async (rival) => {
      const own = rival.name === asked.model && !asked.kept.length;
      const found = own ? answer : await ask("/api/parse", { ...requestTo(rival), explain: false }, signal).catch(failed);
      answers.set(rival, { ...found, empty: !asked.say.length });
      if (late) draw();
    })
  );
  clearTimeout(patience);
  signal.throwIfAborted();
  draw();
  explainComparison();

  async function explainComparison() {
    try {
      await pause(EXPLAIN_DEBOUNCE, signal);
      for (const rival of able.filter((one) => answers.get(one).readings?.length)) {
        const { understood, reasons } = await askExplained(requestTo(rival), answers.get(rival), signal);
        answers.set(rival, { ...answers.get(rival), understood, reasons });
        draw();
      }
    } catch (error) {
      if (error.name !== "AbortError") complain(error.message);
    }
  }
}

/** An error as an answer, unless the question was given up. */
function failed(error) {
  if (error.name === "AbortError") throw error;
  return { message: error.message };
}

function drawViews() {
  for (const button of $("views").children) {
    if (button.dataset.view === state.view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
    const alone = models.filter(({ domain }) => domain === model().domain).length < 2;
    if (button.dataset.view === "compare") button.hidden = alone && state.view !== "compare";
  }
  if (document.body.dataset.view !== state.view) panel.replaceChildren();
  document.body.dataset.view = state.view;
  if (state.view !== "search") searching.stop();
}

function drawSettings() {
  const domain = model().domain;
  const known = [...new Set([...DOMAINS, ...models.map((one) => one.domain)])];
  $("domains").replaceChildren(
    h("legend", {}, "World"),
    ...known.map((name) => {
      const there = models.some((one) => one.domain === name);
      const ready = models.some((one) => one.domain === name && one.ready);
      const title = there ? "" : `No model here: vbsix train ${name} --data synthetic --out runs/${name}`;
      const radio = { type: "radio", name: "domain", value: name, checked: name === domain, disabled: !there };
      return h("label", { title }, h("input", { ...radio, onchange: guarded(() => choosing(name)) }), ready || !there ? name : `${name} (compiling)`);
    })
  );
  const options = models.filter((one) => one.domain === domain).map((one) => h("option", { value: one.name }, titled(one)));
  $("model").replaceChildren(...options);
  $("model").value = state.model;
  $("random").disabled = !model().random;
  $("about-domain").textContent = ABOUT[baseName(domain)] ?? "";
  $("about-model").textContent = accuracyOf(model());
  instructions.hint(model().examples[0]?.utterances[0]);
  drawExamples();
  drawButtons();
}

/** The examples whose outcome is known, as chips. */
function drawExamples() {
  const { domain, examples } = model();
  if ($("examples").dataset.domain !== domain) {
    $("examples").dataset.domain = domain;
    const chips = examples.map((one) => {
      const onclick = () => {
        step = one.utterances.length;
        change({ world: one.world, say: [...one.utterances], ...UNREAD, target: one.target });
      };
      return h("button", { type: "button", className: "chip", title: one.utterances.join(" / "), onclick }, one.title);
    });
    $("examples").replaceChildren(chips.length ? h("span", { className: "quiet" }, "Try an example:") : "", ...chips);
  }
  for (const chip of $("examples").querySelectorAll("button")) {
    const { world } = examples.find(({ title }) => title === chip.textContent);
    chip.setAttribute("aria-pressed", String(world === state.world && chip.title === state.say.join(" / ")));
  }
}

function drawButtons() {
  const depth = history.state?.depth ?? 0;
  $("undo").disabled = depth === 0;
  $("redo").disabled = depth >= Number(sessionStorage.getItem("deepest") ?? 0);
}

/** An action whose failure is shown. */
function guarded(action) {
  return () => action().catch(({ message }) => complain(message));
}

/** An error by the names that fields have on the page. */
const inWords = ({ message }) => message.replace(/^context: /, "First world: ").replace(/^target: /, "Target: ");

function complain(message) {
  $("problem").textContent = message;
  $("problem").hidden = !message;
}

/** Announces a text to screen readers, after a pause. */
function say(text) {
  clearTimeout(say.timer);
  say.timer = setTimeout(() => ($("status").textContent = text), 600);
}

// What is clicked.

async function choosing(domain) {
  const [first] = readyFirst(models.filter((one) => one.domain === domain));
  const world = await firstWorld(first);
  step = 0;
  change({ model: first.name, world, say: [], ...UNREAD, target: null });
  document.querySelector("#domains input:checked")?.focus();
}

async function giveRandom() {
  const { world } = await ask(`/api/random?${new URLSearchParams({ model: state.model })}`);
  step = 0;
  change({ world, ...UNREAD, target: null });
}

$("random").addEventListener("click", guarded(giveRandom));
$("undo").addEventListener("click", () => history.back());
$("redo").addEventListener("click", () => history.forward());
$("share").addEventListener("click", async () => {
  commit();
  const copying = navigator.clipboard?.writeText(location.href) ?? Promise.reject();
  const copied = await copying.then(() => true, () => false);
  say(`The link is in the address bar${copied ? ", and copied" : ""}.`);
  $("share").textContent = copied ? "Copied" : "The link is in the address bar";
  setTimeout(() => ($("share").textContent = "Copy link"), 1500);
});
$("model").addEventListener("change", () => change({ model: $("model").value, ...UNREAD }));
$("back").addEventListener("click", () => goTo(step - 1));
$("forth").addEventListener("click", () => goTo(step + 1));
$("step").addEventListener("input", () => goTo(Number($("step").value)));
$("views").addEventListener("click", ({ target }) => target.dataset.view && change({ view: target.dataset.view }));
$("settings").addEventListener("submit", (event) => event.preventDefault());
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  instructions.focusNext();
});

/** Waits until one model is ready, and says what the server is doing meanwhile. */
async function waitForModels() {
  for (;;) {
    const found = await ask("/api/models");
    ({ models, feedback: savesFeedback } = found);
    const wanted = new URLSearchParams(location.hash.slice(1)).get("domain");
    const fitting = models.filter(({ domain }) => domain === wanted);
    const waiting = found.preparing !== null && !(fitting.length ? fitting : models).some(({ ready }) => ready);
    $("preparing").hidden = !waiting;
    document.body.classList.toggle("waiting", waiting);
    if (!waiting) return found.preparing !== null;
    $("preparing-words").textContent = `The server is ${found.preparing}.`;
    await pause(POLL);
  }
}

/** Shows which models have become ready since, and asks those that the view waits for. */
async function followPreparation() {
  for (;;) {
    await pause(2 * POLL);
    const found = await ask("/api/models");
    const waited = models.filter(({ ready }) => !ready).map(({ name }) => name);
    ({ models } = found);
    drawSettings();
    const shown = state.view === "compare" ? ({ domain }) => domain === model().domain : ({ name }) => name === state.model;
    if (models.some((one) => one.ready && waited.includes(one.name) && shown(one))) refresh();
    if (found.preparing === null) return;
  }
}

async function start() {
  const more = await waitForModels();
  if (!history.state) sessionStorage.removeItem("deepest");
  await open();
  document.body.dataset.ready = "yes";
  if (more) await followPreparation();
}

guarded(start)();
