"""Whatever follows from the OpenAPI document, or breaks it, gets an answer that it promises, and never a 500."""

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, openapi

from ranktron.service.http.app import routes
from ranktron.store import messages
from ranktron.store.messages import ErrorAnswer

PROMISED = {200, 400, 404, 405, 409, 410, 413, 415, 422}


def operations(talk):
    return [
        (action.method, path.path.replace(":path}", "}"), action.gives)  # the document has no types of segments
        for path in routes(talk.service)
        for action in path.endpoint.actions.values()
        if path.path != "/openapi.json"
    ]


def sent(talk, case):
    """The answer to a generated request."""
    body, headers = b"", {}
    if type(case.body).__name__ != "NotSet":
        raw = getattr(case.body, "data", case.body)  # what is not JSON comes wrapped
        body = raw if isinstance(raw, bytes) else msgspec.json.encode(plain(raw))
        headers["content_type"] = case.media_type or "application/json"
    return talk.request(case.method, case.formatted_path, body, **headers)


def plain(value):
    """What can be written as JSON."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, bytes) or (isinstance(value, int) and abs(value) > 2**62) else value


def check(answer, gives):
    assert answer.status in PROMISED, answer
    if answer.status != 200:
        assert msgspec.json.decode(answer.content, type=ErrorAnswer).error.message
    elif isinstance(gives, type) and issubclass(gives, messages.ResponseBody):
        msgspec.json.decode(answer.content, type=gives)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_gets_what_the_document_does_not_promise(talk, mode):
    talk.make()
    schema = openapi.from_dict(talk.ask("GET", "/openapi.json"))
    reached = set()
    for method, path, gives in operations(talk):
        known = {"path_parameters": {"name": "shop"}} if "{name}" in path and method != "DELETE" else {}

        @settings(
            max_examples=12,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(schema[path][method].as_strategy(generation_mode=mode, **known))
        def fuzz(case):
            answer = sent(talk, case)
            check(answer, gives)  # noqa: B023 (it is called at once)
            reached.add((path, answer.status))  # noqa: B023

        try:
            fuzz()
        except Exception as error:
            if type(error).__name__ != "Unsatisfiable":  # a path without parameters cannot be wrong
                raise
    statuses = {status for _, status in reached}
    assert len({path for path, _ in reached}) > 5
    assert 200 in statuses or mode == GenerationMode.NEGATIVE
    assert 422 in statuses


def test_the_document_says_what_is_there(talk):
    document = talk.ask("GET", "/openapi.json")
    rank = document["paths"]["/v1/rankers/{name}/rank"]["post"]
    assert rank["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/RankRequest"}
    features = document["components"]["schemas"]["Document"]["properties"]["features"]
    assert [kind["type"] for kind in features["anyOf"]] == ["array", "object"]
    assert "round" in document["components"]["schemas"]["RankAnswer"]["required"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
