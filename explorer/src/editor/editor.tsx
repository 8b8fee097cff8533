// The query editor. It lives in a shadow root, where its styles need no inline style elements.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic as Mark } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Diagnostic } from "../api";
import type { Schema } from "../schema";
import { colours, completion, gq } from "./language";

interface EditorProps {
  text: string;
  onChange: (text: string) => void;
  onRun: () => void;
  diagnostics: Diagnostic[];
  schema: Schema;
}

const look = EditorView.theme({
  "&": { backgroundColor: "var(--code-ground)", color: "var(--ink)", fontSize: "13.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--ink)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--dim)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--code-line)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "none" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "8px", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.75", marginLeft: "1.2em" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--sans)", fontSize: "13px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-placeholder": { color: "var(--dim)" },
});

export function Editor({ text, onChange, onRun, diagnostics, schema }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onChange, onRun, schema });
  latest.current = { onChange, onRun, schema };
  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          closeBrackets(),
          indentUnit.of("    "),
          gq,
          colours,
          look,
          lintGutter(),
          autocompletion({ override: [completion(() => latest.current.schema)], icons: false }),
          placeholder("query name() { match { … } return { … } }"),
          EditorView.contentAttributes.of({ "aria-label": "Query" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
          // Tab leaves the editor, as everywhere on a page.
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (latest.current.onRun(), true) }])),
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);
  // Before anything else can be typed: `text` and the editor are the same, unless another text was opened.
  useLayoutEffect(() => {
    const made = view.current;
    if (made && made.state.doc.toString() !== text) made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } });
  }, [text]);
  useEffect(() => {
    const made = view.current;
    if (made) made.dispatch(setDiagnostics(made.state, diagnostics.map((one) => mark(made.state, one))));
  }, [diagnostics]);
  return <div class="editor" ref={host} />;
}

/** Lines and columns of the checker count from 1, in characters. */
function mark(state: EditorState, one: Diagnostic): Mark {
  const place = (line: number, column: number): number => {
    const found = state.doc.line(Math.min(Math.max(1, line), state.doc.lines));
    return Math.min(found.from + [...found.text].slice(0, Math.max(0, column - 1)).join("").length, found.to);
  };
  const from = place(one.line, one.column);
  const to = Math.max(from, place(one.end_line, one.end_column));
  return {
    from,
    to: to === from ? Math.min(from + 1, state.doc.length) : to,
    severity: "error",
    message: one.hint ? `${one.message}\n${one.hint}` : one.message,
  };
}
