"""Today's boto3 with its default settings against a running server: one function `check_...` per promise.

Called by boto3.test.ts, which makes a test of each function:
    python boto3_checks.py ENDPOINT   (credentials, region and certificates from the environment)
Prints one JSON line per check: {"name": ..., "error": null or text}. What the default settings do not reach (path
style, other checksums, virtual hosts) is set on the call or client that is about it.
"""

import base64
import hashlib
import io
import json
import os
import socket
import sys
import tempfile
import traceback
import urllib.error
import urllib.request
import ssl

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.compat import HAS_CRT
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = sys.argv[1]
MIB = 1024 * 1024
# CRC32C and CRC64NVME are computed by an optional package.
ALGORITHMS = ["CRC32", "SHA1", "SHA256"] + (["CRC32C", "CRC64NVME"] if HAS_CRT else [])

s3 = boto3.client("s3", endpoint_url=ENDPOINT)


def bytes_of(label, size):
    """Bytes that look random and depend on the label alone."""
    return hashlib.shake_128(label.encode()).digest(size)


def new_bucket(name):
    s3.create_bucket(Bucket=name)
    return name


def error_of(call, **arguments):
    """Code and status of the error that the call must end with."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    raise AssertionError("the call succeeded")


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"{str(actual)[:2000]!r} is not {str(expected)[:2000]!r}")


def check_buckets():
    bucket = new_bucket("boto-buckets")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    equal(bucket in [found["Name"] for found in s3.list_buckets()["Buckets"]], True)
    equal(s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"], 200)
    equal(s3.get_bucket_location(Bucket=bucket)["LocationConstraint"], "us-east")
    equal("Status" in s3.get_bucket_versioning(Bucket=bucket), False)
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    equal(error_of(s3.delete_bucket, Bucket=bucket), ("BucketNotEmpty", 409))
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)
    equal(error_of(s3.head_bucket, Bucket=bucket), ("404", 404))


def check_put_get_head_delete():
    bucket = new_bucket("boto-objects")
    for size in [0, 1, 65535, 65536, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB + 17]:
        body = bytes_of(f"size {size}", size)
        put = s3.put_object(Bucket=bucket, Key=f"size/{size}", Body=body)
        equal(put["ETag"], f'"{hashlib.md5(body).hexdigest()}"')
        equal(len(put["ChecksumCRC32"]) > 0, True)
        got = s3.get_object(Bucket=bucket, Key=f"size/{size}")
        equal(got["Body"].read() == body, True)
        equal((got["ContentLength"], got["ETag"], got["ContentType"]), (size, put["ETag"], "binary/octet-stream"))
        # The default settings ask for the checksum and verify it.
        equal(got["ChecksumCRC32"], put["ChecksumCRC32"])
        head = s3.head_object(Bucket=bucket, Key=f"size/{size}")
        equal((head["ContentLength"], head["ETag"]), (size, put["ETag"]))
        s3.delete_object(Bucket=bucket, Key=f"size/{size}")
        equal(error_of(s3.head_object, Bucket=bucket, Key=f"size/{size}"), ("404", 404))


def check_put_from_file_and_stream():
    bucket = new_bucket("boto-streams")
    body = bytes_of("file", 2 * MIB + 5)
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.seek(0)
        s3.put_object(Bucket=bucket, Key="file", Body=file)
    equal(s3.get_object(Bucket=bucket, Key="file")["Body"].read() == body, True)
    s3.put_object(Bucket=bucket, Key="stream", Body=io.BytesIO(body))
    equal(b"".join(s3.get_object(Bucket=bucket, Key="stream")["Body"].iter_chunks(70_001)) == body, True)


def check_content_headers_and_metadata():
    bucket = new_bucket("boto-headers")
    headers = {
        "ContentType": "text/plain; charset=utf-8",
        "ContentEncoding": "gzip",
        "ContentLanguage": "de",
        "ContentDisposition": 'attachment; filename="a b.txt"',
        "CacheControl": "max-age=60",
        "Metadata": {"mtime": "1700000000.123456789", "with-dash": "a  b", "empty": "", "quoted": '"x"'},
    }
    s3.put_object(Bucket=bucket, Key="k", Body=b"body", StorageClass="STANDARD", ACL="private", **headers)
    for answer in (s3.get_object(Bucket=bucket, Key="k"), s3.head_object(Bucket=bucket, Key="k")):
        equal({name: answer[name] for name in headers}, headers)
    overridden = s3.get_object(
        Bucket=bucket, Key="k", ResponseContentType="x/y", ResponseCacheControl="no-cache"
    )
    equal((overridden["ContentType"], overridden["CacheControl"]), ("x/y", "no-cache"))
    big = {"big": "x" * 2049}
    equal(error_of(s3.put_object, Bucket=bucket, Key="big", Body=b"", Metadata=big), ("MetadataTooLarge", 400))


def check_odd_keys():
    bucket = new_bucket("boto-keys")
    keys = [
        " leading and trailing ", "a+b c%20d", "%41%2F%zz", "it's \"quoted\"", "a&b<c>d", "?x=1#y", "back\\slash",
        "café", "cafe\u0301", "日本語", "emoji-😀", "tab\there", "line\nbreak", "a//b", "/leading", "trailing/", ".", "..",
        "../up", "a/./b", "k" * 1024, "é" * 512, "~*'()!$,;:@[]{}|^`",
    ]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    for key in keys:
        equal(s3.get_object(Bucket=bucket, Key=key)["Body"].read(), key.encode())
    listed = [found["Key"] for found in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    equal(listed, sorted(keys, key=lambda key: key.encode()))
    equal([found["Key"] for found in s3.list_objects(Bucket=bucket)["Contents"]], listed)
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    equal(sorted(found["Key"] for found in answer["Deleted"]), sorted(keys))
    equal(error_of(s3.put_object, Bucket=bucket, Key="k" * 1025, Body=b""), ("KeyTooLongError", 400))
    s3.delete_bucket(Bucket=bucket)


def check_lists_and_paginators():
    bucket = new_bucket("boto-lists")
    keys = [f"folder {number % 3}/sub/{number:03}" for number in range(25)] + ["top"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    for name in ("list_objects_v2", "list_objects"):
        pages = list(s3.get_paginator(name).paginate(Bucket=bucket, PaginationConfig={"PageSize": 4}))
        equal(len(pages), 7)
        equal([found["Key"] for page in pages for found in page["Contents"]], sorted(keys))
        pages = list(s3.get_paginator(name).paginate(
            Bucket=bucket, Delimiter="/", PaginationConfig={"PageSize": 2}))
        equal([p["Prefix"] for page in pages for p in page.get("CommonPrefixes", [])],
              ["folder 0/", "folder 1/", "folder 2/"])
        equal([found["Key"] for page in pages for found in page.get("Contents", [])], ["top"])
    after = s3.list_objects_v2(Bucket=bucket, StartAfter="folder 2/", Prefix="folder", FetchOwner=True)
    equal(after["KeyCount"], 8)
    equal(all(found["Owner"]["ID"] and found["StorageClass"] == "STANDARD" for found in after["Contents"]), True)


def check_delete_objects():
    bucket = new_bucket("boto-deletes")
    keys = [f"k{number}" for number in range(1000)]
    for key in keys[:20]:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    equal(len(answer["Deleted"]), 1000)
    equal(answer.get("Errors"), None)
    quiet = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k0"}], "Quiet": True})
    equal((quiet.get("Deleted"), quiet.get("Errors")), (None, None))
    equal(s3.list_objects_v2(Bucket=bucket)["KeyCount"], 0)
    many = {"Objects": [{"Key": f"k{number}"} for number in range(1001)]}
    equal(error_of(s3.delete_objects, Bucket=bucket, Delete=many), ("MalformedXML", 400))


def check_copy():
    source, target = new_bucket("boto-copy-a"), new_bucket("boto-copy-b")
    body = bytes_of("copy", 2 * MIB)
    put = s3.put_object(Bucket=source, Key="from é+%", Body=body, Metadata={"a": "1"}, ContentType="x/y")
    place = {"Bucket": source, "Key": "from é+%"}
    for bucket in (source, target):
        copied = s3.copy_object(Bucket=bucket, Key="to", CopySource=place)
        equal(copied["CopyObjectResult"]["ETag"], put["ETag"])
        got = s3.get_object(Bucket=bucket, Key="to")
        equal((got["Body"].read() == body, got["Metadata"], got["ContentType"]), (True, {"a": "1"}, "x/y"))
    s3.copy_object(Bucket=target, Key="to", CopySource=place, MetadataDirective="REPLACE", Metadata={"b": "2"})
    equal(s3.head_object(Bucket=target, Key="to")["Metadata"], {"b": "2"})
    onto_itself = {"Bucket": target, "Key": "to", "CopySource": {"Bucket": target, "Key": "to"}}
    equal(error_of(s3.copy_object, **onto_itself), ("InvalidRequest", 400))
    s3.delete_object(Bucket=source, Key="from é+%")
    equal(s3.get_object(Bucket=target, Key="to")["Body"].read() == body, True)
    equal(error_of(s3.copy_object, Bucket=target, Key="x", CopySource=place), ("NoSuchKey", 404))
    # The managed copy takes parts of the source above its threshold.
    config = TransferConfig(multipart_threshold=6 * MIB, multipart_chunksize=5 * MIB)
    big = bytes_of("big copy", 11 * MIB + 1)
    s3.put_object(Bucket=source, Key="big", Body=big)
    s3.copy({"Bucket": source, "Key": "big"}, target, "big", Config=config)
    equal(s3.get_object(Bucket=target, Key="big")["Body"].read() == big, True)
    equal(s3.head_object(Bucket=target, Key="big")["ETag"].endswith('-3"'), True)


def check_managed_transfers():
    bucket = new_bucket("boto-transfers")
    for size in (0, 5, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 25 * MIB + 3):
        body = bytes_of(f"transfer {size}", size)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "up")
            with open(path, "wb") as file:
                file.write(body)
            s3.upload_file(path, bucket, f"file {size}", ExtraArgs={"Metadata": {"size": str(size)}})
            s3.upload_fileobj(io.BytesIO(body), bucket, f"object {size}")
            for key in (f"file {size}", f"object {size}"):
                s3.download_file(bucket, key, path)
                with open(path, "rb") as file:
                    equal(file.read() == body, True)
                sink = io.BytesIO()
                s3.download_fileobj(bucket, key, sink)
                equal(sink.getvalue() == body, True)
        head = s3.head_object(Bucket=bucket, Key=f"file {size}", ChecksumMode="ENABLED")
        equal((head["ContentLength"], head["Metadata"]), (size, {"size": str(size)}))
        equal(head["ETag"].endswith('-4"'), size > 24 * MIB)
        equal("ChecksumCRC32" in head, True)


def check_multipart_by_hand():
    bucket = new_bucket("boto-multipart")
    parts = [bytes_of(f"part {number}", size) for number, size in enumerate([5 * MIB, 6 * MIB, 17])]
    for algorithm in ALGORITHMS:
        kind = "FULL_OBJECT" if algorithm.startswith("CRC") else "COMPOSITE"
        field = f"Checksum{algorithm}"
        upload = s3.create_multipart_upload(
            Bucket=bucket, Key=algorithm, ChecksumAlgorithm=algorithm, ChecksumType=kind)
        equal((upload["ChecksumAlgorithm"], upload["ChecksumType"]), (algorithm, kind))
        place = {"Bucket": bucket, "Key": algorithm, "UploadId": upload["UploadId"]}
        sent = []
        for number, part in enumerate(parts, 1):
            answer = s3.upload_part(**place, PartNumber=number, Body=part, ChecksumAlgorithm=algorithm)
            sent.append({"PartNumber": number, "ETag": answer["ETag"], field: answer[field]})
        listed = s3.list_parts(**place)
        equal([(p["PartNumber"], p["ETag"], p["Size"], p[field]) for p in listed["Parts"]],
              [(p["PartNumber"], p["ETag"], len(parts[p["PartNumber"] - 1]), p[field]) for p in sent])
        equal([u["UploadId"] for u in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]], [upload["UploadId"]])
        done = s3.complete_multipart_upload(**place, MultipartUpload={"Parts": sent})
        digest = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
        equal(done["ETag"], f'"{digest}-3"')
        got = s3.get_object(Bucket=bucket, Key=algorithm)
        equal(got["Body"].read() == b"".join(parts), True)
        equal((done[field], done["ChecksumType"]), (got[field], kind))
        second = s3.get_object(Bucket=bucket, Key=algorithm, PartNumber=2)
        equal((second["Body"].read() == parts[1], second["PartsCount"]), (True, 3))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="aborted")
    place = {"Bucket": bucket, "Key": "aborted", "UploadId": upload["UploadId"]}
    s3.upload_part(**place, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(**place)
    equal(error_of(s3.list_parts, **place), ("NoSuchUpload", 404))


def check_upload_part_copy():
    bucket = new_bucket("boto-part-copy")
    body = bytes_of("source", 12 * MIB)
    s3.put_object(Bucket=bucket, Key="source", Body=body)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="target")
    place = {"Bucket": bucket, "Key": "target", "UploadId": upload["UploadId"]}
    source = {"Bucket": bucket, "Key": "source"}
    first = s3.upload_part_copy(**place, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=3-{6 * MIB}")
    second = s3.upload_part_copy(**place, PartNumber=2, CopySource=source)
    tags = [answer["CopyPartResult"]["ETag"] for answer in (first, second)]
    listed = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
    s3.complete_multipart_upload(**place, MultipartUpload={"Parts": listed})
    got = s3.get_object(Bucket=bucket, Key="target")["Body"].read()
    equal(got == body[3:6 * MIB + 1] + body, True)


def check_checksum_algorithms():
    bucket = new_bucket("boto-checksums")
    for algorithm in ALGORITHMS:
        for size in (0, 10, MIB + 1):
            body = bytes_of(f"checksum {size}", size)
            # As a trailer over TLS, as a header otherwise.
            put = s3.put_object(Bucket=bucket, Key=algorithm, Body=io.BytesIO(body), ChecksumAlgorithm=algorithm)
            got = s3.get_object(Bucket=bucket, Key=algorithm, ChecksumMode="ENABLED")
            equal((got["Body"].read() == body, got[f"Checksum{algorithm}"]), (True, put[f"Checksum{algorithm}"]))
            field = {f"Checksum{algorithm}": put[f"Checksum{algorithm}"]}
            s3.put_object(Bucket=bucket, Key=algorithm, Body=body, **field)
            equal(error_of(s3.put_object, Bucket=bucket, Key="bad", Body=body + b"!", **field), ("BadDigest", 400))
    equal(error_of(s3.head_object, Bucket=bucket, Key="bad"), ("404", 404))


def check_ranges_and_conditions():
    bucket = new_bucket("boto-ranges")
    body = bytes_of("ranges", 3 * MIB)
    put = s3.put_object(Bucket=bucket, Key="k", Body=body)
    for text, part in [("0-0", body[:1]), (f"{MIB - 1}-{MIB}", body[MIB - 1:MIB + 1]), ("-5", body[-5:]),
                       (f"{2 * MIB}-", body[2 * MIB:]), (f"5-{9 * MIB}", body[5:])]:
        got = s3.get_object(Bucket=bucket, Key="k", Range=f"bytes={text}")
        equal((got["Body"].read() == part, got["ResponseMetadata"]["HTTPStatusCode"]), (True, 206))
    beyond = {"Bucket": bucket, "Key": "k", "Range": f"bytes={3 * MIB}-"}
    equal(error_of(s3.get_object, **beyond), ("InvalidRange", 416))
    equal(error_of(s3.get_object, Bucket=bucket, Key="k", IfNoneMatch=put["ETag"]), ("304", 304))
    equal(error_of(s3.get_object, Bucket=bucket, Key="k", IfMatch='"other"'), ("PreconditionFailed", 412))
    modified = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    equal(error_of(s3.head_object, Bucket=bucket, Key="k", IfModifiedSince=modified), ("304", 304))
    equal(s3.get_object(Bucket=bucket, Key="k", IfMatch=put["ETag"])["ContentLength"], 3 * MIB)


def check_conditional_writes():
    bucket = new_bucket("boto-conditions")
    place = {"Bucket": bucket, "Key": "k"}
    failed = ("PreconditionFailed", 412)
    first = s3.put_object(**place, Body=b"first", IfNoneMatch="*")
    equal(error_of(s3.put_object, **place, Body=b"x", IfNoneMatch="*"), failed)
    equal(error_of(s3.put_object, **place, Body=b"x", IfMatch='"other"'), failed)
    second = s3.put_object(**place, Body=b"second", IfMatch=first["ETag"])
    copy = {"Bucket": bucket, "Key": "copy", "CopySource": place}
    equal(error_of(s3.copy_object, **copy, CopySourceIfMatch=first["ETag"]), failed)
    s3.copy_object(**copy, CopySourceIfMatch=second["ETag"])
    equal(error_of(s3.delete_object, **place, IfMatch=first["ETag"]), failed)
    equal(s3.get_object(**place)["Body"].read(), b"second")
    s3.delete_object(**place, IfMatch=second["ETag"])
    equal(error_of(s3.head_object, **place), ("404", 404))


def fetch(url, method="GET", body=None, headers=None):
    trust = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    request.add_unredirected_header("Content-Type", (headers or {}).get("Content-Type", ""))
    with urllib.request.urlopen(request, context=trust) as answer:
        return answer.status, answer.read()


def fetch_refused(url, code, method="GET"):
    try:
        fetch(url, method)
    except urllib.error.HTTPError as error:
        return equal((error.code, f"<Code>{code}</Code>".encode() in error.read()), (403, True))
    raise AssertionError("the URL was accepted")


def check_presigned_urls():
    bucket = new_bucket("boto-presigned")
    v4 = boto3.client("s3", endpoint_url=ENDPOINT, config=Config(signature_version="s3v4"))
    v2 = boto3.client("s3", endpoint_url=ENDPOINT, config=Config(signature_version="s3"))
    # Unless told otherwise boto3 presigns for this region by version 2.
    equal("AWSAccessKeyId=" in s3.generate_presigned_url("list_buckets"), True)
    place = {"Bucket": bucket, "Key": "a key/with é & +"}
    fetch_refused(v2.generate_presigned_url("get_object", Params=place, ExpiresIn=-1), "AccessDenied")
    for client in [v4, v2, s3]:
        equal(fetch(client.generate_presigned_url("put_object", Params=place), "PUT", b"presigned")[0], 200)
        equal(fetch(client.generate_presigned_url("get_object", Params=place)), (200, b"presigned"))
        equal(fetch(client.generate_presigned_url("head_object", Params=place), "HEAD"), (200, b""))
        listing = fetch(client.generate_presigned_url("list_objects_v2", Params={"Bucket": bucket}))
        equal(b"<KeyCount>1</KeyCount>" in listing[1], True)
        chosen = {**place, "ResponseContentType": "text/x é", "VersionId": "null"}
        equal(fetch(client.generate_presigned_url("get_object", Params=chosen)), (200, b"presigned"))
        tampered = client.generate_presigned_url("get_object", Params=place)
        fetch_refused(tampered.replace("with", "without"), "SignatureDoesNotMatch")
        typed = {**place, "ContentType": "text/x", "Metadata": {"a": "b"}}
        sent = {"Content-Type": "text/x", **({"x-amz-meta-a": "b"} if client is v4 else {})}
        equal(fetch(client.generate_presigned_url("put_object", Params=typed), "PUT", b"typed", sent)[0], 200)
        head = s3.head_object(**place)
        equal((head["ContentType"], head["Metadata"]), ("text/x", {"a": "b"}))
        equal(fetch(client.generate_presigned_url("delete_object", Params=place), "DELETE")[0], 204)


def post_form(form, content, name="a file.txt"):
    """Sends a presigned form as a browser does; status and the bytes of the answer."""
    boundary = "boundary-of-the-form"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n' for field, value in form["fields"].items()]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
    body = "".join(parts).encode() + content + f"\r\n--{boundary}--\r\n".encode()
    try:
        return fetch(form["url"], "POST", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def check_presigned_forms():
    bucket = new_bucket("boto-forms")
    v4 = boto3.client("s3", endpoint_url=ENDPOINT, config=Config(signature_version="s3v4"))
    v2 = boto3.client("s3", endpoint_url=ENDPOINT, config=Config(signature_version="s3"))
    sized = [["content-length-range", 1, 2 * MIB]]
    for client in [v4, v2, s3]:
        equal(post_form(client.generate_presigned_post(bucket, "a key/é", Conditions=sized), b"form"), (204, b""))
        equal(s3.get_object(Bucket=bucket, Key="a key/é")["Body"].read(), b"form")
        named = client.generate_presigned_post(bucket, "in/${filename}", Conditions=sized)
        equal(post_form(named, bytes_of("form", MIB))[0], 204)
        equal(s3.get_object(Bucket=bucket, Key="in/a file.txt")["Body"].read(), bytes_of("form", MIB))
        fields = {"Content-Type": "text/x", "x-amz-meta-a": "b", "success_action_status": "201"}
        typed = client.generate_presigned_post(bucket, "typed", fields, [{name: value} for name, value in fields.items()])
        status, body = post_form(typed, b"typed")
        equal((status, b"<Key>typed</Key>" in body), (201, True))
        head = s3.head_object(Bucket=bucket, Key="typed")
        equal((head["ContentType"], head["Metadata"]), ("text/x", {"a": "b"}))
        status, body = post_form(client.generate_presigned_post(bucket, "large", Conditions=sized), bytes(2 * MIB + 1))
        equal((status, b"<Code>EntityTooLarge</Code>" in body), (400, True))
        typed["fields"]["key"] = "other"
        status, body = post_form(typed, b"other")
        equal((status, b"<Code>AccessDenied</Code>" in body), (403, True))
        status, body = post_form(client.generate_presigned_post(bucket, "late", ExpiresIn=-1), b"late")
        equal((status, b"Invalid according to Policy: Policy expired." in body), (403, True))
        equal([each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]], ["a key/é", "in/a file.txt", "typed"])


def check_signature_version_2():
    """Whole uploads and downloads, in path style and with headers that are signed one by one."""
    config = Config(signature_version="s3", s3={"addressing_style": "path"})
    client = boto3.client("s3", endpoint_url=ENDPOINT, config=config)
    bucket = "boto-v2"
    client.create_bucket(Bucket=bucket)
    equal(bucket in [found["Name"] for found in client.list_buckets()["Buckets"]], True)
    for key in ["plain", "a key/with é & +?", "//"]:
        body = bytes_of(key, 70_000)
        client.put_object(Bucket=bucket, Key=key, Body=body, Metadata={"a": "b  c"}, ContentType="text/x")
        got = client.get_object(Bucket=bucket, Key=key, ResponseContentType="text/y")
        equal((got["Body"].read(), got["ContentType"], got["Metadata"]["a"]), (body, "text/y", "b  c"))
        client.copy_object(Bucket=bucket, Key=f"{key}-copy", CopySource={"Bucket": bucket, "Key": key})
    equal(len(client.list_objects_v2(Bucket=bucket, Prefix="a key/")["Contents"]), 2)
    big = bytes_of("big", 12 * MIB)
    client.upload_fileobj(io.BytesIO(big), bucket, "big", Config=TransferConfig(multipart_chunksize=5 * MIB))
    equal(client.get_object(Bucket=bucket, Key="big")["Body"].read(), big)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    equal(client.get_bucket_versioning(Bucket=bucket)["Status"], "Enabled")
    every = client.list_object_versions(Bucket=bucket)["Versions"]
    doomed = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in every]
    equal(len(client.delete_objects(Bucket=bucket, Delete={"Objects": doomed})["Deleted"]), len(every))
    client.delete_bucket(Bucket=bucket)
    wrong = boto3.client("s3", endpoint_url=ENDPOINT, config=config, aws_secret_access_key="x" * 40,
                         aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"])
    equal(error_of(wrong.list_buckets), ("SignatureDoesNotMatch", 403))


def check_virtual_hosts():
    """BUCKET.s3.localhost; no resolver knows these names everywhere, so ours answers for them."""
    resolve = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *rest, **more: resolve(
        "127.0.0.1" if str(host).endswith(".localhost") else host, *rest, **more)
    try:
        client = boto3.client(
            "s3",
            endpoint_url=ENDPOINT.replace("127.0.0.1", "s3.localhost"),
            config=Config(s3={"addressing_style": "virtual"}),
        )
        client.create_bucket(Bucket="boto-virtual")
        client.put_object(Bucket="boto-virtual", Key="a/b é", Body=b"virtual")
        equal(s3.get_object(Bucket="boto-virtual", Key="a/b é")["Body"].read(), b"virtual")
        equal(client.get_object(Bucket="boto-virtual", Key="a/b é")["Body"].read(), b"virtual")
        equal([found["Key"] for found in client.list_objects_v2(Bucket="boto-virtual")["Contents"]], ["a/b é"])
        equal("boto-virtual" in [found["Name"] for found in client.list_buckets()["Buckets"]], True)
        old = boto3.client(
            "s3",
            endpoint_url=ENDPOINT.replace("127.0.0.1", "s3.localhost"),
            config=Config(s3={"addressing_style": "virtual"}, signature_version="s3"),
        )
        equal([found["Key"] for found in old.list_objects_v2(Bucket="boto-virtual")["Contents"]], ["a/b é"])
        equal(old.get_object(Bucket="boto-virtual", Key="a/b é")["Body"].read(), b"virtual")
        url = old.generate_presigned_url("get_object", Params={"Bucket": "boto-virtual", "Key": "a/b é"})
        equal(("://boto-virtual.s3.localhost" in url, fetch(url)), (True, (200, b"virtual")))
    finally:
        socket.getaddrinfo = resolve


def check_typed_errors():
    bucket = new_bucket("boto-errors")

    def raises(kind, call, **arguments):
        try:
            call(**arguments)
        except kind:
            return
        raise AssertionError("the call succeeded")

    raises(s3.exceptions.NoSuchKey, s3.get_object, Bucket=bucket, Key="missing")
    raises(s3.exceptions.NoSuchBucket, s3.list_objects_v2, Bucket="boto-not-there")
    raises(s3.exceptions.NoSuchUpload, s3.abort_multipart_upload, Bucket=bucket, Key="k", UploadId="none")
    other = boto3.client("s3", endpoint_url=ENDPOINT, aws_access_key_id="nobody", aws_secret_access_key="x" * 40)
    equal(error_of(other.list_buckets), ("InvalidAccessKeyId", 403))
    wrong = boto3.client("s3", endpoint_url=ENDPOINT, aws_secret_access_key="x" * 40,
                         aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"])
    equal(error_of(wrong.list_buckets), ("SignatureDoesNotMatch", 403))
    equal(error_of(s3.get_bucket_tagging, Bucket=bucket), ("NotImplemented", 501))
    s3.put_object(Bucket=bucket, Key="once", Body=b"x", IfNoneMatch="*")
    equal(error_of(s3.put_object, Bucket=bucket, Key="once", Body=b"x", IfNoneMatch="*"), ("PreconditionFailed", 412))
    s3.delete_object(Bucket=bucket, Key="once")
    kms = {"ServerSideEncryption": "aws:kms"}
    equal(error_of(s3.put_object, Bucket=bucket, Key="k", Body=b"x", **kms), ("NotImplemented", 501))
    equal(error_of(s3.head_object, Bucket=bucket, Key="k"), ("404", 404))
    stranger = {"Bucket": bucket, "ExpectedBucketOwner": "123456789012"}
    equal(error_of(s3.list_objects_v2, **stranger), ("AccessDenied", 403))


def check_tags():
    bucket = new_bucket("boto-tags")
    tags = [{"Key": "colour", "Value": "dark red"}, {"Key": "größe", "Value": ""}]
    place = {"Bucket": bucket, "Key": "k"}

    def tags_of(**arguments):
        return s3.get_object_tagging(**{**place, **arguments})["TagSet"]

    s3.put_object(**place, Body=b"x", Tagging="colour=dark%20red&gr%C3%B6%C3%9Fe=")
    equal(tags_of(), tags)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=place)
    equal(tags_of(Key="copy"), tags)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=place, TaggingDirective="REPLACE", Tagging="a=b")
    equal(tags_of(Key="copy"), [{"Key": "a", "Value": "b"}])
    s3.put_object_tagging(**place, Tagging={"TagSet": tags[:1]})
    equal(tags_of(), tags[:1])
    equal(s3.get_object(**place)["TagCount"], 1)
    s3.delete_object_tagging(**place)
    equal(tags_of(), [])
    s3.upload_fileobj(io.BytesIO(bytes_of("tagged", 9 * MIB)), bucket, "parts", ExtraArgs={"Tagging": "a=b"})
    equal(tags_of(Key="parts"), [{"Key": "a", "Value": "b"}])
    eleven = [{"Key": str(number), "Value": ""} for number in range(11)]
    equal(error_of(s3.put_object_tagging, **place, Tagging={"TagSet": eleven}), ("InvalidTag", 400))


def check_customer_keys():
    bucket = new_bucket("boto-customer-keys")
    first, second = bytes_of("first key", 32), bytes_of("second key", 32)

    def under(key):
        return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}

    def source_under(key):
        return {f"CopySource{name}": value for name, value in under(key).items()}

    body = bytes_of("sealed", 3 * MIB + 1)
    place = {"Bucket": bucket, "Key": "k"}
    put = s3.put_object(**place, **under(first), Body=body, Metadata={"colour": "red"})
    md5 = base64.b64encode(hashlib.md5(first).digest()).decode()
    equal((put["ETag"], put["SSECustomerAlgorithm"], put["SSECustomerKeyMD5"], "ServerSideEncryption" in put),
          (f'"{hashlib.md5(body).hexdigest()}"', "AES256", md5, False))
    got = s3.get_object(**place, **under(first))
    equal((got["Body"].read() == body, got["Metadata"], got["SSECustomerKeyMD5"]), (True, {"colour": "red"}, md5))
    equal(s3.get_object(**place, **under(first), Range="bytes=5-9")["Body"].read(), body[5:10])
    equal(s3.head_object(**place, **under(first))["ContentLength"], len(body))
    equal(error_of(s3.get_object, **place), ("InvalidRequest", 400))
    equal(error_of(s3.get_object, **place, **under(second)), ("InvalidRequest", 400))
    equal(error_of(s3.head_object, **place), ("400", 400))
    s3.put_object(Bucket=bucket, Key="plain", Body=body)
    equal(error_of(s3.get_object, Bucket=bucket, Key="plain", **under(first)), ("InvalidRequest", 400))

    copy = {"Bucket": bucket, "Key": "copy", "CopySource": place}
    equal(error_of(s3.copy_object, **copy), ("InvalidRequest", 400))
    copied = s3.copy_object(**copy, **source_under(first), **under(second))
    equal((copied["CopyObjectResult"]["ETag"], copied["SSECustomerAlgorithm"]), (put["ETag"], "AES256"))
    equal(s3.get_object(Bucket=bucket, Key="copy", **under(second))["Body"].read() == body, True)
    s3.copy_object(**copy, **source_under(first))
    equal(s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body, True)

    # By hand, and by the managed transfers, which send parts and copy by parts.
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts", **under(second))
    equal(upload["SSECustomerAlgorithm"], "AES256")
    parts = {"Bucket": bucket, "Key": "parts", "UploadId": upload["UploadId"]}
    equal(error_of(s3.upload_part, **parts, PartNumber=1, Body=b"x"), ("InvalidRequest", 400))
    equal(error_of(s3.upload_part, **parts, **under(first), PartNumber=1, Body=b"x"), ("InvalidRequest", 400))
    large = bytes_of("large", 5 * MIB)
    tags = [s3.upload_part(**parts, **under(second), PartNumber=1, Body=large)["ETag"],
            s3.upload_part_copy(**parts, **under(second), **source_under(first), PartNumber=2, CopySource=place)
            ["CopyPartResult"]["ETag"]]
    listed = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
    s3.complete_multipart_upload(**parts, MultipartUpload={"Parts": listed})
    equal(s3.get_object(Bucket=bucket, Key="parts", **under(second))["Body"].read() == large + body, True)
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    body = bytes_of("managed", 11 * MIB)
    s3.upload_fileobj(io.BytesIO(body), bucket, "managed", ExtraArgs=under(first), Config=config)
    source = {"Bucket": bucket, "Key": "managed"}
    s3.copy(source, bucket, "managed copy", ExtraArgs={**under(second), **source_under(first)}, Config=config)
    for key, secret in (("managed", first), ("managed copy", second)):
        file = io.BytesIO()
        s3.download_fileobj(bucket, key, file, ExtraArgs=under(secret), Config=config)
        equal(file.getvalue() == body, True)


def check_settings_that_cannot_be_set():
    """Backup software looks at all of them."""
    bucket = new_bucket("boto-settings")
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for call, code in (
        (s3.get_bucket_website, "NoSuchWebsiteConfiguration"),
        (s3.get_bucket_replication, "ReplicationConfigurationNotFoundError"),
        (s3.get_bucket_lifecycle_configuration, "NoSuchLifecycleConfiguration"),
        (s3.get_bucket_policy, "NoSuchBucketPolicy"),
        (s3.get_object_lock_configuration, "ObjectLockConfigurationNotFoundError"),
    ):
        equal(error_of(call, Bucket=bucket), (code, 404))
    equal(error_of(s3.get_bucket_inventory_configuration, Bucket=bucket, Id="1"), ("NoSuchConfiguration", 404))
    equal(error_of(s3.get_object_retention, Bucket=bucket, Key="k"), ("InvalidRequest", 400))
    equal(error_of(s3.get_object_legal_hold, Bucket=bucket, Key="k"), ("InvalidRequest", 400))
    for call in (s3.get_bucket_logging, s3.get_bucket_notification_configuration):
        equal(set(call(Bucket=bucket)), {"ResponseMetadata"})
    inventory = s3.list_bucket_inventory_configurations(Bucket=bucket)
    equal(inventory["IsTruncated"], False)
    for acl in (s3.get_bucket_acl(Bucket=bucket), s3.get_object_acl(Bucket=bucket, Key="k")):
        owner = acl["Owner"]
        equal(acl["Grants"], [{"Grantee": {**owner, "Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}])


def check_conditions_that_fail_early():
    """The refusal comes before the body, of any size, and is read as what it is."""
    bucket = new_bucket("boto-early")
    place = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**place, Body=b"x")
    for size in (0, 100, 100_000, 5 * MIB):
        body = bytes_of("early", size)
        equal(error_of(s3.put_object, **place, Body=body, IfNoneMatch="*"), ("PreconditionFailed", 412))
        equal(error_of(s3.put_object, **place, Body=body, IfMatch='"0"'), ("PreconditionFailed", 412))
    equal(s3.get_object(**place)["Body"].read(), b"x")


def main():
    checks = [(name[6:], run) for name, run in list(globals().items()) if name.startswith("check_")]
    for name, run in checks:
        error = None
        try:
            run()
        except Exception:  # Every failure is the answer of this check.
            error = traceback.format_exc()
        print(json.dumps({"name": name, "error": error}), flush=True)


main()
