"""What is particular to a store behind a network: settings, refusals, repetition, busy servers."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from omnigraph.errors import StoreCallFailed, UnsafeStore
from omnigraph.storage import remote_objects
from omnigraph.storage.durability import Durability
from omnigraph.storage.objects import VersionToken, open_store
from omnigraph.storage.uris import normalise_root, s3_options
from tests.contract.objects.moto_server import BUCKET, environment_for
from tests.contract.objects.places import open_place
from tests.contract.objects.stub_server import stub_server

KEY = "/bucket/g/a"

CALLS = {
    "read": lambda store: store.read_text("a"),
    "write": lambda store: store.write_text("a", "x"),
    "create": lambda store: store.write_text_if_absent("a", "x"),
    "update": lambda store: store.write_text_if_match("a", "x", VersionToken('"t"')),
    "check": lambda store: store.exists("a"),
    "rename": lambda store: store.rename_text("a", "b"),
    "delete": lambda store: store.delete("a"),
    "list": lambda store: store.list_dir("a"),
}


@pytest.fixture
def stubbed(monkeypatch):
    """A store on a server that misbehaves as told."""

    @contextmanager
    def start(**faults):
        monkeypatch.setattr(remote_objects, "_pause_before", lambda attempt: None)
        with stub_server(**faults) as stub:
            for name, value in environment_for(stub.endpoint).items():
                monkeypatch.setenv(name, value)
            yield stub, open_store(normalise_root("s3://bucket/g"), Durability.FSYNC)

    return start


def first_time(status):
    """Answer the first PUT with a status, and do what later ones ask for."""
    statuses = [status]

    def answer(method, key):
        return statuses.pop() if method == "PUT" and statuses else None

    return answer


class TestOptions:
    @pytest.mark.parametrize(
        ("environment", "options"),
        [
            ({}, {}),
            (
                {
                    "AWS_REGION": "eu-west-1",
                    "AWS_ACCESS_KEY_ID": "k",
                    "AWS_SECRET_ACCESS_KEY": "s",
                    "AWS_SESSION_TOKEN": "t",
                    "HOME": "/root",
                },
                {
                    "aws_region": "eu-west-1",
                    "aws_access_key_id": "k",
                    "aws_secret_access_key": "s",
                    "aws_session_token": "t",
                },
            ),
            ({"AWS_REGION": "", "AWS_ENDPOINT_URL": ""}, {}),
            ({"AWS_ENDPOINT_URL": "https://a/"}, {"aws_endpoint": "https://a"}),
            (
                {"AWS_ENDPOINT_URL": "http://a"},
                {"aws_endpoint": "http://a", "allow_http": "true"},
            ),
            (
                {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "https://b"},
                {"aws_endpoint": "https://b"},
            ),
            ({"AWS_ALLOW_HTTP": "yes"}, {"allow_http": "true"}),
            ({"AWS_ALLOW_HTTP": "no"}, {}),
            ({"AWS_ALLOW_HTTP": "tRuE"}, {}),
            ({"AWS_S3_FORCE_PATH_STYLE": "1"}, {"aws_virtual_hosted_style_request": "false"}),
            ({"AWS_S3_FORCE_PATH_STYLE": "0"}, {}),
        ],
    )
    def test_they_come_from_the_usual_variables(self, environment, options):
        assert s3_options(environment) == options

    def test_path_style_wins_over_the_variable_of_the_client(self, s3_place, monkeypatch):
        monkeypatch.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
        monkeypatch.setenv("AWS_S3_FORCE_PATH_STYLE", "true")
        store = open_place(s3_place)
        store.write_text("a", "x")
        assert s3_place.get("a") == b"x"

    def test_settings_that_contradict_each_other_name_the_address(self, monkeypatch):
        monkeypatch.setenv("AWS_CONDITIONAL_PUT", "nonsense")
        with pytest.raises(StoreCallFailed, match="storage open failed for 's3://b/g'"):
            open_store(normalise_root("s3://b/g"), Durability.FSYNC)


class TestRefusals:
    @pytest.mark.parametrize("action", CALLS)
    def test_a_missing_permission_is_an_error_of_one_line(self, stubbed, action):
        with (
            stubbed(answer=lambda method, key: 403) as (_, store),
            pytest.raises(StoreCallFailed, match="access was denied") as caught,
        ):
            CALLS[action](store)
        assert str(caught.value).startswith(f"storage {action} failed for 's3://bucket/g/a': ")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("action", ["write", "create", "check", "list"])
    def test_a_missing_bucket_is_an_error(self, s3_place, action):
        store = open_store(normalise_root("s3://no-such-bucket/g"), Durability.FSYNC)
        with pytest.raises(StoreCallFailed, match="the bucket does not exist"):
            CALLS[action](store)

    @pytest.mark.parametrize("action", ["create", "update"])
    def test_a_server_that_cannot_be_reached_is_an_error(self, monkeypatch, action):
        for name, value in environment_for("http://127.0.0.1:9").items():
            monkeypatch.setenv(name, value)
        store = open_store(normalise_root("s3://bucket/g"), Durability.FSYNC)
        with pytest.raises(StoreCallFailed, match="the store cannot be reached"):
            CALLS[action](store)

    @pytest.mark.parametrize("action", ["create", "update"])
    def test_a_server_that_knows_no_conditions_is_unsafe(self, stubbed, action):
        with (
            stubbed(answer=lambda method, key: 501) as (_, store),
            pytest.raises(UnsafeStore, match="does not honour conditional put"),
        ):
            CALLS[action](store)

    def test_an_answer_without_e_tag_is_an_error(self, stubbed):
        with stubbed(e_tags=False, objects={KEY: b"x"}) as (_, store):
            assert store.read_text("a") == "x"
            with pytest.raises(StoreCallFailed, match="no e-tag"):
                store.read_text_versioned("a")


class TestRepetition:
    def test_a_plain_write_is_repeated_when_the_server_stumbles(self, stubbed):
        with stubbed(answer=first_time(503)) as (stub, store):
            store.write_text("a", "x")
        assert stub.requests == [f"PUT {KEY}"] * 2
        assert stub.objects == {KEY: b"x"}

    def test_a_conditional_write_is_not_repeated_so_a_winner_never_counts_as_loser(self, stubbed):
        with stubbed(broken_after_put=True) as (stub, store):
            with pytest.raises(StoreCallFailed, match=r"storage create failed .*500"):
                store.write_text_if_absent("a", "x")
            assert stub.requests == [f"PUT {KEY}"]
            assert stub.objects == {KEY: b"x"}

            stub.broken_after_put = False
            _, token = store.read_text_versioned("a")
            stub.broken_after_put = True
            stub.requests.clear()
            with pytest.raises(StoreCallFailed, match=r"storage update failed .*500"):
                store.write_text_if_match("a", "y", token)
            assert stub.requests == [f"PUT {KEY}"]


class TestBusyServer:
    """409: another conditional request on the same object is under way; nothing was done."""

    def test_a_creation_is_sent_again_until_it_is_decided(self, stubbed):
        with stubbed(answer=first_time(409)) as (stub, store):
            assert store.write_text_if_absent("a", "x")
        assert stub.objects == {KEY: b"x"}

    def test_a_creation_is_lost_when_the_other_request_got_through(self, stubbed):
        with stubbed(answer=first_time(409), objects={KEY: b"other"}) as (stub, store):
            assert not store.write_text_if_absent("a", "x")
        assert stub.objects == {KEY: b"other"}

    def test_an_update_is_sent_again_while_the_object_is_unchanged(self, stubbed):
        with stubbed(objects={KEY: b"old"}) as (stub, store):
            _, token = store.read_text_versioned("a")
            stub.answer = first_time(409)
            assert store.write_text_if_match("a", "new", token)
        assert stub.objects == {KEY: b"new"}

    def test_an_update_is_lost_when_the_other_request_got_through(self, stubbed):
        with stubbed(objects={KEY: b"old"}) as (stub, store):
            _, token = store.read_text_versioned("a")
            stub.objects[KEY] = b"other"
            stub.answer = first_time(409)
            assert store.write_text_if_match("a", "new", token) is None
        assert stub.objects == {KEY: b"other"}

    def test_a_server_that_stays_busy_is_an_error(self, stubbed):
        with stubbed(objects={"/bucket/g/b": b"old"}) as (stub, store):
            _, token = store.read_text_versioned("b")
            stub.answer = lambda method, key: 409 if method == "PUT" else None
            with pytest.raises(StoreCallFailed, match=r"storage create failed .* stayed busy"):
                store.write_text_if_absent("a", "x")
            with pytest.raises(StoreCallFailed, match=r"storage update failed .* stayed busy"):
                store.write_text_if_match("b", "x", token)
        assert stub.objects == {"/bucket/g/b": b"old"}


class TestBucket:
    def test_a_graph_may_have_a_bucket_for_itself(self, s3_place):
        name = s3_place.root.bucket_and_prefix[1]
        store = open_store(normalise_root(f"s3://{BUCKET}"), Durability.FSYNC)
        store.write_text(f"{name}/a", "x")
        assert open_place(s3_place).read_text("a") == "x"
        assert store.list_dir(name) == [f"{name}/a"]
        assert store.exists("")
        store.delete_prefix(name)
        assert not store.exists(name)

    def test_a_crash_between_copy_and_deletion_leaves_both_and_can_be_finished(
        self, s3_place, monkeypatch
    ):
        store = open_place(s3_place)
        store.write_text("a", "x")

        def crash(self, keys):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(remote_objects.RemoteObjects, "_delete", crash)
            with pytest.raises(KeyboardInterrupt):
                store.rename_text("a", "b")
        assert sorted(store.list_dir("")) == ["a", "b"]
        store.rename_text("a", "b")
        assert store.list_dir("") == ["b"]

    def test_the_folder_marker_of_other_tools_is_no_object(self, s3_place):
        s3_place.mark_folder("d")
        store = open_place(s3_place)
        assert store.list_dir("d") == []
        assert not store.exists("d")

    def test_more_objects_than_one_page_are_deleted(self, s3_place):
        store = open_place(s3_place)
        for n in range(60):
            store.write_text(f"d/{n}", "x")
        store.delete_prefix("d")
        assert not store.exists("d")
