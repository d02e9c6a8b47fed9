"""Today's boto3 `iam` with its default settings against a running server: one function `check_...` per promise.

Called by iam.test.ts, which makes a test of each function:
    python iam_checks.py ENDPOINT   (credentials, region and certificates from the environment)
Prints one JSON line per check: {"name": ..., "error": null or text}.
"""

import json
import sys
import traceback

import boto3
from botocore.exceptions import ClientError

ENDPOINT = sys.argv[1]
iam = boto3.client("iam", endpoint_url=ENDPOINT)


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


def pages(operation, key, **arguments):
    """All items, by boto3's own paginator, two at a time."""
    found = iam.get_paginator(operation).paginate(PaginationConfig={"PageSize": 2}, **arguments)
    return [item for page in found for item in page[key]]


def check_users():
    made = iam.create_user(UserName="Ann", Path="/staff/", Tags=[{"Key": "team", "Value": "a b"}])["User"]
    equal(made["Arn"].split(":", 5)[5], "user/staff/Ann")
    shown = iam.get_user(UserName="ann")["User"]
    equal({**shown, "Tags": None}, {**made, "Tags": None})
    equal(shown["Tags"], [{"Key": "team", "Value": "a b"}])
    for name in ["Bob", "Cyd", "Dan"]:
        iam.create_user(UserName=name, Path="/staff/")
    equal([user["UserName"] for user in pages("list_users", "Users", PathPrefix="/staff/")], ["Ann", "Bob", "Cyd", "Dan"])
    iam.update_user(UserName="Bob", NewUserName="Rob", NewPath="/")
    equal(iam.get_user(UserName="Rob")["User"]["Path"], "/")
    iam.tag_user(UserName="Rob", Tags=[{"Key": "a", "Value": ""}, {"Key": "b", "Value": "2"}])
    iam.untag_user(UserName="Rob", TagKeys=["a"])
    equal(iam.list_user_tags(UserName="Rob")["Tags"], [{"Key": "b", "Value": "2"}])
    equal(error_of(iam.create_user, UserName="ROB"), ("EntityAlreadyExists", 409))
    iam.delete_user(UserName="Rob")
    equal(error_of(iam.get_user, UserName="Rob"), ("NoSuchEntity", 404))
    equal(iam.get_user()["User"]["Arn"].split(":")[5], "root")
    iam.get_waiter("user_exists").wait(UserName="Ann")


def check_access_keys():
    iam.create_user(UserName="keys")
    key = iam.create_access_key(UserName="keys")["AccessKey"]
    equal((key["UserName"], key["Status"], len(key["SecretAccessKey"])), ("keys", "Active", 40))
    iam.create_access_key(UserName="keys")
    equal(error_of(iam.create_access_key, UserName="keys"), ("LimitExceeded", 409))
    name = key["AccessKeyId"]
    iam.update_access_key(UserName="keys", AccessKeyId=name, Status="Inactive")
    listed = {each["AccessKeyId"]: each["Status"] for each in pages("list_access_keys", "AccessKeyMetadata", UserName="keys")}
    equal((len(listed), listed[name]), (2, "Inactive"))
    used = iam.get_access_key_last_used(AccessKeyId=name)
    equal((used["UserName"], used["AccessKeyLastUsed"]["ServiceName"]), ("keys", "N/A"))
    equal(error_of(iam.delete_user, UserName="keys"), ("DeleteConflict", 409))
    for each in listed:
        iam.delete_access_key(UserName="keys", AccessKeyId=each)
    iam.delete_user(UserName="keys")


def check_own_keys_of_the_account():
    before = len(iam.list_access_keys()["AccessKeyMetadata"])
    key = iam.create_access_key()["AccessKey"]
    own = boto3.client(
        "iam",
        endpoint_url=ENDPOINT,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    equal(len(own.list_access_keys()["AccessKeyMetadata"]), before + 1)
    iam.delete_access_key(AccessKeyId=key["AccessKeyId"])
    equal(error_of(own.get_user), ("InvalidClientTokenId", 403))


def check_passwords():
    iam.create_user(UserName="login")
    profile = iam.create_login_profile(UserName="login", Password="First-Word-1", PasswordResetRequired=True)
    equal(profile["LoginProfile"]["PasswordResetRequired"], True)
    iam.update_account_password_policy(MinimumPasswordLength=12, AllowUsersToChangePassword=True)
    equal(iam.get_account_password_policy()["PasswordPolicy"]["MinimumPasswordLength"], 12)
    equal(error_of(iam.update_login_profile, UserName="login", Password="short"), ("PasswordPolicyViolation", 400))
    iam.update_login_profile(UserName="login", Password="long enough now", PasswordResetRequired=False)
    equal(iam.get_login_profile(UserName="login")["LoginProfile"]["PasswordResetRequired"], False)
    key = iam.create_access_key(UserName="login")["AccessKey"]
    user = boto3.client(
        "iam",
        endpoint_url=ENDPOINT,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    equal(error_of(user.change_password, OldPassword="wrong", NewPassword="even longer now"), ("AccessDenied", 403))
    user.change_password(OldPassword="long enough now", NewPassword="even longer now")
    equal(error_of(user.list_users), ("AccessDenied", 403))
    iam.delete_account_password_policy()
    equal(error_of(iam.get_account_password_policy), ("NoSuchEntity", 404))
    iam.delete_login_profile(UserName="login")


def check_groups():
    group = iam.create_group(GroupName="Ops", Path="/g/")["Group"]
    for name in ["g1", "g2", "g3"]:
        iam.create_user(UserName=name)
        iam.add_user_to_group(GroupName="Ops", UserName=name)
    equal([user["UserName"] for user in pages("get_group", "Users", GroupName="Ops")], ["g1", "g2", "g3"])
    iam.update_group(GroupName="Ops", NewGroupName="Crew")
    equal(iam.list_groups_for_user(UserName="g1")["Groups"][0]["GroupId"], group["GroupId"])
    equal([each["GroupName"] for each in pages("list_groups", "Groups", PathPrefix="/g/")], ["Crew"])
    equal(error_of(iam.delete_group, GroupName="Crew"), ("DeleteConflict", 409))
    for name in ["g1", "g2", "g3"]:
        iam.remove_user_from_group(GroupName="Crew", UserName=name)
    iam.delete_group(GroupName="Crew")


def check_account():
    iam.create_account_alias(AccountAlias="acme-boto3")
    equal(pages("list_account_aliases", "AccountAliases"), ["acme-boto3"])
    iam.delete_account_alias(AccountAlias="acme-boto3")
    equal(iam.list_account_aliases()["AccountAliases"], [])
    summary = iam.get_account_summary()["SummaryMap"]
    equal((summary["UsersQuota"], summary["AccessKeysPerUserQuota"]), (5000, 2))
    equal(summary["Users"], len(pages("list_users", "Users")))


for name, check in [(name, check) for name, check in globals().items() if name.startswith("check_")]:
    try:
        check()
        error = None
    except Exception:
        error = traceback.format_exc()
    print(json.dumps({"name": name.removeprefix("check_"), "error": error}), flush=True)
