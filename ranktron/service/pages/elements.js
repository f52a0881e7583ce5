// Elements from values. Whatever comes from the server becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined).map(asNode));
  return node;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// What the marks of a drawing mean: a text and a sample for each.
export function legend(entries) {
  const picture = { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true", class: "curve" };
  const entry = ([text, sample]) => element("li", {}, drawing("svg", picture, sample), text);
  return element("ul", { class: "legend" }, entries.map(entry));
}

// Sets a text only if it changed: selections survive, screen readers are not told the same thing twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes the children of a node those of a list, by key: what stays is kept, what moved is moved, the rest goes.
export function keep(parent, items, keyOf, make, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = document.activeElement;
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = known.get(key);
    if (child) known.delete(key);
    else {
      child = make(item);
      child.dataset.key = key;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of known.values()) child.remove();
  // A node that moves loses the focus.
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}

export function count(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en") : "–";
}

export function signed(value, digits = 3) {
  const text = number(Math.abs(value), digits);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

export function share(value) {
  return Number.isFinite(value) ? `${number(100 * value, value > 0 && value < 0.0995 ? 1 : 0)} %` : "–";
}

export function duration(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.0995) return `${number(1000 * seconds, seconds < 0.00995 ? 1 : 0)} ms`;
  if (seconds < 99.5) return `${number(seconds, seconds < 9.95 ? 1 : 0)} s`;
  if (seconds < 5970) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${number(seconds / 3600, 1)} h`;
  return `${number(seconds / 86400, 1)} d`;
}

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, value > 0 ? Math.floor(Math.log10(value) / 3) : 0);
  return `${number(value / 1000 ** step, step ? 1 : 0)} ${units[step]}`;
}

// Watches how wide a node is; drawings are made for the width they have, so that their text keeps its size.
export function onWidth(node, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(node.clientWidth);
    if (now !== width && now > 0) draw((width = now));
  }).observe(node);
}
