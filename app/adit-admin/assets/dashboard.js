// The dashboard: login, tabs, and everything that the event stream shows.

import { Chart } from "./chart.js";
import { ApiError, followEvents, get, hasLogin, hasPart, logIn, logOut, request, takeTokenFromAddress } from "./client.js";
import { $, element, openDialog, showFacts, showTable } from "./elements.js";
import { showFleet } from "./fleet.js";
import {
    formatBytes, formatDuration, formatMilliseconds, formatNumber, formatPercent, formatRate, formatTime,
    preferredLanguage, setLanguage, t,
} from "./text.js";
import { showUsers } from "./users.js";

const TABS = ["overview", "sessions", "groups", "users", "fleet"];
const MAX_SESSIONS = 200;
const LIVE_SECONDS = 120;

let tab = "overview";
let overview = null;
let sessions = null;
let charts = null;
let following = null;
let hourTicks = 0;

// ── Settings ──

function setTheme(theme) {
    const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
}

function startSettings() {
    const theme = localStorage.getItem("adit-theme") ?? "auto";
    $("theme").value = theme;
    setTheme(theme);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme($("theme").value));
    $("theme").addEventListener("change", () => {
        localStorage.setItem("adit-theme", $("theme").value);
        setTheme($("theme").value);
    });
    const language = localStorage.getItem("adit-language") ?? preferredLanguage();
    $("language").value = language;
    setLanguage(language);
    $("language").addEventListener("change", () => {
        localStorage.setItem("adit-language", $("language").value);
        setLanguage($("language").value);
        if (overview) showOverview();
        charts?.now.draw();
        charts?.hour.draw();
        refreshTab();
    });
}

// ── Login ──

function showLogin(message = "") {
    following?.abort();
    following = null;
    $("app").hidden = true;
    $("logout").hidden = true;
    $("login").hidden = false;
    $("live").textContent = "";
    $("login-error").textContent = message;
    $("token").focus();
}

async function tryLogin(token) {
    try {
        await logIn(token);
    } catch (error) {
        return showLogin(error.status === 401 ? t("loginWrong") : t("failed", { why: error.message }));
    }
    await open();
}

function showProblem(error) {
    if (error instanceof ApiError && error.status === 401) return showLogin(t("expiredLogin"));
    $("problem").textContent = error instanceof ApiError ? t("failed", { why: error.message }) : t("offline");
}

// Shows the page, if the API answers.
async function open() {
    try {
        overview = await get("/overview");
    } catch (error) {
        if (error instanceof ApiError && error.status === 401) return showLogin(hasLogin() ? t("expiredLogin") : "");
        $("app").hidden = false;
        showProblem(error);
        return void setTimeout(open, 3000);
    }
    $("login").hidden = true;
    $("token").value = "";
    $("app").hidden = false;
    $("logout").hidden = !hasLogin();
    $("problem").textContent = "";
    startCharts();
    showOverview();
    $("tab-groups").hidden = (await get("/groups")).groups.length === 0;
    $("tab-users").hidden = !(await hasPart("/accounts"));
    $("tab-fleet").hidden = !(await hasPart("/fleet"));
    selectTab(TABS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "overview");
    following?.abort();
    following = new AbortController();
    followEvents({ onEvent, onState, onLoginNeeded: () => showLogin(t("expiredLogin")), signal: following.signal });
}

function onState(live) {
    $("live").classList.toggle("on", live);
    const text = t(live ? "live" : "reconnecting");
    if ($("live").textContent !== text) $("live").textContent = text;
}

// ── Tabs ──

function selectTab(name) {
    if ($(`tab-${name}`).hidden) name = "overview";
    tab = name;
    for (const other of TABS) {
        const button = $(`tab-${other}`);
        button.setAttribute("aria-selected", String(other === name));
        button.tabIndex = other === name ? 0 : -1;
        $(other).hidden = other !== name;
    }
    history.replaceState(null, "", name === "overview" ? location.pathname : `#${name}`);
    refreshTab();
}

function startTabs() {
    for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => selectTab(name));
    $("tabs").addEventListener("keydown", (event) => {
        const visible = TABS.filter((name) => !$(`tab-${name}`).hidden);
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        let next = null;
        if (step) next = visible[(visible.indexOf(tab) + step + visible.length) % visible.length];
        if (event.key === "Home") next = visible[0];
        if (event.key === "End") next = visible.at(-1);
        if (!next) return;
        event.preventDefault();
        selectTab(next);
        $(`tab-${next}`).focus();
    });
}

// Asks for what the visible tab shows and the event stream does not contain.
async function refreshTab() {
    if (document.hidden || $("app").hidden || $("dialog").open) return;
    try {
        if (tab === "sessions") showSessions(await get(`/sessions?limit=${MAX_SESSIONS}`));
        if (tab === "groups") showGroups((await get("/groups")).groups);
        if (tab === "users") await showUsers(refreshTab);
        if (tab === "fleet") await showFleet();
        $("problem").textContent = "";
    } catch (error) {
        showProblem(error);
    }
}

// ── Overview ──

function startCharts() {
    if (charts) return void loadHour();
    charts = {
        now: new Chart($("chart-now"), { title: "chartNow", interval: 1, length: LIVE_SECONDS }),
        hour: new Chart($("chart-hour"), { title: "chartHour", interval: 5, length: 720 }),
    };
    loadHour();
}

async function loadHour() {
    try {
        const { up, down } = await get("/history");
        charts.hour.setValues(up, down);
    } catch (error) {
        showProblem(error);
    }
}

function onEvent(event) {
    overview = event;
    charts.now.add(event.upRate, event.downRate);
    hourTicks += 1;
    if (document.hidden) return;
    if (hourTicks % 5 === 0) loadHour();
    if (tab === "overview") showOverview();
    // Groups, users and nodes change slowly.
    else if (tab === "sessions" || hourTicks % 5 === 0) refreshTab();
}

function showOverview() {
    const { kcp } = overview;
    $("version").textContent = overview.version;
    showFacts($("tiles"), [
        [t("down"), formatRate(overview.downRate ?? 0)],
        [t("up"), formatRate(overview.upRate ?? 0)],
        [t("sessionsOpen"), formatNumber(overview.sessionsOpen)],
        [t("connectionsOpen"), formatNumber(overview.connectionsOpen)],
        [t("associationsOpen"), formatNumber(overview.associationsOpen)],
    ]);
    showTable($("listeners"), {
        caption: t("listeners"),
        empty: t("none"),
        key: (listener) => `${listener.route} ${listener.listen}`,
        rows: overview.listeners,
        columns: [
            { title: t("route"), cell: (listener) => listener.route },
            { title: t("listen"), cell: (listener) => listener.listen },
            { title: t("transports"), cell: (listener) => listener.transports },
            { title: t("sessionsOpen"), class: "number", cell: (listener) => formatNumber(listener.sessionsOpen) },
            { title: t("totalDown"), class: "number", cell: (listener) => formatBytes(listener.down) },
            { title: t("totalUp"), class: "number", cell: (listener) => formatBytes(listener.up) },
            { title: t("lost"), class: "number", cell: (listener) => formatNumber(listener.datagramsLost) },
        ],
    });
    const rejects = (overview.rejects ?? []).filter((reject) => reject.count > 0);
    $("rejects-card").hidden = rejects.length === 0;
    showTable($("rejects"), {
        caption: t("rejects"),
        empty: t("none"),
        key: (reject) => reject.cause,
        rows: rejects.sort((a, b) => b.count - a.count),
        columns: [
            { title: t("cause"), cell: (reject) => reject.cause },
            { title: t("count"), class: "number", cell: (reject) => formatNumber(reject.count) },
        ],
    });
    $("kcp-card").hidden = !kcp.out_segs && !kcp.in_pkts;
    if (!$("kcp-card").hidden) {
        showFacts($("kcp"), [
            [t("kcpOpen"), formatNumber(kcp.curr_estab)],
            [t("kcpLoss"), formatPercent(kcp.retrans_segs, kcp.out_segs)],
            [t("kcpRetrans"), formatNumber(kcp.retrans_segs)],
            [t("kcpFast"), formatNumber(kcp.fast_retrans_segs)],
            [t("kcpLost"), formatNumber(kcp.lost_segs)],
            [t("kcpRepeat"), formatNumber(kcp.repeat_segs)],
            [t("kcpRecovered"), formatNumber(kcp.fec_recovered)],
        ]);
    }
    const facts = [
        [t("version"), overview.version],
        [t("pid"), String(overview.pid)],
        [t("started"), formatTime(overview.started)],
        [t("uptime"), formatDuration(overview.uptime)],
        [t("sessionsTotal"), formatNumber(overview.sessionsTotal)],
        [t("totalDown"), formatBytes(overview.down)],
        [t("totalUp"), formatBytes(overview.up)],
    ];
    if (overview.connectionsLimit) facts.push([t("connectionsLimit"), formatNumber(overview.connectionsLimit)]);
    showFacts($("process"), facts);
}

// ── Sessions ──

function targetText(target) {
    const [kind, port] = target.split(/:(?=\d+$)/);
    const names = { name: t("nameClass"), private: t("private"), unknown: t("unknown") };
    return kind === "unknown" ? names.unknown : `${names[kind] ?? kind}:${port}`;
}

function showSessions(found) {
    sessions = found ?? sessions;
    if (!sessions) return;
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (one) => `${one.user} ${one.kind} ${one.route} ${one.listen} ${one.target}`.toLowerCase();
    const rows = sessions.sessions.filter((one) => words.every((word) => text(one).includes(word)));
    $("sessions-count").textContent = t("shown", { shown: formatNumber(rows.length), total: formatNumber(sessions.total) });
    showTable($("session-table"), {
        caption: t("sessions"),
        empty: t("noSessions"),
        key: (one) => one.id,
        rows,
        columns: [
            { title: t("user"), cell: (one) => one.user || t("none") },
            { title: t("kind"), cell: (one) => t(one.kind) },
            { title: t("listener"), cell: (one) => `${one.route} ${one.listen}` },
            { title: t("target"), cell: (one) => targetText(one.target) },
            { title: t("age"), class: "number", cell: (one) => formatDuration(one.age) },
            { title: t("down"), class: "number", cell: (one) => formatBytes(one.down) },
            { title: t("up"), class: "number", cell: (one) => formatBytes(one.up) },
            { title: t("actions"), class: "actions", version: () => "", cell: endButton },
        ],
    });
}

function endButton(session) {
    const described = `${t("end")}: ${session.user} ${targetText(session.target)}`;
    return element("button", { type: "button", class: "danger", "aria-label": described, click: () => confirmEnd(session) }, t("end"));
}

function confirmEnd(session) {
    const about = [session.user, t(session.kind), session.route, targetText(session.target)].filter(Boolean).join(" · ");
    openDialog({
        title: t("endTitle"),
        body: [element("p", {}, about), element("p", { class: "muted" }, t("endText"))],
        button: t("end"),
        danger: true,
        act: async () => {
            try {
                await request("DELETE", `/sessions/${session.id}`);
            } catch (error) {
                // It may have ended in the meantime.
                if (error.status !== 404) throw error;
            }
            setTimeout(refreshTab, 100);
        },
    });
}

// ── Groups ──

function showGroups(groups) {
    const list = $("group-list");
    const shape = groups.map((group) => group.name).join("\n");
    if (list.dataset.shape !== shape) {
        list.dataset.shape = shape;
        list.replaceChildren(
            ...groups.map((group, at) =>
                element(
                    "section",
                    { class: "card", "aria-labelledby": `group-${at}` },
                    element("h2", { id: `group-${at}` }, `${group.name} `, element("span", { class: "muted" }, group.kind)),
                    element("div", { class: "scroll" }),
                ),
            ),
        );
    }
    groups.forEach((group, at) => showGroup(list.children[at].lastChild, group));
}

function showGroup(place, group) {
    const state = (member) => {
        if (!member.up) return element("span", { class: "bad" }, t("memberOut", { time: formatDuration(member.outSeconds ?? 0) }));
        return element("span", { class: "good" }, t(member.selected ? "selected" : "memberReady"));
    };
    const columns = [
        { title: t("member"), cell: (member) => member.name },
        { title: t("state"), cell: state },
        { title: t("latency"), class: "number", cell: (member) => (member.usualSeconds === undefined ? t("none") : formatMilliseconds(member.usualSeconds)) },
        { title: t("reason"), cell: (member) => member.reason || t("none") },
    ];
    if (group.members.some((member) => member.selected !== undefined)) {
        const button = (member) => {
            if (member.selected) return "";
            const click = () => selectMember(group, member.name);
            return element("button", { type: "button", "aria-label": `${t("select")}: ${member.name}`, click }, t("select"));
        };
        columns.push({ title: t("actions"), class: "actions", version: (member) => member.selected, cell: button });
    }
    showTable(place, { caption: group.name, empty: t("none"), key: (member) => member.name, rows: group.members, columns });
}

function selectMember(group, member) {
    openDialog({
        title: t("selectTitle"),
        body: [element("p", {}, t("selectText", { group: group.name, member }))],
        button: t("select"),
        act: async () => {
            await request("POST", `/groups/${encodeURIComponent(group.name)}`, { selected: member });
            setTimeout(refreshTab, 100);
        },
    });
}

// ── Start ──

startSettings();
startTabs();
$("filter").addEventListener("input", () => showSessions(null));
$("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    tryLogin($("token").value.trim());
});
$("logout").addEventListener("click", async () => {
    await logOut().catch(() => {});
    showLogin();
});
$("dialog").addEventListener("close", () => refreshTab());
document.addEventListener("visibilitychange", () => refreshTab());

const token = takeTokenFromAddress();
if (token) tryLogin(token);
else open();
