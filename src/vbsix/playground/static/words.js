// What the page says of models and of the commands that they read.

const WHERE = {
  test: "on new examples",
  dev: "on dev data, which did not train it, but may have helped to choose it",
};
const percent = (value) => `${Math.round(100 * value)}%`;

/** A model's accuracy for the longest sequences that were measured; an empty text where it is not known. */
export function rightAfter({ accuracy, provenance }) {
  const [length, value] = Object.entries(accuracy).at(-1) ?? [];
  if (!length) return "";
  const kind = provenance.data === "synthetic" ? "generated instruction" : "instruction"; // these are much easier
  return `${percent(value)} right${Number(length) > 0 ? ` after ${length} ${kind}${length === "1" ? "" : "s"}` : ""}`;
}

/** A model's name with its accuracy. */
export const titled = (model) => (rightAfter(model) ? `${model.name} (${rightAfter(model)})` : model.name);

/** A sentence about a model's accuracy, and what it was measured on. */
export function accuracyOf({ accuracy: shares, accuracy_split: split, provenance }) {
  const known = Object.entries(shares).map(([length, value], place) => {
    const unit = place ? "" : ` instruction${length === "1" ? "" : "s"}`;
    return Number(length) > 0 ? `${percent(value)} after ${length}${unit}` : percent(value);
  });
  const where = provenance.data === "synthetic" ? "on generated sentences; it knows few other words" : WHERE[split] ?? `on ${split}`;
  return known.length ? `Share of right outcomes: ${known.join(", ")}, ${where}.` : "";
}

/** Whether a model can be asked; with no instructions, only the world is drawn. */
export const canAnswer = (model, utterances) => model.ready || !utterances.length;

export const BEING_PREPARED = "This model is being prepared. Its answer appears here when it is ready.";

/** What stands before the words of a command that is not sure: impossible in its world, with the reason, or improbable. */
export function doubt({ doubtful }, reason) {
  if (reason) return `Cannot be done: ${reason}. A guess:`;
  return doubtful ? "Doubtful:" : "";
}
