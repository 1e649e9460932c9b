// The live view of the engine: what GET /state says, a few times a second, as numbers, a table, a page map and a tree.

const PERIOD = 250; // milliseconds between two looks
const CELL = 7; // pixels of a page, the gap included
const MOST_ROWS = 100; // requests and tree nodes on the page at once

const color = (uid) => `hsl(${(uid * 137.5) % 360} 62% 52%)`;

function make(tag, text = "", name = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = name;
  return element;
}

function swatch(paint) {
  const element = make("span", "", "swatch");
  element.style.background = paint;
  return element;
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const percent = (part, all) => `${((100 * part) / Math.max(all, 1)).toFixed(0)} %`;

// Every node below `node`, with its depth.
function* walk(node, depth = 0) {
  for (const child of node.children) {
    yield child;
    yield* walk(child, depth + 1);
  }
}

export class EngineView {
  constructor(by) {
    this.by = by;
    this.state = null;
    this.paused = false;
    by("pause").addEventListener("click", () => {
      this.paused = !this.paused;
      by("pause").setAttribute("aria-pressed", this.paused);
      by("pause").textContent = this.paused ? "Go on" : "Pause view";
    });
    addEventListener("resize", () => this.draw());
  }

  // Look again and again, for as long as somebody looks at the page.
  async follow() {
    for (;;) {
      if (!this.paused && document.visibilityState === "visible") await this.look();
      await new Promise((wake) => setTimeout(wake, PERIOD));
    }
  }

  async look() {
    const notice = this.by("notice");
    try {
      const response = await fetch("/state");
      if (!response.ok) throw new Error(`the engine does not answer (status ${response.status})`);
      this.state = await response.json();
      notice.hidden = true;
    } catch (error) {
      notice.textContent = `No view of the engine: ${error.message}`;
      notice.hidden = false;
      return;
    }
    this.draw();
  }

  draw() {
    if (!this.state) return;
    const { model, options } = this.state;
    this.by("model").textContent = model;
    this.by("parts").textContent = Object.values(options).join(", ");
    this.numbers();
    this.requests();
    this.map();
    this.tree();
  }

  numbers() {
    const { stats, draining } = this.state;
    const shown = {
      Running: stats.running,
      Waiting: stats.waiting,
      "Pages used": `${stats.used_pages} of ${stats.pages}`,
      "Prefix hits": percent(stats.hit_tokens, stats.asked_tokens),
      ...(draining ? { State: "draining" } : {}),
    };
    const terms = Object.entries(shown).flatMap(([name, value]) => {
      const pair = make("div");
      pair.append(make("dt", name), make("dd", value));
      return [pair];
    });
    this.by("stats").replaceChildren(...terms);
  }

  requests() {
    const { running, waiting, pages } = this.state;
    const rows = [...running.map((r) => [r, "running"]), ...waiting.map((r) => [r, "waiting"])];
    const lines = rows.slice(0, MOST_ROWS).map(([r, kind]) => {
      const line = make("tr");
      const name = make("td");
      name.append(swatch(color(r.uid)), String(r.uid));
      const state = kind === "waiting" && r.row !== null ? "prefill" : kind;
      const computed = Math.min(r.cached_len, r.prompt_len);
      const answer = `${r.device_len - r.prompt_len} of ${r.max_device_len - r.prompt_len}`;
      line.append(name, make("td", state), make("td", `${computed} of ${r.prompt_len}`), make("td", answer));
      line.append(make("td", pages?.[r.uid]?.length ?? ""));
      return line;
    });
    if (!lines.length) {
      const line = make("tr");
      const cell = make("td", "nobody asks for anything", "quiet");
      cell.colSpan = 5;
      line.append(cell);
      lines.push(line);
    }
    if (rows.length > MOST_ROWS) lines.push(make("tr", `and ${rows.length - MOST_ROWS} more`));
    this.by("requests").tBodies[0].replaceChildren(...lines);
  }

  // Each page as a square: in the colour of its request, grey where only the prefix tree has it.
  map() {
    const { pages, tree, stats } = this.state;
    const canvas = this.by("map");
    canvas.hidden = !pages;
    const owners = new Map();
    for (const node of tree ? walk(tree) : []) for (const page of node.pages) owners.set(page, []);
    for (const [uid, held] of Object.entries(pages ?? {})) {
      for (const page of held) owners.set(page, [...(owners.get(page) ?? []), +uid]);
    }
    const cached = [...owners.values()].filter((uids) => !uids.length).length;
    const shared = [...owners.values()].filter((uids) => uids.length > 1).length;
    this.by("map-text").textContent = pages
      ? `Of ${counted(stats.pages, "page")}, ${owners.size - cached} belong to requests, ${shared} of them to several; ` +
        `${cached} are only in the prefix tree, ${stats.pages - owners.size} are free.`
      : "This memory has rows and no pages: each request owns its longest length.";
    if (pages) this.paint(canvas, owners, stats.pages);
    const legend = [["free", "var(--free)"], ["only in the tree", "var(--cached)"]].map(([name, paint]) => {
      const item = make("span");
      item.append(swatch(paint), name);
      return item;
    });
    this.by("legend").replaceChildren(...(pages ? [...legend, make("span", "ring: several requests")] : []));
  }

  paint(canvas, owners, count) {
    const columns = Math.max(Math.floor(canvas.parentElement.clientWidth / CELL) - 1, 1);
    const scale = devicePixelRatio;
    const [width, height] = [columns * CELL, Math.ceil(count / columns) * CELL];
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const brush = canvas.getContext("2d");
    brush.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const [free, cached, ink] = ["--free", "--cached", "--ink"].map((name) => style.getPropertyValue(name));
    for (let page = 0; page < count; page += 1) {
      const uids = owners.get(page);
      const [x, y] = [(page % columns) * CELL, Math.floor(page / columns) * CELL];
      brush.fillStyle = !uids ? free : uids.length ? color(uids[0]) : cached;
      brush.fillRect(x, y, CELL - 1, CELL - 1);
      if (uids?.length > 1) {
        brush.strokeStyle = ink;
        brush.strokeRect(x + 0.5, y + 0.5, CELL - 2, CELL - 2);
      }
    }
  }

  tree() {
    const { tree } = this.state;
    const place = this.by("tree");
    if (!tree) {
      this.by("tree-text").textContent = "This memory keeps no prefixes.";
      place.replaceChildren();
      return;
    }
    const nodes = [...walk(tree)];
    const count = nodes.reduce((sum, node) => sum + node.pages.length, 0);
    const locked = nodes.filter((node) => node.locked).length;
    this.by("tree-text").textContent =
      `${counted(nodes.length, "node")} with ${counted(count, "page")}; ${locked} locked by requests.`;
    this.left = MOST_ROWS;
    place.replaceChildren(this.branch(tree.children));
    if (this.left < 0) place.append(make("p", `and ${nodes.length - MOST_ROWS} more nodes`, "quiet"));
  }

  branch(children) {
    const list = make("ul");
    for (const child of children) {
      this.left -= 1;
      if (this.left < 0) break;
      const row = make("div", "", child.locked ? "node locked" : "node");
      const locks = child.locked ? `, ${counted(child.locked, "lock")}` : "";
      const text = child.text.replaceAll("\n", "\u21b5"); // a tree has one line for each node
      row.append(make("span", counted(child.pages.length, "page") + locks, "count"), make("code", text));
      const item = make("li");
      item.append(row);
      if (child.children.length) item.append(this.branch(child.children));
      list.append(item);
    }
    return list;
  }
}
