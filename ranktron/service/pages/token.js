// Asks for a token when the service wants one.

import { remember } from "/static/api.js";
import { element, say } from "/static/elements.js";

export class TokenForm {
  constructor(parent, retry) {
    this.reason = element("p");
    this.value = element("input", { id: "token-value", type: "password", autocomplete: "off", spellcheck: "false", required: true });
    this.node = element(
      "form",
      { class: "panel token", hidden: true, onsubmit: (event) => this.submit(event, retry) },
      element("h2", {}, "Token required"),
      this.reason,
      element("label", { for: "token-value" }, "Bearer token"),
      element("div", { class: "row" }, this.value, element("button", { type: "submit" }, "Use this token")),
      element("p", { class: "note" }, "The token is kept in this tab only, and forgotten when the tab is closed."),
    );
    parent.prepend(this.node);
  }

  show(message) {
    say(this.reason, message);
    if (!this.node.hidden) return;
    this.node.hidden = false;
    this.value.focus();
  }

  hide() {
    this.node.hidden = true;
  }

  submit(event, retry) {
    event.preventDefault();
    remember(this.value.value.trim());
    this.value.value = "";
    retry();
  }
}
