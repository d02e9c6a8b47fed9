"""Today's boto3 for IAM: roles, policies, MFA devices and simulations; one function `check_...` per promise.

Called by boto3-policies.test.ts, which makes a test of each function:
    python boto3_policies_checks.py ENDPOINT   (credentials and region from the environment)
Prints one JSON line per check: {"name": ..., "error": null or text}, and at last {"operations": [...]}: all that were called.
"""

import base64
import hashlib
import hmac
import json
import struct
import sys
import time
import traceback

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = sys.argv[1]
READ_ONLY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"

operations = set()


def client(**options):
    made = boto3.client("iam", endpoint_url=ENDPOINT, **options)
    made.meta.events.register("before-call.iam", lambda model, **_: operations.add(model.name))
    return made


iam = client()
ACCOUNT = iam.get_user()["User"]["UserId"]


def document(action, effect="Allow", resource="*"):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": effect, "Action": action, "Resource": resource}]})


TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}],
}


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


def all_of(operation, key, **arguments):
    """All pages, of two items each."""
    pages = iam.get_paginator(operation).paginate(PaginationConfig={"PageSize": 2}, **arguments)
    return [item for page in pages for item in page[key]]


def make_holder(kind, name):
    if kind == "user":
        iam.create_user(UserName=name)
    elif kind == "group":
        iam.create_group(GroupName=name)
    else:
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
    return {f"{kind.capitalize()}Name": name}


def check_roles():
    made = iam.create_role(
        RoleName="boto",
        Path="/boto/",
        AssumeRolePolicyDocument=json.dumps(TRUST),
        Description="a role",
        MaxSessionDuration=7200,
        PermissionsBoundary=READ_ONLY,
        Tags=[{"Key": "k", "Value": "v"}],
    )["Role"]
    role = iam.get_role(RoleName="boto")["Role"]
    equal(role["AssumeRolePolicyDocument"], TRUST)
    equal((role["Arn"], role["RoleId"]), (f"arn:aws:iam::{ACCOUNT}:role/boto/boto", made["RoleId"]))
    equal(role["PermissionsBoundary"]["PermissionsBoundaryArn"], READ_ONLY)
    iam.update_role(RoleName="boto", MaxSessionDuration=3600)
    equal(iam.update_role_description(RoleName="boto", Description="new")["Role"]["Description"], "new")
    iam.update_assume_role_policy(RoleName="boto", PolicyDocument=json.dumps(TRUST))
    iam.tag_role(RoleName="boto", Tags=[{"Key": "l", "Value": "w"}])
    iam.untag_role(RoleName="boto", TagKeys=["k"])
    equal(all_of("list_role_tags", "Tags", RoleName="boto"), [{"Key": "l", "Value": "w"}])
    for name in ["boto-1", "boto-2"]:
        make_holder("role", name)
    names = [role["RoleName"] for role in all_of("list_roles", "Roles")]
    equal([name for name in names if name.startswith("boto")], ["boto", "boto-1", "boto-2"])
    iam.delete_role_permissions_boundary(RoleName="boto")
    iam.put_role_permissions_boundary(RoleName="boto", PermissionsBoundary=READ_ONLY)
    for name in ["boto", "boto-1", "boto-2"]:
        iam.delete_role(RoleName=name)
    equal(error_of(iam.get_role, RoleName="boto"), "NoSuchEntity")


def check_managed_policies():
    policy = iam.create_policy(PolicyName="boto", Path="/p/", PolicyDocument=document("s3:Get*"), Description="d")["Policy"]
    arn = policy["Arn"]
    equal(arn, f"arn:aws:iam::{ACCOUNT}:policy/p/boto")
    equal(iam.get_policy(PolicyArn=arn)["Policy"]["Description"], "d")
    second = iam.create_policy_version(PolicyArn=arn, PolicyDocument=document("s3:*"), SetAsDefault=True)
    equal(second["PolicyVersion"]["VersionId"], "v2")
    version = iam.get_policy_version(PolicyArn=arn, VersionId="v2")["PolicyVersion"]
    equal(version["Document"], json.loads(document("s3:*")))
    iam.set_default_policy_version(PolicyArn=arn, VersionId="v1")
    iam.delete_policy_version(PolicyArn=arn, VersionId="v2")
    equal([each["VersionId"] for each in all_of("list_policy_versions", "Versions", PolicyArn=arn)], ["v1"])
    iam.tag_policy(PolicyArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    iam.untag_policy(PolicyArn=arn, TagKeys=["a"])
    equal(all_of("list_policy_tags", "Tags", PolicyArn=arn), [{"Key": "b", "Value": "2"}])
    equal([each["PolicyName"] for each in all_of("list_policies", "Policies", Scope="Local")], ["boto"])
    names = [each["PolicyName"] for each in all_of("list_policies", "Policies", Scope="AWS")]
    if "AdministratorAccess" not in names:
        raise AssertionError(names)
    holder = make_holder("role", "with-policy")
    iam.attach_role_policy(**holder, PolicyArn=arn)
    equal([role["RoleName"] for role in all_of("list_entities_for_policy", "PolicyRoles", PolicyArn=arn)], ["with-policy"])
    equal(error_of(iam.delete_policy, PolicyArn=arn), "DeleteConflict")
    iam.detach_role_policy(**holder, PolicyArn=arn)
    iam.delete_role(**holder)
    iam.delete_policy(PolicyArn=arn)
    equal(error_of(iam.create_policy, PolicyName="x", PolicyDocument="{}"), "MalformedPolicyDocument")


def policies_of(kind):
    holder = make_holder(kind, f"holder-{kind}")
    call = lambda verb, suffix, **more: getattr(iam, f"{verb}_{kind}_{suffix}")(**holder, **more)
    text = document("s3:Get*")
    for name in ["one", "two", "three"]:
        call("put", "policy", PolicyName=name, PolicyDocument=text)
    equal(call("get", "policy", PolicyName="one")["PolicyDocument"], json.loads(text))
    equal(all_of(f"list_{kind}_policies", "PolicyNames", **holder), ["one", "three", "two"])
    for name in ["one", "two", "three"]:
        call("delete", "policy", PolicyName=name)
    call("attach", "policy", PolicyArn=READ_ONLY)
    attached = all_of(f"list_attached_{kind}_policies", "AttachedPolicies", **holder)
    equal(attached, [{"PolicyName": "AmazonS3ReadOnlyAccess", "PolicyArn": READ_ONLY}])
    call("detach", "policy", PolicyArn=READ_ONLY)
    equal(all_of(f"list_attached_{kind}_policies", "AttachedPolicies", **holder), [])


def check_policies_of_users():
    policies_of("user")
    iam.put_user_permissions_boundary(UserName="holder-user", PermissionsBoundary=READ_ONLY)
    boundary = iam.get_user(UserName="holder-user")["User"]["PermissionsBoundary"]
    equal(boundary["PermissionsBoundaryArn"], READ_ONLY)
    iam.delete_user_permissions_boundary(UserName="holder-user")


def check_policies_of_groups():
    policies_of("group")


def check_policies_of_roles():
    policies_of("role")


def code_at(seed, step):
    """RFC 6238, from the seed as an app gets it."""
    digest = hmac.new(base64.b32decode(seed), struct.pack(">Q", step), hashlib.sha1).digest()
    at = digest[-1] & 15
    return str((struct.unpack(">I", digest[at : at + 4])[0] & 0x7FFFFFFF) % 1_000_000).zfill(6)


def codes(seed, steps):
    step = int(time.time()) // 30 + steps
    return {"AuthenticationCode1": code_at(seed, step), "AuthenticationCode2": code_at(seed, step + 1)}


def with_factor(serial, seed, steps):
    """The root in a session that was given with a code: only there it changes its own devices once it has one."""
    code = code_at(seed, int(time.time()) // 30 + steps)
    sts = boto3.client("sts", endpoint_url=ENDPOINT)
    given = sts.get_session_token(SerialNumber=serial, TokenCode=code)["Credentials"]
    return client(
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )


def check_mfa_devices():
    iam.create_user(UserName="factor")
    device = iam.create_virtual_mfa_device(VirtualMFADeviceName="boto")["VirtualMFADevice"]
    serial, seed = device["SerialNumber"], device["Base32StringSeed"]
    equal(device["QRCodePNG"][:4], b"\x89PNG")
    equal([each["SerialNumber"] for each in all_of("list_virtual_mfa_devices", "VirtualMFADevices")], [serial])
    owned = {"UserName": "factor", "SerialNumber": serial}
    wrong = {"AuthenticationCode1": "000000", "AuthenticationCode2": "000000"}
    equal(error_of(iam.enable_mfa_device, **owned, **wrong), "InvalidAuthenticationCode")
    iam.enable_mfa_device(**owned, **codes(seed, -6))
    equal([each["SerialNumber"] for each in all_of("list_mfa_devices", "MFADevices", UserName="factor")], [serial])
    assigned = iam.list_virtual_mfa_devices(AssignmentStatus="Assigned")["VirtualMFADevices"]
    equal(assigned[0]["User"]["UserName"], "factor")
    iam.resync_mfa_device(**owned, **codes(seed, -2))
    equal(error_of(iam.delete_virtual_mfa_device, SerialNumber=serial), "DeleteConflict")
    iam.deactivate_mfa_device(**owned)
    # The root names its account where boto3 wants a name.
    iam.enable_mfa_device(UserName=ACCOUNT, SerialNumber=serial, **codes(seed, 3))
    equal([each["SerialNumber"] for each in iam.list_mfa_devices()["MFADevices"]], [serial])
    equal(error_of(iam.deactivate_mfa_device, SerialNumber=serial), "AccessDenied")
    with_factor(serial, seed, 5).deactivate_mfa_device(SerialNumber=serial)
    # Or nobody, where boto3 does not look.
    plain = client(config=Config(parameter_validation=False))
    plain.enable_mfa_device(SerialNumber=serial, **codes(seed, 8))
    with_factor(serial, seed, 10).deactivate_mfa_device(SerialNumber=serial)
    iam.delete_virtual_mfa_device(SerialNumber=serial)


def check_simulation():
    arn = iam.create_user(UserName="simulated")["User"]["Arn"]
    iam.attach_user_policy(UserName="simulated", PolicyArn=READ_ONLY)
    results = all_of(
        "simulate_principal_policy",
        "EvaluationResults",
        PolicySourceArn=arn,
        ActionNames=["s3:GetObject", "s3:PutObject", "s3:ListBucket"],
        ResourceArns=["arn:aws:s3:::b/k"],
    )
    equal([each["EvalDecision"] for each in results], ["allowed", "implicitDeny", "allowed"])
    matched = results[0]["MatchedStatements"][0]
    equal((matched["SourcePolicyId"], matched["StartPosition"]["Line"]), ("AmazonS3ReadOnlyAccess", 4))
    equal(results[0]["ResourceSpecificResults"][0]["EvalResourceDecision"], "allowed")
    policy = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": {
                "Effect": "Allow",
                "Action": "s3:*",
                "Resource": "*",
                "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
            },
        }
    )
    custom = dict(PolicyInputList=[policy], ActionNames=["s3:GetObject"])
    equal(iam.simulate_custom_policy(**custom)["EvaluationResults"][0]["MissingContextValues"], ["aws:SourceIp"])
    entry = {"ContextKeyName": "aws:SourceIp", "ContextKeyType": "ip", "ContextKeyValues": ["10.1.1.1"]}
    allowed = iam.simulate_custom_policy(**custom, ContextEntries=[entry])["EvaluationResults"][0]
    equal(allowed["EvalDecision"], "allowed")
    equal(iam.get_context_keys_for_custom_policy(PolicyInputList=[policy])["ContextKeyNames"], ["aws:SourceIp"])
    of = iam.get_context_keys_for_principal_policy(PolicySourceArn=arn, PolicyInputList=[policy])
    equal(of["ContextKeyNames"], ["aws:SourceIp"])


def check_zz_authorization_details():
    """At last, when there is something to see."""
    pages = list(iam.get_paginator("get_account_authorization_details").paginate(PaginationConfig={"PageSize": 2}))
    users = [user for page in pages for user in page["UserDetailList"]]
    simulated = next(user for user in users if user["UserName"] == "simulated")
    equal([each["PolicyArn"] for each in simulated["AttachedManagedPolicies"]], [READ_ONLY])
    policies = [policy for page in pages for policy in page["Policies"]]
    ready = next(policy for policy in policies if policy["Arn"] == READ_ONLY)
    equal(ready["PolicyVersionList"][0]["Document"]["Version"], "2012-10-17")
    roles = [role for page in pages for role in page["RoleDetailList"]]
    equal(roles[0]["AssumeRolePolicyDocument"], TRUST)


for name, check in sorted(globals().items()):
    if name.startswith("check_"):
        try:
            check()
            error = None
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"name": name[len("check_") :], "error": error}), flush=True)
print(json.dumps({"operations": sorted(operations)}), flush=True)
