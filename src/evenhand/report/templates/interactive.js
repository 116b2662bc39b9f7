"use strict";
/* The model of the page: its tokenizer, its network, and what `evenhand ask` says of a sentence. */
const interactive = (() => {
  const byId = (id) => document.getElementById(id);
  const facts = JSON.parse(byId("try-facts").textContent);
  const pause = () => new Promise((done) => setTimeout(done));

  /* ---- the tokenizer of BERT: clean, split at spaces, punctuation and Chinese characters, then pieces */
  const ids = new Map(facts.vocabulary.map((token, id) => [token, id]));
  const REMOVED = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u, SPACE = /\p{White_Space}/u, MARK = /\p{Mn}/gu;
  const ALONE = /[!-/:-@[-`{-~\p{P}]/u;
  const CHINESE = [[0x4e00, 0x9fff], [0x3400, 0x4dbf], [0x20000, 0x2a6df], [0x2a700, 0x2b73f], [0x2b740, 0x2b81f],
    [0x2b920, 0x2ceaf], [0xf900, 0xfaff], [0x2f800, 0x2fa1f]];
  function clean(text) {
    let cleaned = "";
    for (const character of text) {
      const code = character.codePointAt(0);
      if ("\t\n\r".includes(character) || (SPACE.test(character) && !REMOVED.test(character))) cleaned += " ";
      else if (REMOVED.test(character)) continue;
      else if (CHINESE.some(([first, last]) => first <= code && code <= last)) cleaned += ` ${character} `;
      else cleaned += character;
    }
    if (facts.strip) cleaned = cleaned.normalize("NFD").replace(MARK, "");
    return facts.lower ? Array.from(cleaned, (character) => character.toLowerCase()).join("") : cleaned;
  }
  function split(cleaned) {
    const words = [];
    let word = "";
    const end = () => { if (word) words.push(word); word = ""; };
    for (const character of cleaned) {
      if (SPACE.test(character)) end();
      else if (ALONE.test(character)) { end(); words.push(character); }
      else word += character;
    }
    end();
    return words;
  }
  function pieces(word) {
    const characters = Array.from(word), found = [];
    if (characters.length > 100) return [facts.special.unk];
    for (let start = 0; start < characters.length;) {
      let end = characters.length, id;
      for (; end > start; end -= 1) {
        id = ids.get((start ? "##" : "") + characters.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (end === start) return [facts.special.unk];
      found.push(id);
      start = end;
    }
    return found;
  }
  const escaped = Object.keys(facts.added).map((token) => token.replace(/[^\w]/g, "\\$&"));
  const ADDED = new RegExp(`(${escaped.join("|")})`);
  function tokenize(text) {
    return text.split(ADDED).flatMap((part) => (Object.hasOwn(facts.added, part)
      ? [facts.added[part]] : split(clean(part)).flatMap(pieces)));
  }

  /* ---- the weights: whole numbers of some bits, with a scale for each row */
  const weights = new Map();
  let loading = null;
  const digits = new Uint8Array(128);
  Array.from({ length: 94 }, (_, i) => 33 + i).filter((code) => !"\"'<".includes(String.fromCharCode(code)))
    .forEach((code, i) => { digits[code] = i; });
  /** The bytes of a text: two of its 91 characters have 13 bits, the highest first. */
  function read(text) {
    const content = new Uint8Array((text.length * 13) / 16);
    for (let i = 0, at = 0, held = 0, bits = 0; i < text.length; i += 2) {
      held = (held << 13) | (91 * digits[text.charCodeAt(i)] + digits[text.charCodeAt(i + 1)]);
      for (bits += 13; bits >= 8; at += 1) {
        bits -= 8;
        content[at] = held >> bits;
      }
      held &= (1 << bits) - 1;
    }
    return content;
  }
  function unpack(content, { rows, columns, bits }) {
    const view = new DataView(content.buffer), size = rows * columns;
    const high = bits - 8, low = 4 * rows, rest = low + size, keep = 2 ** high - 1, middle = 2 ** (bits - 1);
    const matrix = new Float32Array(size);
    for (let row = 0, i = 0; row < rows; row += 1) {
      const scale = view.getFloat32(4 * row, true);
      for (let column = 0; column < columns; column += 1, i += 1) {
        const more = high ? (content[rest + ((i * high) >> 3)] >> ((i * high) & 7)) & keep : 0;
        matrix[i] = (content[low + i] + 256 * more - middle) * scale;
      }
    }
    return matrix;
  }
  async function decode(progress) {
    const text = byId("try-weights").textContent;
    let at = 0;
    for (const tensor of facts.tensors) {
      const { rows, columns, bits } = tensor, size = rows * columns;
      const length = 16 * Math.ceil((4 * rows + size + Math.ceil((size * (bits - 8)) / 8)) / 13);
      weights.set(tensor.name, unpack(read(text.slice(at, at + length)), tensor));
      at += length;
      progress(at / text.length);
      await pause();
    }
    byId("try-weights").remove();
  }
  /** Decode the weights, once; `progress` gets the share that is done. */
  function load(progress = () => {}) {
    loading ??= decode(progress);
    return loading;
  }

  /* ---- the network: rows of numbers, one after the other in one array */
  const { width, heads, epsilon } = facts;
  function linear(input, name) { // four rows at a time share each weight that is read
    const weight = weights.get(`${name}.weight`), bias = weights.get(`${name}.bias`);
    const outer = bias.length, inner = weight.length / outer, rows = input.length / inner;
    const output = new Float32Array(rows * outer);
    for (let row = 0; row < rows; row += 4) {
      const [a, b, c, d] = [0, 1, 2, 3].map((more) => Math.min(row + more, rows - 1));
      for (let i = 0; i < outer; i += 1) {
        let sumA = bias[i], sumB = sumA, sumC = sumA, sumD = sumA;
        for (let j = 0, w = i * inner; j < inner; j += 1, w += 1) {
          const own = weight[w];
          sumA += own * input[a * inner + j];
          sumB += own * input[b * inner + j];
          sumC += own * input[c * inner + j];
          sumD += own * input[d * inner + j];
        }
        output[a * outer + i] = sumA;
        output[b * outer + i] = sumB;
        output[c * outer + i] = sumC;
        output[d * outer + i] = sumD;
      }
    }
    return output;
  }
  function normalize(states, name) { // in place
    const weight = weights.get(`${name}.weight`), bias = weights.get(`${name}.bias`);
    for (let start = 0; start < states.length; start += width) {
      let mean = 0, variance = 0;
      for (let j = 0; j < width; j += 1) mean += states[start + j] / width;
      for (let j = 0; j < width; j += 1) variance += (states[start + j] - mean) ** 2 / width;
      const scale = 1 / Math.sqrt(variance + epsilon);
      for (let j = 0; j < width; j += 1) states[start + j] = (states[start + j] - mean) * scale * weight[j] + bias[j];
    }
    return states;
  }
  function add(states, others) {
    for (let i = 0; i < states.length; i += 1) states[i] += others[i];
    return states;
  }
  function erf(x) { // Abramowitz and Stegun (1964), 7.1.26: within 1.5e-7
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    return Math.sign(x) * (1 - sum * Math.exp(-x * x));
  }
  const gelu = (states) => states.map((x) => 0.5 * x * (1 + erf(x / Math.SQRT2)));
  /** One softmax over a span of numbers, in place. */
  function softmax(numbers) {
    let most = -Infinity, sum = 0;
    numbers.forEach((x) => { most = Math.max(most, x); });
    for (let i = 0; i < numbers.length; i += 1) sum += (numbers[i] = Math.exp(numbers[i] - most));
    for (let i = 0; i < numbers.length; i += 1) numbers[i] /= sum;
    return numbers;
  }
  function attend(queries, keys, values) {
    const depth = width / heads, tokens = keys.length / width, rows = queries.length / width;
    const output = new Float32Array(queries.length), shares = new Float64Array(tokens);
    for (let head = 0; head < heads; head += 1) {
      for (let row = 0; row < rows; row += 1) {
        const own = row * width + head * depth;
        for (let token = 0; token < tokens; token += 1) {
          const other = token * width + head * depth;
          let sum = 0;
          for (let j = 0; j < depth; j += 1) sum += queries[own + j] * keys[other + j];
          shares[token] = sum / Math.sqrt(depth);
        }
        softmax(shares);
        for (let token = 0; token < tokens; token += 1) {
          const other = token * width + head * depth;
          for (let j = 0; j < depth; j += 1) output[own + j] += shares[token] * values[other + j];
        }
      }
    }
    return output;
  }
  function embed(tokens) {
    const [words, positions, types] = ["word", "position", "token_type"]
      .map((table) => weights.get(`bert.embeddings.${table}_embeddings.weight`));
    const states = new Float32Array(tokens.length * width);
    tokens.forEach((token, row) => {
      for (let j = 0; j < width; j += 1) {
        states[row * width + j] = words[token * width + j] + positions[row * width + j] + types[j];
      }
    });
    return normalize(states, "bert.embeddings.LayerNorm");
  }
  /** The probability of every token at a position; the last layer and the head are computed there only. */
  async function predict(tokens, position) {
    let states = embed(tokens);
    for (let number = 0; number < facts.layers; number += 1) {
      const layer = `bert.encoder.layer.${number}`, last = number === facts.layers - 1;
      const asked = last ? states.slice(position * width, (position + 1) * width) : states;
      const mixed = attend(linear(asked, `${layer}.attention.self.query`),
        linear(states, `${layer}.attention.self.key`), linear(states, `${layer}.attention.self.value`));
      states = normalize(add(linear(mixed, `${layer}.attention.output.dense`), asked), `${layer}.attention.output.LayerNorm`);
      const inner = gelu(linear(states, `${layer}.intermediate.dense`));
      states = normalize(add(linear(inner, `${layer}.output.dense`), states), `${layer}.output.LayerNorm`);
      await pause();
    }
    const head = normalize(gelu(linear(states, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm");
    const words = weights.get("bert.embeddings.word_embeddings.weight"), bias = weights.get("cls.predictions.bias");
    return softmax(Float64Array.from(bias, (sum, token) => {
      for (let j = 0; j < width; j += 1) sum += words[token * width + j] * head[j];
      return sum;
    }));
  }

  /* ---- the question: which pronoun at the mask, or at each pronoun */
  const MASK = "[MASK]", MOST = 8;
  const names = Object.keys(facts.words).sort((a, b) => b.length - a.length);
  const PRONOUN = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${names.join("|")})(?![\\p{L}\\p{N}_])`, "giu");
  function positions(text) {
    const masks = text.split(MASK).length - 1;
    if (masks > 1) throw new Error(`Expected one ${MASK}, got ${masks}.`);
    if (masks) return [{ start: text.indexOf(MASK), shown: MASK }];
    const matches = Array.from(text.matchAll(PRONOUN), (match) => ({ start: match.index, shown: match[0] }));
    if (matches.length > MOST) throw new Error(`Expected at most ${MOST} pronouns, got ${matches.length}.`);
    return matches;
  }
  const glued = (character) => character !== undefined && !SPACE.test(character) && !ALONE.test(character);
  /** The probabilities of all pronouns between two texts, by word. */
  async function probabilities(before, after) {
    if (glued(Array.from(clean(before)).at(-1)) || glued(Array.from(clean(after))[0])) {
      throw new Error(`Expected spaces or punctuation around ${MASK}.`);
    }
    const left = [facts.special.cls, ...tokenize(before)];
    const tokens = [...left, facts.special.mask, ...tokenize(after), facts.special.sep];
    if (tokens.length > facts.longest) {
      throw new Error(`Expected at most ${facts.longest} tokens, which is what the model takes, got ${tokens.length}.`);
    }
    await load();
    const all = await predict(tokens, left.length), first = before.trim() ? 0 : 1;
    return Object.fromEntries(Object.entries(facts.words).map(([word, pair]) => [word, all[pair[first]]]));
  }
  /** The text before and after a pronoun in several wordings: as it is, then with each opening. */
  function wordings(before, after) {
    const [word] = before.match(/^\p{L}+/u) ?? [""], rest = word.slice(1);
    const lower = rest === rest.toLowerCase() && facts.ordinary.includes(word.toLowerCase());
    const inner = lower ? before[0].toLowerCase() + before.slice(1) : before;
    return [[before, after], ...facts.frames.map(([start, end]) => [start + inner, after + end])];
  }
  /** The outcome by the rule of `evenhand.judging.lean`, whose limits are computed in Python. */
  function judge(ratios, share) {
    if (share < facts.least) return "not measured";
    const low = Math.min(...ratios), high = Math.max(...ratios), [least, most] = facts.limits;
    if (least <= low && high <= most) return "none found";
    return high < least || low > most ? "found" : "undecided";
  }
  /** What the model expects at each pronoun or mask of a text, as `evenhand.ask` says it. */
  async function ask(text) {
    const answers = [];
    for (const { start, shown } of positions(text)) {
      const end = start + shown.length, tables = [];
      for (const parts of wordings(text.slice(0, start), text.slice(end))) tables.push(await probabilities(...parts));
      const [p] = tables, slots = facts.forms, sums = slots.map((words) => words.reduce((sum, word) => sum + p[word], 0));
      const share = Math.max(...sums), forms = slots[sums.indexOf(share)];
      const words = forms.map((word) => ({ word, probability: p[word] }));
      const ratios = tables.map((table) => Math.log(table[forms[0]] / table[forms[1]]));
      if (!ratios.every(Number.isFinite)) throw new Error(`Expected a finite ratio of ${forms[0]} and ${forms[1]}.`);
      const bias = 1 / (1 + Math.exp(-ratios[0]));
      answers.push({
        start, end, shown, words, bias, ratio: Math.exp(ratios[0]), wordings: ratios.map((ratio) => ({ ratio: Math.exp(ratio) })),
        low: Math.exp(Math.min(...ratios)), high: Math.exp(Math.max(...ratios)),
        neutral_low: Math.exp(facts.limits[0]), neutral_high: Math.exp(facts.limits[1]), neutral: facts.neutral,
        outcome: judge(ratios, share), more_male: facts.biases.filter((other) => other < bias).length, sentences: facts.biases.length,
      });
    }
    return answers;
  }
  const percent = (p) => (p > 0 && p < 0.01 ? "< 1 %" : `${(100 * p).toFixed(0)} %`);
  function times(ratio) {
    if (ratio < 0.01) return "< 0.01";
    return ratio < 0.995 ? ratio.toFixed(2) : ratio < 99.95 ? ratio.toFixed(1) : Math.round(ratio).toLocaleString("en");
  }
  /** What `evenhand ask` prints below the probabilities: one or two lines. */
  function describe(answer) {
    const { words, ratio, neutral, outcome } = answer, male = ratio >= 1;
    if (outcome === "not measured") {
      return [`No lean: ${words.map((row) => row.word).join(", ")} together have less than ${100 * facts.least} % of the probability.`];
    }
    const turn = (low, high) => (male ? [low, high] : [1 / high, 1 / low]).map(times).join(" to ");
    const [first, second] = male ? words : [words[1], words[0]];
    const within = turn(answer.neutral_low, answer.neutral_high);
    return [
      `${first.word} is ${times(male ? ratio : 1 / ratio)} times as likely as ${second.word} (${turn(answer.low, answer.high)} over `
        + `${answer.wordings.length} wordings).`,
      {
        found: `Leans to ${male ? "a man" : "a woman"}: ${neutral} neutral sentences stay within ${within}.`,
        "none found": `No lean: ${neutral} neutral sentences give ${within}.`,
        undecided: `Undecided: the range crosses a limit of ${neutral} neutral sentences, ${within}.`,
      }[outcome],
    ];
  }

  /* ---- the tab */
  function make(tag, given = {}, ...children) {
    const element = Object.assign(document.createElement(tag), given);
    element.append(...children);
    return element;
  }
  function draw(tag, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    element.textContent = text;
    return element;
  }
  function bars(words) {
    const most = Math.max(...words.map((row) => row.probability), 0.01);
    return make("dl", { className: "bars" }, ...words.map(({ word, probability }, i) => {
      const bar = make("span", { className: ["man", "woman", "anyone"][i] });
      bar.style.width = `${(100 * probability) / most}%`;
      const line = make("span", { className: "line" }, bar);
      line.setAttribute("aria-hidden", "true");
      return make("div", {}, make("dt", {}, word), make("dd", {}, line, percent(probability)));
    }));
  }
  function strip(bias) { // a histogram of the built-in sentences, with this one as a line
    const wide = 300, left = 6, base = 62, step = (wide - 2 * left) / 25, counts = new Array(25).fill(0);
    facts.biases.forEach((value) => { counts[Math.min(24, Math.floor(25 * value))] += 1; });
    const svg = draw("svg", { viewBox: `0 0 ${wide} 86`, class: "strip", role: "img",
      "aria-label": `Bias in ${facts.biases.length} built-in sentences, from 0, always a woman, to 1, always a man. This sentence: ${bias.toFixed(2)}.` });
    counts.forEach((count, i) => {
      const high = (46 * count) / Math.max(...counts);
      svg.append(draw("rect", { class: "usual", x: left + i * step + 0.5, y: base - high, width: step - 1, height: high }));
    });
    const here = left + bias * (wide - 2 * left);
    svg.append(draw("line", { class: "axis", x1: left, x2: wide - left, y1: base, y2: base }),
      draw("line", { class: "here", x1: here, x2: here, y1: 6, y2: base + 4 }),
      draw("text", { x: left, y: base + 18, "text-anchor": "start" }, "0: a woman"),
      draw("text", { x: wide / 2, y: base + 18, "text-anchor": "middle" }, "built-in sentences"),
      draw("text", { x: wide - left, y: base + 18, "text-anchor": "end" }, "1: a man"));
    return svg;
  }
  function card(text, answer) {
    const { start, end, shown, words, bias } = answer;
    return make("section", { className: "answer" },
      make("h3", {}, text.slice(0, start), make("mark", {}, shown), text.slice(end)),
      make("div", { className: "sides" },
        make("div", {}, bars(words), ...describe(answer).map((line) => make("p", {}, line))),
        make("div", {}, strip(bias), make("p", { className: "note" },
          `Bias ${bias.toFixed(2)}: the share of ${words[0].word} among ${words[0].word} and ${words[1].word}.`))));
  }
  const input = byId("try-text"), status = byId("try-status"), shown = byId("try-answers"), bar = byId("try-progress");
  let waiting = 0, latest = 0;
  async function answer() {
    const text = input.value, number = (latest += 1);
    shown.setAttribute("aria-busy", "true");
    try {
      if (bar.value < 1) {
        bar.parentNode.hidden = false;
        await load((share) => { bar.value = share; });
        bar.value = 1;
        bar.parentNode.hidden = true;
      }
      const answers = text.trim() ? await ask(text) : [];
      if (number !== latest) return; // another text was typed meanwhile
      shown.replaceChildren(...answers.map((one) => card(text, one)));
      const said = (one) => `${one.shown}: ${one.words.map((row) => `${row.word} ${percent(row.probability)}`).join(", ")}. ${describe(one).join(" ")}`;
      say(answers.length ? answers.map(said).join(" ") : !text.trim() ? "Write a sentence."
        : "No pronoun yet: write he, she, they, his, her …, or [MASK] in its place.", !answers.length);
    } catch (error) {
      if (number !== latest) return;
      shown.replaceChildren();
      say(error.message, true);
    }
    shown.removeAttribute("aria-busy");
  }
  /** Say it to a screen reader; what no card shows is seen too. */
  function say(text, seen) {
    status.textContent = text;
    status.classList.toggle("unseen", !seen);
  }
  function later(delay) {
    clearTimeout(waiting);
    waiting = setTimeout(answer, delay);
  }
  byId("try-form").hidden = false;
  byId("try-form").addEventListener("submit", (event) => { event.preventDefault(); later(0); });
  input.addEventListener("input", () => later(250));
  document.querySelectorAll("#try-form .examples button").forEach((button) => button.addEventListener("click", () => {
    input.value = button.textContent;
    later(0);
  }));
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    later(0);
  }).observe(byId("try"));
  return { ask, describe, judge, load, probabilities, tokenize };
})();
