"""Providers of embeddings, against servers that speak their language."""

from __future__ import annotations

import time

import httpx
import numpy as np
import pytest

from omnigraph.errors import (
    EmbeddingFailed,
    EmbeddingModelUnavailable,
    EmbeddingNotConfigured,
    InputError,
    InvalidSetting,
)
from omnigraph.providers.clients import MockProvider, Task, normalize
from omnigraph.providers.configured import provider_of, query_vector, required_provider, stored_name
from tests.unit.providers.speaking import Hang, Refuse, Say, serving

SETTINGS = (
    "OMNIGRAPH_EMBED_PROVIDER",
    "OMNIGRAPH_EMBEDDINGS_MOCK",
    "OMNIGRAPH_EMBED_BASE_URL",
    "OMNIGRAPH_EMBED_MODEL",
    "OMNIGRAPH_GEMINI_BASE_URL",
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "OMNIGRAPH_EMBED_DEADLINE_MS",
)


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "1")


@pytest.fixture
def server():
    with serving() as running:
        yield running


@pytest.fixture(params=["gemini", "openai", "openai-compatible"])
def provider(request, server, monkeypatch):
    """A provider whose requests go to the server."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", request.param)
    monkeypatch.setenv("GEMINI_API_KEY", "gemini-key")
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", f"{server.url}/v1beta/")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "some-model")
    return required_provider()


@pytest.mark.acceptance("L-187")
def test_mock_vectors_are_the_same_everywhere():
    found = MockProvider().embed(["copper"], Task.QUERY, 4)
    assert found[0].tolist() == pytest.approx([-0.645492, 0.311157, 0.696903, 0.029115], abs=1e-6)
    assert MockProvider().embed(["a", "copper"], Task.DOCUMENT, 4)[1].tolist() == found[0].tolist()


def test_texts_get_vectors_of_length_one_in_their_order(provider):
    texts = [f"text {number}" for number in range(300)]
    found = provider.embed(texts, Task.DOCUMENT, 8)
    assert found.dtype == np.float32
    assert np.allclose(found, MockProvider().embed(texts, Task.DOCUMENT, 8), atol=1e-6)


def test_no_texts_need_no_request(provider, server):
    assert provider.embed([], Task.DOCUMENT, 8).shape == (0, 8)
    assert server.requests == []


def test_gemini_is_asked_in_its_own_words(server, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", f"{server.url}/v1beta")
    provider = required_provider()
    provider.embed(["copper"], Task.QUERY, 4)
    provider.embed(["copper"], Task.DOCUMENT, 4)
    path, headers, body = server.requests[0]
    assert path == "/v1beta/models/gemini-embedding-2-preview:embedContent"
    assert headers["x-goog-api-key"] == "secret"
    assert body == {
        "model": "models/gemini-embedding-2-preview",
        "content": {"parts": [{"text": "copper"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 4,
    }
    assert server.requests[1][2]["taskType"] == "RETRIEVAL_DOCUMENT"
    assert provider.model == "gemini/gemini-embedding-2-preview"


def test_openai_is_asked_in_batches(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
    provider = required_provider()
    provider.embed([str(number) for number in range(300)], Task.DOCUMENT, 4)
    assert [len(body["input"]) for _, _, body in server.requests] == [128, 128, 44]
    path, headers, body = server.requests[0]
    assert path == "/v1/embeddings"
    assert "authorization" not in headers
    assert (body["model"], body["dimensions"]) == ("local", 4)
    assert provider.model == "openai/local"


def test_busy_servers_are_asked_again(provider, server):
    server.script = [Refuse(429), Refuse(503), Refuse(500)]
    assert provider.embed(["copper"], Task.QUERY, 4).shape == (1, 4)
    assert len(server.requests) == 4


def test_a_server_may_say_how_long_to_wait(provider, server):
    server.script = [
        Refuse(429, headers={"retry-after": "0.05"}),
        Refuse(429, headers={"retry-after": "soon"}),
    ]
    assert provider.embed(["copper"], Task.QUERY, 4).shape == (1, 4)


def test_asking_ends_after_the_last_attempt(provider, server):
    server.script = [Refuse(503)] * 10
    with pytest.raises(EmbeddingFailed, match=r"503.*told to refuse.*asked 4 times"):
        provider.embed(["copper"], Task.QUERY, 4)
    assert len(server.requests) == 4


def test_a_refused_key_is_not_tried_again(provider, server):
    server.script = [Refuse(401, '{"error": {"message": "bad key"}}')]
    with pytest.raises(EmbeddingFailed, match=r"401: bad key"):
        provider.embed(["copper"], Task.QUERY, 4)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", ["nothing", '{"error": "plain"}', "{}"])
def test_refusals_in_any_form_are_told(provider, server, body):
    server.script = [Refuse(404, body)]
    with pytest.raises(EmbeddingFailed, match="404"):
        provider.embed(["copper"], Task.QUERY, 4)


def test_a_server_that_hangs_is_left(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_TIMEOUT_MS", "100")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "2")
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    server.script = [Hang(1.0), Hang(1.0)]
    with pytest.raises(EmbeddingFailed, match=r"no response within 0\.1 s.*asked 2 times"):
        required_provider().embed(["copper"], Task.QUERY, 4)


@pytest.mark.parametrize("address", ["not-an-address", "ftp://127.0.0.1"])
def test_an_address_that_is_none_is_not_tried_again(monkeypatch, address):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", address)
    with pytest.raises(EmbeddingFailed, match="is not a valid server address") as caught:
        required_provider().embed(["copper"], Task.QUERY, 4)
    assert "asked" not in str(caught.value)


@pytest.mark.parametrize("key", ["ключ", "two\nlines"])
@pytest.mark.parametrize(
    ("provider_name", "setting"), [("gemini", "GEMINI_API_KEY"), ("openai", "OPENAI_API_KEY")]
)
def test_a_key_that_can_be_none_is_refused_by_name(monkeypatch, key, provider_name, setting):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", provider_name)
    monkeypatch.setenv(setting, key)
    with pytest.raises(InputError, match=f"{setting} contains characters"):
        required_provider()


def test_a_server_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(EmbeddingFailed, match=r"no answer from http://127\.0\.0\.1:9/models"):
        required_provider().embed(["copper"], Task.QUERY, 4)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("not JSON", "did not answer in JSON"),
        ("{}", "without"),
        ("[]", "without"),
        ('{"embedding": {"values": [1, 2, 3]}, "data": [{"index": 0, "embedding": [1, 2, 3]}]}',
         "embedding dimension mismatch: expected 4, got 3"),
        ('{"embedding": {"values": ["a"]}, "data": [{"index": 0, "embedding": ["a"]}]}',
         "other than numbers"),
        ('{"embedding": {"values": 7}, "data": [{"index": 0, "embedding": 7}]}',
         "other than a list"),
        ('{"embedding": {"values": [1, 2, 3, null]}, "data": [{"index": 0, "embedding": [1, 2, 3, null]}]}',
         "not finite"),
        ('{"embedding": {"values": [0, 0, 0, 0]}, "data": [{"index": 0, "embedding": [0, 0, 0, 0]}]}',
         "a vector of zeros"),
    ],
)  # fmt: skip
def test_answers_that_are_no_vectors_are_refused(provider, server, answer, complaint):
    server.script = [Say(answer)]
    with pytest.raises(EmbeddingFailed, match=complaint):
        provider.embed(["copper"], Task.QUERY, 4)


def test_missing_answers_of_a_batch_are_noticed(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    server.script = [Say('{"data": [{"index": 0, "embedding": [1.0, 0.0]}]}')]
    with pytest.raises(EmbeddingFailed, match="given 2 texts and answered for 1"):
        required_provider().embed(["a", "b"], Task.DOCUMENT, 2)


@pytest.mark.parametrize(
    ("chosen", "missing"),
    [
        (None, "GEMINI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("openai-compatible", "OMNIGRAPH_EMBED_BASE_URL"),
    ],
)
def test_what_is_missing_is_named(monkeypatch, chosen, missing):
    if chosen is not None:
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", chosen)
    with pytest.raises(EmbeddingNotConfigured, match=missing):
        required_provider()


@pytest.mark.acceptance("U-380")
@pytest.mark.parametrize(
    ("keys", "model", "address"),
    [
        (["OPENAI"], "openai/text-embedding-3-large", "https://api.openai.com/v1"),
        (
            ["OPENAI", "OPENROUTER"],
            "openai/openai/text-embedding-3-large",
            "https://openrouter.ai/api/v1",
        ),
        (
            ["OPENAI", "OPENROUTER", "GEMINI"],
            "gemini/gemini-embedding-2-preview",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
    ],
)
def test_without_a_name_the_first_provider_with_a_key_is_asked(monkeypatch, keys, model, address):
    for key in keys:
        monkeypatch.setenv(f"{key}_API_KEY", f"{key.lower()}-key")
    asked = []

    def post(client, url, **rest):
        asked.append((str(url), dict(client.headers)))
        raise httpx.ConnectError("no network here")

    monkeypatch.setattr(httpx.Client, "post", post)
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1")
    assert required_provider().model == model
    with pytest.raises(EmbeddingFailed, match="no network here"):
        required_provider().embed(["x"], Task.QUERY, 4)
    ((url, headers),) = asked
    assert url.startswith(address)
    assert f"{keys[-1].lower()}-key" in " ".join(headers.values())


def test_a_compatible_server_gets_the_key_of_openrouter_first(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    with pytest.raises(EmbeddingNotConfigured, match="OMNIGRAPH_EMBED_BASE_URL"):
        required_provider()  # The key of OpenAI is not sent to OpenRouter.
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
    required_provider().embed(["x"], Task.QUERY, 4)
    monkeypatch.setenv("OPENROUTER_API_KEY", "router-key")
    required_provider().embed(["x"], Task.QUERY, 4)
    sent = [headers["authorization"] for _, headers, _ in server.requests]
    assert sent == ["Bearer openai-key", "Bearer router-key"]


@pytest.mark.acceptance("U-382")
@pytest.mark.parametrize("script", [[Hang(5.0)] * 4, [Refuse(503)] * 4])
def test_all_attempts_together_end_at_the_deadline(server, monkeypatch, script):
    monkeypatch.setenv("OMNIGRAPH_EMBED_DEADLINE_MS", "300")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "200")
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    server.script = script
    began = time.monotonic()
    with pytest.raises(EmbeddingFailed, match=r"the deadline is 0\.3 s"):
        required_provider().embed(["copper"], Task.QUERY, 4)
    assert time.monotonic() - began < 4


def test_without_a_deadline_a_provider_is_asked_as_often_as_configured(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_DEADLINE_MS", "0")
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    server.script = [Refuse(500)] * 10
    with pytest.raises(EmbeddingFailed, match="asked 4 times"):
        required_provider().embed(["copper"], Task.QUERY, 4)


def test_an_unknown_provider_is_refused(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "oracle")
    with pytest.raises(InputError, match="gemini, mock, openai"):
        required_provider()


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_the_mock_needs_no_key_and_wins(monkeypatch, value):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", value)
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    assert required_provider().model == "mock/fnv1a-xorshift64"


@pytest.mark.parametrize("value", ["0", "-3", "soon"])
def test_settings_that_are_not_numbers_are_refused_by_name(monkeypatch, value):
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", value)
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    with pytest.raises(InvalidSetting, match=f"OMNIGRAPH_EMBED_RETRY_ATTEMPTS is '{value}'"):
        required_provider()


def test_without_settings_a_provider_is_asked_four_times(server, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    server.script = [Refuse(500)] * 10
    with pytest.raises(EmbeddingFailed, match="asked 4 times"):
        required_provider().embed(["copper"], Task.QUERY, 4)


def test_repeated_query_texts_are_asked_once(server, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    first = query_vector("how to mend a kettle", 4)
    again = query_vector("how to mend a kettle", 4)
    other = query_vector("how to mend a kettle", 5)
    assert first.tolist() == again.tolist()
    assert (len(server.requests), len(other)) == (2, 5)
    with pytest.raises(ValueError):
        first[0] = 2.0


def test_a_vector_of_no_length_stays_as_it_is():
    zero = np.zeros((1, 3), np.float32)
    assert normalize(zero).tolist() == [[0.0, 0.0, 0.0]]


# -- models that a schema names -----------------------------------------------------------------


def test_a_named_model_is_asked_for_at_its_own_provider(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("GEMINI_API_KEY", "g")
    monkeypatch.setenv("OMNIGRAPH_GEMINI_BASE_URL", server.url)
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
    named = provider_of("openai-compatible/org/small")
    assert named.model == stored_name("openai-compatible/org/small") == "openai/org/small"
    named.embed(["x"], Task.DOCUMENT, 4)
    provider_of("gemini/other").embed(["x"], Task.DOCUMENT, 4)
    (_, _, first), (path, _, second) = server.requests
    assert first["model"] == "org/small"
    assert (path.endswith("/models/other:embedContent"), second["model"]) == (True, "models/other")


def test_the_configured_model_may_be_named(server, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", server.url)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local")
    assert provider_of("openai-compatible/local") is required_provider()
    # The address of another server is not that of OpenAI, whose key is missing.
    with pytest.raises(EmbeddingModelUnavailable, match="OPENAI_API_KEY is not set"):
        provider_of("openai/text-embedding-3-large")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert server.url not in str(vars(provider_of("openai/text-embedding-3-large")))


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        ("openai/x", "OPENAI_API_KEY is not set"),
        ("gemini/x", "GEMINI_API_KEY is not set"),
        ("openai-compatible/x", "OMNIGRAPH_EMBED_BASE_URL is not set"),
        ("mock/other", "'mock'"),
        ("m", "'m'"),
        ("acme/x", "'acme'"),
    ],
)
def test_a_model_that_is_not_configured_is_refused_naming_both(monkeypatch, model, missing):
    with pytest.raises(EmbeddingNotConfigured):
        provider_of(model)
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    with pytest.raises(EmbeddingModelUnavailable) as refused:
        provider_of(model)
    assert (refused.value.model, refused.value.configured) == (model, MockProvider.model)
    for text in (model, MockProvider.model, missing):
        assert text in str(refused.value)
    with pytest.raises(EmbeddingModelUnavailable):
        query_vector("x", 4, model)
    assert provider_of(MockProvider.model) == required_provider()
