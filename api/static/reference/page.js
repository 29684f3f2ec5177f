"use strict";

// Everything that would call another host is off: fonts, telemetry, a proxy for requests, the assistant, and the
// buttons that open or share the document in services of the library's makers.
const quiet = {
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
};

// Examples in curl, Python and JavaScript; the library has more.
const hiddenClients = Object.fromEntries(
  ("c clojure csharp dart fsharp go http java julia kotlin node objc ocaml php powershell r ruby rust swift")
    .split(" ").map((language) => [language, true]),
);
hiddenClients.js = ["axios", "jquery", "ofetch", "xhr"];
hiddenClients.python = ["aiohttp", "httpx_async", "httpx_sync", "python3"];
hiddenClients.shell = ["httpie", "wget"];

const api = {
  title: "API",
  slug: "api",
  url: "/openapi.json",
  default: true,
  // The origin of the page, because requests go nowhere else.
  servers: [{ url: location.origin }],
};
const streams = { title: "Streams", slug: "streams", url: "/asyncapi.json" };

// Three of the library's colours are too pale or too bright for small texts (WCAG AA: a contrast of 4.5).
const customCss = `
  .light-mode { --scalar-color-3: #666; --scalar-color-green: #007345; --scalar-color-red: #c80000; }
  .dark-mode { --scalar-color-3: #999; --scalar-color-red: #ff6b6b; }
`;

Scalar.createApiReference("#reference", {
  ...quiet,
  customCss,
  sources: [api, streams].map((source) => ({ ...source, agent: { disabled: true } })),
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  featuredClients: ["shell/curl", "python/requests", "js/fetch"],
  hiddenClients,
  // A key is gone with the page.
  persistAuth: false,
});
