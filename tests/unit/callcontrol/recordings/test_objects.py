"""Names of recordings in an object store."""

from __future__ import annotations

import pytest

from callcontrol.recordings.objects import (
    ObjectFolder,
    bucket_and_key,
    is_object,
    parse_object_folder,
)

SID = "01a2b3c4-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://recordings", "recordings", ""),
        ("s3://recordings/", "recordings", ""),
        ("s3://my.recordings-1/a/b", "my.recordings-1", "a/b"),
        ("s3://recordings/calls/", "recordings", "calls"),
    ],
)
def test_a_bucket_may_have_a_prefix(text: str, bucket: str, prefix: str) -> None:
    folder = parse_object_folder(text)
    assert folder == ObjectFolder(bucket, prefix)
    url = folder.url(SID)
    assert url == "/".join(part for part in (f"s3://{bucket}", prefix, f"{SID}.wav") if part)
    assert bucket_and_key(url) == (bucket, url.removeprefix(f"s3://{bucket}/"))
    assert is_object(url) and not is_object(f"/var/lib/{SID}.wav")
    assert parse_object_folder(str(folder)) == folder


@pytest.mark.parametrize(
    "text",
    [
        "recordings",
        "/var/recordings",
        "http://recordings",
        "S3://recordings",
        "s3://",
        "s3:///prefix",
        "s3://UPPER",
        "s3://ab/../c",
        "s3://bucket//double",
        "s3://bucket/with space",
        "s3://bucket/a?b",
        "s3://AKIAKEY:topsecret@bucket/prefix",
        "s3://bucket/prefix\n",
    ],
)
def test_what_is_no_bucket_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not s3://BUCKET") as refusal:
        parse_object_folder(text)
    assert "topsecret" not in str(refusal.value)
