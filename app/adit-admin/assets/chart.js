// A chart of two rates over time, drawn as SVG.

import { formatDuration, formatRate, t } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 160;
const LEFT = 66;
const BOTTOM = 18;
const TOP = 8;

function svg(name, attributes, ...children) {
    const created = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
    created.append(...children);
    return created;
}

// Returns a round number of at least `value`, for the top of the axis.
function roundUp(value) {
    const step = 10 ** Math.floor(Math.log10(Math.max(value, 1000)));
    for (const factor of [1, 2, 4, 5, 10]) {
        if (factor * step >= value) return factor * step;
    }
    return 10 * step;
}

export class Chart {
    // Draws into `place`. `interval` is the time between two values, `length` their maximum number.
    constructor(place, { title, interval, length }) {
        this.place = place;
        this.title = title;
        this.interval = interval;
        this.length = length;
        this.up = [];
        this.down = [];
        this.cursor = null;
        this.image = svg("svg", { role: "img" });
        this.legend = document.createElement("p");
        this.legend.className = "legend";
        this.labels = ["down", "up", "when"].map((name) => {
            const label = document.createElement("span");
            label.className = name;
            this.legend.append(label);
            return label;
        });
        place.replaceChildren(this.image, this.legend);
        this.image.addEventListener("pointermove", (event) => this.moveCursor(event));
        this.image.addEventListener("pointerleave", () => {
            this.cursor = null;
            this.draw();
        });
        new ResizeObserver(() => this.draw()).observe(place);
    }

    setValues(up, down) {
        this.up = up.slice(-this.length);
        this.down = down.slice(-this.length);
        this.draw();
    }

    add(up, down) {
        this.setValues([...this.up, up], [...this.down, down]);
    }

    moveCursor(event) {
        const box = this.image.getBoundingClientRect();
        const share = (event.clientX - box.left - LEFT) / (box.width - LEFT);
        const back = Math.round((1 - share) * (this.length - 1));
        const at = this.up.length - 1 - back;
        this.cursor = at >= 0 && at < this.up.length ? at : null;
        this.draw();
    }

    draw() {
        const width = this.place.clientWidth;
        if (width === 0) return;
        const top = roundUp(Math.max(1, ...this.up, ...this.down));
        const x = (at) => LEFT + ((width - LEFT) * (this.length - this.up.length + at)) / (this.length - 1);
        const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
        const points = (values) => values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
        const children = [];
        for (const share of [0, 0.5, 1]) {
            const height = y(top * share);
            children.push(svg("line", { class: "grid", x1: LEFT, x2: width, y1: height, y2: height }));
            children.push(svg("text", { x: LEFT - 6, y: height + 4, "text-anchor": "end" }, formatRate(top * share)));
        }
        const span = this.interval * this.length;
        for (const [share, anchor] of [[0, "start"], [0.5, "middle"]]) {
            const ago = t("ago", { time: formatDuration(span * (1 - share)) });
            children.push(svg("text", { x: LEFT + (width - LEFT) * share, y: HEIGHT - 3, "text-anchor": anchor }, ago));
        }
        if (this.up.length > 0) {
            const floor = y(0);
            const area = `${x(0).toFixed(1)},${floor} ${points(this.down)} ${x(this.down.length - 1).toFixed(1)},${floor}`;
            children.push(svg("polygon", { class: "area", points: area }));
            children.push(svg("polyline", { class: "down", points: points(this.down) }));
            children.push(svg("polyline", { class: "up", points: points(this.up) }));
        }
        const at = this.cursor ?? this.up.length - 1;
        if (this.cursor !== null) {
            children.push(svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }));
        }
        const [down, up] = [formatRate(this.down[at] ?? 0), formatRate(this.up[at] ?? 0)];
        const back = (this.up.length - 1 - at) * this.interval;
        this.image.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
        this.image.setAttribute("aria-label", t("chartLabel", { title: t(this.title), down, up }));
        this.image.replaceChildren(...children);
        this.labels[0].textContent = `${t("down")} ${down}`;
        this.labels[1].textContent = `${t("up")} ${up}`;
        this.labels[2].textContent = this.cursor !== null ? t("ago", { time: formatDuration(back) }) : "";
    }
}
