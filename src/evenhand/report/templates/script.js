"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);
  const make = (tag, text = "", more = {}) =>
    Object.assign(document.createElement(tag), { textContent: text }, more);

  /* light and dark: the system's setting until the reader chooses */
  const root = document.documentElement, theme = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const saved = {
    get() { try { return localStorage.getItem("evenhand-theme"); } catch { return null; } },
    set(name) { try { localStorage.setItem("evenhand-theme", name); } catch { /* not saved */ } },
  };
  function paint() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    theme.setAttribute("aria-pressed", String(dark));
    return dark;
  }
  if (["light", "dark"].includes(saved.get())) root.dataset.theme = saved.get();
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = paint() ? "light" : "dark";
    saved.set(root.dataset.theme);
    paint();
  });
  system.addEventListener("change", paint);
  paint();

  /* tabs: each section of the page is a panel, its link in the contents the tab */
  const tabs = all("nav a"), panels = tabs.map((tab) => byId(tab.hash.slice(1)));
  const prepared = new Set();
  tabs[0].closest("ul").setAttribute("role", "tablist");
  tabs.forEach((tab, i) => {
    tab.id = `tab-${panels[i].id}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panels[i].id);
    tab.parentNode.setAttribute("role", "presentation");
    panels[i].setAttribute("role", "tabpanel");
    panels[i].setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("keydown", (event) => {
      const last = tabs.length - 1;
      const to = {
        ArrowRight: i === last ? 0 : i + 1, ArrowLeft: i ? i - 1 : last, Home: 0, End: last,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(tabs[to].hash);
      tabs[to].focus();
    });
  });
  function select(panel) {
    panels.forEach((other, i) => {
      const on = other === panel;
      other.classList.toggle("on", on);
      tabs[i].setAttribute("aria-selected", String(on));
      tabs[i].tabIndex = on ? 0 : -1;
      if (on) tabs[i].scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    if (!prepared.has(panel)) prepare(panel);
    prepared.add(panel);
    measure();
  }

  /* permalinks: #tab/place; what is on another tab or folded is opened */
  function reveal(element) {
    const panel = panels.find((one) => one.contains(element));
    if (panel && !panel.classList.contains("on")) select(panel);
    for (let fold = element.closest("details"); fold; fold = fold.parentNode.closest("details")) {
      fold.open = true;
    }
    return panel;
  }
  function path(element) {
    const panel = panels.find((one) => one.contains(element));
    return panel && panel !== element ? `#${panel.id}/${element.id}` : `#${element.id}`;
  }
  function go(hash) {
    const element = hash ? byId(decodeURIComponent(hash).split(/[#/]/).pop()) : panels[0];
    if (!element) return;
    reveal(element);
    if (hash && location.hash !== path(element)) history.replaceState(null, "", path(element));
    if (panels.includes(element)) scrollTo(0, 0);
    else element.scrollIntoView();
  }
  addEventListener("hashchange", () => go(location.hash));
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']"), element = link && byId(link.hash.slice(1));
    if (element) reveal(element); // before the browser goes there
  });

  /* what the sections of a tab need is made when the tab is first shown */
  function prepare(panel) {
    all("table", panel).forEach(equipTable);
    all("figure", panel).forEach(equipFigure);
    all(".chart", panel).forEach(equipChart);
    explain(panel);
    all("details", panel).forEach((fold) => fold.addEventListener("toggle", measure));
  }
  function button(text, label, act) {
    const made = make("button", text, { type: "button" });
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  }
  function tools(place, ...buttons) {
    const bar = make("p", "", { className: "tools" });
    const link = make("a", "Link", { href: path(place) });
    link.setAttribute("aria-label", `Link to ${name(place)}`);
    bar.append(...buttons, link);
    return bar;
  }
  const name = (place) => place.id.replace(/^figure-/, "");
  function save(content, file, type) {
    const blob = content instanceof Blob ? content : new Blob([content], { type });
    const link = make("a", "", { href: URL.createObjectURL(blob), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /* tables: sorted by a click on a heading, filtered, saved as CSV */
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  function compare(a, b, sign) { // rows without a number stay at the end whichever way it goes
    const [x, y] = [a, b].map((cell) => cell.dataset.value);
    if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
    if (x !== undefined || y !== undefined) return x !== undefined ? -1 : 1;
    return sign * order.compare(a.textContent.trim(), b.textContent.trim());
  }
  const single = /^[−-]?[\d.,]+(?:\s?%)?$/;
  function field(cell) { // a number as computed, all else as shown
    const text = cell.textContent.trim().replace(/\s+/g, " "), value = cell.dataset.value;
    if (value !== undefined && single.test(text)) return value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  function csv(table) {
    const rows = [table.tHead.rows[0], ...Array.from(table.tBodies[0].rows).filter((row) => !row.hidden)];
    return rows.map((row) => `${Array.from(row.cells, field).join(",")}\r\n`).join("");
  }
  function equipTable(table) {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const sort = make("button", head.textContent, { type: "button" });
      head.replaceChildren(sort);
      sort.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        body.append(...Array.from(body.rows).sort(
          (a, b) => compare(a.cells[column], b.cells[column], sign)));
      });
    });
    const place = table.id ? table : table.closest("details[id]");
    if (!place) return;
    const about = table.caption.textContent, box = table.closest(".scroll") || table;
    const bar = tools(place, button("CSV", `Save as CSV: ${about}`, () => save(csv(table), `${place.id}.csv`, "text/csv")));
    if (body.rows.length > 8) {
      const filter = make("input", "", { type: "search", placeholder: "Filter rows", autocomplete: "off" });
      const count = make("span", "", { className: "count" });
      filter.setAttribute("aria-label", `Filter the rows of: ${about}`);
      count.setAttribute("role", "status");
      filter.addEventListener("input", () => {
        const wanted = filter.value.trim().toLowerCase();
        Array.from(body.rows).forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
        const left = Array.from(body.rows).filter((row) => !row.hidden).length;
        count.textContent = wanted ? `${left} of ${body.rows.length} rows` : "";
      });
      bar.prepend(filter, count);
      box.before(bar);
    } else box.after(bar);
  }

  /* charts: saved as SVG and PNG, as drawn for the width of the window */
  const phone = matchMedia("(max-width: 40rem)");
  const drawn = (figure) => (phone.matches && figure.querySelector("svg.narrow")) || figure.querySelector("svg");
  function svg(figure) {
    return new XMLSerializer().serializeToString(drawn(figure));
  }
  function png(figure) {
    return new Promise((done, fail) => {
      const { width, height } = drawn(figure).viewBox.baseVal, picture = new Image();
      picture.onload = () => {
        const canvas = make("canvas", "", { width: 2 * width, height: 2 * height });
        canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
        canvas.toBlob(done, "image/png");
      };
      picture.onerror = fail;
      picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg(figure))}`;
    });
  }
  function equipFigure(figure) {
    const about = name(figure);
    figure.append(tools(figure,
      button("SVG", `Save as SVG: ${about}`, () => save(svg(figure), `${about}.svg`, "image/svg+xml")),
      button("PNG", `Save as PNG: ${about}`, async () => save(await png(figure), `${about}.png`))));
  }

  /* search: Enter and the arrows go from match to match, on all tabs, in folds and in charts */
  const input = byId("find"), found = byId("found"), before = byId("before"), after = byId("after");
  const PLACES = "main :is(h1, h2, h3, h4, p:not(.tools), summary, figcaption, tbody tr, li, dt, dd, .tip[aria-label])";
  let matches = [], at = -1;
  function say() {
    const many = matches.length;
    const panel = at < 0 ? null : panels.findIndex((one) => one.contains(matches[at]));
    found.textContent = !input.value.trim() ? "" : many === 0 ? "nothing found"
      : at < 0 ? `${many} found` : `${at + 1} of ${many}: ${tabs[panel].textContent}`;
    before.disabled = after.disabled = many === 0;
  }
  function clear() {
    if (at >= 0) matches[at].classList.remove("current");
    hide();
  }
  function look() {
    clear();
    const wanted = input.value.trim().toLowerCase(), size = phone.matches ? "svg:not(.narrow)" : "svg.narrow";
    matches = !wanted ? [] : all(PLACES).filter((element) => !element.hidden && !element.closest(size)
      && (element.getAttribute("aria-label") || element.textContent).toLowerCase().includes(wanted));
    at = -1;
    say();
  }
  function jump(step) {
    if (!matches.length) return;
    clear();
    at = at < 0 ? (step > 0 ? 0 : matches.length - 1) : (at + step + matches.length) % matches.length;
    reveal(matches[at]);
    matches[at].classList.add("current");
    matches[at].scrollIntoView({ block: "center" });
    if (matches[at].classList.contains("tip")) showAt(matches[at]);
    say();
  }
  document.querySelector(".search").hidden = false;
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); jump(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { input.value = ""; look(); }
  });
  before.addEventListener("click", () => jump(-1));
  after.addEventListener("click", () => jump(1));

  /* what a mark is: by pointer, by touch, by keyboard */
  const tip = make("div", "", { id: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  let shown = null;
  function hide() {
    if (shown) shown.classList.remove("on");
    shown = null;
    tip.hidden = true;
  }
  function show(mark, x, y) {
    if (shown !== mark) {
      hide();
      shown = mark;
      mark.classList.add("on");
      const [first, ...rest] = (mark.getAttribute("aria-label") || mark.dataset.tip).split(" · ");
      tip.replaceChildren(make("strong", first), ...rest.map((line) => make("span", line)));
      tip.hidden = false;
    }
    const box = tip.getBoundingClientRect(), room = root.clientWidth;
    const left = Math.max(4, Math.min(x - box.width / 2, room - box.width - 4));
    const top = y - box.height - 14 < 4 ? y + 18 : y - box.height - 14;
    tip.style.transform = `translate(${left}px, ${top}px)`;
  }
  function showAt(mark) {
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
  const marksOf = (svg) => all(".tip[aria-label]", svg);
  function equipChart(chart) {
    all("svg", chart).forEach((svg) => marksOf(svg).forEach((mark, i) => { mark.tabIndex = i ? -1 : 0; }));
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    chart.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    chart.addEventListener("focusin", (event) => {
      if (!event.target.classList.contains("tip")) return;
      marksOf(event.target.ownerSVGElement).forEach((mark) => { mark.tabIndex = mark === event.target ? 0 : -1; });
      if (event.target.matches(":focus-visible")) showAt(event.target);
    });
    chart.addEventListener("focusout", hide);
    chart.addEventListener("keydown", (event) => {
      if (!event.target.classList.contains("tip")) return;
      const marks = marksOf(event.target.ownerSVGElement);
      const now = marks.indexOf(event.target), last = marks.length - 1;
      const to = {
        ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
        PageDown: now + 10, PageUp: now - 10, Home: 0, End: last,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      marks[Math.max(0, Math.min(to, last))].focus();
    });
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", () => {
    if (shown && (shown === document.activeElement || shown.classList.contains("current"))) showAt(shown);
    else hide();
  }, { passive: true, capture: true });

  /* technical words lead to where they are explained, the first time in each part */
  const explained = new Map(all("#glossary dt[data-words]").flatMap(
    (term) => term.dataset.words.split("|").map((word) => [word.toLowerCase(), term])));
  const longest = [...explained.keys()].sort((a, b) => b.length - a.length);
  const technical = new RegExp(`(?<![\\w-])(?:${longest.join("|")})(?![\\w-])`, "gi");
  function link(text, linked) {
    for (const match of text.data.matchAll(technical)) {
      const term = explained.get(match[0].toLowerCase());
      if (linked.has(term)) continue;
      linked.add(term);
      const word = text.splitText(match.index), rest = word.splitText(match[0].length);
      word.replaceWith(make("a", match[0],
        { href: `#${term.id}`, className: "term", title: term.nextElementSibling.textContent }));
      link(rest, linked);
      return;
    }
  }
  function explain(panel) {
    if (!explained.size || panel.id === "glossary") return;
    const linked = new Map();
    all(":is(p:not(.tools), figcaption, caption, .card dt)", panel).forEach((block) => {
      const part = block.closest("section[id]");
      if (!linked.has(part)) linked.set(part, new Set());
      Array.from(block.childNodes).filter((node) => node.nodeType === Node.TEXT_NODE)
        .forEach((text) => link(text, linked.get(part)));
    });
  }

  /* what is wider than the page scrolls in its own box, and says so */
  function measure() {
    all("main > .on .scroll").forEach((box) => {
      const over = box.scrollWidth > box.clientWidth + 1;
      let hint = box.nextElementSibling;
      if (!hint || hint.className !== "hint") {
        hint = make("p", "Wider than the page: scroll sideways to see it all.", { className: "hint" });
        box.after(hint);
      }
      hint.hidden = !over;
      if (over && !box.querySelector(".tip[tabindex]")) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("resize", measure);

  /* on paper all that is folded is open */
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("main details:not([open])");
    closed.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((fold) => { fold.open = false; }));

  select(panels[0]);
  if (location.hash) go(location.hash);
})();
