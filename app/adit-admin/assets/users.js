// The users of the process: limits, usage, keys.

import { get, request } from "./client.js";
import { $, element, openDialog, showTable } from "./elements.js";
import { formatBytes, formatDate, formatNumber, formatPercent, formatRate, t } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const PERIODS = ["total", "day", "week", "month"];
const GIGABYTE = 1e9;
const MEGABYTE = 1e6;

let refresh = () => {};

const pathOf = (account, more = "") => `/accounts/${encodeURIComponent(account.name)}${more}`;

// Shows the users. `onChange` is called after a change.
export async function showUsers(onChange) {
    refresh = onChange;
    $("add-user").onclick = addUser;
    const { accounts } = await get("/accounts");
    showTable($("user-table"), {
        caption: t("users"),
        empty: t("noUsers"),
        key: (account) => account.name,
        rows: accounts,
        columns: [
            { title: t("name"), cell: (account) => account.name },
            { title: t("state"), cell: stateOf },
            { title: t("used"), cell: usageOf },
            { title: t("limits"), cell: limitsOf },
            { title: t("expires"), cell: (account) => (account.expires ? formatDate(account.expires) : t("none")) },
            { title: t("sessionsOpen"), class: "number", cell: (account) => formatNumber(account.sessionsOpen) },
            { title: t("actions"), class: "actions", version: () => "", cell: buttonsOf },
        ],
    });
}

function stateOf(account) {
    return element("span", { class: account.state === "active" ? "good" : "bad" }, t(account.state));
}

function usageOf(account) {
    const used = account.usedUp + account.usedDown;
    if (!account.quota) return formatBytes(used);
    const share = Math.min(1, used / account.quota);
    const text = `${formatBytes(used)} / ${formatBytes(account.quota)} ${t(account.period)}`;
    const bar = document.createElementNS(SVG, "svg");
    const filled = document.createElementNS(SVG, "rect");
    filled.setAttribute("width", `${share * 100}%`);
    filled.setAttribute("height", "100%");
    bar.setAttribute("class", share >= 1 ? "quota full" : "quota");
    bar.setAttribute("width", "100%");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", formatPercent(used, account.quota));
    bar.append(filled);
    return element("div", {}, text, bar);
}

function limitsOf(account) {
    const limits = [];
    if (account.rate) limits.push(formatRate(account.rate));
    if (account.sessions) limits.push(`${t("sessionsField")}: ${formatNumber(account.sessions)}`);
    if (account.devices) limits.push(`${t("devicesField")}: ${formatNumber(account.devices)}`);
    return limits.join(" · ") || t("unlimited");
}

function buttonsOf(account) {
    const button = (text, click, danger) =>
        element("button", { type: "button", class: danger && "danger", "aria-label": `${text}: ${account.name}`, click }, text);
    return element(
        "div",
        {},
        button(t("limits"), () => changeLimits(account.name)),
        button(t("show"), () => showKeys(account)),
        button(t("rotate"), () => rotate(account)),
        button(t("remove"), () => remove(account), true),
    );
}

function changed() {
    setTimeout(refresh, 100);
}

// ── Dialogs ──

function addUser() {
    const name = element("input", { name: "name", required: true, maxlength: 255, autocomplete: "off", spellcheck: "false" });
    const fields = limitFields({ period: "total" });
    openDialog({
        title: t("addUser"),
        body: [element("form", {}, element("label", {}, t("name"), name), ...fields.elements, element("button", { hidden: true }))],
        button: t("add"),
        act: async () => {
            if (!name.reportValidity()) return false;
            const limits = Object.fromEntries(Object.entries(fields.read()).filter(([, value]) => value !== null));
            const issued = await request("POST", "/accounts", { name: name.value, limits });
            changed();
            await showIssued(name.value, issued.credentials);
            return false;
        },
    });
    name.focus();
}

async function changeLimits(name) {
    const account = await get(pathOf({ name }));
    const fields = limitFields(account);
    openDialog({
        title: t("limitsTitle", { name }),
        body: [element("form", {}, ...fields.elements, element("button", { hidden: true }))],
        button: t("save"),
        act: async () => {
            if (fields.inputs.some((input) => !input.reportValidity())) return false;
            await request("PUT", pathOf(account, "/limits"), fields.read());
            changed();
        },
    });
}

// Creates the inputs of the limits, with the values of an account.
function limitFields(account) {
    const number = (value, step) => element("input", { type: "number", min: step, step, inputmode: "decimal", value });
    const scaled = (value, unit) => (value ? String(value / unit) : "");
    const quota = number(scaled(account.quota, GIGABYTE), "any");
    const rate = number(scaled(account.rate, MEGABYTE), "any");
    const sessions = number(account.sessions ?? "", "1");
    const devices = number(account.devices ?? "", "1");
    const date = account.expires ? new Date(account.expires * 1000).toISOString().slice(0, 10) : "";
    const expires = element("input", { type: "date", value: date });
    const period = element("select", {}, ...PERIODS.map((name) => element("option", { value: name, selected: name === account.period }, t(name))));
    const label = (key, input) => element("label", {}, t(key), input);
    const whole = (input, unit) => (input.value === "" ? null : Math.round(Number(input.value) * unit));
    return {
        inputs: [quota, rate, sessions, devices, expires],
        elements: [
            element("div", { class: "two" }, label("quotaField", quota), label("period", period)),
            element("div", { class: "two" }, label("rateField", rate), label("expiresField", expires)),
            element("div", { class: "two" }, label("sessionsField", sessions), label("devicesField", devices)),
        ],
        read: () => ({
            quota: whole(quota, GIGABYTE),
            period: period.value,
            rate: whole(rate, MEGABYTE),
            sessions: whole(sessions, 1),
            devices: whole(devices, 1),
            expires: expires.value === "" ? null : Date.parse(expires.value) / 1000,
        }),
    };
}

function remove(account) {
    openDialog({
        title: t("removeTitle", { name: account.name }),
        body: [element("p", {}, t("removeText"))],
        button: t("remove"),
        danger: true,
        act: async () => {
            await request("DELETE", pathOf(account));
            changed();
        },
    });
}

function rotate(account) {
    openDialog({
        title: t("rotateTitle", { name: account.name }),
        body: [element("p", {}, t("rotateText"))],
        button: t("rotate"),
        danger: true,
        act: async () => {
            const issued = await request("POST", pathOf(account, "/rotate"), {});
            changed();
            await showIssued(account.name, issued.credentials);
            return false;
        },
    });
}

// Shows the keys of a user, if the token may read them.
async function showKeys(account) {
    try {
        const found = await get(pathOf(account, "?reveal=1"));
        await showIssued(account.name, found.credentials);
    } catch (error) {
        openDialog({ title: t("credentials", { name: account.name }), body: [element("p", {}, t("failed", { why: error.message }))] });
    }
}

// Shows URLs with their QR codes.
async function showIssued(name, credentials) {
    const parts = await Promise.all(credentials.map(showCredential));
    openDialog({
        title: t("credentials", { name }),
        body: [element("p", { class: "muted" }, t("keysText")), ...parts],
    });
}

async function showCredential({ listener, secret, url, note }) {
    const shown = url ?? secret;
    const copy = element("button", {
        type: "button",
        click: async () => {
            await navigator.clipboard.writeText(shown);
            copy.textContent = t("copied");
        },
    }, t("copy"));
    const heading = element("h3", {}, listener);
    const about = url ? null : element("p", { class: "muted" }, t("secret"));
    const code = url ? await drawQrCode(url) : null;
    const remark = note ? element("p", { class: "muted" }, note) : null;
    return element("section", {}, ...[heading, about, element("p", { class: "secret" }, shown), remark, copy, code].filter(Boolean));
}

async function drawQrCode(text) {
    const { size, rows } = await request("POST", "/dashboard/qr", { text });
    const quiet = 4;
    const image = document.createElementNS(SVG, "svg");
    const modules = document.createElementNS(SVG, "path");
    let path = "";
    rows.forEach((row, y) => {
        for (let x = 0; x < size; x += 1) {
            if (row[x] === "1") path += `M${x + quiet} ${y + quiet}h1v1h-1z`;
        }
    });
    modules.setAttribute("d", path);
    modules.setAttribute("fill", "#000");
    image.setAttribute("viewBox", `0 0 ${size + 2 * quiet} ${size + 2 * quiet}`);
    image.setAttribute("class", "qr");
    image.setAttribute("role", "img");
    image.setAttribute("aria-label", t("qrLabel"));
    image.setAttribute("shape-rendering", "crispEdges");
    image.append(modules);
    return image;
}
