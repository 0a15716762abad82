// Python in a worker: Pyodide, numpy and the library, one answer per message.
// It holds no formula: chinchilla_lab.explorers.page.pack gives every number and text.

let pack = null;

// Pyodide waits for ever where its WebAssembly cannot be had: settle only in that case.
async function missing(url) {
  const reply = await fetch(url, { method: "HEAD" });
  if (!reply.ok) throw new Error(`${url} answered ${reply.status}`);
  return new Promise(() => {});
}

async function start({ pyodide: index, library }) {
  const step = (text) => postMessage({ kind: "progress", text });
  step("Loading Python (1 of 3), about 9 MB on the first visit");
  const archive = fetch(library); // comes in while Python starts
  archive.catch(() => {}); // awaited below; a failure before that is not "unhandled"
  const { loadPyodide } = await import(index + "pyodide.mjs");
  const starting = loadPyodide({ indexURL: index });
  const pyodide = await Promise.race([starting, missing(index + "pyodide.asm.wasm")]);
  // not as an option above: where the wheel is missing, that waits for ever now and then
  step("Loading numpy (2 of 3)");
  await pyodide.loadPackage(["numpy"], { messageCallback: () => {} });
  if (!pyodide.loadedPackages.numpy) throw new Error(`no numpy at ${index}`);
  step("Loading the library (3 of 3)");
  const reply = await archive;
  if (!reply.ok) throw new Error(`${library} answered ${reply.status}`);
  pyodide.unpackArchive(await reply.arrayBuffer(), "zip", { extractDir: "/library" });
  pyodide.runPython("import sys; sys.path.insert(0, '/library')");
  pack = pyodide.pyimport("chinchilla_lab.explorers.page").pack;
  postMessage({ kind: "ready" });
}

function answer({ ticket, explorer, values }) {
  const found = pack(explorer, JSON.stringify(values));
  const [json, array] = [found.get(0), found.get(1)];
  const view = array.getBuffer("f64");
  const numbers = view.data.slice();
  view.release();
  array.destroy();
  found.destroy();
  const head = JSON.parse(json);
  postMessage({ kind: "answer", ticket, head, numbers }, [numbers.buffer]);
}

onmessage = async ({ data }) => {
  try {
    if (data.kind === "start") await start(data);
    else answer(data);
  } catch (error) {
    const kind = data.kind === "start" ? "failed" : "wrong";
    // of a Python traceback the last line says what happened
    const text = String(error.message ?? error).trim().split("\n").pop();
    postMessage({ kind, ticket: data.ticket, text });
  }
};
