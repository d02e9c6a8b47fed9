# Runs commands of the AWS CLI, each in a fork of this process: its modules are loaded once, which takes most of a start. What runs
# is the CLI's own main(), with the arguments, the environment and the folder of the command, as its program `aws` does.
#
# A command is a line of JSON from descriptor 3: {id, args, env, cwd, out, err}; `out` and `err` are files for what it writes. At its
# end a line {id, code} goes to standard output. The process ends with descriptor 3.
import json
import os
import selectors
import sys
import traceback

BEFORE = dict(os.environ)

import awscli.clidriver
import awscli.customizations.s3.subcommands
import awscli.handlers
import botocore.endpoint
import botocore.httpsession
import botocore.signers

COMMANDS = 3
# Where it has its data: it sets that when it is loaded.
OWN_VARIABLES = {name: text for name, text in os.environ.items() if BEFORE.get(name) != text}


def redirect(path, descriptor):
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def run(command):
    os.close(COMMANDS)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    redirect(command['out'], 1)
    redirect(command['err'], 2)
    os.environ.clear()
    os.environ.update({**command['env'], **OWN_VARIABLES})
    if command.get('cwd') is not None:
        os.chdir(command['cwd'])
    sys.argv = ['aws', *command['args']]
    try:
        return awscli.clidriver.main()
    except SystemExit as end:
        return end.code
    except BaseException:
        traceback.print_exc()
        return 1


def begin(command):
    sys.stdout.flush()
    child = os.fork()
    if child != 0:
        return child
    code = run(command)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main():
    events = selectors.DefaultSelector()
    events.register(COMMANDS, selectors.EVENT_READ)
    text = b''
    while True:
        for key, _ in events.select():
            if key.fd != COMMANDS:
                child, id = key.data
                events.unregister(key.fd)
                os.close(key.fd)
                _, status = os.waitpid(child, 0)
                print(json.dumps({'id': id, 'code': os.waitstatus_to_exitcode(status)}), flush=True)
                continue
            read = os.read(COMMANDS, 65536)
            if read == b'':
                return
            *lines, text = (text + read).split(b'\n')
            for line in lines:
                command = json.loads(line)
                child = begin(command)
                events.register(os.pidfd_open(child), selectors.EVENT_READ, (child, command['id']))


main()
