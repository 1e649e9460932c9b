// One conversation: its messages, and the answer that is on its way.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The JSON of each server-sent event in the body of a response.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

async function problem(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered with status ${response.status}`;
  }
}

// A browser opens six connections to one server. One must stay for the view of the engine, so other chats wait.
const waiting = [];
let free = 5;

async function connection(signal) {
  if (free > 0) {
    free -= 1;
    return;
  }
  await new Promise((resolve, reject) => {
    waiting.push(resolve);
    signal.addEventListener("abort", () => {
      const place = waiting.indexOf(resolve);
      if (place < 0) return;
      waiting.splice(place, 1);
      reject(signal.reason);
    });
  });
}

function release() {
  const next = waiting.shift();
  if (next) next();
  else free += 1;
}

export class Chat {
  // number: of its title. settings: function that gives those of now. closed: called when it has gone.
  constructor(number, settings, closed) {
    this.settings = settings;
    this.messages = [];
    this.answer = null; // stops the answer on its way
    this.log = make("div", { class: "log", role: "log", "aria-label": `Messages of chat ${number}`, tabindex: 0 });
    this.input = make("textarea", { "aria-label": `Message to chat ${number}`, placeholder: "Write a message" });
    this.send = make("button", { class: "go" }, "Send");
    this.stop = make("button", { type: "button" }, "Stop");
    const close = make("button", { type: "button", "aria-label": `Close chat ${number}` }, "×");
    const form = make("form", {}, this.input, this.send, this.stop);
    const top = make("div", { class: "top" }, make("h2", {}, `Chat ${number}`), close);
    this.element = make("section", { class: "chat", "aria-label": `Chat ${number}` }, top, this.log, form);
    close.addEventListener("click", () => this.close(closed));
    this.stop.addEventListener("click", () => this.answer?.abort());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    this.busy(null);
  }

  focus() {
    this.input.focus();
  }

  close(closed) {
    this.answer?.abort();
    this.element.remove();
    closed();
  }

  submit() {
    const text = this.input.value.trim();
    if (!text || this.answer) return;
    this.input.value = "";
    this.ask(text);
  }

  busy(answer) {
    this.answer = answer;
    this.send.hidden = answer !== null;
    this.stop.hidden = answer === null;
    this.log.setAttribute("aria-busy", answer !== null);
  }

  // A new message in the log; returns the element of its text.
  show(kind, text = "") {
    const who = { user: "You: ", assistant: "Model: ", error: "Error: " }[kind];
    const body = make("span", {}, text);
    this.log.append(make("p", { class: `message ${kind}` }, make("span", { class: "who" }, who), body));
    this.log.scrollTop = this.log.scrollHeight;
    return body;
  }

  async ask(text) {
    if (this.answer) return;
    this.busy(new AbortController());
    this.messages.push({ role: "user", content: text });
    this.show("user", text);
    const reply = { role: "assistant", content: "" };
    const place = this.show("assistant", free > 0 ? "" : "waits until another chat has its answer");
    try {
      await connection(this.answer.signal);
      place.textContent = "";
      await this.stream(reply, place).finally(release);
    } catch (error) {
      if (error.name === "AbortError") this.note(place, "stopped");
      else this.show("error", error.message);
    }
    if (reply.content) this.messages.push(reply);
    else this.messages.pop(); // nothing was said to this: the next message begins anew
    this.busy(null);
  }

  async stream(reply, place) {
    const { model, system, sampling } = this.settings();
    const before = system ? [{ role: "system", content: system }] : [];
    const options = { stream: true, stream_options: { include_usage: true } };
    const body = JSON.stringify({ model, messages: [...before, ...this.messages], ...sampling, ...options });
    const began = performance.now();
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("/v1/chat/completions", { method: "POST", headers, body, signal: this.answer.signal });
    if (!response.ok) throw new Error(await problem(response));
    let first = null;
    let reason = null;
    let usage = null;
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      usage = event.usage ?? usage;
      const choice = event.choices[0];
      reason = choice?.finish_reason ?? reason;
      if (!choice?.delta?.content) continue;
      first ??= performance.now();
      reply.content += choice.delta.content;
      place.textContent = reply.content;
      this.log.scrollTop = this.log.scrollHeight;
    }
    const rate = (usage.completion_tokens - 1) / Math.max((performance.now() - first) / 1000, 0.001);
    const speed = usage.completion_tokens > 1 && first ? `, ${rate.toFixed(0)} tokens/s` : "";
    const ended = reason === "length" ? ", cut at its limit" : "";
    this.note(place, `first token after ${((first ?? performance.now()) - began).toFixed(0)} ms${speed}${ended}`);
  }

  note(place, text) {
    place.after(make("span", { class: "quiet" }, text));
    this.log.scrollTop = this.log.scrollHeight;
  }
}
