// The third view: what several models make of the same instructions.

import { h, share } from "./dom.js";
import { BEING_PREPARED, doubt, rightAfter } from "./words.js";
import { show } from "./worlds.js";

/** `answers` are [model, its answer, an error, or null while there is neither], of all models of the domain. */
export function drawComparison(panel, answers) {
  const read = answers.filter(([, answer]) => answer?.readings?.length);
  const ends = read.map(([, answer]) => endOf(answer));
  const commonest = ends.toSorted((one, other) => count(ends, other) - count(ends, one))[0];
  const usual = count(ends, commonest) > 1 ? commonest : null; // where no two agree, none is the odd one out
  panel.replaceChildren(
    h("h2", {}, "Models side by side"),
    h("p", { className: "quiet", role: "status" }, summary(answers, ends, usual)),
    h("div", { className: "models" }, answers.map(([model, answer]) => drawModel(model, answer, usual)))
  );
}

const endOf = ({ readings }) => readings[0].commands.at(-1).world;
const count = (values, wanted) => values.filter((value) => value === wanted).length;

function summary(answers, ends, usual) {
  const waiting = answers.filter(([, answer]) => answer === null).length;
  if (answers.length < 2) return "Only one model of this world is here. Give more of them: vbsix serve RUN-1 RUN-2 MODEL.safetensors";
  if (waiting) return `${answers.length - waiting} of ${answers.length} models have answered.`;
  if (!ends.length) return "Type an instruction to compare what the models make of it.";
  return `${usual === null ? "No two" : `${count(ends, usual)} of ${answers.length}`} models come to the same world.`;
}

function drawModel(model, answer, usual) {
  const { method, steps, seed, data } = model.provenance;
  const name = h("h3", {}, model.name, " ", h("span", { className: "quiet" }, rightAfter(model)));
  const about = h("p", { className: "quiet" }, `${method}, ${steps} steps, seed ${seed}, trained on ${data === "synthetic" ? "generated sentences" : data}`);
  const article = h("article", { className: "model" }, name, about);
  if (!answer?.readings?.length) {
    article.append(h("p", {}, nothing(model, answer)));
    return article;
  }
  const [reading] = answer.readings;
  const end = endOf(answer);
  const differs = usual !== null && end !== usual;
  const figure = h("figure", { className: "world" });
  show(figure, answer.pictures[end], { moving: false });
  article.classList.toggle("differs", differs);
  article.append(
    figure,
    h("p", {}, differs && h("mark", {}, "another world"), answer.understood ? ` confidence ${share(reading.confidence)}` : " not understood: a guess"),
    h(
      "ol",
      {},
      reading.commands.map((command, place) => {
        const doubts = doubt(command, answer.reasons[place]);
        return h("li", {}, doubts && h("span", { className: "doubt" }, doubts, " "), command.words ?? command.tokens.join(" "));
      })
    )
  );
  return article;
}

/** Why a model's card shows no reading. */
function nothing(model, answer) {
  if (answer === null) return model.ready ? "Waiting for its answer." : BEING_PREPARED;
  return answer.message ?? (answer.empty ? "Nothing to read yet." : "No program was found.");
}
