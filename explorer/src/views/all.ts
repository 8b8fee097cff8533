// Every view: its name in addresses, its place in the navigation, its component.

import type { FunctionComponent } from "preact";
import { CommitView } from "./commit";
import { Compare } from "./compare";
import { Console } from "./console";
import { EntityView } from "./entity";
import { HistoryView } from "./history";
import { Live } from "./live";
import { Merge } from "./merge";
import { Neighbourhood } from "./neighbourhood";
import { Overview } from "./overview";
import { SchemaView } from "./schema";
import { Search } from "./search";
import { TypeView } from "./type";

export interface View {
  name: string;
  title: string;
  component: FunctionComponent;
  icon?: string;
  /** Views that belong to this one in the navigation. */
  also?: string[];
}

export const VIEWS: View[] = [
  { name: "overview", title: "Overview", component: Overview, icon: "overview", also: ["type", "entity"] },
  { name: "schema", title: "Schema", component: SchemaView, icon: "schema" },
  { name: "graph", title: "Neighbourhood", component: Neighbourhood, icon: "graph" },
  { name: "search", title: "Search", component: Search, icon: "search" },
  { name: "console", title: "Console", component: Console, icon: "console" },
  { name: "history", title: "History", component: HistoryView, icon: "history", also: ["commit"] },
  { name: "compare", title: "Compare", component: Compare, icon: "compare" },
  { name: "merge", title: "Merge", component: Merge, icon: "merge" },
  { name: "live", title: "Live", component: Live, icon: "live" },
  { name: "type", title: "Nodes", component: TypeView },
  { name: "entity", title: "Entity", component: EntityView },
  { name: "commit", title: "Commit", component: CommitView },
];
