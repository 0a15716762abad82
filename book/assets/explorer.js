// Makes the explorers of a page live. The page is complete without this script: it
// starts Python at the first touch of a control, then rewrites paths and texts.

const here = import.meta.url;
const IDLE = "Values at the defaults. Moving a control starts Python in your browser.";
const LIVE = "Live: computed by Python in this page.";
const FAR = 9999;

let python = null; // a promise of { ask }, shared by the whole page

function startPython(progress) {
  python ??= new Promise((resolve, reject) => {
    if (location.protocol === "file:") {
      reject(new Error("pages opened as files cannot start Python; run `make serve`"));
      return;
    }
    const waiting = new Map();
    let tickets = 0;
    const worker = new Worker(new URL("explorer_worker.js", here), { type: "module" });
    const fail = (text) => {
      worker.terminate();
      python = null; // so that Retry starts afresh
      reject(new Error(text));
    };
    const ask = (explorer, values) =>
      new Promise((done, wrong) => {
        tickets += 1;
        waiting.set(tickets, { done, wrong });
        worker.postMessage({ kind: "ask", ticket: tickets, explorer, values });
      });
    worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message ?? "the worker could not start");
    };
    worker.onmessage = ({ data }) => {
      if (data.kind === "progress") progress(data.text);
      else if (data.kind === "ready") resolve({ ask });
      else if (data.kind === "failed") fail(data.text);
      else {
        const { done, wrong } = waiting.get(data.ticket);
        waiting.delete(data.ticket);
        if (data.kind === "answer") done(data);
        else wrong(new Error(data.text));
      }
    };
    fetch(new URL("live.json", here))
      .then((reply) => reply.json())
      .then(({ pyodide, library }) =>
        worker.postMessage({
          kind: "start",
          pyodide: new URL(pyodide, here).href,
          library: new URL(library, here).href,
        }),
      )
      .catch((error) => fail(error.message));
  });
  return python;
}

// --- from data to SVG: the same arithmetic as chinchilla_lab/explorers/svg.py

function mapper([kind, low, high], start, end) {
  const turn = kind === "log" ? Math.log10 : (v) => v;
  const [from, to] = [turn(low), turn(high)];
  return (value) => {
    if (kind === "log" && !(value > 0)) return NaN;
    const at = start + ((turn(value) - from) / (to - from)) * (end - start);
    return Math.min(Math.max(at, -FAR), FAR);
  };
}

function points(svg, xs, ys) {
  svg.clAxes ??= JSON.parse(svg.dataset.axes);
  const { box, x, y } = svg.clAxes;
  const [toX, toY] = [mapper(x, box[0], box[2]), mapper(y, box[1], box[3])];
  return Array.from(xs, (value, i) => [toX(value), toY(ys[i])]);
}

function pathData(places, close) {
  let pen = "M";
  const pieces = [];
  for (const [x, y] of places) {
    if (Number.isNaN(x) || Number.isNaN(y)) {
      pen = "M";
      continue;
    }
    pieces.push(`${pen}${x.toFixed(1)} ${y.toFixed(1)}`);
    pen = "L";
  }
  return pieces.join(" ") + (close && pieces.length ? " Z" : "");
}

function placeMarkers(holder, places) {
  const uses = holder.querySelectorAll("use");
  for (let i = uses.length; i < places.length; i += 1) {
    holder.append(uses[0].cloneNode());
  }
  holder.querySelectorAll("use").forEach((use, i) => {
    const [x, y] = places[i] ?? [NaN, NaN];
    const shown = !Number.isNaN(x) && !Number.isNaN(y);
    use.setAttribute("x", shown ? x.toFixed(1) : "-99");
    use.setAttribute("y", shown ? y.toFixed(1) : "-99");
  });
}

function drawSeries(groups, name, xs, ys) {
  for (const group of groups.get(name) ?? []) {
    const places = points(group.closest("svg"), xs, ys);
    for (const part of group.querySelectorAll("[data-live]")) {
      if (part.dataset.live === "markers") placeMarkers(part, places);
      else part.setAttribute("d", pathData(places, part.dataset.live === "fill"));
    }
  }
}

// --- one explorer

class Live {
  constructor(root) {
    this.root = root;
    this.name = root.dataset.explorer;
    this.status = root.querySelector(".cl-status");
    this.readout = root.querySelector(".cl-readout");
    this.button = root.querySelector(".cl-reset");
    this.controls = new Map();
    this.groups = new Map();
    this.answered = 0;
    this.busy = false;
    this.stale = false;
    for (const group of root.querySelectorAll("[data-series]")) {
      const name = group.dataset.series;
      this.groups.set(name, [...(this.groups.get(name) ?? []), group]);
    }
    for (const box of root.querySelectorAll(".cl-control")) this.adopt(box);
    this.button.addEventListener("click", () => this.reset());
  }

  adopt(box) {
    const { control: name, kind } = box.dataset;
    const initial = JSON.parse(box.dataset.value);
    const find = (selector) => box.querySelector(selector);
    const control = {
      name,
      kind,
      initial,
      raw: initial,
      low: Number(box.dataset.low),
      high: Number(box.dataset.high),
      step: Number(box.dataset.step),
      steps: Number(box.dataset.steps),
      unit: find(".cl-unit")?.textContent ?? "",
      range: find("input[type=range]"),
      typed: find("input[type=text]"),
      select: find("select"),
      check: find("input[type=checkbox]"),
      error: find(".cl-error"),
    };
    this.controls.set(name, control);
    const move = (raw) => {
      control.raw = raw;
      box.dataset.value = JSON.stringify(raw);
      this.move();
    };
    box.addEventListener("pointerdown", () => this.wake(), { once: true });
    control.range?.addEventListener("input", () => {
      const value = this.valueAt(control, Number(control.range.value));
      control.typed.value = String(value).replace("e+", "e");
      control.range.setAttribute("aria-valuetext", `${control.typed.value} ${control.unit}`);
      move(value);
    });
    control.typed?.addEventListener("change", () => move(control.typed.value));
    control.select?.addEventListener("change", () => move(control.select.value));
    control.check?.addEventListener("change", () => move(control.check.checked));
  }

  valueAt({ kind, low, high, step, steps }, position) {
    if (kind === "log") {
      return Number((low * (high / low) ** (position / steps)).toPrecision(3));
    }
    return Number((low + position * step).toPrecision(10));
  }

  positionOf({ kind, low, high, step, steps }, value) {
    if (kind === "log") {
      return Math.round((Math.log(value / low) / Math.log(high / low)) * steps);
    }
    return Math.round((value - low) / step);
  }

  say(text, state) {
    this.status.textContent = text;
    this.root.dataset.state = state;
  }

  async wake() {
    if (this.root.dataset.state !== "live") this.say("Loading Python", "loading");
    try {
      const found = await startPython((text) => {
        for (const live of all) {
          if (live.root.dataset.state === "loading") live.say(text, "loading");
        }
      });
      if (this.root.dataset.state !== "live") this.say(LIVE, "live");
      return found;
    } catch (error) {
      this.say(
        `Not live: Python could not be loaded (${error.message}). ` +
          "The figure and the values show the defaults.",
        "failed",
      );
      this.restore();
      this.button.textContent = "Try again";
      this.button.hidden = false;
      return null;
    }
  }

  // The newest values win: while Python works, moves only mark the state as stale.
  async move() {
    this.stale = true;
    if (this.busy) return;
    this.busy = true;
    const kernel = await this.wake();
    while (kernel && this.stale) {
      this.stale = false;
      const values = Object.fromEntries(
        [...this.controls.values()].map(({ name, raw }) => [name, raw]),
      );
      try {
        this.show(await kernel.ask(this.name, values));
      } catch (error) {
        this.say(`This move failed: ${error.message}`, "wrong");
      }
    }
    this.busy = false;
  }

  show({ head, numbers }) {
    for (const control of this.controls.values()) {
      const message = head.errors[control.name] ?? "";
      if (control.error) {
        control.error.textContent = message;
        control.error.hidden = message === "";
        control.typed.setAttribute("aria-invalid", String(message !== ""));
      }
    }
    if (Object.keys(head.errors).length === 0) {
      let at = 0;
      const take = (length) => numbers.subarray(at, (at += length));
      for (const [name, length] of head.series) {
        drawSeries(this.groups, name, take(length), take(length));
      }
      this.read(head.readings);
      this.settle(head);
    }
    this.button.textContent = "Reset";
    this.button.hidden = false;
    this.answered += 1;
    this.root.dataset.answered = this.answered;
  }

  read(readings) {
    const rows = readings.map(([label, text]) => {
      const row = document.createElement("div");
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      dt.textContent = label;
      dd.textContent = text;
      row.append(dt, dd);
      return row;
    });
    this.readout.replaceChildren(...rows);
  }

  // Show what Python understood, unless the reader is still typing or has moved on.
  settle({ values, shown }) {
    if (this.stale) return;
    for (const control of this.controls.values()) {
      if (!control.typed) continue;
      const value = values[control.name];
      if (typeof control.raw === "string") {
        control.raw = value;
        control.range && (control.range.value = this.positionOf(control, value));
      }
      if (document.activeElement !== control.typed) {
        control.typed.value = shown[control.name];
      }
      control.range?.setAttribute("aria-valuetext", `${shown[control.name]} ${control.unit}`);
    }
  }

  restore() {
    for (const control of this.controls.values()) {
      control.raw = control.initial;
      if (control.range) control.range.value = this.positionOf(control, control.initial);
      if (control.typed) control.typed.value = control.typed.defaultValue;
      if (control.select) control.select.value = control.initial;
      if (control.check) control.check.checked = control.initial;
    }
  }

  reset() {
    const failed = this.root.dataset.state === "failed";
    this.restore();
    if (failed) this.say(IDLE, "idle");
    this.move();
  }
}

const all = Array.from(document.querySelectorAll(".cl-explorer"), (root) => new Live(root));
