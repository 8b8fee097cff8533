// All types with their properties, and the schema as it is written.

import { useState } from "preact/hooks";
import { type EdgeType, type NodeType, typeText } from "../schema";
import { useLink, useShared } from "../store";
import { CopyButton, Empty, Page, Panel, TypeName } from "../ui";
import { SchemaDiagram } from "./schema-diagram";

export function SchemaView() {
  const { schema } = useShared();
  const [isSource, setSource] = useState(false);
  return (
    <Page
      title="Schema"
      actions={
        <div class="tabs" role="group" aria-label="Form">
          <button type="button" aria-pressed={!isSource} onClick={() => setSource(false)}>
            Types
          </button>
          <button type="button" aria-pressed={isSource} onClick={() => setSource(true)}>
            Source
          </button>
        </div>
      }
    >
      {isSource ? (
        <Panel title="Source" actions={<CopyButton text={() => schema.source} />}>
          <pre class="source" tabIndex={0}>{schema.source}</pre>
        </Panel>
      ) : schema.nodes.length === 0 ? (
        <Empty title="The schema has no types yet" />
      ) : (
        <>
          <Panel title="Diagram">
            <SchemaDiagram counts={new Map()} />
          </Panel>
          <div class="cards">
            {schema.nodes.map((one) => (
              <TypeCard key={one.name} type={one} />
            ))}
            {schema.edges.map((one) => (
              <TypeCard key={one.name} type={one} />
            ))}
          </div>
        </>
      )}
    </Page>
  );
}

function TypeCard({ type }: { type: NodeType | EdgeType }) {
  const link = useLink();
  return (
    <section class="panel card">
      <header>
        <h2>
          {type.kind === "node" ? (
            <a href={link("type", [type.name])}>
              <TypeName name={type.name} />
            </a>
          ) : (
            <>
              {type.name}{" "}
              <span class="dim">
                {type.from} → {type.to}
              </span>
            </>
          )}
        </h2>
      </header>
      {type.description && <p class="about">{type.description}</p>}
      {type.props.length ? (
        <dl class="facts mono">
          {type.props.map((prop) => (
            <div key={prop.name}>
              <dt>{prop.name}</dt>
              <dd>
                {typeText(prop)}
                {prop.isKey && <span class="badge">key</span>}
                {prop.isIndexed && <span class="badge">index</span>}
                {prop.embeds && <span class="badge">embeds {prop.embeds}</span>}
              </dd>
            </div>
          ))}
        </dl>
      ) : (
        <p class="dim">No properties.</p>
      )}
    </section>
  );
}
