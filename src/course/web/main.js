// The page: chats, the view of the engine, and light or dark.
import { Chat } from "./chat.js";
import { EngineView } from "./engine.js";

const by = (id) => document.getElementById(id);
const chats = new Set();
let number = 0;

function settings() {
  const value = (id) => by(id).value;
  return {
    model: by("model").textContent,
    system: value("system").trim(),
    sampling: { temperature: +value("temperature"), top_p: +value("top_p"), max_tokens: +value("max_tokens") },
  };
}

function open() {
  number += 1;
  const chat = new Chat(number, settings, () => chats.delete(chat));
  chats.add(chat);
  by("grid").append(chat.element);
  return chat;
}

by("new").addEventListener("click", () => open().focus());
by("everyone").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = by("question").value.trim() || by("question").placeholder;
  for (const chat of chats) chat.ask(text);
});

function dark(on) {
  document.documentElement.classList.toggle("dark", on);
  by("theme").textContent = on ? "Light" : "Dark";
}
const kept = localStorage.getItem("theme");
dark(kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
by("theme").addEventListener("click", () => {
  const on = !document.documentElement.classList.contains("dark");
  localStorage.setItem("theme", on ? "dark" : "light");
  dark(on);
  view.draw();
});

const view = new EngineView(by);
open();
open();
view.follow();
