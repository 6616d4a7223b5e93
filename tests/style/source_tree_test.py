"""Checks of the source tree itself: what may include what, sizes, formatting, wording.

usage: source_tree_test.py CHECK SOURCE_DIR    with CHECK one of the functions named check_* below
Prints one line for each fault and exits 1 if there is any.
"""

import os
import re
import shutil
import subprocess
import sys

SOURCES = (".cpp", ".hpp", ".cu", ".h")
ROOMS = ("base", "rendezvous", "agent", "launcher", "worker_sdk", "trainers", "tests")
# A room may include itself, and the rooms named here.
ARROWS = {
    "base": (),
    "rendezvous": ("base",),
    "agent": ("base", "rendezvous"),
    "launcher": ("base", "rendezvous", "agent"),
    "worker_sdk": ("base", "rendezvous/store", "muster"),
    "trainers": ("muster",),
}
CORES = ("rendezvous/core", "agent/core")
CORE_FORBIDDEN = re.compile(
    r"#include\s*[<\"](boost/asio|thread|mutex|condition_variable|unistd\.h|sys/|netinet|fstream|filesystem|random)"
    r"|(steady_clock|system_clock|high_resolution_clock)::now|::time\(|std::rand\b|getenv\("
)
MAX_LINES = 500


def files(root, endings):
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(root, room)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def check_arrows(root):
    """Dependence runs one way between the rooms."""
    for path in files(root, SOURCES):
        room = path.split("/")[0]
        if room == "tests":
            continue
        allowed = (room,) + ARROWS[room]
        for include in re.findall(r'#include\s*["<]([^">]+)[">]', read(root, path)):
            target = include.split("/")[0]
            if target in ROOMS or target == "muster":
                if not any(include == a or include.startswith(a + "/") for a in allowed):
                    yield f"{path}: includes {include}, but {room} may include only {', '.join(allowed)}"


def check_cores_are_pure(root):
    """No I/O, thread or clock in what decides."""
    cores = list(CORES)
    for path in files(root, SOURCES):
        in_core = any(path.startswith(core + "/") for core in cores)
        in_core = in_core or re.match(r"rendezvous/store/(engine|waits|codec|wire|reply|limits)", path)
        in_core = in_core or re.match(r"rendezvous/protocol/(messages|codec|fields|handshake|wire)", path)
        if not in_core:
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if CORE_FORBIDDEN.search(line.split("//")[0]):
                yield f"{path}:{number}: a core must not use this: {line.strip()}"


def check_sizes(root):
    """One idea a file."""
    for path in files(root, SOURCES + (".py",)):
        lines = read(root, path).count("\n")
        if lines > MAX_LINES:
            yield f"{path}: {lines} lines, at most {MAX_LINES} are allowed; split it by idea"


def check_wording(root):
    """Unfinished work does not land."""
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    for path in files(root, SOURCES + (".py", ".txt")):
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if marks.search(line):
                yield f"{path}:{number}: unfinished: {line.strip()}"


def check_formatting(root):
    """As .clang-format says."""
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not tool:
        yield "clang-format is missing; run scripts/install-deps test"
        return
    paths = list(files(root, SOURCES))
    result = subprocess.run([tool, "--dry-run", "-Werror", *paths], cwd=root, capture_output=True, text=True)
    if result.returncode != 0:
        for path in sorted({line.split(":")[0] for line in result.stderr.splitlines() if ": error:" in line}):
            yield f"{path}: not formatted; scripts/lint --fix does it"


def check_public_headers(root):
    """Each public header begins with prose, and is guarded."""
    for path in files(root, (".hpp",)):
        text = read(root, path)
        if not text.startswith("//"):
            yield f"{path}: begins without a sentence that says what it is"
        if "#pragma once" not in text:
            yield f"{path}: no #pragma once"


def test_names(root):
    """The tests' names as CTest has them, read from the sources, so that nothing needs to be built."""
    names = set()
    for path in files(root, (".cpp",)):
        text = read(root, path)
        for suite, name in re.findall(r"^TEST(?:_F)?\((\w+),\s*(\w+)\)", text, re.MULTILINE):
            names.add(f"{suite}.{name}")
    for path in files(root, (".py",)):
        suite = "TorchDebian" if path.startswith("tests/interop/") else "MultiNode"
        suite = "DropIn" if path.endswith("/drop_in_test.py") else suite
        names.update(f"{suite}.{name}" for name in re.findall(r"^def scenario_(\w+)", read(root, path), re.MULTILINE))
        topic = os.path.basename(path).removesuffix("_test.py").title()
        names.update(f"{topic}.{name}" for name in re.findall(r"^def case_(\w+)", read(root, path), re.MULTILINE))
    for path in files(root, ("CMakeLists.txt",)):
        names.update(re.findall(r"add_test\(\s*NAME\s+([\w.]+)", read(root, path)))
    for name in os.listdir(os.path.join(root, "tests/scenarios")):
        names.add("Scenario/" + name.removesuffix(".txt"))
    for name in os.listdir(os.path.join(root, "tests/fault")):
        if name.endswith(".scenario"):
            names.add("Fault." + name.removesuffix(".scenario"))
    names.update("SourceTree." + name.removeprefix("check_") for name in globals() if name.startswith("check_"))
    return names


ROWS = {"A": 19, "B": 13, "C": 11, "D": 22, "E": 4, "F": 11, "G": 8, "H": 7, "I": 10, "J": 7, "K": 5, "L": 4, "M": 7,
        "N": 3, "O": 3, "P": 4}


def check_field_reports(root):
    """Each report has its line in the page, and each test that the page names exists."""
    page = "docs/field-reports.md"
    known = test_names(root)
    lines = dict(re.findall(r"^\| ([A-P]\d+) \|(.*)$", read(root, page), re.MULTILINE))
    expected = {f"{letter}{number}" for letter, count in ROWS.items() for number in range(1, count + 1)}
    for row in sorted(expected ^ set(lines)):
        yield f"{page}: row {row} is {'missing' if row in expected else 'of no report'}"
    for row, line in lines.items():
        for name in re.findall(r"`([A-Z]\w+[./]\w+)`", line):
            if name not in known:
                yield f"{page}: row {row} names {name}, and there is no such test"


def check_ports_are_documented(root):
    """C11: a table lists every port, who opens it, and how to pin it; all that our programs listen on are there."""
    page = read(root, "docs/operations.md")
    table = page[page.index("## Ports"):page.index("## Tokens")]
    for word in ("29400", "29500", "--http", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "pin it"):
        if word not in table:
            yield f"docs/operations.md: the table of ports says nothing of {word}"


def main():
    check, root = sys.argv[1], sys.argv[2]
    faults = list(globals()["check_" + check](root))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
