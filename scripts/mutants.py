#!/usr/bin/env python3
"""Changes the code that decides what an agent may touch, one place at a time: some test must fail.

  scripts/mutants.py           try every change, write the figures into docs/mutants.md
  scripts/mutants.py FILE...   only changes in these files; writes nothing
  scripts/mutants.py --check   check the form of the figures, and their sums

cargo-mutants says what is changed (.cargo/mutants.toml: in which files, and why not everything). All
changes are built into one copy of the tree: each is a copy of its function's body, and a variable
switches to it, so that one build serves for all of them. A copy that does not compile is no change. A
constant function, or one of an unnamed type, has no room for a switch: its changes are built alone.

A change that no test notices is an error unless docs/mutants.md explains it. Works below target/.
Needs cargo-mutants (cargo install cargo-mutants --locked).
"""

import collections
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path(os.environ.get("MUTANTS_PAGE", ROOT / "docs/mutants.md"))
OUT = Path(os.environ.get("MUTANTS_OUT", ROOT / "target/mutants"))
TREE = OUT / "tree"
BEGIN, END = "<!-- mutants:begin -->", "<!-- mutants:end -->"
CRATE = "fleet-core"
# Cases must notice by themselves. What only a property finds, by luck of its generator, is missed.
TESTS = ["isolation", "permissions", "case::claude", "case::closure", "case::codex", "case::denied_reads",
         "case::select", "case::shared", "case::weakness", "golden::"]
NOT_TESTS = ["broken::", "property::"]
# One failure is enough. The flag is not stable, hence the variable beside it.
FIRST_FAILURE = ["-Zunstable-options", "--fail-fast"]
SWITCH = "FLEET_CHANGE"
# A test that hangs has noticed; no test takes a tenth of this.
LIMIT_SECONDS = 120
# The same in processor time, whatever else the machine does; and what a test that hangs may take of its memory.
LIMIT_PROCESSOR_SECONDS = 30
LIMIT_MEMORY = 4 << 30
MODULE = f"""//! Which change is switched on.
pub(crate) fn switched() -> u32 {{
    static NUMBER: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {{
        std::env::var("{SWITCH}").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
    }});
    *NUMBER
}}
"""


def fail(text):
    sys.exit(f"mutants: {text}")


def environment(**more):
    # Nobody reads debug information and backtraces, and they take half of the time.
    return {**os.environ, "CARGO_TARGET_DIR": str(OUT / "target"), "INSTA_UPDATE": "no", "RUST_BACKTRACE": "0",
            "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0", "RUSTFLAGS": "--cap-lints=allow", **more}


# The page.

def explained():
    """Changes that the page explains. `FILE: CHANGE`, without line and column, outlives an edit above it."""
    return set(re.findall(r"^\| `([^`]*)` \|", PAGE.read_text(), re.MULTILINE))


def check():
    text = PAGE.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        fail(f"{PAGE} must have one line '{BEGIN}' and one line '{END}'")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text.split(BEGIN)[1].split(END)[0], re.MULTILINE)
    if len(rows) != 1:
        fail("the figures are missing: run scripts/mutants.py")
    changes, noticed, unviable, missed = map(int, rows[0])
    if changes != noticed + unviable + missed:
        fail("the figures do not add up")
    if missed > len(explained()):
        fail("the figures hold more missed changes than are explained")
    print("mutants: the figures are whole")


def head():
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()


def write(counts, commit):
    version = subprocess.check_output(["cargo", "mutants", "--version"], text=True).strip()
    block = (f"{BEGIN}\nCode of commit `{commit}`, {version}.\n\n"
             "| Changes | Noticed by a test | Did not compile | Not noticed, explained below |\n|---:|---:|---:|---:|\n"
             f"| {sum(counts.values())} | {counts['noticed']} | {counts['unviable']} | {counts['missed']} |\n{END}")
    text = PAGE.read_text()
    PAGE.write_text(text[:text.index(BEGIN)] + block + text[text.index(END) + len(END):])
    check()


# The changes.

class Change:
    def __init__(self, number, listed):
        self.number, self.file, self.replacement = number, listed["file"], listed["replacement"]
        self.span, self.function = listed["span"], listed["function"]
        place, what = re.fullmatch(r"(.*:\d+:\d+): (.*)", listed["name"], re.DOTALL).groups()
        self.name, self.key = f"{place}: {what}", f"{self.file}: {what}"
        self.outcome = None

    def text(self, lines, region):
        """The text of a region, with this change in it."""
        start, end = offset(lines, self.span["start"]), offset(lines, self.span["end"])
        whole = "".join(lines)
        return whole[region[0]:start] + self.replacement + whole[end:region[1]]


def offset(lines, at):
    return sum(len(line) for line in lines[:at["line"] - 1]) + at["column"] - 1


def signature_and_body(text, change, lines):
    """Where the signature begins, and the inside of the body's braces."""
    start, end = offset(lines, change.function["span"]["start"]), offset(lines, change.function["span"]["end"])
    name = change.function["function_name"].rsplit("::", 1)[-1]
    at = re.compile(rf"\bfn\s+{re.escape(name)}\b").search(text, start, end).end()
    at = text.index("(", at)
    depth = 0
    for close in range(at, end):
        depth += {"(": 1, ")": -1}.get(text[close], 0)
        if depth == 0:
            break
    return start, text.index("{", close) + 1, end - 1


def has_room(signature):
    return not re.search(r"\bconst\s+(unsafe\s+)?fn\b", signature) and not re.search(r"->.*\bimpl\b", signature, re.DOTALL)


def with_switches(file, changes):
    """The file with a switch in each function, the lines of each change's copy, and what has no room."""
    text = (ROOT / file).read_text()
    lines = text.splitlines(keepends=True)
    functions, alone = collections.defaultdict(list), []
    for change in changes:
        # A change outside of any function has no body.
        start, inside, end = signature_and_body(text, change, lines) if change.function else (0, 0, 0)
        if change.function and has_room(text[start:inside]):
            functions[inside, end].append(change)
        else:
            alone.append(change)
    # From the last function to the first, so that places in front of it stay; an inner one, which begins
    # later, is done before the one around it.
    new, grown = text, []
    for (inside, end), copies in sorted(functions.items(), key=lambda item: item[0], reverse=True):
        shifted = end + sum(more for place, more in grown if inside <= place < end)
        arms = "".join(f"\n/*+{it.number}*/ {it.number} => {{ {it.text(lines, (inside, end))}\n}} /*-{it.number}*/" for it in copies)
        body = f"\nmatch crate::mutants_switch::switched() {{{arms}\n_ => {{ {new[inside:shifted]}\n}} }}\n"
        grown.append((inside, len(body) - (shifted - inside)))
        new = new[:inside] + body + new[shifted:]
    return new, alone


def ranges(text):
    """For each change the lines of its copy."""
    found, open_at = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        for sign, change in re.findall(r"/\*([+-])(\d+)\*/", line):
            if sign == "+":
                open_at[int(change)] = number
            else:
                found[int(change)] = (open_at[int(change)], number)
    return found


# Building and running.

def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    names = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            # Not its time: a file that the last run changed would look older than what was built of it.
            shutil.copy(ROOT / name, TREE / name)


def cargo(*words):
    """Messages of cargo, and whether it succeeded."""
    done = subprocess.run(["cargo", *words, "-p", CRATE, "--all-features", "--locked", "--message-format=json"],
                          cwd=TREE, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done


def errors(messages):
    """File and line of each error."""
    for message in messages:
        if message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
            for span in message["message"]["spans"]:
                if span["is_primary"]:
                    while span["file_name"].startswith("/") and span.get("expansion"):
                        span = span["expansion"]["span"]
                    yield span["file_name"], span["line_start"]


def programs():
    messages, done = cargo("test", "--no-run", "--lib", "--test=main")
    if done.returncode != 0:
        return None, done.stderr
    built = [it for it in messages if it.get("reason") == "compiler-artifact" and it.get("executable")]
    # The cases first: they notice most, and fastest.
    return [it["executable"] for it in sorted(built, key=lambda it: it["target"]["name"] != "main")], ""


def bounded():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_PROCESSOR_SECONDS, LIMIT_PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_MEMORY, LIMIT_MEMORY))


def notices(binaries, number):
    """Whether a test fails under the change, or hangs."""
    for binary in binaries:
        words = [binary, *FIRST_FAILURE, *TESTS] + [word for name in NOT_TESTS for word in ("--skip", name)]
        try:
            done = subprocess.run(words, cwd=TREE / CRATE, env=environment(
                **{SWITCH: str(number), "CARGO_MANIFEST_DIR": str(TREE / CRATE), "RUST_TEST_THREADS": "1", "RUSTC_BOOTSTRAP": "1"}),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_SECONDS, preexec_fn=bounded)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode != 0:
            return True
    return False


def build_switched(changes):
    """Builds the tree with all that compile; returns the programs, and what has no room."""
    library = TREE / CRATE / "src/lib.rs"
    (TREE / CRATE / "src/mutants_switch.rs").write_text(MODULE)
    library.write_text(library.read_text() + "\nmod mutants_switch;\n")
    by_file = collections.defaultdict(list)
    for change in changes:
        by_file[change.file].append(change)
    alone, dirty = [], set(by_file)
    while True:
        for file in dirty:
            text, without_room = with_switches(file, [it for it in by_file[file] if it.outcome is None])
            alone += [it for it in without_room if it not in alone]
            (TREE / file).write_text(text)
        messages, done = cargo("check")
        if done.returncode == 0:
            break
        dirty = set()
        for file, line in errors(messages):
            for change in by_file.get(file, []):
                first, last = ranges((TREE / file).read_text()).get(change.number, (0, -1))
                if first <= line <= last:
                    change.outcome = "unviable"
                    dirty.add(file)
        if not dirty:
            fail(f"the copy does not compile:\n{done.stderr[-3000:]}")
        print(f"mutants: {sum(it.outcome == 'unviable' for it in changes)} do not compile", flush=True)
    binaries, why = programs()
    if binaries is None:
        fail(f"the tests do not compile:\n{why[-3000:]}")
    return binaries, alone


def try_alone(change):
    lines = (ROOT / change.file).read_text().splitlines(keepends=True)
    kept = (TREE / change.file).read_text()
    (TREE / change.file).write_text(change.text(lines, (0, sum(map(len, lines)))))
    binaries, _ = programs()
    change.outcome = "unviable" if binaries is None else "noticed" if notices(binaries, -1) else "missed"
    (TREE / change.file).write_text(kept)


def main(words):
    if words == ["--check"]:
        return check()
    if any(word.startswith("-") for word in words):
        print(__doc__.strip())
        return 0 if words[0] in ("-h", "--help") else fail(f"unknown option {words[0]}")
    if subprocess.run(["cargo", "mutants", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        fail("cargo-mutants is missing: cargo install cargo-mutants --locked")
    listed = json.loads(subprocess.check_output(["cargo", "mutants", "--list", "--json"], cwd=ROOT, stderr=subprocess.DEVNULL))
    changes = [Change(number, it) for number, it in enumerate(listed)]
    if words:
        changes = [it for it in changes if it.file in words]
    if not changes:
        fail("nothing to change")
    commit = head()
    copy_tree()
    binaries, alone = build_switched(changes)
    if notices(binaries, -1):
        fail("a test fails without any change")
    todo = [it for it in changes if it.outcome is None and it not in alone]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, (change, noticed) in enumerate(zip(todo, pool.map(lambda it: notices(binaries, it.number), todo)), 1):
            change.outcome = "noticed" if noticed else "missed"
            if not noticed or count % 50 == 0:
                print(f"mutants: {count} of {len(todo)}" + ("" if noticed else f"; not noticed: {change.name}"), flush=True)
    for change in alone:
        try_alone(change)
    counts = collections.Counter(it.outcome for it in changes)
    print(f"mutants: {len(changes)} changes: {counts['noticed']} noticed, {counts['unviable']} did not compile, {counts['missed']} missed")
    left = [it.name for it in changes if it.outcome == "missed" and it.key not in explained()]
    if left:
        fail("no test noticed these, and {} does not explain them:\n{}".format(PAGE.name, "\n".join(left)))
    if not words:
        write(counts, commit)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
