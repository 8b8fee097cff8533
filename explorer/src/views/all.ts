// Every view: its name in addresses, its place in the navigation, its component.

import type { FunctionComponent } from "preact";
import { CommitView } from "./commit";
import { Console } from "./console";
import { EntityView } from "./entity";
import { HistoryView } from "./history";
import { Overview } from "./overview";
import { SchemaView } from "./schema";
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
  { name: "console", title: "Console", component: Console, icon: "console" },
  { name: "history", title: "History", component: HistoryView, icon: "history", also: ["commit"] },
  { name: "type", title: "Nodes", component: TypeView },
  { name: "entity", title: "Entity", component: EntityView },
  { name: "commit", title: "Commit", component: CommitView },
];
