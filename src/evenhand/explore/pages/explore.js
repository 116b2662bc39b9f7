"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

  /** An element with properties, attributes (names with a dash, role, class …) and children. */
  function el(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    Object.entries(given).forEach(([name, value]) => {
      if (value === undefined || value === null || value === false) return;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name in element && name !== "list" && !name.includes("-")) element[name] = value;
      else element.setAttribute(name, value);
    });
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
  }
  function svgEl(tag, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    element.append(...children);
    return element;
  }

  /* ---- numbers as text, with a true minus sign */
  const minus = (text) => text.replace("-", "−");
  function number(value, digits = 3, whole = true) {
    if (value === null || value === undefined) return "–";
    if (whole && Number.isInteger(value)) return minus(String(value));
    if (value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits) return minus(value.toExponential(1));
    return minus(value.toFixed(digits));
  }
  const range = (low, high, digits = 3) => `[${number(low, digits, false)},\u00a0${number(high, digits, false)}]`;
  const percent = (p) => (p > 0 && p < 0.01 ? "< 1 %" : `${(100 * p).toFixed(0)} %`);
  const short = (text, length = 60) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

  /* ---- what is remembered: the token and the theme, by this origin alone */
  const memory = new Map();
  const store = {
    get(name) { try { return localStorage.getItem(name); } catch { return memory.get(name) ?? null; } },
    set(name, value) { try { localStorage.setItem(name, value); } catch { memory.set(name, value); } },
  };
  const root = document.documentElement, theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    theme.setAttribute("aria-pressed", String(dark));
    return dark;
  }
  if (["light", "dark"].includes(store.get("evenhand-theme"))) root.dataset.theme = store.get("evenhand-theme");
  theme.addEventListener("click", () => {
    root.dataset.theme = paint() ? "light" : "dark";
    store.set("evenhand-theme", root.dataset.theme);
    paint();
  });
  system.addEventListener("change", paint);
  paint();

  /* ---- the view is in the fragment of the address; the token is taken out of it */
  let state = new URLSearchParams();
  function readAddress() {
    state = new URLSearchParams(location.hash.slice(1));
    const token = state.get("token");
    if (token) {
      store.set("evenhand-token", token);
      state.delete("token");
      writeAddress();
    }
  }
  function writeAddress() {
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname);
  }
  function remember(values) {
    Object.entries(values).forEach(([name, value]) => {
      if (value === "" || value === null || value === undefined) state.delete(name);
      else state.set(name, String(value));
    });
    writeAddress();
  }

  /* ---- requests: the last one of each view counts */
  const page = Math.random().toString(36).slice(2);
  const running = new Map(), waiting = new Map();
  const status = byId("status"), alert = byId("alert");
  /** Say it to a screen reader; a note is seen too, for a while. */
  function say(text, note = false) {
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("note", note);
    clearTimeout(waiting.get("note"));
    if (note) waiting.set("note", setTimeout(() => status.classList.remove("note"), 5000));
  }
  async function ask(name, body = {}, view = name) {
    running.get(view)?.abort();
    const control = new AbortController();
    running.set(view, control);
    for (let attempt = 0; ; attempt += 1) {
      const answer = await fetch(`/api/${name}`, {
        method: "POST",
        signal: control.signal,
        headers: {
          "Content-Type": "application/json",
          "X-Evenhand-Token": store.get("evenhand-token") ?? "",
          "X-Evenhand-View": `${page} ${view}`,
        },
        body: JSON.stringify(body),
      });
      if (answer.ok) return name.endsWith(".csv") ? answer.blob() : answer.json();
      const { error } = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
      if (answer.status === 503 && attempt < 5) {
        say("Busy: waiting for the model …", true);
        await new Promise((done) => setTimeout(done, 1000));
        if (!control.signal.aborted) continue;
      }
      const problem = new Error(error);
      problem.quiet = answer.status === 409 || control.signal.aborted;
      problem.lost = answer.status === 401;
      throw problem;
    }
  }
  /** Ask and show the answer in a box, or what is wrong. */
  async function show(box, name, body, draw, view = name) {
    box.classList.add("busy");
    box.setAttribute("aria-busy", "true");
    try {
      draw(await ask(name, body, view));
    } catch (error) {
      if (error.name === "AbortError" || error.quiet) return;
      box.classList.remove("busy");
      box.removeAttribute("aria-busy");
      fail(error, box);
      return;
    }
    box.classList.remove("busy");
    box.removeAttribute("aria-busy");
  }
  function fail(error, box) {
    if (error.lost || !box) {
      alert.textContent = error instanceof TypeError ? "The explorer does not answer: is it still running?" : error.message;
      alert.hidden = false;
    }
    if (box) box.replaceChildren(el("p", { className: "problem" }, error instanceof TypeError
      ? "The explorer does not answer: is it still running?" : error.message));
    say("");
  }
  function later(name, work, delay = 250) {
    clearTimeout(waiting.get(name));
    waiting.set(name, setTimeout(work, delay));
  }

  /* ---- tables, which can be wider than the page */
  function table(columns, rows, { caption = "", first = true } = {}) {
    const head = columns.map((column) => el("th", { scope: "col", className: column.number ? "number" : "" }, column.title));
    const body = rows.map((row) => el("tr", {}, row.map((cell, i) => {
      const content = cell instanceof Node ? cell : String(cell ?? "–");
      const className = columns[i].wrap ? "number wrap" : columns[i].number ? "number" : columns[i].long ? "text" : "";
      return first && i === 0 ? el("th", { scope: "row", className }, content) : el("td", { className }, content);
    })));
    return scroll(el("table", {}, caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)), caption);
  }
  const scrollers = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));
  function reach(box) {
    if (box.scrollWidth > box.clientWidth + 1) Object.assign(box, { tabIndex: 0 });
    else box.removeAttribute("tabindex");
  }
  function scroll(content, label) {
    const box = el("div", { className: "scroll", role: "region", "aria-label": label || "Table" }, content);
    scrollers.observe(box);
    return box;
  }

  /* ---- charts: what a mark is, by pointer and by keyboard */
  const tip = el("div", { id: "tip", hidden: true, role: "tooltip" });
  document.body.append(tip);
  let shown = null;
  function hideTip() {
    shown?.classList.remove("on");
    shown = null;
    tip.hidden = true;
  }
  function showTip(mark, x, y) {
    const words = (mark.getAttribute("aria-label") || mark.dataset.tip).split(" · ");
    hideTip();
    shown = mark;
    mark.classList.add("on");
    tip.replaceChildren(el("strong", {}, words[0]), ...words.slice(1).map((line) => el("span", {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), room = root.clientWidth;
    const left = Math.max(4, Math.min(x - box.width / 2, room - box.width - 4));
    const top = y - box.height - 14 < 4 ? y + 18 : y - box.height - 14;
    tip.style.transform = `translate(${left}px, ${top}px)`;
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  addEventListener("scroll", hideTip, { passive: true, capture: true });
  function chart(markup, caption) {
    const drawn = new DOMParser().parseFromString(markup, "text/html").querySelector("svg");
    const box = el("div", { className: "chart" }, document.importNode(drawn, true));
    const marks = all(".tip[aria-label]", box);
    marks.forEach((mark, i) => mark.setAttribute("tabindex", i ? "-1" : "0"));
    box.addEventListener("pointermove", (event) => {
      const mark = event.target.closest(".tip");
      if (mark) showTip(mark, event.clientX, event.clientY);
      else hideTip();
    });
    box.addEventListener("pointerleave", hideTip);
    box.addEventListener("focusin", ({ target }) => {
      if (!target.classList.contains("tip")) return;
      marks.forEach((mark) => mark.setAttribute("tabindex", mark === target ? "0" : "-1"));
      const place = target.getBoundingClientRect();
      if (target.matches(":focus-visible")) showTip(target, place.left + place.width / 2, place.top);
    });
    box.addEventListener("focusout", hideTip);
    box.addEventListener("keydown", (event) => {
      const now = marks.indexOf(event.target), last = marks.length - 1;
      const to = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: last }[event.key];
      if (now < 0 || to === undefined) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(to, last))].focus();
    });
    return el("figure", {}, box, el("figcaption", {}, caption));
  }

  /* ---- tabs */
  const tabs = all("[role=tab]");
  const panels = new Map(tabs.map((tab) => [tab.getAttribute("aria-controls"), tab]));
  let start = null;
  function choose(name, focus = false) {
    const chosen = panels.has(name) ? name : "sentence";
    panels.forEach((tab, id) => {
      const on = id === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      byId(id).hidden = !on;
    });
    if (focus) panels.get(chosen).focus();
    document.title = `${panels.get(chosen).textContent} · Evenhand explorer`;
    return chosen;
  }
  tabs.forEach((tab, i) => {
    const name = tab.getAttribute("aria-controls");
    tab.addEventListener("click", () => { remember({ tab: name }); choose(name); update(); });
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length].getAttribute("aria-controls");
      remember({ tab: next });
      choose(next, true);
      update();
    });
  });
  function update() {
    if (!start) return;
    const tab = choose(state.get("tab"));
    if (tab === "sentence" && start.models.length) sentence.update();
    if (tab === "words" && start.vectors.length) words.update();
    if (tab === "run" && (start.run || start.predictions)) run.update();
    if (tab === "written" && start.answers) written.update();
  }
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("Link copied: it restores this view in this browser while the explorer runs.", true);
    } catch {
      say("The link is in the address bar.", true);
    }
  });
  all("form").forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));

  /* ==================================================================== Sentence */
  const sentence = (() => {
    const EXAMPLES = ["The clerk lost [MASK] keys.", "The nurse said that she was late.", "The engineer told the receptionist that he would call."];
    const KINDS = ["man", "woman", "anyone"];
    const VERSIONS = { original: "as written", swapped: "gender swapped", words: "words swapped, not names", names: "names swapped, not words", neutral: "no gender stated" };
    const text = byId("text"), word = byId("word"), other = byId("with");
    const answers = byId("answers"), versions = byId("versions");
    const usual = new Map();

    const tokens = (value) => Array.from(value.matchAll(/\[MASK\]|[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’-]*/gu))
      .map((match) => ({ word: match[0], at: match.index })).filter((token) => token.word !== "[MASK]");
    function swapped() {
      const token = tokens(text.value)[Number(word.value)];
      const given = other.value.trim();
      if (word.value === "" || !token || !given) return null;
      const first = token.word[0];
      const fitted = first !== first.toLowerCase() ? given[0].toUpperCase() + given.slice(1) : given;
      return text.value.slice(0, token.at) + fitted + text.value.slice(token.at + token.word.length);
    }
    function listWords(selected) {
      const listed = tokens(text.value);
      word.replaceChildren(el("option", { value: "" }, "none"),
        ...listed.map((token, i) => el("option", { value: String(i) }, token.word)));
      word.value = selected !== null && Number(selected) < listed.length ? selected : "";
      other.disabled = word.value === "";
    }
    const models = () => {
      const boxes = all("input", byId("models"));
      const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
      return boxes.length ? chosen.slice(0, 4) : start.models.map((model) => model.name).slice(0, 4);
    };

    function bars(answer) {
      const most = Math.max(...answer.words.map((row) => row.probability), 0.01);
      return el("dl", { className: "bars" }, answer.words.map((row, i) => {
        const line = el("span", { className: KINDS[i] });
        line.style.width = `${(100 * row.probability) / most}%`;
        return el("div", {}, el("dt", {}, row.word),
          el("dd", {}, el("span", { className: "bar-line", "aria-hidden": "true" }, line), percent(row.probability)));
      }));
    }
    function strip(values, here, there) {
      const WIDE = 300, HIGH = 86, BINS = 25, base = 62, left = 6;
      const x = (value) => left + value * (WIDE - 2 * left);
      const counts = new Array(BINS).fill(0);
      values.forEach((value) => { counts[Math.min(BINS - 1, Math.floor(value * BINS))] += 1; });
      const most = Math.max(...counts, 1), step = (WIDE - 2 * left) / BINS;
      const label = `Bias in ${values.length} built-in sentences, from 0, always a woman, to 1, always a man. `
        + `This sentence: ${number(here, 2)}.${there === null ? "" : ` With the other word: ${number(there, 2)}.`}`;
      const drawn = svgEl("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "strip", role: "img", "aria-label": label });
      counts.forEach((count, i) => {
        const high = (count / most) * 46;
        drawn.append(svgEl("rect", { class: "usual", x: left + i * step + 0.5, y: base - high, width: step - 1, height: high }));
      });
      drawn.append(svgEl("line", { class: "axis", x1: left, x2: WIDE - left, y1: base, y2: base }));
      if (there !== null) drawn.append(svgEl("line", { class: "there", x1: x(there), x2: x(there), y1: 6, y2: base + 4 }));
      drawn.append(svgEl("line", { class: "here", x1: x(here), x2: x(here), y1: 6, y2: base + 4 }));
      [[left, "start", "0: a woman"], [WIDE / 2, "middle", "built-in sentences"], [WIDE - left, "end", "1: a man"]]
        .forEach(([at, anchor, words]) => drawn.append(svgEl("text", { x: at, y: base + 18, "text-anchor": anchor }, words)));
      return drawn;
    }
    function card(model, answer, variant, labels) {
      const block = (own, from) => el("div", {}, from ? el("p", { className: "from" }, from) : null, bars(own), own.summary.slice(1).map((line) => el("p", {}, line)));
      const parts = [block(answer, variant ? `With “${labels[0]}” (solid line)` : "")];
      if (variant) parts.push(block(variant, `With “${labels[1]}” (dashed line)`));
      const change = variant ? variant.bias - answer.bias : 0;
      const words = variant
        ? el("p", { className: "change" }, `Bias ${number(answer.bias, 2)} → ${number(variant.bias, 2)} (${change > 0 ? "+" : ""}${number(change, 2)})`)
        : el("p", { className: "from" }, `Bias ${number(answer.bias, 2)}: the share of ${answer.words[0].word} among ${answer.words[0].word} and ${answer.words[1].word}.${answer.causal ? " Percentages are among pronouns." : ""}`);
      const known = usual.get(model);
      parts.push(el("div", {}, known ? strip(known.bias, answer.bias, variant ? variant.bias : null) : null, words));
      return el("div", { className: "answer" }, el("h3", {}, model), el("div", { className: "inner" }, parts));
    }
    function draw(read) {
      const [own, changed] = read.texts;
      if (!own.positions.length) {
        answers.replaceChildren(el("p", { className: "hint" }, "No pronoun yet: write he, she, they, his, her …, or [MASK] in its place."));
        say("");
        return;
      }
      const token = tokens(own.text)[Number(word.value)];
      answers.replaceChildren(...own.positions.map((position, i) => {
        const variant = changed?.positions[i] ?? null;
        const heading = el("h2", {}, own.text.slice(0, position.start), el("mark", {}, position.shown), own.text.slice(position.end));
        return el("section", { className: "position" }, heading, el("div", { className: "side" },
          position.answers.map((answer, j) => card(answer.model, answer, variant ? variant.answers[j] : null, [token?.word, other.value.trim()]))));
      }));
      say(own.positions.flatMap((position) => position.answers.map((answer) => answer.summary.join(" "))).join(" "));
    }
    function drawVersions(read) {
      const names = models();
      const several = names.length > 1;
      const base = read.versions[0];
      const masked = read.text.includes("[MASK]");
      byId("versions-hint").textContent = (masked
        ? "The sentence with each pronoun, and how likely it is."
        : "The sentence as our rewriting changes it, and how likely each version is.")
        + " Log-likelihoods are natural logarithms; of a masked model the pseudo-log-likelihood. Compare versions within a model, not models.";
      if (read.versions.length < 2) {
        byId("versions-table").replaceChildren(el("p", { className: "hint" }, "Nothing to rewrite: the sentence has no gendered word or first name."));
        return;
      }
      const columns = [{ title: masked ? "Pronoun" : "Version" }, { title: "Sentence", long: true },
        ...names.flatMap((name) => [{ title: several ? `${name}: log-likelihood` : "Log-likelihood", number: true },
          { title: "Change" }])];
      byId("versions-table").replaceChildren(table(columns, read.versions.map((row) => [masked ? row.version : VERSIONS[row.version], row.text,
        ...row.models.flatMap((cell, j) => {
          const [own, first] = [cell.log_likelihood, base.models[j].log_likelihood];
          const known = own !== null && first !== null && row !== base;
          return [number(own, 2, false), known ? times(own - first) : "–"];
        })]), { caption: "Versions, their likelihoods, and the change from the first" }));
    }
    function times(difference) {
      const ratio = Math.exp(Math.abs(difference));
      if (ratio < 1.05) return "as likely";
      const size = ratio >= 1e6 ? ratio.toExponential(0).replace("e+", " × 10^") : ratio >= 10 ? Math.round(ratio).toLocaleString("en") : ratio.toFixed(1);
      return `${size} × ${difference > 0 ? "likelier" : "less likely"}`;
    }

    async function request() {
      const chosen = models();
      const value = text.value;
      versions.hidden = !value.trim() || !chosen.length;
      if (!value.trim() || !chosen.length) {
        answers.replaceChildren(el("p", { className: "hint" }, chosen.length ? "Write a sentence." : "Choose a model."));
        return;
      }
      try {
        for (const name of chosen) if (!usual.has(name)) {
          later("slow", () => {
            const words = `Computing the built-in sentences with ${name}, for the comparison. This is done once for a model and may take a minute …`;
            answers.replaceChildren(el("p", { className: "hint" }, words));
            say(words);
          }, 1000);
          usual.set(name, await ask("built-in", { model: name }, `built-in ${name}`));
        }
      } catch (error) {
        if (error.name !== "AbortError" && !error.quiet) fail(error, answers);
        return;
      } finally {
        clearTimeout(waiting.get("slow"));
      }
      const variant = swapped();
      await Promise.all([
        show(answers, "sentence", { texts: variant === null ? [value] : [value, variant], models: chosen }, draw),
        show(byId("versions-table"), "versions", { text: value, models: chosen }, drawVersions),
      ]);
    }
    function changed(delay) {
      remember({ text: text.value, word: word.value, with: other.value.trim(), models: models().join("|") });
      later("sentence", request, delay);
    }
    text.addEventListener("input", () => { listWords(word.value); changed(); });
    word.addEventListener("change", () => { other.disabled = word.value === ""; if (word.value !== "") other.focus(); changed(0); });
    other.addEventListener("input", () => changed());
    return {
      prepare() {
        byId("examples").replaceChildren(...EXAMPLES.map((example) => el("button", { type: "button", onclick: () => {
          text.value = example;
          other.value = "";
          listWords("");
          changed(0);
        } }, example)));
        if (start.models.length > 1) {
          byId("models").hidden = false;
          byId("models").append(...start.models.map((model) => el("label", {},
            el("input", { type: "checkbox", value: model.name, checked: true, onchange: () => changed(0) }), `${model.name} (${model.kind})`)));
        }
      },
      restore() {
        text.value = state.get("text") ?? EXAMPLES[0];
        other.value = state.get("with") ?? "";
        listWords(state.get("word"));
        const chosen = state.get("models")?.split("|");
        if (chosen) all("input", byId("models")).forEach((box) => { box.checked = chosen.includes(box.value); });
      },
      update() { later("sentence", request, 0); },
    };
  })();

  /* ==================================================================== Words */
  const words = (() => {
    const vectors = byId("vectors"), preset = byId("preset"), near = byId("near"), against = byId("against");
    const views = all("[name=view]");
    const split = (text) => text.split(/[,\n;]/.test(text) ? /[,\n;]+/ : /\s+/).map((word) => word.trim()).filter(Boolean);
    const join = (listed) => listed.join(", ");
    const narrow = () => root.clientWidth < 600;
    const view = () => views.find((radio) => radio.checked).value;

    /** A named list of words that can be edited; its state has the two names. */
    function editor(key, role, box) {
      const name = el("input", { type: "text", id: `${key}-name`, maxLength: 80, "aria-label": `Name of ${role}` });
      const area = el("textarea", { id: key, rows: 3, spellcheck: false });
      box.append(el("div", { className: "field" }, el("label", { htmlFor: key }, role), name, area));
      [name, area].forEach((input) => input.addEventListener("input", () => edited(key)));
      return {
        key,
        set(title, listed) { name.value = title; area.value = join(listed); },
        get: () => [name.value.trim() || role, split(area.value)],
        restore() {
          if (state.has(key)) area.value = state.get(key);
          if (state.has(`${key}n`)) name.value = state.get(`${key}n`);
        },
        remember: () => remember({ [key]: area.value, [`${key}n`]: name.value }),
      };
    }
    let lists = [], axes = [];
    const pair = (first, second) => Object.fromEntries([first.get(), second.get()]);
    function edited(key) {
      const own = [...lists, ...axes.flatMap((axis) => axis.ends)].find((list) => list.key === key);
      own?.remember();
      if (lists.includes(own)) preset.value = "";
      axes.forEach((axis) => { if (axis.ends.includes(own)) axis.preset.value = ""; });
      later("words", request);
    }

    function association(box) {
      const body = { vectors: vectors.value, targets: pair(lists[0], lists[1]), attributes: pair(lists[2], lists[3]), narrow: narrow() };
      return show(box, "association", body, (read) => {
        const m = read.measurement, random = read.random_words, without = read.leave_one_out;
        const rows = (items) => items.word.map((word, i) => [word, items.group[i], number(items.score[i])]);
        box.replaceChildren(el("div", { className: "result" },
          el("h2", {}, `d = ${number(m.value, 2)} ${range(m.low, m.high, 2)}`),
          ...read.summary.map((line) => el("p", {}, line)),
          m.left_out.length ? el("p", { className: "hint" }, `Without a vector, left out: ${m.left_out.join(", ")}.`) : null,
          chart(read.chart, "The effect size with its interval, the range of random words (grey bar), and the effect size without the single words that move it most."),
          table([{ title: "Compared with" }, { title: "Range of d", number: true }, { title: "p", number: true }], [
            [`Interval; permutations of the ${m.n} targets`, range(m.low, m.high, 2), read.p.targets],
            ["Permutations of the attributes", "–", read.p.attributes],
            [`${random.details.null_draws.toLocaleString("en")} draws of random words`, range(random.details.null_low, random.details.null_high, 2), read.p.random],
            [`Leaving out one of ${without.n} words`, range(without.low, without.high, 2), "–"],
          ], { caption: "The test in numbers" }),
          el("details", {}, el("summary", {}, "Association of each target word"),
            table([{ title: "Word" }, { title: "List" }, { title: "s(w)", number: true }], rows(m.items), { caption: "Association of each target word with the first attributes rather than the second" })),
          el("details", {}, el("summary", {}, "Effect size without each word"),
            table([{ title: "Without" }, { title: "List" }, { title: "d", number: true }], rows(without.items), { caption: "Effect size without each word, the most influential first" }))));
        say(read.summary[0]);
      });
    }
    function twoAxes(box) {
      const [x, y] = axes.map((axis) => pair(...axis.ends));
      return show(box, "axes", { vectors: vectors.value, words: split(byId("axis-words").value), x, y, narrow: narrow() }, (read) => {
        const name = (lists) => Object.keys(lists).join(" – ");
        const related = read.correlation === null ? "" : ` The correlation of the two is ${number(read.correlation, 2)}.`;
        box.replaceChildren(el("div", { className: "result" },
          chart(read.chart, `Each dot is a word: to the right nearer to ${Object.keys(x)[0]}, to the top nearer to ${Object.keys(y)[0]}.${related}`),
          read.left_out.length ? el("p", { className: "hint" }, `Without a vector, left out: ${read.left_out.join(", ")}.`) : null,
          el("details", {}, el("summary", {}, "The words in numbers"),
            table([{ title: "Word" }, { title: name(x), number: true }, { title: name(y), number: true }],
              read.rows.map((row) => [row.word, number(row.x), number(row.y)]), { caption: "Mean cosine with the first list minus that with the second" }))));
        say(`${read.rows.length} words on two axes.${related}`);
      });
    }
    function neighbours(box) {
      if (!near.value.trim()) {
        box.replaceChildren(el("p", { className: "hint" }, "Write a word."));
        return undefined;
      }
      const [kind, first, second] = against.value.split("|");
      const body = { vectors: vectors.value, word: near.value.trim(), ...(kind === "vectors" ? { other: first } : { topic: first, method: second }) };
      return show(box, "neighbours", body, (read) => {
        const listed = [read.before, read.after].map((side) => new Set(side.neighbours.map((row) => row.word)));
        const side = (own, others, words, note) => table(
          [{ title: "Neighbour" }, { title: "Cosine", number: true }, { title: "Change" }],
          own.neighbours.map((row) => {
            const both = others.has(row.word);
            return [el("span", { className: both ? "" : words }, row.word), number(row.cosine), both ? "" : note];
          }), { caption: own.name });
        const stay = [...listed[0]].filter((word) => listed[1].has(word)).length;
        box.replaceChildren(el("div", { className: "result" },
          el("p", {}, `${stay} of the ${listed[0].size} nearest words of “${read.word}” are the same before and after, among the ${read.among.toLocaleString("en")} most frequent words.`),
          el("div", { className: "side" },
            el("div", {}, el("h2", {}, "Before"), side(read.before, listed[1], "gone", "not after")),
            el("div", {}, el("h2", {}, "After"), side(read.after, listed[0], "new", "new")))));
        say(`Neighbours of ${read.word}: ${stay} of ${listed[0].size} stay.`);
      });
    }
    const draws = { association, axes: twoAxes, neighbours };
    function request() {
      const now = view();
      return draws[now](byId(`${now}-result`));
    }
    function choosePreset() {
      const query = start.queries.find((each) => each.name === preset.value);
      if (!query) return;
      const named = [...Object.entries(query.targets), ...Object.entries(query.attributes)];
      lists.forEach((list, i) => { list.set(...named[i]); list.remember(); });
    }
    function chooseAxis(axis) {
      const found = start.axes.find((each) => each.name === axis.preset.value);
      if (!found) return;
      Object.entries(found.lists).forEach(([name, listed], i) => { axis.ends[i].set(name, listed); axis.ends[i].remember(); });
    }
    function chooseView() {
      views.forEach((radio) => { byId(`view-${radio.value}`).hidden = !radio.checked; });
    }
    function listAgainst() {
      const others = start.vectors.filter((each) => each.name !== vectors.value);
      const before = against.value;
      against.replaceChildren(
        ...start.topics.flatMap((topic) => start.methods.map((method) => el("option", { value: `topic|${topic.name}|${method}` }, `after ${method} debiasing for ${topic.name}`))),
        ...others.map((each) => el("option", { value: `vectors|${each.name}` }, `other vectors: ${each.name}`)));
      against.value = before || "topic|gender|hard";
      if (!against.value) against.value = "topic|gender|hard";
    }
    return {
      prepare() {
        vectors.replaceChildren(...start.vectors.map((each) => el("option", { value: each.name }, `${each.name} (${each.words.toLocaleString("en")} words)`)));
        preset.replaceChildren(el("option", { value: "" }, "own lists"), ...start.queries.map((query) => el("option", { value: query.name }, `${query.name}: ${short(query.title, 70)}`)));
        lists = [["X", "Targets, first list"], ["Y", "Targets, second list"], ["A", "Attributes, first list"], ["B", "Attributes, second list"]]
          .map(([key, role]) => editor(key, role, byId("lists")));
        axes = ["x", "y"].map((letter) => {
          const choice = el("select", { id: `axis-${letter}` }, el("option", { value: "" }, "own lists"),
            ...start.axes.map((axis) => el("option", { value: axis.name }, axis.name)));
          const box = el("div", { className: "field" }, el("label", { htmlFor: `axis-${letter}` }, letter === "x" ? "Horizontal axis" : "Vertical axis"), choice);
          byId("axes").append(box);
          const axis = { preset: choice, ends: [] };
          axis.ends = [`${letter}1`, `${letter}2`].map((key, i) => editor(key, `${letter === "x" ? "Horizontal" : "Vertical"}, ${i ? "second" : "first"} list`, box));
          choice.addEventListener("change", () => { chooseAxis(axis); remember({ [`axis${letter}`]: choice.value }); later("words", request, 0); });
          return axis;
        });
        preset.addEventListener("change", () => { choosePreset(); remember({ preset: preset.value }); later("words", request, 0); });
        vectors.addEventListener("change", () => { listAgainst(); remember({ vectors: vectors.value }); later("words", request, 0); });
        views.forEach((radio) => radio.addEventListener("change", () => { chooseView(); remember({ view: view() }); later("words", request, 0); }));
        byId("axis-words").addEventListener("input", () => { remember({ axiswords: byId("axis-words").value }); later("words", request); });
        near.addEventListener("input", () => { remember({ near: near.value }); later("words", request, 400); });
        against.addEventListener("change", () => { remember({ against: against.value }); later("words", request, 0); });
        listAgainst();
      },
      restore() {
        const pick = (select, value, usual) => {
          select.value = value ?? usual;
          if (select.selectedIndex < 0) select.value = usual;
        };
        pick(vectors, state.get("vectors"), start.vectors[0].name);
        views.forEach((radio) => { radio.checked = radio.value === (state.get("view") ?? "association"); });
        if (!views.some((radio) => radio.checked)) views[0].checked = true;
        listAgainst();
        const query = start.queries.find((each) => each.name === (state.get("preset") ?? "weat-6")) ?? start.queries[0];
        const named = [...Object.entries(query.targets), ...Object.entries(query.attributes)];
        lists.forEach((list, i) => { list.set(...named[i]); list.restore(); });
        preset.value = ["X", "Y", "A", "B"].some((key) => state.has(key)) && !state.has("preset") ? "" : query.name;
        const usual = [start.axes.find((axis) => axis.name.startsWith("gender")) ?? start.axes[0], start.axes.find((axis) => axis.name === "pleasant – unpleasant") ?? start.axes[1]];
        axes.forEach((axis, i) => {
          const found = start.axes.find((each) => each.name === state.get(`axis${"xy"[i]}`)) ?? usual[i];
          Object.entries(found.lists).forEach(([name, listed], j) => { axis.ends[j].set(name, listed); axis.ends[j].restore(); });
          axis.preset.value = found.name;
        });
        byId("axis-words").value = state.get("axiswords") ?? join(start.words.slice(0, 40));
        near.value = state.get("near") ?? "nurse";
        against.value = state.get("against") ?? "topic|gender|hard";
        if (against.selectedIndex < 0) against.value = "topic|gender|hard";
        chooseView();
      },
      update() { later("words", request, 0); },
    };
  })();

  /* ==================================================================== Run */
  const run = (() => {
    const PREDICTIONS = "predictions";
    const KIND = { items: "items", parts: "parts", results: "results", changes: "before and after" };
    const LEVEL = { "strong evidence": "strong", "some evidence": "some", "undecided": "undecided", "none found": "none" };
    const choice = byId("table"), find = byId("find"), box = byId("table-result");
    let read = null, first = 0, sort = "", descending = false;

    const wanted = () => ({
      table: choice.value === PREDICTIONS ? null : Number(choice.value),
      find: find.value,
      where: Object.fromEntries(all("select", byId("where")).filter((select) => select.value !== "*").map((select) => [select.dataset.column, select.value])),
      sort, descending, first,
    });
    function rememberTable() {
      const view = wanted();
      remember({ table: choice.value, find: find.value, sort, down: descending ? "1" : "", first: first || "",
        where: Object.keys(view.where).length ? JSON.stringify(view.where) : "" });
    }
    function drawVerdicts() {
      byId("run-facts").textContent = read ? `Audit of ${read.name}${read.time ? `, ${read.time.slice(0, 10)}` : ""}. Choose a verdict to see its tests, and a test to see its items.` : "";
      const known = start.predictions;
      const errors = known ? el("button", { type: "button", id: "errors", className: "verdict", "aria-pressed": "false", onclick: () => chooseTable(PREDICTIONS, true, known.errors === null ? {} : { error: "yes" }) },
        el("strong", {}, known.errors === null ? "Your classifier" : `Your classifier: ${known.errors.toLocaleString("en")} errors`),
        el("span", {}, `${known.texts.toLocaleString("en")} texts${known.flips === null ? "" : `, ${known.flips.toLocaleString("en")} flip with the gender`}`)) : null;
      byId("verdicts").replaceChildren(...(errors ? [errors] : []), ...(read?.verdicts ?? []).map((verdict, i) => el("button", {
        type: "button", className: `verdict judged ${LEVEL[verdict.verdict] ?? ""}`, "aria-pressed": "false",
        onclick: () => { chooseVerdict(i); byId("evidence").querySelector("h2")?.scrollIntoView({ block: "nearest" }); },
      }, el("strong", {}, `${verdict.name}: ${verdict.topic}`), el("span", {}, verdict.subject_title), el("span", { className: "level" }, verdict.verdict))));
    }
    function press(chosen) {
      all(".verdict").forEach((button) => button.setAttribute("aria-pressed", String(button === chosen)));
    }
    function chooseVerdict(i) {
      remember({ verdict: i });
      press(all(".judged")[i]);
      const verdict = read.verdicts[i];
      if (!verdict) return;
      const rows = verdict.evidence.map((test) => [test.label, `${number(test.value, 3, false)} ${range(test.low, test.high)}`, test.p_text, test.outcome,
        test.table === null ? "–" : el("button", { type: "button", className: "plain", onclick: () => chooseTable(String(test.table), true), "aria-label": `Show the items of ${test.label}` }, "Show")]);
      byId("evidence").replaceChildren(el("h2", {}, `${verdict.name}, ${verdict.topic}: ${verdict.verdict}`), el("p", {}, verdict.sentence),
        rows.length ? table([{ title: "Test" }, { title: "value [interval]", number: true, wrap: true }, { title: "p, corrected", number: true }, { title: "outcome" }, { title: "items" }], rows, { caption: "Tests behind the verdict" }) : "");
      say(`${verdict.name}, ${verdict.topic}: ${verdict.verdict}`);
    }
    /** The predictions are of no verdict. */
    function leaveVerdict() {
      if (choice.value !== PREDICTIONS) return;
      press(byId("errors"));
      byId("evidence").replaceChildren(el("h2", {}, "Errors of your classifier"),
        el("p", {}, "Each text with what was true and predicted. Its counterfactual versions say whether another gender changes the prediction."));
      remember({ verdict: "" });
    }
    function chooseTable(value, jump = false, where = {}) {
      choice.value = value;
      leaveVerdict();
      [first, sort, descending] = [0, "", false];
      find.value = "";
      byId("where").replaceChildren();
      rememberTable();
      if (Object.keys(where).length) remember({ where: JSON.stringify(where) });
      request().then(() => { if (jump) choice.focus(); });
    }
    function cellOf(value, whole) {
      return typeof value === "number" ? number(value, 3, whole) : value === true ? "yes" : value === false ? "no" : value ?? "–";
    }
    function draw(read) {
      const predictions = choice.value === PREDICTIONS;
      drawChoices(read.choices);
      const isNumber = read.columns.map((_, i) => read.rows.some((row) => typeof row[i] === "number"));
      const isWhole = read.columns.map((_, i) => read.rows.every((row) => typeof row[i] !== "number" || Number.isInteger(row[i])));
      const isLong = read.columns.map((_, i) => read.rows.some((row) => typeof row[i] === "string" && row[i].length > 40));
      const heads = read.columns.map((column, i) => el("th", {
        scope: "col", className: isNumber[i] ? "number" : "", "aria-sort": column === sort ? (descending ? "descending" : "ascending") : undefined,
      }, el("button", { type: "button", onclick: () => {
        [descending, sort, first] = [sort === column && !descending, column, 0];
        rememberTable();
        request().then(() => all("thead button", box)[i]?.focus());
      } }, column.replaceAll("_", " "))));
      const rows = read.rows.map((row) => {
        const line = el("tr", {}, row.map((value, i) => el("td", { className: isNumber[i] ? "number" : isLong[i] ? "text" : "" }, cellOf(value, isWhole[i]))));
        if (predictions) {
          const item = String(row[read.columns.indexOf("item")]);
          const button = el("button", { type: "button", className: "plain", "aria-expanded": "false", "aria-label": `Versions of text ${item}`, onclick: () => expand(button, line, item, read.columns.length + 1) }, "Show");
          line.prepend(el("td", {}, button));
        }
        return line;
      });
      if (predictions) heads.unshift(el("th", { scope: "col" }, "versions"));
      const last = Math.min(read.first + read.rows.length, read.selected);
      const caption = read.selected === 0 ? "No row matches." : `Rows ${read.first + 1} to ${last} of ${read.selected.toLocaleString("en")}${read.selected < read.total ? ` (of ${read.total.toLocaleString("en")} in all)` : ""}`;
      const turn = (to) => () => { first = to; rememberTable(); request(); };
      box.replaceChildren(scroll(el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)), "Rows of the table"));
      if (read.selected > read.rows.length) box.append(el("p", { className: "pager" },
        el("button", { type: "button", className: "plain", disabled: read.first === 0, onclick: turn(Math.max(0, read.first - read.page)) }, "Previous rows"),
        el("button", { type: "button", className: "plain", disabled: last >= read.selected, onclick: turn(read.first + read.page) }, "Next rows")));
      say(caption);
    }
    async function expand(button, line, item, width) {
      if (button.getAttribute("aria-expanded") === "true") {
        button.setAttribute("aria-expanded", "false");
        line.nextElementSibling.remove();
        return;
      }
      try {
        const { versions } = await ask("item", { item }, `item ${item}`);
        const original = versions.find((row) => row.version === "original")?.predicted;
        const content = versions.length > 1
          ? table([{ title: "Version" }, { title: "Text", long: true }, { title: "Predicted" }], versions.map((row) => [row.version, row.text || "–",
            row.predicted === null ? "not predicted" : row.predicted === original ? row.predicted : el("strong", {}, `${row.predicted} (flips)`)]), { caption: `Versions of text ${item}` })
          : el("p", { className: "hint" }, "No version differs: the text has no gendered word or first name, or the file has no texts.");
        line.after(el("tr", {}, el("td", { colSpan: width }, content)));
        button.setAttribute("aria-expanded", "true");
      } catch (error) {
        fail(error, null);
      }
    }
    function drawChoices(choices) {
      const where = byId("where");
      const names = Object.keys(choices);
      if (names.join() === all("select", where).map((select) => select.dataset.column).join()) return;
      const before = state.has("where") ? JSON.parse(state.get("where")) : {};
      byId("filters").hidden = names.length === 0;
      if (Object.keys(before).length) byId("filters").open = true;
      where.replaceChildren(...names.map((name, i) => {
        const select = el("select", { id: `where-${i}`, onchange: () => { first = 0; rememberTable(); request(); } },
          el("option", { value: "*" }, "all"), ...choices[name].map((value) => el("option", { value }, value || "(none)")));
        select.dataset.column = name;
        select.value = before[name] ?? "*";
        return el("div", { className: "field" }, el("label", { htmlFor: `where-${i}` }, name.replaceAll("_", " ")), select);
      }));
    }
    function request() {
      const body = wanted();
      if (state.has("where") && !all("select", byId("where")).length) {
        try { body.where = JSON.parse(state.get("where")); } catch { body.where = {}; }
      }
      return show(box, "table", body, draw);
    }
    find.addEventListener("input", () => { first = 0; later("table", () => { rememberTable(); request(); }); });
    choice.addEventListener("change", () => chooseTable(choice.value));
    byId("export").addEventListener("click", async () => {
      try {
        const blob = await ask("table.csv", { ...wanted(), first: 0 });
        const link = el("a", { href: URL.createObjectURL(blob), download: "evenhand-items.csv" });
        link.click();
        URL.revokeObjectURL(link.href);
        say("Exported the rows of this view as evenhand-items.csv.", true);
      } catch (error) {
        if (error.name !== "AbortError") fail(error, null);
      }
    });
    async function load() {
      if (start.run && !read) read = await ask("run");
      const groups = new Map();
      (read?.tables ?? []).forEach((each, i) => {
        if (!groups.has(each.stage)) groups.set(each.stage, []);
        groups.get(each.stage).push(el("option", { value: String(i) }, `${each.title}: ${each.rows.toLocaleString("en")} ${KIND[each.kind]}`));
      });
      choice.replaceChildren(...(start.predictions ? [el("option", { value: PREDICTIONS }, "Predictions of your classifier")] : []),
        ...[...groups].map(([label, options]) => el("optgroup", { label }, options)));
      byId("table-form").hidden = choice.options.length === 0;
      drawVerdicts();
    }
    return {
      prepare() {},
      restore() {},
      async update() {
        try {
          await load();
        } catch (error) {
          if (error.name !== "AbortError") fail(error, box);
          return;
        }
        find.value = state.get("find") ?? "";
        sort = state.get("sort") ?? "";
        descending = state.get("down") === "1";
        first = Number(state.get("first")) || 0;
        byId("where").replaceChildren();
        let usual = choice.options[0]?.value ?? "";
        if (read?.verdicts.length && state.get("table") !== PREDICTIONS) {
          const chosen = Number(state.get("verdict")) || 0;
          chooseVerdict(chosen);
          usual = String(read.verdicts[chosen]?.evidence.find((test) => test.table !== null)?.table ?? usual);
        }
        choice.value = state.get("table") ?? usual;
        if (choice.selectedIndex < 0) choice.selectedIndex = 0;
        leaveVerdict();
        if (choice.value !== "") await request();
      },
    };
  })();

  /* ==================================================================== Answers */
  const written = (() => {
    const seek = byId("seek"), by = byId("by"), outcome = byId("outcome"), entry = byId("entry");
    const box = byId("written-result");
    const LONG = 600;
    let first = 0;

    function rememberView() {
      remember({ seek: seek.value, by: by.value, outcome: outcome.value, item: entry.value, from: first || "" });
    }
    const pick = (select, options, value) => {
      select.replaceChildren(...options);
      select.value = value ?? "";
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    };
    function drawItems(read) {
      byId("written-facts").textContent = `${read.name}: ${read.answers.toLocaleString("en")} answers to ${read.total.toLocaleString("en")} items. Texts are shown as the model wrote them.`;
      byId("written-counts").replaceChildren(table(
        [{ title: read.by || "Group" }, ...read.outcomes.map((title) => ({ title, number: true }))],
        read.groups.map((group, i) => [group, ...read.counts[i].map((count) => count.toLocaleString("en"))]),
        { caption: "Answers by group and outcome" }));
      pick(by, read.columns.map((value) => el("option", { value }, value)), read.by);
      by.parentElement.hidden = read.columns.length < 2;
      pick(outcome, [el("option", { value: "" }, "all"), ...read.outcomes.map((value) => el("option", { value }, value))], state.get("outcome"));
      pick(entry, read.items.map((value) => el("option", { value }, short(value, 80))), state.get("item"));
      const more = read.selected > read.items.length ? `, of which the first ${read.items.length} are listed: narrow them by Find` : "";
      byId("entry-hint").textContent = read.selected === read.total && !more ? "" : `${read.selected.toLocaleString("en")} of ${read.total.toLocaleString("en")} items match${more}.`;
      turnable();
    }
    function turnable() {
      byId("before").disabled = entry.selectedIndex <= 0;
      byId("after").disabled = entry.selectedIndex >= entry.options.length - 1;
    }
    function text(own) {
      if (!own.text.trim()) return el("p", { className: "hint" }, "no text");
      if (own.text.length <= LONG) return el("p", { className: "written" }, own.text);
      const end = own.text.lastIndexOf(" ", LONG) > 0 ? own.text.lastIndexOf(" ", LONG) : LONG;
      return [el("p", { className: "written" }, `${own.text.slice(0, end)} …`),
        el("details", {}, el("summary", {}, "The rest"), el("p", { className: "written" }, own.text.slice(end)))];
    }
    function drawGroup(own, heading, shown) {
      let prompt = "";
      const rows = own.answers.map((each) => {
        const asked = each.prompt && each.prompt !== prompt ? el("p", { className: "from" }, el("span", {}, "Prompt: "), el("q", {}, each.prompt)) : null;
        prompt = each.prompt;
        const more = Object.entries(each.more).map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? number(value) : value}`);
        return el("li", {}, asked, el("p", { className: "outcome" }, el("strong", {}, each.outcome), more.length ? ` · ${more.join(" · ")}` : ""), text(each));
      });
      const last = Math.min(shown.first + own.answers.length, own.total);
      return el("div", { className: "answer" }, el(heading, {}, own.group),
        own.answers.length ? el("p", { className: "hint" }, `Answers ${shown.first + 1} to ${last} of ${own.total.toLocaleString("en")}`) : el("p", { className: "hint" }, own.total ? "No more answers." : "No answer of this outcome."),
        rows.length ? el("ol", { start: shown.first + 1, className: "texts" }, rows) : null);
    }
    function drawItem(read) {
      const named = read.wordings.some((each) => each.wording);
      const turn = (to) => () => { first = to; rememberView(); request(); };
      box.replaceChildren(el("h2", {}, short(read.item, 200)), read.topic ? el("p", { className: "hint" }, `Topic: ${read.topic}`) : "",
        ...read.wordings.flatMap((each) => [
          named ? el("h3", {}, `Wording: ${each.wording}`) : "",
          el("div", { className: "side" }, each.groups.map((own) => drawGroup(own, named ? "h4" : "h3", read))),
        ]));
      if (read.most > read.page) box.append(el("p", { className: "pager" },
        el("button", { type: "button", className: "plain", disabled: read.first === 0, onclick: turn(Math.max(0, read.first - read.page)) }, "Previous answers"),
        el("button", { type: "button", className: "plain", disabled: read.first + read.page >= read.most, onclick: turn(read.first + read.page) }, "Next answers")));
      say(`Answers to ${short(read.item)}`);
    }
    async function list() {
      try {
        drawItems(await ask("answers", { find: seek.value, by: state.get("by") ?? "", outcome: state.get("outcome") ?? "" }));
      } catch (error) {
        if (error.name !== "AbortError" && !error.quiet) fail(error, box);
        return false;
      }
      return true;
    }
    function request() {
      if (!entry.value) {
        box.replaceChildren(el("p", { className: "hint" }, "No item matches."));
        say("No item matches.");
        return undefined;
      }
      turnable();
      return show(box, "answer", { item: entry.value, by: by.value, outcome: outcome.value, first }, drawItem);
    }
    async function refresh() {
      if (!(await list())) return;
      rememberView();
      await request();
    }
    function choose(index) {
      entry.selectedIndex = index;
      first = 0;
      rememberView();
      request();
    }
    seek.addEventListener("input", () => { first = 0; later("written", refresh); });
    [by, outcome].forEach((select) => select.addEventListener("change", () => {
      first = 0;
      remember({ [select.id]: select.value });
      refresh();
    }));
    entry.addEventListener("change", () => choose(entry.selectedIndex));
    byId("before").addEventListener("click", () => choose(entry.selectedIndex - 1));
    byId("after").addEventListener("click", () => choose(entry.selectedIndex + 1));
    return {
      update() {
        seek.value = state.get("seek") ?? "";
        first = Number(state.get("from")) || 0;
        refresh();
      },
    };
  })();

  /* ==================================================================== start */
  function restore() {
    choose(state.get("tab"));
    if (start.models.length) sentence.restore();
    if (start.vectors.length) words.restore();
    update();
  }
  addEventListener("hashchange", () => { readAddress(); if (start) restore(); else begin(); });
  async function begin() {
    try {
      start = await ask("start");
    } catch (error) {
      fail(error, null);
      return;
    }
    alert.hidden = true;
    byId("version").textContent = start.version;
    const there = { sentence: start.models.length, words: start.vectors.length, run: start.run || start.predictions, written: start.answers };
    Object.entries(there).forEach(([name, has]) => {
      byId(name).querySelector(".missing").hidden = Boolean(has);
      all("[data-needs], .verdicts", byId(name)).forEach((part) => { part.hidden = !has; });
    });
    if (!state.has("tab")) {
      const first = Object.keys(there).find((name) => there[name]);
      if (first && first !== "sentence") state.set("tab", first);
    }
    if (start.models.length) sentence.prepare();
    if (start.vectors.length) words.prepare();
    restore();
  }
  readAddress();
  choose(state.get("tab"));
  begin();
})();
