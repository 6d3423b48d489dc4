"""OpenAI's Python client against a host: python check.py http://localhost:7080/v1 [--key KEY]"""

import argparse
import sys

import openai

QUESTION = [{"role": "user", "content": "What is a ring?"}]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", default="http://localhost:7080/v1")
    parser.add_argument("--key", default="none")
    args = parser.parse_args()
    client = openai.OpenAI(base_url=args.url, api_key=args.key)
    model = client.models.list().data[0].id
    failed = 0
    for check in CHECKS:
        try:
            check(client, model)
            print(f"passed  {check.__name__}")
        except Exception as error:  # every failure is a line of the report
            failed += 1
            print(f"failed  {check.__name__}: {error!r}")
    return 1 if failed else 0


def whole(client: openai.OpenAI, model: str, **more) -> openai.types.chat.ChatCompletion:
    return client.chat.completions.create(
        model=model, messages=QUESTION, temperature=0, max_tokens=24, **more
    )


def chat(client: openai.OpenAI, model: str) -> None:
    answer = whole(client, model)
    assert answer.choices[0].message.content, "no text"
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def stream(client: openai.OpenAI, model: str) -> None:
    chunks = list(whole(client, model, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    answer = whole(client, model)
    assert text == answer.choices[0].message.content, text
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens


def text_parts_and_developer(client: openai.OpenAI, model: str) -> None:
    client.chat.completions.create(
        model=model,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        ],
        max_completion_tokens=2,
        stop=None,
    )


def logprobs(client: openai.OpenAI, model: str) -> None:
    choice = whole(client, model, logprobs=True, top_logprobs=2).choices[0]
    assert "".join(entry.token for entry in choice.logprobs.content) == choice.message.content
    assert all(len(entry.top_logprobs) == 2 for entry in choice.logprobs.content)


def completions(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=["One", "Two"], n=2, max_tokens=4, logprobs=1)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert len(answer.choices[0].logprobs.tokens) > 0


def stop_in_the_middle(client: openai.OpenAI, model: str) -> None:
    with client.chat.completions.create(
        model=model, messages=QUESTION, stream=True, logit_bias={"1": -100}
    ) as events:
        for _ in events:
            break


def refused_field(client: openai.OpenAI, model: str) -> None:
    try:
        whole(client, model, response_format={"type": "json_object"})
    except openai.BadRequestError as error:
        assert error.param == "response_format", error.param
        return
    raise AssertionError("was accepted")


def prompt_too_long(client: openai.OpenAI, model: str) -> None:
    try:
        client.completions.create(model=model, prompt="a b c d " * 200_000, max_tokens=1)
    except openai.BadRequestError as error:
        assert error.code == "context_length_exceeded", error.code
        return
    raise AssertionError("was accepted")


def unknown_model(client: openai.OpenAI, model: str) -> None:
    try:
        client.chat.completions.create(model="other", messages=QUESTION)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error.code
        return
    raise AssertionError("was accepted")


CHECKS = [
    chat,
    stream,
    text_parts_and_developer,
    logprobs,
    completions,
    stop_in_the_middle,
    refused_field,
    prompt_too_long,
    unknown_model,
]

if __name__ == "__main__":
    sys.exit(main())
