// Line icons, drawn with the colour of the text.

const PATHS: Record<string, string> = {
  overview: "M3 3h6v8H3zM11 3h6v5h-6zM11 10h6v7h-6zM3 13h6v4H3z",
  graph: "M6 6.5 13.5 8M6 7l1.5 6.5M13.5 9l-4.500 5M5 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM15 10.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM8 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  console: "M4 6l4 4-4 4M10 15h6",
  search: "M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.500 13.500 17 17",
  history: "M6 3v14M6 7.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 9c0 3-4 3-7 5",
  compare: "M7 3v14M13 3v14M3 7l4-4M17 13l-4 4",
  merge: "M6 3v14M6 6c0 5 8 4 8 8M6 5.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 18a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  live: "M3 10h3l2-6 4 12 2-6h3",
  branch: "M6 4v12M6 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 18a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM14 8c0 4-8 2-8 6",
  clock: "M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6v4l3 2",
  moon: "M16 12.500A7 7 0 0 1 7.500 4 6.500 6.500 0 1 0 16 12.500Z",
  sun: "M10 13.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM10 2v2M10 16v2M2 10h2M16 10h2M4.300 4.300l1.400 1.400M14.300 14.300l1.400 1.400M4.300 15.700l1.400-1.400M14.300 5.700l1.400-1.400",
  system: "M3 4h14v9H3zM7 17h6M10 13v4",
  schema: "M3 4h6v4H3zM11 12h6v4h-6zM6 8v6h5",
};

export function Icon({ name }: { name: string }) {
  if (name === "brand")
    return (
      <svg class="icon brand-icon" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" class="brand-ground" />
        <path d="M10 10 22 14 12 23Z" class="brand-line" />
        <circle cx="10" cy="10" r="4" class="brand-dot" />
        <circle cx="22" cy="14" r="3.4" class="brand-dot" />
        <circle cx="12" cy="23" r="3" class="brand-dot" />
      </svg>
    );
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
