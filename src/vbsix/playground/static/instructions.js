// The list of instructions: a line for each with what became of it, and an empty one for the next.

import { $, h } from "./dom.js";
import { tokenRow } from "./tokens.js";
import { doubt } from "./words.js";
import { show } from "./worlds.js";

/**
 * Keeps the list; lines stay the same elements, so that typing is not disturbed. `attention(place)` asks for the
 * attention of the tokens of a command to the words of its instruction; null where there is none to ask for.
 */
export function instructionList({ most, onchange, oncommit, onselect, attention }) {
  const list = $("say");
  const lines = [];
  let hint = "What should happen?";

  const says = ({ input }) => input.value.trim() !== "";
  const saying = () => lines.filter(says);
  const changed = () => onchange(saying().map(({ input }) => input.value));

  function addLine() {
    const input = h("input", { type: "text", maxLength: 300, autocomplete: "off" });
    const remove = h("button", { type: "button", className: "remove" }, "×");
    const outcome = h("div", { className: "outcome" });
    const figure = h("figure", { className: "small world" });
    const result = h("button", { type: "button", className: "result", hidden: true }, figure);
    const line = { input, outcome, figure, result, remove };
    line.element = h("li", {}, h("div", { className: "line" }, input, remove), h("div", { className: "read" }, outcome, result));
    input.addEventListener("input", () => {
      changed();
      tidy();
    });
    input.addEventListener("keydown", (event) => onKey(event, lines.indexOf(line)));
    input.addEventListener("blur", commit);
    remove.addEventListener("click", () => {
      const place = lines.indexOf(line);
      input.value = "";
      changed();
      commit();
      lines[Math.min(place, lines.length - 1)].input.focus();
    });
    result.addEventListener("click", () => onselect(saying().indexOf(line) + 1));
    lines.push(line);
    list.append(line.element);
  }

  function commit() {
    oncommit();
    tidy();
  }

  function onKey(event, place) {
    if (event.key === "Enter") {
      event.preventDefault();
      commit();
      lines[Math.min(place + 1, lines.length - 1)].input.focus();
    } else if (event.key === "Backspace" && !lines[place].input.value && place > 0) {
      event.preventDefault();
      lines[place - 1].input.focus();
    }
  }

  /** Makes the lines say this. */
  function update(wanted) {
    while (lines.length < wanted.length) addLine();
    lines.forEach(({ input }, place) => (input.value = wanted[place] ?? ""));
    tidy();
  }

  /** Takes away the lines that say nothing, but for the one that is being written and the last, for what is next. */
  function tidy() {
    const stays = (line) => says(line) || line.input === document.activeElement || line === lines.at(-1);
    const gone = lines.filter((line) => !stays(line));
    lines.splice(0, lines.length, ...lines.filter(stays));
    gone.forEach(({ element }) => element.remove());
    if (lines.length < most && lines.every(says)) addLine();
    lines.forEach(({ input, remove }, place) => {
      input.placeholder = place ? "and then?" : hint;
      input.setAttribute("aria-label", `Instruction ${place + 1}`);
      remove.setAttribute("aria-label", `Remove instruction ${place + 1}`);
      remove.hidden = !input.value;
    });
  }

  /** Shows beside each line its command and the world after it; `step` is the one that the stage shows. */
  function showReading(reading, pictures, step, unknown = [], reasons = []) {
    lines.forEach((line) => {
      const { outcome, figure, result, element } = line;
      const place = saying().indexOf(line);
      const command = reading?.commands[place];
      element.classList.toggle("current", Boolean(command) && place + 1 === step);
      result.hidden = !command;
      if (!command) {
        element.classList.remove("doubtful");
        outcome.replaceChildren();
        line.written = null;
        return;
      }
      result.setAttribute("aria-label", `Show the world after instruction ${place + 1}`);
      show(figure, pictures[command.world], { moving: false });
      const written = JSON.stringify([line.input.value, place, command.tokens, command.words, command.doubtful, reasons[place], unknown]);
      if (line.written === written) return; // the focus stays where it is
      line.written = written;
      const doubts = doubt(command, reasons[place]);
      const marked = underline(line.input.value, unknown);
      outcome.replaceChildren(
        marked ? h("span", { className: "said" }, marked) : "",
        doubts ? h("span", { className: "doubt" }, doubts) : "",
        h("span", { className: "words" }, command.words ?? ""),
        ...tokenRow(command.tokens, place, line.input.value, attention)
      );
      element.classList.toggle("doubtful", doubts !== "");
    });
  }

  const next = () => lines.find((line) => !says(line)) ?? lines.at(-1);

  /** Shows in the empty first line what one can type. */
  function showHint(example) {
    hint = example ? `Type here, for example: ${example}` : "What should happen?";
    tidy();
  }

  return { update, showReading, hint: showHint, focusNext: () => next().input.focus() };
}

/** The text with its unknown words underlined; null if it has none. */
function underline(text, unknown) {
  const known = new Set(unknown);
  const parts = text.split(/(\s+)/);
  if (!parts.some((part) => known.has(part.toLowerCase()))) return null;
  return parts.map((part) => (known.has(part.toLowerCase()) ? h("u", { className: "unknown", title: "an unknown word" }, part) : part));
}
