"""What `mkdocs` needs beside its configuration: pages from outside of docs/, and links to them.

A page that no section of the navigation lists is put under Reference, so that a new page never breaks the
build; a link to a file that is no page of the site becomes plain text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = {"CHANGELOG.md": "CHANGELOG.md"}
"""Pages of the site that are kept elsewhere in the repository, by their names on the site."""

_FENCE = re.compile(r"^(```\w+)[^\n`]*$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, path in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add pages that the navigation does not list to its section `Reference`."""
    assert config.nav is not None
    listed = set(_paths(config.nav))
    docs = Path(config.docs_dir)
    found = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] += [path for path in found if path not in listed]
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ at the pages of the site, or make text of them."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        if (ROOT / page.file.src_uri).exists() and page.file.src_uri in OUTSIDE:
            full = (ROOT / path).resolve()
        else:
            full = (folder / path).resolve()
        if full.is_relative_to(config.docs_dir) and full.exists():
            if page.file.src_uri in OUTSIDE:
                return (
                    f"[{text}]({full.relative_to(config.docs_dir)}{'#' + anchor if anchor else ''})"
                )
            return match[0]
        if full.is_relative_to(ROOT) and full.exists():
            name = str(full.relative_to(ROOT))
            up = "../" * page.file.src_uri.count("/")
            return f"[{text}]({up}{name})" if name in OUTSIDE else text
        # A broken link: mkdocs says so, and fails.
        return match[0]

    # Behind the language of a block stands what the tests do with it.
    return _LINK.sub(link, _FENCE.sub(r"\1", markdown))


def _paths(nav: Any) -> Any:
    for item in nav:
        for value in item.values() if isinstance(item, dict) else (item,):
            if isinstance(value, list):
                yield from _paths(value)
            else:
                yield value
