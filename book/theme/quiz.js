// Makes quizzes interactive. Without this script each answer is a collapsed box. Nothing is stored or sent.
"use strict";

(() => {
  const squeeze = (text) => text.toLowerCase().replace(/\s+/g, "");
  const lines = (text) => text.split("\n").map((line) => line.trimEnd()).join("\n").trim();

  // What the reader gave, as a list to compare with data-answers; an empty list means nothing yet.
  const given = (question) => {
    const ticked = [...question.querySelectorAll("input:checked")].map((input) => input.value);
    const field = question.querySelector("textarea, input[type=text]");
    return ticked.length || !field ? ticked : [field.value].filter((text) => text.trim());
  };

  const isRight = (kind, answers, reply) => {
    if (kind === "choice") return answers.length === reply.length && reply.every((value) => answers.includes(value));
    if (kind === "text") return answers.some((answer) => squeeze(answer) === squeeze(reply[0]));
    return lines(answers[0]) === lines(reply[0]);
  };

  const judge = (question) => {
    const verdict = question.querySelector(".quiz-verdict");
    const answer = question.querySelector(".quiz-answer");
    const reply = given(question);
    if (!reply.length) {
      verdict.textContent = "Answer first, then check.";
      return;
    }
    const right = isRight(question.dataset.kind, JSON.parse(question.dataset.answers), reply);
    question.dataset.state = right ? "right" : "wrong";
    verdict.textContent = right ? "Right." : "Not yet. Try again, or open the answer.";
    answer.hidden = false;
    answer.open = right;
  };

  for (const question of document.querySelectorAll(".quiz-question")) {
    const button = question.querySelector(".quiz-check");
    question.querySelector(".quiz-answer").hidden = true;
    button.hidden = false;
    button.addEventListener("click", () => judge(question));
    question.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input[type=text]")) judge(question);
    });
  }
})();
