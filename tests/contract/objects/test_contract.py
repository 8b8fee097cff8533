"""What every store promises, row by row."""

from __future__ import annotations

import pytest

from omnigraph.errors import ObjectMissing, StoreCallFailed
from omnigraph.storage.objects import VersionToken
from tests.contract.objects.places import open_place

TEXTS = {
    "empty": "",
    "plain": "node Person { name: String @key }\n",
    "unicode": "Zoë → 東京 🏛 \u0301\u200d\ufeff",
    "line ends": "a\r\nb\rc\n\n",
    "NUL": "a\0b",
    "large": "0123456789abcdef" * (8 * 1024 * 1024 // 16),
}
NAMES = [
    "_schema.pg",
    "a b",
    "ü",
    "日本.json",
    "100%",
    "x%20y",
    "p+q&r=s",
    "~t",
    "{b}",
    "a#",
    "#a1",
]
IMPOSSIBLE = ["..", "../x", "a/../../x", "a/x#12", "#0", "a#7/b", "a\nb", "a\0b", "\x7f"]
NO_OBJECT = ["", "/", ".", "a/..", "./"]

OBJECT_CALLS = {
    "read_text": lambda store, path: store.read_text(path),
    "read_text_versioned": lambda store, path: store.read_text_versioned(path),
    "read_bytes": lambda store, path: store.read_bytes(path),
    "write_text": lambda store, path: store.write_text(path, "x"),
    "write_bytes": lambda store, path: store.write_bytes(path, b"x"),
    "write_text_if_absent": lambda store, path: store.write_text_if_absent(path, "x"),
    "write_text_if_match": lambda store, path: store.write_text_if_match(path, "x", "t"),
    "rename_text from": lambda store, path: store.rename_text(path, "other"),
    "rename_text to": lambda store, path: store.rename_text("there", path),
    "delete": lambda store, path: store.delete(path),
    "delete_prefix": lambda store, path: store.delete_prefix(path),
}
DIRECTORY_CALLS = {
    "exists": lambda store, path: store.exists(path),
    "list_dir": lambda store, path: store.list_dir(path),
}


class TestReadAndWrite:
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_what_was_written_is_read(self, place, store, text):
        store.write_text("dir/a.txt", text)
        assert open_place(place).read_text("dir/a.txt") == text
        assert place.get("dir/a.txt") == text.encode()

    def test_bytes_need_not_be_text(self, place, store):
        content = bytes(range(256)) * 40_000
        store.write_bytes("dir/a", content)
        store.write_bytes("dir/b", memoryview(content))
        assert open_place(place).read_bytes("dir/a") == content
        assert store.read_bytes("dir/b") == content
        with pytest.raises(ObjectMissing):
            store.read_bytes("dir/c")
        store.write_text("dir/a", "é")
        assert store.read_bytes("dir/a") == "é".encode()

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_what_was_created_is_read(self, store, text):
        assert store.write_text_if_absent("a.txt", text)
        assert store.read_text("a.txt") == text

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_taken_literally(self, store, name):
        store.write_text(f"dir/{name}", name)
        assert store.list_dir("dir") == [f"dir/{name}"]
        assert store.read_text(f"dir/{name}") == name

    def test_a_second_write_replaces_the_first(self, store):
        store.write_text("a", "a long first text")
        store.write_text("a", "short")
        assert store.read_text("a") == "short"

    def test_a_change_made_elsewhere_is_seen(self, place, store):
        place.put("dir/a", b"from outside")
        assert store.read_text("dir/a") == "from outside"

    def test_missing_parents_are_created(self, store):
        store.write_text("a/b/c/d", "1")
        assert store.write_text_if_absent("e/f/g", "2")
        assert (store.read_text("a/b/c/d"), store.read_text("e/f/g")) == ("1", "2")

    @pytest.mark.parametrize("path", ["gone", "dir/gone", "dir/file/gone", "dir", "gone/deeper"])
    def test_reading_what_is_missing_is_an_error(self, store, path):
        store.write_text("dir/file", "x")
        with pytest.raises(ObjectMissing, match=r"storage read failed for '.*': no such object"):
            store.read_text(path)
        with pytest.raises(ObjectMissing):
            store.read_text_versioned(path)

    def test_bytes_that_are_no_text_are_an_error(self, place, store):
        place.put("bad", b"abc\xff\xfe")
        with pytest.raises(StoreCallFailed, match="'utf-8' codec"):
            store.read_text("bad")
        with pytest.raises(StoreCallFailed, match="'utf-8' codec"):
            store.read_text_versioned("bad")

    def test_text_that_has_no_bytes_is_an_error_and_writes_nothing(self, store):
        with pytest.raises(StoreCallFailed, match="storage write failed"):
            store.write_text("a", "\ud800")
        with pytest.raises(StoreCallFailed, match="storage create failed"):
            store.write_text_if_absent("a", "\ud800")
        assert not store.exists("a")


class TestCreate:
    def test_only_the_first_creation_counts(self, store):
        assert store.write_text_if_absent("a", "first")
        assert not store.write_text_if_absent("a", "second")
        assert store.read_text("a") == "first"

    def test_a_written_object_cannot_be_created(self, store):
        store.write_text("a", "first")
        assert not store.write_text_if_absent("a", "second")
        assert store.read_text("a") == "first"

    def test_a_deleted_object_can_be_created_again(self, store):
        store.write_text_if_absent("a", "first")
        store.delete("a")
        assert store.write_text_if_absent("a", "second")
        assert store.read_text("a") == "second"


class TestExists:
    def test_an_object_and_every_directory_above_it_exist(self, store):
        store.write_text("a/b/c", "x")
        assert [store.exists(p) for p in ("a/b/c", "a/b", "a/b/", "a", "")] == [True] * 5

    @pytest.mark.parametrize("path", ["", "x", "a/c/", "a/b/c/d", "a/bb", "A"])
    def test_what_was_never_written_does_not(self, store, path):
        if path:
            store.write_text("a/b/c", "x")
        assert not store.exists(path)

    def test_an_empty_object_exists(self, store):
        store.write_text("a", "")
        assert store.exists("a")

    def test_a_name_that_begins_like_another_is_not_that_one(self, store):
        store.write_text("__recovery_log/x", "x")
        store.write_text("__recovery.json", "x")
        assert not store.exists("__recovery")

    def test_a_directory_ends_with_its_last_object(self, store):
        store.write_text("a/b", "x")
        store.delete("a/b")
        assert not store.exists("a")


class TestRename:
    def test_the_object_moves(self, store):
        store.write_text("a", "text")
        store.rename_text("a", "b")
        assert store.read_text("b") == "text"
        assert not store.exists("a")

    def test_the_target_is_replaced(self, store):
        store.write_text("a", "new")
        store.write_text("b", "old")
        store.rename_text("a", "b")
        assert store.read_text("b") == "new"

    def test_missing_parents_of_the_target_are_created(self, store):
        store.write_text("a", "text")
        store.rename_text("a", "x/y/z")
        assert store.read_text("x/y/z") == "text"

    def test_a_rename_to_itself_keeps_the_object(self, store):
        store.write_text("a/b", "text")
        store.rename_text("a/b", "a/./b")
        assert store.read_text("a/b") == "text"

    @pytest.mark.parametrize("path", ["gone", "gone/deeper", "dir"])
    def test_renaming_what_is_missing_is_an_error_and_keeps_the_target(self, store, path):
        store.write_text("dir/file", "x")
        store.write_text("b", "old")
        for target in ("b", path):
            with pytest.raises(ObjectMissing, match="storage rename failed"):
                store.rename_text(path, target)
        assert store.read_text("b") == "old"


class TestDelete:
    def test_a_deleted_object_is_gone(self, store):
        store.write_text("a", "x")
        store.delete("a")
        assert not store.exists("a")
        assert store.list_dir("") == []

    @pytest.mark.parametrize("path", ["gone", "gone/deeper", "dir", "dir/file/deeper"])
    def test_deleting_what_is_missing_is_success(self, store, path):
        store.write_text("dir/file", "x")
        store.delete(path)
        store.delete(path)
        assert store.list_dir("dir") == ["dir/file"]


class TestListDir:
    def test_direct_children_only(self, store):
        for path in ("d/1", "d/2", "d/e/3", "d2/4", "5"):
            store.write_text(path, "x")
        assert sorted(store.list_dir("d")) == ["d/1", "d/2"]
        assert store.list_dir("") == ["5"]

    def test_a_directory_that_begins_with_the_same_name_is_left_out(self, store):
        store.write_text("__recovery/1.json", "x")
        store.write_text("__recovery_log/2.json", "x")
        assert store.list_dir("__recovery") == ["__recovery/1.json"]

    @pytest.mark.parametrize("path", ["gone", "gone/deeper", "file", "gone/"])
    def test_a_missing_directory_is_empty(self, store, path):
        store.write_text("file", "x")
        assert store.list_dir(path) == []

    @pytest.mark.parametrize(
        "directory", ["d/e", "d/e/", "/d/e", "./d/e", "d//e", "d/x/../e", "d/e//"]
    )
    def test_a_listed_path_begins_as_given_and_is_readable_as_it_is(self, store, directory):
        store.write_text("d/e/f", "text")
        [path] = store.list_dir(directory)
        assert path.startswith(directory)
        assert store.read_text(path) == "text"

    def test_many_objects_are_all_listed(self, store):
        paths = [f"d/{n}" for n in range(60)]
        for path in paths:
            store.write_text(path, "x")
        assert sorted(store.list_dir("d")) == sorted(paths)


class TestConditionalUpdate:
    def test_the_content_that_was_read_can_be_replaced(self, store):
        store.write_text("a", "1")
        text, token = store.read_text_versioned("a")
        assert text == "1"
        assert store.write_text_if_match("a", "2", token)
        assert store.read_text("a") == "2"

    def test_the_new_token_serves_for_the_next_update(self, store):
        store.write_text("a", "1")
        _, token = store.read_text_versioned("a")
        for text in ("2", "3", "4"):
            token = store.write_text_if_match("a", text, token)
            assert token == store.read_text_versioned("a")[1]
        assert store.read_text("a") == "4"

    def test_a_changed_object_is_left_alone(self, store):
        store.write_text("a", "1")
        _, token = store.read_text_versioned("a")
        store.write_text("a", "2")
        assert store.write_text_if_match("a", "3", token) is None
        assert store.read_text("a") == "2"

    @pytest.mark.parametrize("path", ["a", "dir/a", "b/deeper"])
    def test_a_missing_object_is_not_created(self, store, path):
        store.write_text("b", "1")
        _, token = store.read_text_versioned("b")
        assert store.write_text_if_match(path, "2", token) is None
        assert not store.exists(path)

    def test_a_deleted_object_is_not_brought_back(self, store):
        store.write_text("a", "1")
        _, token = store.read_text_versioned("a")
        store.delete("a")
        assert store.write_text_if_match("a", "2", token) is None
        assert not store.exists("a")

    def test_a_token_from_elsewhere_matches_nothing(self, store):
        store.write_text("a", "1")
        assert store.write_text_if_match("a", "2", VersionToken('"0123456789abcdef"')) is None
        assert store.read_text("a") == "1"

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_any_text_can_be_put_in_place(self, store, text):
        store.write_text("a", "before")
        _, token = store.read_text_versioned("a")
        assert store.write_text_if_match("a", text, token)
        assert store.read_text("a") == text


class TestDeletePrefix:
    def test_everything_below_goes_and_nothing_else(self, store):
        for path in ("t/a", "t/b/c", "t/b/d/e", "tt/f", "t.json", "g"):
            store.write_text(path, "x")
        store.delete_prefix("t")
        assert not store.exists("t")
        assert sorted(store.list_dir("")) == ["g", "t.json"]
        assert store.read_text("tt/f") == "x"

    def test_an_object_of_that_very_name_goes_too(self, store):
        store.write_text("d/a", "x")
        store.delete_prefix("d/a")
        assert not store.exists("d")

    @pytest.mark.parametrize("path", ["gone", "gone/deeper", "t/"])
    def test_doing_it_again_is_success(self, store, path):
        store.write_text("t/a", "x")
        store.delete_prefix(path)
        store.delete_prefix(path)
        assert not store.exists(path)


class TestPaths:
    @pytest.mark.parametrize("spelling", ["a/b", "/a/b", "a/b/", "a//b", "./a/./b", "a/x/../b"])
    def test_spellings_of_one_path_are_one_object(self, store, spelling):
        store.write_text("a/b", "1")
        assert store.read_text(spelling) == "1"
        assert not store.write_text_if_absent(spelling, "2")
        assert store.exists(spelling)

    @pytest.mark.parametrize("call", [*OBJECT_CALLS, *DIRECTORY_CALLS])
    def test_an_impossible_path_is_refused_by_every_call(self, store, call):
        store.write_text("there", "x")
        for path in IMPOSSIBLE:
            with pytest.raises(StoreCallFailed):
                (OBJECT_CALLS | DIRECTORY_CALLS)[call](store, path)
        assert store.read_text("there") == "x"

    @pytest.mark.parametrize("call", OBJECT_CALLS)
    def test_the_root_is_no_object(self, store, call):
        store.write_text("there", "x")
        for path in NO_OBJECT:
            with pytest.raises(StoreCallFailed, match="does not name an object"):
                OBJECT_CALLS[call](store, path)
        assert store.read_text("there") == "x"

    def test_an_error_names_action_and_address(self, place, store):
        with pytest.raises(StoreCallFailed) as caught:
            store.read_text("dir/gone")
        assert caught.value.action == "read"
        assert caught.value.uri == f"{place.root.uri}/dir/gone"
        assert str(caught.value) == (
            f"storage read failed for '{place.root.uri}/dir/gone': no such object"
        )


def test_two_handles_see_the_same_objects(place):
    one, other = open_place(place), open_place(place)
    one.write_text("a", "1")
    _, token = other.read_text_versioned("a")
    assert one.write_text_if_match("a", "2", token)
    assert other.read_text("a") == "2"


def create_and_look(place, count):
    store = open_place(place)
    for n in range(count):
        assert store.write_text_if_absent(f"d/{n}", f"text {n}")
        assert place.get(f"d/{n}") == f"text {n}".encode()


def test_what_was_created_is_readable_at_once_by_other_means(place):
    create_and_look(place, 100 if place.root.kind == "s3" else 1000)


@pytest.mark.slow
@pytest.mark.acceptance("S-133")
def test_a_thousand_created_objects_are_each_readable_at_once_by_other_means(place):
    create_and_look(place, 1000)
