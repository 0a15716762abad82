// Makes the explorers of a page live. The page is complete without this script: at the
// first touch of a control it starts Python in a worker, one for the whole page, and
// from then on rewrites paths and texts with what Python answers. No formula is here.

const here = import.meta.url;
const IDLE = "At the defaults. Moving a control starts Python in your browser.";
const LIVE = "Live: computed by Python in this page.";
const BUSY = "Computing\u2026";
const PATIENCE = 200; // ms before old values are called old
const FAR = 9999;

let python = null; // a promise of ask(explorer, values)

function startPython(progress) {
  python ??= new Promise((resolve, reject) => {
    if (location.protocol === "file:") {
      throw new Error("a page opened as a file cannot start Python; run make serve");
    }
    const waiting = new Map();
    let tickets = 0;
    const worker = new Worker(new URL("explorer_worker.js", here), { type: "module" });
    const fail = (text) => {
      worker.terminate();
      python = null; // so that the next try starts afresh
      reject(new Error(text));
      for (const { wrong } of waiting.values()) wrong(new Error(text));
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
      else if (data.kind === "ready") resolve(ask);
      else if (data.kind === "failed") fail(data.text);
      else {
        const { done, wrong } = waiting.get(data.ticket);
        waiting.delete(data.ticket);
        if (data.kind === "answer") done(data);
        else wrong(new Error(data.text));
      }
    };
    // asked for anew each time: it names the version of the library
    fetch(new URL("live.json", here), { cache: "no-cache" })
      .then((reply) => {
        if (!reply.ok) throw new Error(`live.json: ${reply.status}`);
        return reply.json();
      })
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

function drawSeries(groups, xs, ys) {
  for (const group of groups) {
    const places = points(group.closest("svg"), xs, ys);
    for (const part of group.querySelectorAll("[data-live]")) {
      if (part.dataset.live === "markers") placeMarkers(part, places);
      else part.setAttribute("d", pathData(places, part.dataset.live === "fill"));
    }
  }
}

// --- a slider's positions: the same values as Slider and LogSlider in core.py

function valueAt(control, position) {
  const { kind, low, high, step, steps, whole, initial } = control;
  if (kind === "linear") return Number((low + position * step).toPrecision(10));
  if (position === positionOf(control, initial)) return initial;
  const exact = low * (high / low) ** (position / steps);
  let value = Number(exact.toPrecision(3));
  if (whole) {
    const near = Math.floor(exact + 0.5);
    value = Math.abs(exact - near) <= 1e-9 * exact ? near : Math.floor(value + 0.5);
  }
  return Math.min(Math.max(value, low), high);
}

function positionOf({ kind, low, high, step, steps }, value) {
  if (kind === "linear") return Math.round((value - low) / step);
  return Math.round((Math.log(value / low) / Math.log(high / low)) * steps);
}

// What the box shows until Python has answered: 1e22, 0.4, 8192.
function plain(value) {
  const size = Math.abs(value);
  const short = size >= 1e12 || (size > 0 && size < 1e-4);
  return short ? value.toExponential().replace("e+", "e") : String(value);
}

// --- one explorer

class Live {
  constructor(root) {
    this.root = root;
    this.name = root.dataset.explorer;
    this.status = root.querySelector(".cl-status");
    this.readout = root.querySelector(".cl-readout");
    this.button = root.querySelector(".cl-reset");
    this.fields = root.querySelector(".cl-controls");
    this.groups = new Map();
    this.controls = new Map();
    this.answered = 0;
    this.busy = false;
    this.stale = false;
    for (const group of root.querySelectorAll("[data-series]")) {
      const name = group.dataset.series;
      this.groups.set(name, [...(this.groups.get(name) ?? []), group]);
    }
    for (const box of root.querySelectorAll(".cl-control")) this.adopt(box);
    this.button.addEventListener("click", () => this.press());
    this.restore(); // a reloaded page may hold the positions of the last visit
    this.fields.disabled = false;
    this.say(IDLE, "idle");
  }

  adopt(box) {
    const find = (selector) => box.querySelector(selector);
    const numbers = ["low", "high", "step", "steps"].map((k) => [k, Number(box.dataset[k])]);
    const initial = JSON.parse(box.dataset.value);
    const control = {
      name: box.dataset.control,
      kind: box.dataset.kind,
      ...Object.fromEntries(numbers),
      whole: "whole" in box.dataset,
      initial,
      good: initial, // the last value that Python took
      raw: initial, // what is asked next: a value, or typed text
      unit: find(".cl-unit")?.textContent ?? "",
      range: find("input[type=range]"),
      typed: find("input[type=text]"),
      select: find("select"),
      check: find("input[type=checkbox]"),
      sheet: find("textarea"),
      file: find("input[type=file]"),
      error: find(".cl-error"),
    };
    this.controls.set(control.name, control);
    const move = (raw) => {
      control.raw = raw;
      this.complain(control, "");
      this.move();
    };
    for (const touch of ["pointerdown", "keydown"]) {
      box.addEventListener(touch, () => this.wake(), { once: true });
    }
    control.range?.addEventListener("input", () => {
      const value = valueAt(control, Number(control.range.value));
      this.write(control, plain(value));
      move(value);
    });
    control.typed?.addEventListener("change", () => move(control.typed.value));
    control.select?.addEventListener("change", () => move(control.select.value));
    control.check?.addEventListener("change", () => move(control.check.checked));
    control.sheet?.addEventListener("change", () => move(control.sheet.value));
    control.file?.addEventListener("change", async () => {
      const [file] = control.file.files;
      if (!file) return;
      control.sheet.value = await file.text();
      move(control.sheet.value);
    });
  }

  say(text, state) {
    if (this.status.textContent !== text) this.status.textContent = text;
    this.root.dataset.state = state;
  }

  write(control, text) {
    control.typed.value = text;
    control.range?.setAttribute("aria-valuetext", `${text} ${control.unit}`.trim());
  }

  complain(control, message) {
    if (!control.error) return;
    control.error.textContent = message;
    control.error.hidden = message === "";
    (control.typed ?? control.sheet).setAttribute("aria-invalid", String(message !== ""));
  }

  async wake() {
    if (this.root.dataset.state === "idle") this.say("Loading Python", "loading");
    try {
      const ask = await startPython((text) => {
        for (const live of all) {
          if (live.root.dataset.state === "loading") live.say(text, "loading");
        }
      });
      if (this.root.dataset.state === "loading") this.say(LIVE, "live");
      return ask;
    } catch (error) {
      this.fail(error.message);
      return null;
    }
  }

  fail(reason) {
    const held = this.fields.contains(document.activeElement);
    this.say(
      `Not live: Python could not be loaded (${reason}). ` +
        "The controls are off; figure and values stay as they are.",
      "failed",
    );
    this.restore(true);
    this.fields.disabled = true;
    this.button.textContent = "Try again";
    this.button.hidden = false;
    if (held) this.button.focus();
  }

  // The newest values win: while Python works, moves only mark the state as stale.
  async move() {
    this.stale = true;
    if (this.busy) return;
    this.busy = true;
    const ask = await this.wake();
    while (ask && this.stale) {
      this.stale = false;
      const values = Object.fromEntries(
        [...this.controls.values()].map(({ name, raw }) => [name, raw]),
      );
      const late = setTimeout(() => this.say(BUSY, "busy"), PATIENCE);
      try {
        this.show(await ask(this.name, values));
        this.say(LIVE, "live");
      } catch (error) {
        this.say(`This move failed: ${error.message}`, "wrong");
      } finally {
        clearTimeout(late);
      }
    }
    this.busy = false;
    this.stale = false;
    if (!ask) return;
    this.button.textContent = "Reset";
    this.button.hidden = false;
    this.answered += 1; // answers that the page came to rest with
    this.root.dataset.answered = this.answered;
  }

  show({ head, numbers }) {
    const { "": together, ...errors } = head.errors;
    if (together) throw new Error(together);
    for (const [name, message] of Object.entries(errors)) {
      const control = this.controls.get(name);
      control.raw = control.good;
      this.complain(control, message);
      this.stale = true; // the other controls may have moved: ask with good values
    }
    if (this.stale && Object.keys(errors).length) return;
    let at = 0;
    const take = (length) => numbers.subarray(at, (at += length));
    for (const [name, length] of head.series) {
      drawSeries(this.groups.get(name) ?? [], take(length), take(length));
    }
    this.read(head.readings);
    this.settle(head);
  }

  // Rows that keep their label keep their element: little to announce, little to lay out.
  read(readings) {
    const rows = [...this.readout.children];
    readings.forEach(([label, text], i) => {
      const row = rows[i] ?? this.readout.appendChild(this.readout.firstElementChild.cloneNode(true));
      const [dt, dd] = row.children;
      if (dt.textContent !== label) dt.textContent = label;
      if (dd.textContent !== text) dd.textContent = text;
    });
    for (const row of rows.slice(readings.length)) row.remove();
  }

  // Show what Python understood, unless the reader has moved on.
  settle({ values, shown }) {
    for (const control of this.controls.values()) {
      const { name, typed, range } = control;
      control.good = values[name];
      if (this.stale) continue;
      if (!typed) continue;
      const entered = typeof control.raw === "string";
      if (entered && range) range.value = positionOf(control, values[name]);
      control.raw = values[name];
      const typing = document.activeElement === typed && !entered;
      if (control.error.hidden && !typing) this.write(control, shown[name]);
    }
  }

  // Put the controls to their defaults or, with `good`, to the last values that count.
  restore(good = false) {
    for (const control of this.controls.values()) {
      const { range, typed, select, check, sheet, file } = control;
      const value = good ? control.good : control.initial;
      control.raw = value;
      if (range) range.value = positionOf(control, value);
      if (typed) this.write(control, value === control.initial ? typed.defaultValue : plain(value));
      if (select) select.value = value;
      if (check) check.checked = value;
      if (sheet) sheet.value = value;
      if (file) file.value = "";
      this.complain(control, "");
    }
  }

  press() {
    if (this.root.dataset.state === "failed") {
      this.fields.disabled = false;
      this.button.hidden = true;
      this.say(IDLE, "idle");
    } else {
      this.restore();
    }
    this.move();
  }
}

const all = Array.from(document.querySelectorAll(".cl-explorer"), (root) => new Live(root));
