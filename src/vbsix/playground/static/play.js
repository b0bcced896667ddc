// The first view: the outcomes of the instructions to choose from, each with the programs that lead to it.

import { h, share } from "./dom.js";
import { BEING_PREPARED } from "./words.js";
import { show } from "./worlds.js";

/**
 * `chosen` is the place of a reading. `onrelease`, where there is one, gives up the commands that were chosen before the
 * last instructions. `reasons` say why instructions are impossible, where that is known.
 */
export function drawOutcomes(panel, answer, chosen, { onchoose, onrelease, reasons, feedback }) {
  if (!answer) return;
  const { outcomes } = answer;
  panel.replaceChildren(
    h("h2", { id: "readings-title" }, "What it understood"),
    ...notes(answer, reasons).map((note) => h("p", { className: "note" }, note)),
    onrelease ? h("p", { className: "row quiet" }, KEPT, h("button", { type: "button", onclick: onrelease }, "Start over")) : "",
    outcomes.length
      ? h(
          "fieldset",
          { className: "readings", "aria-labelledby": "readings-title" },
          outcomes.map((outcome, place) => drawOutcome(answer, outcome, isGuess(answer, reasons), chosen, onchoose))
        )
      : h("p", { className: "quiet" }, nothing(answer)),
    feedback ?? ""
  );
}

const KEPT = "The first commands are as you chose.";
const INTRODUCTION =
  "Type an instruction, or click an example above. The worlds it may lead to appear here, the most probable first.";

/** Why there are no outcomes. */
function nothing({ empty, waiting }) {
  if (waiting) return BEING_PREPARED;
  return empty ? INTRODUCTION : "No program was found. Try other words.";
}

const isGuess = ({ understood }, reasons) => !understood || reasons.some(Boolean);

function notes(answer, reasons) {
  const { readings, empty, unknown_words, unread_words } = answer;
  const found = [];
  if (!empty && readings.length && !answer.understood && !reasons.some(Boolean)) found.push("Not understood. What you see is only a guess.");
  reasons.forEach((reason, place) => reason && found.push(`Instruction ${place + 1} cannot be done: ${reason}.`));
  if (unknown_words.length) found.push(`Unknown words: ${unknown_words.join(", ")}.`);
  if (unread_words.length) found.push(`Too long; not read: ${unread_words.join(" ")}.`);
  return found;
}

function drawOutcome(answer, { world, confidence, readings }, guess, chosen, onchoose) {
  const selected = readings.includes(chosen);
  const [first] = readings;
  const input = h("input", { type: "radio", name: "reading", checked: selected, onchange: () => onchoose(first) });
  input.dataset.place = first;
  const bar = h("span", { className: "bar" });
  bar.style.setProperty("--share", guess ? 0 : confidence);
  const figure = h("figure", { className: "small world" });
  show(figure, answer.pictures[world], { moving: false });
  const label = h(
    "label",
    { className: "reading" },
    input,
    h("span", { className: "confidence" }, bar, guess ? "a guess" : `${share(confidence)} sure`),
    h("div", {}, figure, commandList(answer, selected ? chosen : first))
  );
  if (readings.length < 2) return label;
  const programs = readings.map((reading) => {
    const words = answer.readings[reading].commands.map(({ tokens }) => tokens.join(" ")).join(" / ");
    const other = { type: "radio", name: "program", checked: reading === chosen, onchange: () => onchoose(reading) };
    return h("label", { className: "program" }, h("input", other), h("code", {}, words));
  });
  const many = `${readings.length} programs lead here`;
  return h("div", { className: "outcomes" }, label, h("details", {}, h("summary", {}, many), ...programs));
}

function commandList(answer, reading) {
  const best = answer.readings[0].commands;
  const items = answer.readings[reading].commands.map((command, number) => {
    const words = command.words ?? command.tokens.join(" ");
    const other = command.tokens.join(" ") !== best[number].tokens.join(" ");
    return h("li", {}, other ? h("mark", { title: command.tokens.join(" ") }, words) : words);
  });
  return h("ol", {}, items);
}
