// The nodes of a fleet, if this process is one of them.

import { get } from "./client.js";
import { $, element, setText, showTable } from "./elements.js";
import { formatDuration, formatNumber, formatRate, t } from "./text.js";

const isUp = (node) => node.state !== "missing";

function stateOf(node) {
    const kind = node.problem ? "bad" : node.state === "active" ? "good" : "muted";
    return element("span", { class: kind }, t(`node-${node.state}`));
}

function problemOf(node) {
    switch (node.problem) {
        case "missing": return t("nodeSilent");
        case "clock": return t("clockOff", { time: formatDuration(Math.abs(node.clockOffsetSeconds)) });
        case "lag": return t("nodeBehind", { time: formatDuration(node.lagSeconds) });
        case "fault": return node.fault;
        default: return t("none");
    }
}

export async function showFleet() {
    const fleet = await get("/fleet");
    const up = fleet.nodes.filter(isUp).length;
    setText($("fleet-count"), t("fleetCount", {
        realm: fleet.realm, up: formatNumber(up), nodes: formatNumber(fleet.nodes.length), users: formatNumber(fleet.users),
    }));
    setText($("fleet-fault"), fleet.fault ?? "");
    const whenUp = (node, text) => (isUp(node) ? text : t("none"));
    showTable($("node-table"), {
        caption: t("fleet"),
        empty: t("none"),
        key: (node) => node.id,
        rows: fleet.nodes,
        columns: [
            { title: t("node"), cell: (node) => (node.id === fleet.node ? t("thisNode", { name: node.name }) : node.name) },
            { title: t("state"), version: (node) => `${node.state} ${node.problem} ${t("none")}`, cell: stateOf },
            { title: t("version"), cell: (node) => node.version ?? t("none") },
            { title: t("uptime"), class: "number", cell: (node) => whenUp(node, formatDuration(node.uptime ?? 0)) },
            { title: t("sessionsOpen"), class: "number", cell: (node) => whenUp(node, formatNumber(node.sessions)) },
            { title: t("down"), class: "number", cell: (node) => whenUp(node, formatRate(node.downRate)) },
            { title: t("up"), class: "number", cell: (node) => whenUp(node, formatRate(node.upRate)) },
            { title: t("users"), class: "number", cell: (node) => whenUp(node, formatNumber(node.users)) },
            { title: t("weight"), class: "number", cell: (node) => formatNumber(node.weight) },
            { title: t("problem"), cell: problemOf },
        ],
    });
}
