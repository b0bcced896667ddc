// The second view: how programs for a target are found, step by step, in both spaces.

import { canvas } from "./canvas.js";
import { h } from "./dom.js";
import { show, worldView } from "./worlds.js";

const MOST_CARDS = 6; // the rest is folded
export const SEARCHING = "Searching. The first search with another beam is compiled, which can take most of a minute.";
const KINDS = { correct: "correct", beam: "kept", incorrect: "wrong world", pruned: "dropped" };

/** The panel of searches; `onchange` hears of another target, beam or use of the critic. */
export function searchPanel(panel, onchange) {
  let answer = null;
  let pictures = {};
  const target = worldView("Target", (world) => onchange({ target: world }));
  const follow = h("button", { type: "button", onclick: () => onchange({ target: null }) }, "Use the model's outcome");
  const beam = h(
    "select",
    { onchange: () => onchange({ beam: Number(beam.value) }) },
    [4, 16, 64].map((size) => h("option", { value: size }, String(size)))
  );
  const critic = h("input", { type: "checkbox", onchange: () => onchange({ critic: critic.checked }) });
  const criticLabel = h("label", {}, critic, " the critic ranks");
  const step = h("input", { type: "range", min: 0, max: 0, value: 0, oninput: drawStep, "aria-label": "Iteration of the search" });
  const caption = h("output", { className: "caption" });
  const spaces = Object.fromEntries(["execution", "program"].map((name) => [name, spaceColumn(name)]));
  const busy = h("p", { className: "quiet", hidden: true });
  const play = h("button", { type: "button", onclick: playSteps }, "Play");
  const buttons = [-1, 1].map((by) =>
    h("button", { type: "button", onclick: () => moveBy(by), "aria-label": by < 0 ? "Iteration before" : "Next iteration" }, by < 0 ? "◀" : "▶")
  );
  const guided = h("p", { className: "row guided" });
  const result = h(
    "div",
    { hidden: true },
    Object.values(spaces).map(({ whole }) => whole),
    h("div", { className: "stepper" }, buttons[0], step, buttons[1], play),
    caption,
    h("div", { className: "spaces" }, Object.values(spaces).map(({ element }) => element))
  );
  const element = h(
    "div",
    { id: "search" },
    h("h2", {}, "How it was found"),
    h(
      "p",
      { className: "quiet" },
      "With a target world the search knows which programs are right. Execution space merges prefixes that have come to the same state, program space does not; so the same beam holds more different states."
    ),
    guided,
    h("h3", {}, "Target"),
    target.element,
    h("p", { className: "row" }, follow, h("label", {}, "beam ", beam), criticLabel),
    busy,
    result
  );
  let timer = null;

  /** Searches in which merging, or the critic, visibly wins; each with what to look at. */
  function drawGuided(state, known) {
    guided.hidden = !known.length;
    const chips = known.map(({ title, look, utterances, ...changes }) => {
      const onclick = () => onchange({ ...changes, say: utterances, kept: [], read: [], critic: true });
      return h("button", { type: "button", className: "chip", onclick }, title);
    });
    const shown = known.find(({ model, world, utterances }) => model === state.model && world === state.world && String(utterances) === String(state.say));
    guided.replaceChildren(h("span", { className: "quiet" }, "See it happen:"), ...chips, h("span", { className: "quiet" }, shown?.look ?? ""));
  }

  function moveBy(by) {
    step.value = Number(step.value) + by;
    drawStep();
  }

  function playSteps() {
    const going = timer;
    stop();
    if (going) return;
    if (step.value === step.max) step.value = 0;
    play.textContent = "Pause";
    timer = setInterval(() => {
      moveBy(1);
      if (step.value === step.max) stop();
    }, 900);
    drawStep();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }

  function drawStep() {
    const at = Number(step.value);
    caption.textContent = at ? `After ${at} token${at > 1 ? "s" : ""}` : "The start";
    for (const [name, column] of Object.entries(spaces)) column.drawStep(answer[name], at, pictures);
  }

  return {
    attach() {
      if (!panel.contains(element)) panel.replaceChildren(element);
    },
    stop,
    /** Says what is waited for; what an older search found is gone until there is an answer. */
    wait(words) {
      busy.textContent = words;
      busy.hidden = !words;
      if (words) result.hidden = true;
    },
    settings(state, model, targetWorld, picture, known) {
      target.update(model.domain, targetWorld, picture);
      drawGuided(state, known);
      beam.value = state.beam;
      critic.checked = state.critic;
      criticLabel.hidden = !model.critic;
      follow.disabled = state.target === null;
    },
    update(newAnswer) {
      const fresh = !answer;
      answer = newAnswer;
      pictures = answer?.pictures ?? {};
      result.hidden = !answer;
      if (!answer) return stop();
      step.max = Math.max(answer.execution.iterations.length, answer.program.iterations.length);
      if (fresh) step.value = Math.min(1, step.max);
      for (const [name, column] of Object.entries(spaces)) column.drawWhole(answer[name]);
      drawStep();
    },
  };
}

/** One of the two spaces: what was found, this iteration's states, and the whole search as a picture. */
function spaceColumn(name) {
  const summary = h("p", { className: "found" });
  const counts = h("p", { className: "quiet" });
  const states = h("ul", { className: "states" });
  const others = h("ul", { className: "states" });
  const folded = h("details", { hidden: true }, h("summary", {}, ""), others);
  const title = `${name[0].toUpperCase()}${name.slice(1)} space`;
  const drawing = canvas(`${title} as a picture`);
  const whole = h("details", {}, h("summary", {}, `${title} as a picture`), drawing.element);
  whole.addEventListener("toggle", () => {
    if (!whole.open) return;
    drawing.opened();
    drawing.follow(shown);
  });
  let shown = 0;
  const element = h("section", { className: "space", "aria-label": title }, h("h3", {}, title), summary, counts, states, folded);

  return {
    element,
    whole,
    drawWhole({ programs, drawing: svg, states: seen, left_out }) {
      const all = seen.length + left_out;
      const [best] = programs;
      summary.replaceChildren(
        best
          ? h("span", {}, h("strong", {}, `${programs.length === 8 ? "8 or more" : programs.length} found. `), h("code", {}, best.tokens.join(" ")))
          : h("strong", {}, "No program found."),
        h("span", { className: "quiet" }, ` ${all} states seen.`)
      );
      drawing.show(svg);
    },
    drawStep({ iterations, states: seen, transitions }, at, pictures) {
      const iteration = iterations[at - 1];
      counts.textContent = at === 0 ? "One state, with an empty stack." : iteration ? tell(iteration, name) : "The search is over.";
      const inPrograms = new Set(transitions.filter((one) => one.in_program).map(({ destination }) => seen[destination]));
      const here = seen.filter((state) => state.iteration === at);
      const order = Object.keys(KINDS);
      here.sort((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind) || other.log_probability - one.log_probability);
      const cards = here.map((state) => card(state, inPrograms.has(state), pictures));
      const total = iteration ? iteration.successors - iteration.merged : 1;
      const more = at && iteration && total > cards.length ? [h("li", { className: "quiet" }, `and ${total - cards.length} more that were dropped`)] : [];
      states.replaceChildren(...cards.slice(0, MOST_CARDS));
      others.replaceChildren(...cards.slice(MOST_CARDS), ...more);
      folded.hidden = !others.children.length;
      folded.firstElementChild.textContent = `${others.children.length} more`;
      shown = at;
      if (whole.open) drawing.follow(at);
    },
  };
}

function tell({ expanded, successors, merged, correct, incorrect, kept, pruned }, name) {
  const parts = [`${expanded} expanded`, `${successors} successors`];
  if (name === "execution") parts.push(`${merged} merged`);
  parts.push(`${kept} kept`, `${pruned} dropped`);
  if (incorrect) parts.push(`${incorrect} ended in a wrong world`);
  if (correct) parts.push(`${correct} correct`);
  return parts.join(", ");
}

function card(state, onTheWay, pictures) {
  const tokens = state.tokens.join(" | ");
  const leads = onTheWay && state.kind !== "correct" ? ", leads to the target" : null;
  const ways = state.ways > 1 ? ` ${state.ways} ways merged` : "";
  const figure = h("figure", { className: "world" });
  show(figure, pictures[state.world], { moving: false });
  return h(
    "li",
    { className: `card ${state.kind}${onTheWay ? " on-the-way" : ""}` },
    figure,
    h("p", {}, h("span", { className: "kind" }, KINDS[state.kind]), leads, tokens && h("code", {}, ` ${tokens}`), h("span", { className: "quiet" }, ways)),
    h("p", {}, state.stack.length ? h("code", {}, state.stack.map(short).join(" ")) : h("span", { className: "quiet" }, "empty stack")),
    h(
      "p",
      {},
      h("span", { className: "actor" }, `actor ${number(state.log_probability)}`),
      state.value === null ? null : h("span", { className: "critic" }, ` critic ${state.value.toFixed(2)}`)
    )
  );
}

/** A stack element as the drawing has it: `number:3` as 3, `object:3` as #3, `list:[1,2]` as [1,2]. */
const short = (element) => element.replace(/^(number|color|fraction|list):/, "").replace("object:", "#");

/** A probability in two digits, however small. */
function number(logarithm) {
  const value = Math.exp(logarithm);
  return value >= 0.001 ? value.toPrecision(2) : value.toExponential(0);
}
