// Requests to the API, and its event stream.
//
// A login has a cookie, which the page cannot read, and a key, which it keeps for its origin and sends with each request.

const KEY = "adit-key";

// An answer of the API that is not the wanted one.
export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

function headers(body) {
    const all = {};
    const key = localStorage.getItem(KEY);
    if (key) all["Adit-Key"] = key;
    if (body !== undefined) all["Content-Type"] = "application/json";
    return all;
}

export async function request(method, path, body) {
    const options = { method, headers: headers(body), cache: "no-store" };
    if (body !== undefined) options.body = JSON.stringify(body);
    const response = await fetch(path, options);
    const text = await response.text();
    const found = text && response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : null;
    if (!response.ok) throw new ApiError(response.status, found?.error ?? response.statusText);
    return found;
}

export const get = (path) => request("GET", path);

// Returns true if this adit has this part of the API.
export async function hasPart(path) {
    try {
        await get(path);
        return true;
    } catch (error) {
        if (error instanceof ApiError && error.status !== 401) return false;
        throw error;
    }
}

export const hasLogin = () => localStorage.getItem(KEY) !== null;

// Exchanges a token for a cookie and a key.
export async function logIn(token) {
    const { key } = await request("POST", "/dashboard/login", { token });
    localStorage.setItem(KEY, key);
}

export async function logOut() {
    await request("POST", "/dashboard/logout", {});
    localStorage.removeItem(KEY);
}

// Returns the token in the address of the page, which is removed from it.
export function takeTokenFromAddress() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token) history.replaceState(null, "", location.pathname);
    return token;
}

// Calls `onEvent` with the data of each event until the stream ends.
async function readEvents(onEvent, signal) {
    const response = await fetch("/events", { headers: headers(), cache: "no-store", signal });
    if (!response.ok) throw new ApiError(response.status, response.statusText);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffered = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        buffered += value;
        const events = buffered.split("\n\n");
        buffered = events.pop();
        for (const event of events) {
            const data = event.split("\n").find((line) => line.startsWith("data: "));
            if (data) onEvent(JSON.parse(data.slice(6)));
        }
    }
}

// Follows the event stream for ever, and opens it again when it ends. `onState` receives `true` while there are events.
export async function followEvents({ onEvent, onState, onLoginNeeded, signal }) {
    let pause = 1000;
    while (!signal.aborted) {
        try {
            await readEvents((event) => {
                pause = 1000;
                onState(true);
                onEvent(event);
            }, signal);
        } catch (error) {
            if (error instanceof ApiError && error.status === 401) return onLoginNeeded();
        }
        if (signal.aborted) return;
        onState(false);
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, 15000);
    }
}
