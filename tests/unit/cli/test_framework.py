"""Finding commands, help, global options, and what becomes of each kind of failure."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from omnigraph._version import __version__
from omnigraph.cli.command_table import COMMANDS, FAMILIES, CommandEntry, rewrite
from omnigraph.cli.commands import version
from omnigraph.cli.framework import load_command
from omnigraph.errors import NotFoundError
from omnigraph.limits import FORMAT_STAMP


@pytest.mark.acceptance("U-001")
@pytest.mark.parametrize("spelling", ["version", "-v", "--version"])
def test_every_spelling_prints_the_same_version_line(cli, spelling):
    code, out, err = cli(spelling)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"omnigraph {__version__}"


def test_the_command_names_the_storage_format_on_a_second_line(cli):
    assert cli("version").out == f"omnigraph {__version__}\nstorage format {FORMAT_STAMP}\n"
    assert cli("--version").out == f"omnigraph {__version__}\n"


@pytest.mark.acceptance("U-002")
def test_help_groups_commands_by_task_and_ends_with_their_planes(cli):
    code, out, _ = cli("--help")
    assert code == 0
    headings = [
        *("Start:", "  init ", "  load ", "Look:", "  query ", "Change:", "  mutate ", "  branch "),
        *("Share:", "  login ", "Maintain:", "  optimize ", "  cluster "),
        *("COMMANDS BY PLANE", "  data ", "query,", "  storage ", "optimize,", "  control "),
    ]
    places: list[int] = []
    for heading in headings:
        places.append(out.index(heading, places[-1] if places else 0))
    assert places == sorted(places)
    assert "ingest" not in out
    assert "check" not in out


def test_help_lists_a_family_once(cli):
    out = cli("--help").out
    assert out.count("  branch ") == 1
    assert "create" not in out.partition("Create, list")[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_help_of_a_family_lists_its_commands(cli, family):
    code, out, _ = cli(family, "--help")
    assert code == 0
    assert out.startswith(f"Usage: omnigraph {family} ")
    for entry in COMMANDS.values():
        if entry.family == family:
            assert f"  {entry.word} " in out
            assert entry.help in out


def test_every_first_word_that_is_shared_is_a_family():
    shared = {e.family for e in COMMANDS.values() if e.name != e.family}
    # `changes` is a command of its own, and the first word of others.
    assert FAMILIES.keys() == shared - {"changes"}
    assert not FAMILIES.keys() & COMMANDS.keys()


def test_no_arguments_print_the_help_as_a_usage_error(cli):
    code, out, err = cli()
    assert (code, out) == (2, "")
    assert "COMMANDS BY PLANE" in err


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=lambda entry: entry.name)
def test_every_command_in_the_table_exists_and_agrees_with_it(entry: CommandEntry, cli):
    command = load_command(entry)
    assert (command.name, command.plane, command.hidden) == (entry.word, entry.plane, entry.hidden)
    code, out, _ = cli(*entry.name.split(), "--help")
    assert code == 0
    assert out.startswith(f"Usage: omnigraph {entry.name}")


def test_a_misspelt_command_is_a_usage_error_with_the_close_name(cli):
    code, out, err = cli("versoin")
    assert (code, out) == (2, "")
    assert "No such command 'versoin'. Did you mean `version`?" in err


@pytest.mark.parametrize(
    ("word", "meant"),
    [("reset", "`branch reset`"), ("apply", "`schema apply` or `cluster apply`")],
)
def test_the_second_word_of_a_command_alone_names_its_family(cli, word, meant):
    code, _, err = cli(word)
    assert code == 2
    assert f"No such command '{word}'. Did you mean {meant}?" in err


def test_help_is_also_a_word_before_the_command(cli):
    assert cli("help") == cli("--help")
    assert cli("help", "query") == cli("query", "--help")
    assert cli("help", "branch", "create") == cli("branch", "create", "--help")
    code, _, err = cli("help", "qurey")
    assert code == 2
    assert "Did you mean `query`?" in err


def test_a_command_like_nothing_known_gets_no_suggestion(cli):
    code, _, err = cli("frobnicate")
    assert code == 2
    assert "No such command 'frobnicate'.\n" in err


def test_a_hidden_command_is_not_suggested(cli):
    code, _, err = cli("inges")
    assert code == 2
    assert "ingest" not in err


def test_a_misspelt_option_is_a_usage_error_with_the_close_name(cli):
    code, _, err = cli("errors", "--jsn")
    assert code == 2
    assert "--json" in err


@pytest.mark.parametrize(
    ("words", "rewritten", "old"),
    [
        (["check", "--json"], ["lint", "--json"], "check"),
        (["query", "lint", "G"], ["lint", "G"], "query lint"),
        (["query", "check"], ["lint"], "query check"),
    ],
)
def test_old_spellings_are_rewritten_with_a_warning(words, rewritten, old):
    warning = f"`omnigraph {old}` is deprecated; use `omnigraph lint` instead"
    assert rewrite(words) == (rewritten, warning)


def test_other_words_are_left_alone():
    assert rewrite(["query", "G", "check"]) == (["query", "G", "check"], None)


@pytest.fixture
def failing_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make `omnigraph version` raise."""

    def install(error: BaseException) -> None:
        def fail(**_options: object) -> None:
            raise error

        monkeypatch.setattr(version.version, "callback", fail)

    return install


def test_an_error_of_the_product_is_its_text_and_exit_1(cli, failing_with, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    failing_with(NotFoundError("no branch 'x'"))
    assert cli("version") == (1, "", "error[OG-N-000]: no branch 'x'\n")


def test_a_defect_is_one_line_and_the_way_to_the_stack_trace(cli, failing_with, monkeypatch):
    monkeypatch.delenv("OMNIGRAPH_DEBUG", raising=False)
    failing_with(KeyError("lost"))
    code, out, err = cli("version")
    assert (code, out) == (1, "")
    first, second = err.splitlines()
    assert first == "internal error: KeyError: 'lost'"
    assert "OMNIGRAPH_DEBUG=1" in second


def test_a_defect_with_debugging_on_shows_the_stack_trace(cli, failing_with, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    failing_with(RuntimeError("lost"))
    code, _, err = cli("version")
    assert code == 1
    assert err.startswith("Traceback")
    assert err.endswith("RuntimeError: lost\n")


def test_a_failing_file_system_is_no_defect(cli, failing_with):
    failing_with(OSError(28, "No space left on device"))
    assert cli("version") == (1, "", "io: No space left on device\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_exits_with_130_and_says_nothing(cli, failing_with, error):
    failing_with(error)
    code, out, err = cli("version")
    assert (code, out, err.strip()) == (130, "", "")
