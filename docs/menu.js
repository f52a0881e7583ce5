// The menu of versions in the sidebar, where several stand side by side (`make site`); VERSIONS is in versions.js.
addEventListener("DOMContentLoaded", () => {
  const menu = document.querySelector(".versions select");
  if (!menu || VERSIONS.length < 2) return;
  menu.replaceChildren(...VERSIONS.map((name) => new Option(name, name, false, name === menu.dataset.here)));
  menu.disabled = false;
  menu.onchange = () => { location.href = `${menu.dataset.root}../${menu.value}/index.html`; };
});
