// The texts of the page in English and Chinese, and the formats of numbers.

const ENGLISH = {
    skip: "Skip to the content", language: "Language", theme: "Colours", auto: "Automatic", light: "Light", dark: "Dark",
    login: "Log in", logout: "Log out", loginTitle: "Log in", token: "Token",
    loginText: "Paste a token of the management API, from the file of --admin-token.",
    loginWrong: "This is not a token of this adit.",
    overview: "Overview", sessions: "Sessions", groups: "Groups", users: "Users",
    chartNow: "Throughput, last two minutes", chartHour: "Throughput, last hour",
    listeners: "Listeners", rejects: "Rejected, by cause", process: "Process", filter: "Filter",
    live: "Live", reconnecting: "Connecting again …", offline: "adit does not answer",
    down: "Download", up: "Upload", sessionsOpen: "Sessions", connectionsOpen: "Connections",
    associationsOpen: "UDP associations", kcpOpen: "KCP sessions", sessionsTotal: "Sessions since the start",
    version: "Version", pid: "Process ID", started: "Started", uptime: "Running for",
    connectionsLimit: "Limit of connections", totalDown: "Downloaded", totalUp: "Uploaded",
    route: "Route", listen: "Address", transports: "Transports", lost: "Datagrams lost", cause: "Cause", count: "Count",
    kcpLoss: "Retransmitted segments", kcpRetrans: "Retransmissions", kcpFast: "Fast retransmissions",
    kcpLost: "Lost segments", kcpRecovered: "Recovered by FEC", kcpRepeat: "Received twice",
    user: "User", kind: "Kind", listener: "Listener", target: "Destination", age: "Age", actions: "Actions",
    end: "End", endTitle: "End this session?", endText: "The connection is reset. The user can open another one.",
    cancel: "Cancel", close: "Close", none: "–", noSessions: "No session is open.", noUsers: "There are no users.",
    shown: "{shown} of {total} shown", member: "Server", state: "State", latency: "Usual answer time", reason: "Reason",
    memberUp: "in use", memberReady: "ready", memberOut: "out for {time}", select: "Use", selected: "selected",
    selectTitle: "Use this server?", selectText: "New connections of the group {group} use {member}.",
    addUser: "Add a user", name: "Name", used: "Used", quota: "Quota", expires: "Expires", limits: "Limits",
    remove: "Remove", rotate: "New key", show: "Show keys", unlimited: "no limit", add: "Add", save: "Save",
    removeTitle: "Remove {name}?", removeText: "The user's sessions end, and their keys no longer work.",
    rotateTitle: "New key for {name}?", rotateText: "The old key stops working, and open sessions end.",
    limitsTitle: "Limits of {name}", quotaField: "Quota in GB (empty: no limit)", period: "Period",
    total: "total", day: "per day", week: "per week", month: "per month",
    rateField: "Speed in MB/s (empty: no limit)", sessionsField: "Sessions at once", devicesField: "Addresses at once",
    expiresField: "Expires on", credentials: "Keys of {name}", keysText: "Anyone with this URL can use the server as this user.",
    copy: "Copy", copied: "Copied", qrLabel: "QR code of the URL", secret: "Key or password",
    active: "active", "over-quota": "quota used up", expired: "expired", disabled: "disabled",
    failed: "adit refused: {why}", expiredLogin: "Your login has ended.", chartLabel: "{title}: download {down}, upload {up}",
    ago: "{time} ago", tcp: "TCP", udp: "UDP", ssh: "SSH", nameClass: "name", private: "private", unknown: "various",
    fleet: "Fleet", node: "Node", thisNode: "{name} (this one)", weight: "Weight", problem: "Problem",
    fleetCount: "Realm {realm}: {up} of {nodes} nodes report; users: {users}",
    "node-active": "active", "node-draining": "draining", "node-drained": "drained", "node-missing": "missing",
    nodeSilent: "sends no reports", clockOff: "its clock is off by {time}", nodeBehind: "is behind by {time}",
};

const CHINESE = {
    skip: "跳到内容", language: "语言", theme: "配色", auto: "自动", light: "浅色", dark: "深色",
    login: "登录", logout: "退出登录", loginTitle: "登录", token: "令牌",
    loginText: "请粘贴管理接口的令牌（在 --admin-token 的文件里）。", loginWrong: "这不是此 adit 的令牌。",
    overview: "概览", sessions: "会话", groups: "服务器组", users: "用户",
    chartNow: "最近两分钟的流量", chartHour: "最近一小时的流量",
    listeners: "监听地址", rejects: "按原因统计的拒绝", process: "进程", filter: "筛选",
    live: "实时", reconnecting: "正在重新连接……", offline: "adit 没有响应",
    down: "下载", up: "上传", sessionsOpen: "会话", connectionsOpen: "连接",
    associationsOpen: "UDP 关联", kcpOpen: "KCP 会话", sessionsTotal: "启动以来的会话",
    version: "版本", pid: "进程号", started: "启动时间", uptime: "已运行",
    connectionsLimit: "连接数上限", totalDown: "已下载", totalUp: "已上传",
    route: "路由", listen: "地址", transports: "传输", lost: "丢失的数据报", cause: "原因", count: "次数",
    kcpLoss: "重传比例", kcpRetrans: "重传", kcpFast: "快速重传",
    kcpLost: "丢失的分段", kcpRecovered: "由 FEC 恢复", kcpRepeat: "重复收到",
    user: "用户", kind: "类型", listener: "监听地址", target: "目标", age: "时长", actions: "操作",
    end: "结束", endTitle: "结束这个会话？", endText: "连接会被重置。用户仍可以建立新的会话。",
    cancel: "取消", close: "关闭", none: "–", noSessions: "没有打开的会话。", noUsers: "没有用户。",
    shown: "显示 {shown} 个，共 {total} 个", member: "服务器", state: "状态", latency: "通常响应时间", reason: "原因",
    memberUp: "使用中", memberReady: "可用", memberOut: "已停用 {time}", select: "使用", selected: "已选择",
    selectTitle: "使用这个服务器？", selectText: "组 {group} 的新连接将使用 {member}。",
    addUser: "添加用户", name: "名称", used: "已用", quota: "配额", expires: "到期", limits: "限制",
    remove: "删除", rotate: "更换密钥", show: "显示密钥", unlimited: "不限", add: "添加", save: "保存",
    removeTitle: "删除 {name}？", removeText: "该用户的会话会结束，密钥不再有效。",
    rotateTitle: "为 {name} 更换密钥？", rotateText: "旧密钥将失效，打开的会话会结束。",
    limitsTitle: "{name} 的限制", quotaField: "配额，单位 GB（留空表示不限）", period: "周期",
    total: "总计", day: "每天", week: "每周", month: "每月",
    rateField: "速度，单位 MB/s（留空表示不限）", sessionsField: "同时会话数", devicesField: "同时地址数",
    expiresField: "到期日", credentials: "{name} 的密钥", keysText: "任何得到此链接的人都能以该用户身份使用服务器。",
    copy: "复制", copied: "已复制", qrLabel: "链接的二维码", secret: "密钥或密码",
    active: "正常", "over-quota": "配额已用完", expired: "已到期", disabled: "已停用",
    failed: "adit 拒绝了请求：{why}", expiredLogin: "登录已失效。", chartLabel: "{title}：下载 {down}，上传 {up}",
    ago: "{time}前", tcp: "TCP", udp: "UDP", ssh: "SSH", nameClass: "域名", private: "内网", unknown: "多个",
    fleet: "节点", node: "节点", thisNode: "{name}（本机）", weight: "权重", problem: "问题",
    fleetCount: "用户域 {realm}：{nodes} 个节点中 {up} 个在线，{users} 个用户",
    "node-active": "正常", "node-draining": "正在排空", "node-drained": "已排空", "node-missing": "失联",
    nodeSilent: "没有上报", clockOff: "时钟相差 {time}", nodeBehind: "落后 {time}",
};

const TEXTS = { en: ENGLISH, zh: CHINESE };
let language = "en";

export function setLanguage(wanted) {
    language = wanted in TEXTS ? wanted : "en";
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    for (const element of document.querySelectorAll("[data-t]")) {
        element.textContent = t(element.dataset.t);
    }
}

export const preferredLanguage = () => (navigator.language.startsWith("zh") ? "zh" : "en");

// Returns a text, with `{name}` replaced by the values.
export function t(key, values = {}) {
    const text = TEXTS[language][key] ?? ENGLISH[key] ?? key;
    return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

const locale = () => (language === "zh" ? "zh-CN" : "en");

export const formatNumber = (value) => new Intl.NumberFormat(locale()).format(value);

export function formatPercent(part, whole) {
    const share = whole > 0 ? part / whole : 0;
    return new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 2 }).format(share);
}

export function formatBytes(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (bytes >= 999.5 && unit < units.length - 1) {
        bytes /= 1000;
        unit += 1;
    }
    const digits = unit === 0 || bytes >= 99.95 ? 0 : 1;
    return `${new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(bytes)} ${units[unit]}`;
}

export const formatRate = (bytes) => `${formatBytes(bytes)}/s`;

export const formatTime = (seconds) => new Date(seconds * 1000).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });

export const formatDate = (seconds) => new Date(seconds * 1000).toLocaleDateString(locale(), { dateStyle: "medium" });

export function formatDuration(seconds) {
    const unit = (value, name) => new Intl.NumberFormat(locale(), { style: "unit", unit: name, unitDisplay: "narrow" }).format(value);
    const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
    const first = units.findIndex(([, length]) => seconds >= length);
    if (first < 0) return unit(0, "second");
    const [[name, length], smaller] = [units[first], units[first + 1]];
    const rest = smaller ? Math.floor((seconds % length) / smaller[1]) : 0;
    const whole = unit(Math.floor(seconds / length), name);
    return rest > 0 ? `${whole} ${unit(rest, smaller[0])}` : whole;
}

export const formatMilliseconds = (seconds) => `${formatNumber(Math.round(seconds * 1000))} ms`;
