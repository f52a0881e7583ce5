// Speaks to the service: JSON in, JSON out. A token, if the service wants one, lives until the tab is closed.

const TOKEN = "ranktron-token";

export class ServiceError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
  get forbidden() {
    return this.status === 401 || this.code === "wrong_scope";
  }
  get lost() {
    return this.status === 0;
  }
}

export function remember(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export async function call(method, path, body, patience = 10000) {
  const headers = { Accept: "application/json" };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(patience),
    });
    text = await response.text();
  } catch {
    throw new ServiceError(0, "unreachable", "The service does not answer.");
  }
  const answer = parsed(text);
  if (response.ok) return answer;
  const error = (answer && answer.error) || {};
  throw new ServiceError(response.status, error.code || "unknown", error.message || `The service said ${response.status}.`);
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

export const get = (path) => call("GET", path);
export const put = (path, body) => call("PUT", path, body);
export const post = (path, body) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);

export function rankerPath(name, ...rest) {
  return ["/v1/rankers", name, ...rest].map((part, place) => (place ? encodeURIComponent(part) : part)).join("/");
}

// Asks again and again, never twice at once, not while nobody looks, less often while nobody answers.
export function poll(ask, answered, failed, period = 1500) {
  let timer = null;
  let busy = false;
  let misses = 0;
  async function turn() {
    clearTimeout(timer);
    if (busy || document.hidden) return;
    busy = true;
    try {
      answered(await ask());
      misses = 0;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      misses += 1;
      failed(error);
    } finally {
      busy = false;
      timer = setTimeout(turn, period * Math.min(1 + misses, 4));
    }
  }
  document.addEventListener("visibilitychange", turn);
  turn();
  return turn;
}
