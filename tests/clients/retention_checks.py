"""Today's boto3 for what must be kept and what must go: object lock, compliance, lifecycle; one function `check_...` per promise.

Called by retention.test.ts, which makes a test of each function:
    python retention_checks.py ENDPOINT   (credentials and region from the environment)
Prints one JSON line per check: {"name": ..., "error": null or text}. Leaves nothing behind.
"""

import json
import sys
import time
import traceback
import uuid
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta, timezone

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

ENDPOINT = sys.argv[1]
NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
PATIENCE_S = 30

session = boto3.session.Session()
s3 = session.client("s3", endpoint_url=ENDPOINT, config=Config(s3={"addressing_style": "path"}))
buckets = []


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"{str(actual)[:2000]!r} is not {str(expected)[:2000]!r}")


def error_of(call, **arguments):
    """The code of the error that the call must end with."""
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    raise AssertionError("the call succeeded")


def ahead(**duration):
    return datetime.now(timezone.utc).replace(microsecond=0) + timedelta(**duration)


def new_bucket(**options):
    name = f"retention-{uuid.uuid4()}"
    s3.create_bucket(Bucket=name, **options)
    buckets.append(name)
    return name


def locked_bucket():
    return new_bucket(ObjectLockEnabledForBucket=True)


def put(bucket, key="a", **options):
    """The version's id."""
    return s3.put_object(Bucket=bucket, Key=key, Body=b"data", **options)["VersionId"]


def send(method, path, body=b"", **headers):
    """What boto3 has no call for. Status and body."""
    request = AWSRequest(method, f"{ENDPOINT}{path}", data=body, headers=headers)
    S3SigV4Auth(session.get_credentials(), "s3", "us-east-1").add_auth(request)
    answer = URLLib3Session().send(request.prepare())
    return answer.status_code, answer.content


def put_compliance(path, **elements):
    root = "ObjectComplianceConfiguration" if path.count("/") > 1 else "BucketComplianceConfiguration"
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in elements.items())
    status, body = send("PUT", f"{path}?compliance", f"<{root}>{inner}</{root}>".encode())
    return (status, None) if status == 200 else (status, ElementTree.fromstring(body).findtext("Code"))


def get_compliance(path):
    status, body = send("GET", f"{path}?compliance")
    equal(status, 200)
    return {element.tag.replace(NAMESPACE, ""): element.text for element in ElementTree.fromstring(body)}


def eventually(look):
    until = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > until:
            raise AssertionError("it did not come to pass")
        time.sleep(0.2)


def is_deleted(**version):
    try:
        s3.delete_object(**version)
        return True
    except ClientError:
        return False


# ---- object lock ----


def check_lock_comes_with_the_bucket_and_keeps_its_versioning():
    bucket = locked_bucket()
    equal(s3.get_bucket_versioning(Bucket=bucket)["Status"], "Enabled")
    configuration = s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
    equal(configuration, {"ObjectLockEnabled": "Enabled"})
    suspended = {"Status": "Suspended"}
    code = error_of(s3.put_bucket_versioning, Bucket=bucket, VersioningConfiguration=suspended)
    equal(code, "InvalidBucketState")


def check_lock_comes_later_where_there_are_versions():
    bucket = new_bucket()
    configuration = {"ObjectLockEnabled": "Enabled"}
    equal(error_of(s3.get_object_lock_configuration, Bucket=bucket), "ObjectLockConfigurationNotFoundError")
    put_it = {"Bucket": bucket, "ObjectLockConfiguration": configuration}
    equal(error_of(s3.put_object_lock_configuration, **put_it), "InvalidBucketState")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object_lock_configuration(**put_it)
    equal(s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"], configuration)


def check_a_default_is_given_to_new_versions_until_it_is_taken_away():
    bucket = locked_bucket()
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 2}}
    configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)
    equal(s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"], configuration)
    retention = s3.get_object_retention(Bucket=bucket, Key="a", VersionId=put(bucket))["Retention"]
    equal(retention["Mode"], "GOVERNANCE")
    left = retention["RetainUntilDate"] - datetime.now(timezone.utc)
    equal(timedelta(days=1, hours=23) < left <= timedelta(days=2), True)
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})
    later = put(bucket, "b")
    equal(error_of(s3.get_object_retention, Bucket=bucket, Key="b", VersionId=later), "NoSuchObjectLockConfiguration")


def check_wrong_configurations_are_refused():
    bucket = locked_bucket()

    def code_of(**period):
        rule = {"DefaultRetention": {"Mode": "COMPLIANCE", **period}}
        configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        return error_of(s3.put_object_lock_configuration, Bucket=bucket, ObjectLockConfiguration=configuration)

    equal([code_of(Days=0), code_of(Years=-1)], ["InvalidRetentionPeriod", "InvalidRetentionPeriod"])
    equal([code_of(Days=1, Years=1), code_of()], ["MalformedXML", "MalformedXML"])
    equal(s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"], {"ObjectLockEnabled": "Enabled"})


def check_compliance_mode_is_extended_and_nothing_else_until_it_ends():
    bucket = locked_bucket()
    version = {"Bucket": bucket, "Key": "a"}
    until = ahead(seconds=6)
    version["VersionId"] = put(bucket, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until)
    head = s3.head_object(**version)
    equal([head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]], ["COMPLIANCE", until])
    shorter = {"Mode": "COMPLIANCE", "RetainUntilDate": until - timedelta(seconds=1)}
    other = {"Mode": "GOVERNANCE", "RetainUntilDate": until + timedelta(days=1)}
    for retention in [shorter, other]:
        code = error_of(
            s3.put_object_retention, **version, Retention=retention, BypassGovernanceRetention=True
        )
        equal(code, "AccessDenied")
    equal(error_of(s3.delete_object, **version, BypassGovernanceRetention=True), "AccessDenied")
    longer = {"Mode": "COMPLIANCE", "RetainUntilDate": until + timedelta(seconds=2)}
    s3.put_object_retention(**version, Retention=longer)
    equal(s3.get_object_retention(**version)["Retention"], longer)
    eventually(lambda: is_deleted(**version))


def check_governance_is_bypassed_by_who_says_so():
    bucket = locked_bucket()
    version = {"Bucket": bucket, "Key": "a"}
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": ahead(days=2)}
    version["VersionId"] = put(bucket, **lock)
    equal(error_of(s3.delete_object, **version), "AccessDenied")
    shorter = {"Mode": "GOVERNANCE", "RetainUntilDate": ahead(days=1)}
    equal(error_of(s3.put_object_retention, **version, Retention=shorter), "AccessDenied")
    s3.put_object_retention(**version, Retention=shorter, BypassGovernanceRetention=True)
    equal(s3.get_object_retention(**version)["Retention"], shorter)
    s3.delete_object(**version, BypassGovernanceRetention=True)
    # The header changes nothing where nothing is locked.
    s3.delete_object(Bucket=bucket, Key="a", VersionId=put(bucket), BypassGovernanceRetention=True)


def check_a_list_of_deletions_says_which_versions_stay():
    bucket = locked_bucket()
    kept = put(bucket, "kept", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=ahead(days=1))
    free = put(bucket, "free")
    objects = [{"Key": "kept", "VersionId": kept}, {"Key": "free", "VersionId": free}]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})
    equal([(entry["Key"], entry["Code"]) for entry in answer["Errors"]], [("kept", "AccessDenied")])
    equal([entry["Key"] for entry in answer["Deleted"]], ["free"])
    answer = s3.delete_objects(
        Bucket=bucket, Delete={"Objects": objects[:1]}, BypassGovernanceRetention=True
    )
    equal([entry["Key"] for entry in answer["Deleted"]], ["kept"])


def check_a_legal_hold_is_on_until_it_is_off():
    bucket = locked_bucket()
    version = {"Bucket": bucket, "Key": "a", "VersionId": put(bucket, ObjectLockLegalHoldStatus="ON")}
    equal(s3.get_object_legal_hold(**version)["LegalHold"]["Status"], "ON")
    equal(error_of(s3.delete_object, **version, BypassGovernanceRetention=True), "AccessDenied")
    # A marker hides it, and removes nothing.
    s3.delete_object(Bucket=bucket, Key="a")
    s3.put_object_legal_hold(**version, LegalHold={"Status": "OFF"})
    equal(s3.get_object_legal_hold(**version)["LegalHold"]["Status"], "OFF")
    s3.delete_object(**version)


def check_copies_and_uploads_in_parts_take_what_their_requests_say():
    bucket = locked_bucket()
    put(bucket)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": ahead(days=3)}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/a", **lock)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="parts", **lock)["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="parts", UploadId=upload, PartNumber=1, Body=b"part")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket=bucket, Key="parts", UploadId=upload, MultipartUpload=parts)
    for key in ["copy", "parts"]:
        head = s3.head_object(Bucket=bucket, Key=key)
        equal([head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]], list(lock.values()))
    equal("ObjectLockMode" in s3.head_object(Bucket=bucket, Key="a"), False)


def check_what_does_not_fit_is_refused():
    plain, bucket = new_bucket(), locked_bucket()
    lock = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": ahead(days=1)}
    equal(error_of(s3.put_object, Bucket=plain, Key="a", **lock), "InvalidRequest")
    past = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": ahead(days=-1)}
    equal(error_of(s3.put_object, Bucket=bucket, Key="a", **past), "InvalidArgument")
    equal(error_of(s3.put_object, Bucket=bucket, Key="a", ObjectLockMode="COMPLIANCE"), "InvalidArgument")
    equal(error_of(s3.get_object_retention, Bucket=bucket, Key="none"), "NoSuchKey")
    retention = {"Mode": "COMPLIANCE", "RetainUntilDate": ahead(days=1)}
    equal(error_of(s3.put_object_retention, Bucket=plain, Key="a", Retention=retention), "InvalidRequest")


# ---- compliance ----


def check_compliance_keeps_everything_at_once_without_versions():
    bucket = new_bucket()
    s3.put_object(Bucket=bucket, Key="old", Body=b"data")
    settings = {"Status": "enabled", "LockTime": "off", "RetentionDays": 1}
    equal(put_compliance(f"/{bucket}", **settings), (200, None))
    read = get_compliance(f"/{bucket}")
    equal([read["Status"], read["LockTime"], read["IsLocked"], read["RetentionDays"]], ["enabled", "off", "false", "1"])
    equal(error_of(s3.delete_object, Bucket=bucket, Key="old"), "AccessDenied")
    equal(error_of(s3.put_object, Bucket=bucket, Key="old", Body=b"other"), "AccessDenied")
    equal(send("DELETE", f"/{bucket}?force_delete=true")[0], 403)
    equal(put_compliance(f"/{bucket}", Status="disabled"), (200, None))
    s3.delete_object(Bucket=bucket, Key="old")


def check_a_conditional_hold_is_released_and_a_legal_hold_taken_off():
    bucket = new_bucket()
    settings = {"Status": "enabled", "LockTime": "off", "RetentionDays": 0, "ConditionalHold": "true"}
    equal(put_compliance(f"/{bucket}", **settings), (200, None))
    s3.put_object(Bucket=bucket, Key="a", Body=b"data")
    equal(get_compliance(f"/{bucket}/a")["ConditionalHold"], "true")
    equal(error_of(s3.delete_object, Bucket=bucket, Key="a"), "AccessDenied")
    equal(put_compliance(f"/{bucket}/a", ConditionalHold="false", LegalHold="true"), (200, None))
    equal(error_of(s3.delete_object, Bucket=bucket, Key="a"), "AccessDenied")
    read = get_compliance(f"/{bucket}/a")
    equal([read["ConditionalHold"], read["LegalHold"]], ["false", "true"])
    equal(read["SHA256"], "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7")
    equal(put_compliance(f"/{bucket}/a", LegalHold="false"), (200, None))
    s3.delete_object(Bucket=bucket, Key="a")


def check_locked_settings_are_never_reduced():
    bucket = new_bucket()
    settings = {"Status": "enabled", "LockTime": "now", "RetentionDays": 0}
    equal(put_compliance(f"/{bucket}", **settings), (200, None))
    read = get_compliance(f"/{bucket}")
    equal(read["IsLocked"], "true")
    equal(put_compliance(f"/{bucket}", Status="disabled"), (403, "AccessDenied"))
    more = {"Status": "enabled", "LockTime": read["LockTime"], "RetentionDays": 0, "ConditionalHold": "true"}
    equal(put_compliance(f"/{bucket}", **more), (200, None))


# ---- lifecycle ----

RULES = [
    {
        "ID": "old",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "logs/", "Tags": [{"Key": "keep", "Value": "no"}], "ObjectSizeGreaterThan": 1}},
        "Expiration": {"Days": 30},
    },
    {
        "ID": "versions",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 7, "NewerNoncurrentVersions": 3},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2},
    },
    {"ID": "markers", "Status": "Disabled", "Filter": {}, "Expiration": {"ExpiredObjectDeleteMarker": True}},
]


def check_lifecycle_rules_are_kept_and_taken_away():
    bucket = new_bucket()
    equal(error_of(s3.get_bucket_lifecycle_configuration, Bucket=bucket), "NoSuchLifecycleConfiguration")
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": RULES})
    equal(s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"], RULES)
    s3.delete_bucket_lifecycle(Bucket=bucket)
    equal(error_of(s3.get_bucket_lifecycle_configuration, Bucket=bucket), "NoSuchLifecycleConfiguration")


def check_covered_objects_say_when_they_expire():
    bucket = new_bucket()
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": RULES})
    made = s3.put_object(Bucket=bucket, Key="logs/a", Body=b"data", Tagging="keep=no")
    day = (datetime.now(timezone.utc) + timedelta(days=31)).replace(hour=0, minute=0, second=0)
    expected = f'expiry-date="{day:%a, %d %b %Y %H:%M:%S} GMT", rule-id="old"'
    equal(made["Expiration"], expected)
    equal(s3.head_object(Bucket=bucket, Key="logs/a")["Expiration"], expected)
    equal(s3.get_object(Bucket=bucket, Key="logs/a")["Expiration"], expected)
    equal("Expiration" in s3.put_object(Bucket=bucket, Key="logs/b", Body=b"data"), False)


def check_wrong_rules_are_refused():
    bucket = new_bucket()

    def code_of(*rules):
        configuration = {"Rules": [{"Status": "Enabled", "Filter": {"Prefix": ""}, **rule} for rule in rules]}
        return error_of(
            s3.put_bucket_lifecycle_configuration, Bucket=bucket, LifecycleConfiguration=configuration
        )

    days = {"Expiration": {"Days": 1}}
    equal(code_of({"Status": "enabled", **days}), "MalformedXML")
    equal(code_of({"Expiration": {"Days": 0}}), "InvalidArgument")
    equal(code_of({"ID": "same", **days}, {"ID": "same", **days}), "InvalidArgument")
    equal(code_of({"Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}), "NotImplemented")


def clean_up():
    for bucket in buckets:
        put_compliance(f"/{bucket}", Status="disabled")
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for entry in page.get("Versions", []) + page.get("DeleteMarkers", []):
                version = {"Bucket": bucket, "Key": entry["Key"], "VersionId": entry["VersionId"]}
                try:
                    s3.put_object_legal_hold(**version, LegalHold={"Status": "OFF"})
                except ClientError:
                    pass
                eventually(lambda: is_deleted(**version, BypassGovernanceRetention=True))
        s3.delete_bucket(Bucket=bucket)


def main():
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        error = None
        try:
            check()
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"name": name.removeprefix("check_"), "error": error}), flush=True)
    clean_up()


main()
