"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const made = (tag, text = "") => Object.assign(document.createElement(tag), { textContent: text });

  /* light and dark: the system's setting until the reader chooses */
  const root = document.documentElement, theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = {
    get() { try { return localStorage.getItem("evenhand-theme"); } catch { return null; } },
    set(name) { try { localStorage.setItem("evenhand-theme", name); } catch { /* not kept */ } },
  };
  function paint() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    theme.setAttribute("aria-pressed", String(dark));
    return dark;
  }
  if (["light", "dark"].includes(kept.get())) root.dataset.theme = kept.get();
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = paint() ? "light" : "dark";
    kept.set(root.dataset.theme);
    paint();
  });
  system.addEventListener("change", paint);
  paint();

  /* the contents: open beside the text, folded above it; the section in view is marked */
  const contents = document.querySelector("nav details"), wide = matchMedia("(min-width: 72rem)");
  const fold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) contents.open = false;
  });
  const places = all("section[id]").filter((section) => links.has(section.id));
  function here() {
    const past = places.filter((section) => section.getBoundingClientRect().top < innerHeight / 3);
    const now = past.length ? links.get(past[past.length - 1].id) : null;
    links.forEach((link) => {
      if (link === now) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  }
  let waiting = false;
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; here(); });
    waiting = true;
  }, { passive: true });
  here();

  /* sorting: rows without a number stay at the end whichever way it goes */
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  function compare(a, b, sign) {
    const [x, y] = [a, b].map((cell) => cell.dataset.value);
    if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
    if (x !== undefined || y !== undefined) return x !== undefined ? -1 : 1;
    return sign * order.compare(a.textContent.trim(), b.textContent.trim());
  }
  all("table").forEach((table) => {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = made("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        body.append(...Array.from(body.rows).sort(
          (a, b) => compare(a.cells[column], b.cells[column], sign)));
        orderMatches();
      });
    });
  });

  /* search: rows that do not match are hidden, buttons and Enter go from match to match */
  const tables = all("table.words"), input = document.getElementById("find");
  const found = document.getElementById("found");
  const before = document.getElementById("before"), after = document.getElementById("after");
  const opened = new Set();
  let matches = [], at = -1;
  function orderMatches() {
    matches = input.value.trim() ? all("table.words tr.hit") : [];
    at = matches.findIndex((row) => row.classList.contains("current"));
    tell();
  }
  function tell() {
    const many = matches.length, word = many === 1 ? "row" : "rows";
    found.textContent = !input.value.trim() ? "" : many === 0 ? "nothing found"
      : at < 0 ? `${many} ${word}` : `${at + 1} of ${many}`;
    before.disabled = after.disabled = many === 0;
  }
  function look() {
    const wanted = input.value.trim().toLowerCase();
    tables.forEach((table) => {
      let count = 0;
      Array.from(table.tBodies[0].rows).forEach((row) => {
        const match = row.textContent.toLowerCase().includes(wanted);
        row.hidden = !match;
        row.classList.toggle("hit", match && wanted !== "");
        row.classList.remove("current");
        count += match;
      });
      const folded = table.closest("details");
      if (!folded) return;
      if (wanted && count && !folded.open) opened.add(folded);
      if (opened.has(folded)) folded.open = wanted !== "" && count > 0;
      if (!wanted) opened.delete(folded);
    });
    orderMatches();
  }
  function jump(step) {
    if (!matches.length) return;
    if (at >= 0) matches[at].classList.remove("current");
    at = at < 0 ? (step > 0 ? 0 : matches.length - 1) : (at + step + matches.length) % matches.length;
    const folded = matches[at].closest("details");
    if (folded) folded.open = true;
    matches[at].classList.add("current");
    matches[at].scrollIntoView({ block: "center" });
    tell();
  }
  document.querySelector(".search").hidden = tables.length === 0;
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); jump(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { input.value = ""; look(); }
  });
  before.addEventListener("click", () => jump(-1));
  after.addEventListener("click", () => jump(1));

  /* what a mark is: by pointer, by touch, by keyboard */
  const tip = made("div");
  Object.assign(tip, { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  let shown = null;
  function hide() {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  }
  function place(x, y) {
    const box = tip.getBoundingClientRect(), room = document.documentElement.clientWidth;
    const left = Math.max(4, Math.min(x - box.width / 2, room - box.width - 4));
    const top = y - box.height - 14 < 4 ? y + 18 : y - box.height - 14;
    tip.style.transform = `translate(${left}px, ${top}px)`;
  }
  function show(mark, x, y) {
    if (shown !== mark) {
      hide();
      shown = mark;
      mark.classList.add("on");
      const [first, ...rest] = (mark.getAttribute("aria-label") || mark.dataset.tip).split(" · ");
      tip.replaceChildren(made("strong", first), ...rest.map((line) => made("span", line)));
      tip.hidden = false;
    }
    place(x, y);
  }
  function showFocused(mark) {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.top);
  }
  function near(x, y) {
    for (let reach = 0; reach <= 12; reach += 4) {
      for (let turn = 0; turn < (reach ? 8 : 1); turn += 1) {
        const angle = (turn * Math.PI) / 4;
        const hit = document.elementFromPoint(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
        if (hit && hit.classList.contains("tip")) return hit;
      }
    }
    return null;
  }
  function point(event) {
    const mark = near(event.clientX, event.clientY);
    if (mark) show(mark, event.clientX, event.clientY);
    else hide();
  }
  all(".chart").forEach((chart) => {
    const marks = all(".tip[aria-label]", chart);
    if (!marks.length) return;
    marks.forEach((mark, i) => { mark.tabIndex = i ? -1 : 0; });
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    chart.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    chart.addEventListener("focusin", (event) => {
      if (!event.target.classList.contains("tip")) return;
      marks.forEach((mark) => { mark.tabIndex = mark === event.target ? 0 : -1; });
      if (event.target.matches(":focus-visible")) showFocused(event.target);
    });
    chart.addEventListener("focusout", hide);
    chart.addEventListener("keydown", (event) => {
      const now = marks.indexOf(event.target), last = marks.length - 1;
      const to = {
        ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
        PageDown: now + 10, PageUp: now - 10, Home: 0, End: last,
      }[event.key];
      if (now < 0 || to === undefined) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(to, last))].focus();
    });
  });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", () => {
    if (shown && shown === document.activeElement) showFocused(shown);
    else hide();
  }, { passive: true, capture: true });

  /* words of the trade lead to where they are explained, the first time in each part */
  const explained = new Map(all("#glossary dt[data-words]").flatMap(
    (term) => term.dataset.words.split("|").map((word) => [word.toLowerCase(), term])));
  const longest = [...explained.keys()].sort((a, b) => b.length - a.length);
  const trade = new RegExp(`(?<![\\w-])(?:${longest.join("|")})(?![\\w-])`, "gi");
  function link(text, told) {
    for (const match of text.data.matchAll(trade)) {
      const term = explained.get(match[0].toLowerCase());
      if (told.has(term)) continue;
      told.add(term);
      const word = text.splitText(match.index), rest = word.splitText(match[0].length);
      const anchor = made("a", match[0]);
      Object.assign(anchor, { href: `#${term.id}`, className: "term", title: term.nextElementSibling.textContent });
      word.replaceWith(anchor);
      return link(rest, told);
    }
    return undefined;
  }
  if (explained.size) {
    const told = new Map();
    all("main :is(p, figcaption, caption, .card dt)").forEach((block) => {
      const part = block.closest("section[id]");
      if (part.id === "glossary") return;
      if (!told.has(part)) told.set(part, new Set());
      Array.from(block.childNodes).filter((node) => node.nodeType === Node.TEXT_NODE)
        .forEach((text) => link(text, told.get(part)));
    });
  }

  /* what is wider than the page scrolls in its own box, and says so */
  const boxes = all(".scroll").map((box) => {
    const hint = made("p", "Wider than the page: scroll sideways to see it all.");
    hint.className = "hint";
    box.after(hint);
    return { box, hint };
  });
  function measure() {
    boxes.forEach(({ box, hint }) => {
      const over = box.scrollWidth > box.clientWidth + 1;
      hint.hidden = !over;
      if (over && !box.querySelector(".tip[tabindex]")) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  all("details").forEach((one) => one.addEventListener("toggle", measure));
  addEventListener("resize", measure);
  measure();

  /* on paper all that is folded is open */
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("main details:not([open])");
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
})();
