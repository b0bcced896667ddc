// The list of instructions: a line for each with what became of it, and an empty one for the next.

import { $, h, share } from "./dom.js";
import { show } from "./worlds.js";

/** Keeps the list as `texts` has it; lines stay the same elements, so that typing is not disturbed. */
export function instructionList({ most, onchange, oncommit, onselect }) {
  const list = $("say");
  const lines = [];

  const texts = () => lines.map((line) => line.input.value);
  const trimmed = () => texts().filter((text) => text.trim());

  function addLine() {
    const number = lines.length + 1;
    const input = h("input", { type: "text", maxLength: 300, autocomplete: "off", "aria-label": `Instruction ${number}` });
    const remove = h("button", { type: "button", className: "remove", "aria-label": `Remove instruction ${number}` }, "×");
    const outcome = h("div", { className: "outcome" });
    const figure = h("figure", { className: "small world" });
    const result = h("button", { type: "button", className: "result", hidden: true }, figure);
    const line = { input, outcome, figure, result, remove };
    line.element = h("li", {}, h("div", { className: "line" }, input, remove), h("div", { className: "read" }, outcome, result));
    input.addEventListener("input", () => onchange(trimmed()));
    input.addEventListener("keydown", (event) => onKey(event, lines.indexOf(line)));
    input.addEventListener("blur", () => oncommit());
    remove.addEventListener("click", () => {
      input.value = "";
      onchange(trimmed());
      oncommit();
      update(trimmed());
      lines[Math.min(lines.indexOf(line), lines.length - 1)]?.input.focus();
    });
    result.addEventListener("click", () => onselect(lines.indexOf(line) + 1));
    lines.push(line);
    list.append(line.element);
  }

  function onKey(event, place) {
    if (event.key === "Enter") {
      event.preventDefault();
      oncommit();
      update(trimmed());
      lines[Math.min(place + 1, lines.length - 1)].input.focus();
    } else if (event.key === "Backspace" && !lines[place].input.value && place > 0) {
      event.preventDefault();
      lines[place - 1].input.focus();
    }
  }

  /** Makes the lines say this; `typing` leaves alone the line that is being written. */
  function update(wanted, typing = false) {
    const count = Math.min(wanted.length + 1, most);
    while (lines.length < count) addLine();
    while (lines.length > count && !(typing && lines.at(-1).input === document.activeElement)) {
      lines.pop().element.remove();
    }
    if (!typing) lines.forEach(({ input }, place) => (input.value = wanted[place] ?? ""));
    lines.forEach(({ input, remove }, place) => {
      input.placeholder = place ? "and then?" : "What should happen?";
      remove.hidden = !input.value;
    });
  }

  /** Shows beside each line its command and the world after it; `step` is the one that the stage shows. */
  function showReading(reading, pictures, step) {
    lines.forEach(({ outcome, figure, result, element }, place) => {
      const command = reading?.commands[place];
      element.classList.toggle("current", place + 1 === step);
      result.hidden = !command;
      if (!command) {
        outcome.replaceChildren();
        return;
      }
      outcome.replaceChildren(
        h("span", { className: "words" }, command.words ?? ""),
        h("code", {}, command.tokens.join(" ")),
        h("span", { className: "quiet" }, `probability ${share(command.probability)}`)
      );
      result.setAttribute("aria-label", `Show the world after instruction ${place + 1}`);
      show(figure, pictures[command.world], { moving: false });
    });
  }

  return { update, showReading, focusNext: () => lines.find(({ input }) => !input.value)?.input.focus() };
}
