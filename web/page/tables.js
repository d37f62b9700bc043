// Tables whose cells change in place: whoever reads one does not lose the row.

// A cell is a text or a number, an element, or {text, kind} with a class.
function fill(cell, value) {
  if (value instanceof Element) {
    cell.replaceChildren(value);
    cell.dataset.text = "";
    return;
  }
  const { text, kind } = typeof value === "object" ? value : { text: value, kind: "" };
  const now = String(text);
  if (cell.firstElementChild || cell.textContent !== now) cell.textContent = now;
  cell.className = (cell.dataset.base + " " + kind).trim();
}

export class Table {
  // columns: {title, base: class, sort: name} ; sorted: called with a column's name.
  constructor(table, columns, sorted = null) {
    this.columns = columns;
    this.body = table.tBodies[0];
    this.rows = new Map();
    this.heads = new Map();
    const row = table.tHead.insertRow();
    for (const column of columns) {
      const head = document.createElement("th");
      head.scope = "col";
      head.className = column.base ?? "";
      if (sorted && column.sort) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = column.title;
        button.addEventListener("click", () => sorted(column.sort));
        head.append(button);
        this.heads.set(column.sort, head);
      } else {
        head.textContent = column.title;
      }
      row.append(head);
    }
  }

  setOrder(name, descending) {
    for (const [column, head] of this.heads) {
      if (column === name) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  // rows: {key, cells}. none: what is said instead of rows.
  show(rows, none) {
    const keys = new Set(rows.map((row) => row.key));
    for (const [key, row] of this.rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.empty?.remove();
    this.empty = null;
    rows.forEach((row, place) => {
      const element = this.rows.get(row.key) ?? this.#make(row.key);
      row.cells.forEach((value, i) => fill(element.cells[i], value));
      if (this.body.rows[place] !== element) this.body.insertBefore(element, this.body.rows[place] ?? null);
    });
    if (rows.length === 0) this.#say(none);
  }

  #make(key) {
    const row = document.createElement("tr");
    this.columns.forEach((column, i) => {
      const cell = document.createElement(i === 0 ? "th" : "td");
      if (i === 0) cell.scope = "row";
      cell.dataset.base = column.base ?? "";
      row.append(cell);
    });
    this.rows.set(key, row);
    return row;
  }

  #say(text) {
    this.empty = this.body.insertRow();
    const cell = this.empty.insertCell();
    cell.colSpan = this.columns.length;
    cell.className = "none";
    cell.textContent = text;
  }
}

// A bar for a part from 0 to 1, a mark where it should be, and the text that says both.
export function bar(part, mark, text) {
  const whole = document.createElement("span");
  whole.className = "measure";
  if (part !== null) {
    const frame = document.createElement("span");
    frame.className = "bar";
    frame.setAttribute("aria-hidden", "true");
    const inner = document.createElement("i");
    inner.style.width = 100 * Math.min(part, 1) + "%";
    frame.append(inner);
    if (mark !== null) {
      const line = document.createElement("b");
      line.style.left = `calc(${100 * Math.min(mark, 1)}% - 1px)`;
      frame.append(line);
    }
    whole.append(frame);
  }
  whole.append(text);
  return whole;
}
