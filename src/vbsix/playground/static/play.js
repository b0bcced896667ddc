// The first view: the readings of the instructions to choose from.

import { h, share } from "./dom.js";

/** `onrelease`, where there is one, gives up the commands that were chosen before the last instructions. */
export function drawReadings(panel, answer, chosen, onchoose, onrelease) {
  if (!answer) return;
  const { readings } = answer;
  const notes = [];
  if (answer.unknown_words.length) notes.push(`The model does not know: ${answer.unknown_words.join(", ")}.`);
  if (answer.unread_words.length) notes.push(`Too long; not read: ${answer.unread_words.join(" ")}.`);
  panel.replaceChildren(
    h("h2", { id: "readings-title" }, "Readings"),
    ...notes.map((note) => h("p", { className: "note" }, note)),
    onrelease ? h("p", { className: "row quiet" }, KEPT, h("button", { type: "button", onclick: onrelease }, "Read anew")) : "",
    readings.length
      ? h(
          "fieldset",
          { className: "readings", "aria-labelledby": "readings-title" },
          readings.map((reading, place) => drawReading(readings, reading, place, chosen, onchoose))
        )
      : h("p", { className: "quiet" }, answer.empty ? INTRODUCTION : "No program was found. Try other words.")
  );
}

const KEPT = "All of them begin as you chose.";
const INTRODUCTION =
  "Type an instruction: its readings appear here, the most probable first. Choose another one if it is not what you meant.";

function drawReading(readings, reading, place, chosen, onchoose) {
  const input = h("input", { type: "radio", name: "reading", checked: place === chosen, onchange: () => onchoose(place) });
  const commands = reading.commands.map((command, number) => {
    const other = place > 0 && command.tokens.join(" ") !== readings[0].commands[number].tokens.join(" ");
    const words = command.words ?? command.tokens.join(" ");
    return h("li", {}, other ? h("mark", { title: command.tokens.join(" ") }, words) : words);
  });
  const bar = h("span", { className: "bar" });
  bar.style.setProperty("--share", reading.share);
  return h(
    "label",
    { className: "reading" },
    input,
    h("span", { className: "confidence" }, bar, share(reading.share)),
    h("ol", {}, commands)
  );
}
