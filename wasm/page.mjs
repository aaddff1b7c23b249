// The page: loads the embedded model, then continues what the visitor typed.
// `?tokens=N` sets how many tokens to write.
const [status, form, output] = ['#status', 'form', 'output'].map((part) => document.querySelector(part));
const maxTokens = Number(new URLSearchParams(location.search).get('tokens') ?? 64);

function say(words, state = 'busy') {
  status.textContent = words;
  document.body.dataset.state = state;
}

/** Lets the browser draw before the next long piece of work. */
const drawn = () => new Promise((done) => setTimeout(done));

async function load() {
  if (!navigator.gpu) throw new Error('This browser has no WebGPU, which Samara computes with. Recent Chrome, Edge, Safari and Firefox have it.');
  const { default: start, Model } = await import('./pkg/samara_wasm.js');
  const module = await fetch(new URL('pkg/samara_wasm_bg.wasm', import.meta.url));
  if (!module.ok) throw new Error(`The program could not be fetched: ${module.status}`);
  await start({ module_or_path: await module.arrayBuffer() });
  say('Loading the model…');
  await drawn();
  return Model.load();
}

async function write(model, prompt) {
  say('Writing…');
  output.textContent = prompt;
  output.dataset.ids = await model.generate(prompt, maxTokens, (piece) => output.append(piece));
  say(`Ready, on ${model.device}.`, 'ready');
}

function fail(error) {
  say(error.message ?? String(error), 'failed');
}

// A panic leaves its promise open for ever; it arrives here.
addEventListener('error', ({ error, message }) => fail(error ?? message));
addEventListener('unhandledrejection', ({ reason }) => fail(reason));

try {
  const model = await load();
  say(`Ready, on ${model.device}.`, 'ready');
  form.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (document.body.dataset.state !== 'busy') write(model, form.prompt.value).catch(fail);
  });
} catch (error) {
  fail(error);
}
