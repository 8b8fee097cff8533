// Dark and light, and a colour for each node type.

const KEY = "omnigraph.theme";
export type Theme = "system" | "light" | "dark";

export function readTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("themechange"));
}

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/** Told apart by hue and lightness, on a light and on a dark ground. */
const COLOURS = ["#4c78dd", "#e0803a", "#2f9e75", "#c0509f", "#8a6fd6", "#c9a227", "#d9534f", "#3ba3b8", "#8c7355", "#6b8e23", "#b0609a", "#5b7083"];

let places = new Map<string, number>();

export function setTypes(names: string[]): void {
  places = new Map(names.map((name, place) => [name, place]));
}

export function typeColour(name: string): string {
  return COLOURS[(places.get(name) ?? COLOURS.length - 1) % COLOURS.length] ?? "#5b7083";
}

export const cssColour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
