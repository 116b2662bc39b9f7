"use strict";
(function () {
  function key(cell) {
    var value = cell.getAttribute("data-value");
    return value === null ? cell.textContent.trim().toLowerCase() : Number(value);
  }
  function compare(a, b) {
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  }
  document.querySelectorAll("table").forEach(function (table) {
    var heads = table.querySelectorAll("thead th");
    heads.forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var body = table.tBodies[0];
        Array.from(body.rows)
          .sort(function (a, b) {
            var order = compare(key(a.cells[column]), key(b.cells[column]));
            return down ? -order : order;
          })
          .forEach(function (row) { body.appendChild(row); });
      });
    });
  });
  var box = document.querySelector(".search"), input = document.getElementById("find");
  var found = document.getElementById("found");
  box.hidden = false;
  input.addEventListener("input", function () {
    var wanted = input.value.trim().toLowerCase(), count = 0;
    document.querySelectorAll("table.words").forEach(function (table) {
      var here = 0;
      Array.from(table.tBodies[0].rows).forEach(function (row) {
        var match = row.textContent.toLowerCase().indexOf(wanted) >= 0;
        row.hidden = !match;
        if (match) here += 1;
      });
      count += here;
      var fold = table.closest("details");
      if (fold) fold.open = wanted !== "" && here > 0;
    });
    found.textContent = wanted === "" ? "" : count + (count === 1 ? " row" : " rows");
  });
})();
