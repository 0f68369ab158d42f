// Elements of the page: tables, lists of facts, and the dialog.

import { t } from "./text.js";

export const $ = (id) => document.getElementById(id);

// Creates an element. Properties that are functions are listeners; children are elements or texts.
export function element(name, properties = {}, ...children) {
    const created = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
        if (value === undefined || value === null || value === false) continue;
        if (typeof value === "function") created.addEventListener(key, value);
        else if (key === "class") created.className = value;
        else created.setAttribute(key, value === true ? "" : value);
    }
    created.append(...children.filter((child) => child !== null && child !== undefined));
    return created;
}

export function setText(target, text) {
    if (target.textContent !== text) target.textContent = text;
}

// Shows names and values in a `dl`, and changes only the texts that differ.
export function showFacts(list, facts) {
    const shape = facts.map(([name]) => name).join("\n");
    if (list.dataset.shape !== shape) {
        list.dataset.shape = shape;
        list.replaceChildren(...facts.map(([name]) => element("div", {}, element("dt", {}, name), element("dd"))));
    }
    facts.forEach(([, value], at) => setText(list.children[at].lastChild, value));
}

// Shows rows in a table. Each column has a `title` and returns the `cell` of a row: a text or an element. Rows keep their
// elements, found by `key`, so that the focus stays where it is.
export function showTable(place, { caption, columns, rows, key, empty }) {
    if (rows.length === 0) {
        place.replaceChildren(element("p", { class: "empty" }, empty));
        return;
    }
    const shape = columns.map((column) => column.title).join("\n");
    let table = place.querySelector("table");
    if (!table || table.dataset.shape !== shape) {
        const head = columns.map((column) => element("th", { scope: "col", class: column.class }, column.title));
        table = element(
            "table",
            { class: "wide", "data-shape": shape },
            element("caption", { class: "hidden" }, caption),
            element("thead", {}, element("tr", {}, ...head)),
            element("tbody"),
        );
        place.replaceChildren(table);
    }
    const body = table.tBodies[0];
    const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
    let before = null;
    for (const entry of rows) {
        const name = String(key(entry));
        let row = known.get(name);
        known.delete(name);
        if (!row) {
            const cell = (column, at) =>
                element(at === 0 ? "th" : "td", { class: column.class, scope: at === 0 && "row", "data-name": column.title });
            row = element("tr", { "data-key": name }, ...columns.map(cell));
        }
        columns.forEach((column, at) => {
            const cell = row.children[at];
            // A cell with buttons changes only with its version, so that the focus stays.
            const version = column.version && String(column.version(entry));
            if (version !== undefined && cell.dataset.version === version) return;
            if (version !== undefined) cell.dataset.version = version;
            const content = column.cell(entry);
            if (typeof content === "string") setText(cell, content);
            else cell.replaceChildren(content);
        });
        const next = before ? before.nextSibling : body.firstChild;
        if (next !== row) body.insertBefore(row, next);
        before = row;
    }
    for (const row of known.values()) row.remove();
}

// Opens the dialog. `act` runs when the first button is pressed; the dialog stays open if it fails.
export function openDialog({ title, body = [], button, danger, act }) {
    const dialog = $("dialog");
    $("dialog-title").textContent = title;
    $("dialog-body").replaceChildren(...body);
    $("dialog-error").textContent = "";
    const dismiss = element("button", { type: "button", click: () => dialog.close() }, act ? t("cancel") : t("close"));
    const buttons = [dismiss];
    if (act) {
        const run = async () => {
            confirm.disabled = true;
            try {
                if ((await act()) !== false) dialog.close();
            } catch (error) {
                $("dialog-error").textContent = t("failed", { why: error.message });
            }
            confirm.disabled = false;
        };
        const confirm = element("button", { type: "button", class: danger ? "danger" : "primary", click: run }, button);
        buttons.push(confirm);
        const form = dialog.querySelector("form");
        form?.addEventListener("submit", (event) => {
            event.preventDefault();
            run();
        });
    }
    $("dialog-buttons").replaceChildren(...buttons);
    if (!dialog.open) dialog.showModal();
}
