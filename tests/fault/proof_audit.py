"""Proof 2 by the audit files: which samples each step that counts has used, and whether any is missing.

A file is of one rank in one attempt: a head (attempt, rank, world, the step it resumed at, its run and the one whose
checkpoint that was, samples of an epoch), then a line for each step. What counts is found from the newest attempt back: of
each the steps up to the checkpoint that the next one went on from.
"""

import glob
import json
import os
import subprocess
from dataclasses import dataclass, field


@dataclass
class Step:
    world: int  # ranks
    lines: dict = field(default_factory=dict)  # rank: its line


def whole_lines(path):
    """Without one that was cut off."""
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def lineage(folder):
    """({step: Step} that count, samples of an epoch, how many of them a dropped tail may leave out)."""
    attempts = {}
    for path in sorted(glob.glob(f"{glob.escape(folder)}/attempt-*.jsonl")):
        if lines := whole_lines(path):
            attempts.setdefault((*lines[0]["run"], lines[0]["attempt"]), []).append(lines)
    heads = [head for files in attempts.values() for head, *_ in files]
    samples = max((head["samples"] for head in heads), default=0)
    dropped = max((head["world"] - 1 for head in heads if head["tail"] == "drop"), default=0)
    steps, last_step = {}, float("inf")
    names = sorted(attempts, reverse=True)
    while names:
        files = attempts[names.pop(0)]
        own = files[0][0]
        for head, *lines in files:
            for line in lines:
                if own["resumed_at"] < line["step"] <= last_step:
                    steps.setdefault(line["step"], Step(head["world"])).lines[head["rank"]] = line
        last_step = own["resumed_at"]
        if last_step == 0:
            break
        while names and (list(names[0][:2]) != own["from"] or attempts[names[0]][0][0]["resumed_at"] >= last_step):
            names.pop(0)
    return steps, samples, dropped


def check_steps(steps, made, epochs, batch):
    """Every step is there, told by every rank of its world; and is whole, but for the last one of a complete epoch.

    batch: samples of a rank in a step; None where that changes with the world.
    """
    assert sorted(steps) == list(range(1, made + 1)), (
        f"samples: the audit tells of {len(steps)} steps up to {max(steps, default=0)}, {made} were made")
    epoch_of = {number: next(iter(step.lines.values()))["epoch"] for number, step in steps.items()}
    for number, step in steps.items():
        missing = sorted(set(range(step.world)) - set(step.lines))
        assert not missing, f"samples: no line of ranks {missing} tells of step {number}"
        ends_epoch = epoch_of.get(number + 1) != epoch_of[number] and epoch_of[number] < epochs
        if batch is None or ends_epoch:
            continue
        for rank, line in step.lines.items():
            own = len(line["samples"]) - line["repeats"]
            assert own == batch, f"samples: rank {rank} used {own} in step {number}, not {batch}"


def used_samples(steps):
    """{epoch: set of samples}; AssertionError for one that is used twice in it."""
    used = {}
    for number, step in sorted(steps.items()):
        for line in step.lines.values():
            own = line["samples"][:len(line["samples"]) - line["repeats"]]
            of_epoch = used.setdefault(line["epoch"], set())
            twice = of_epoch.intersection(own)
            assert not twice and len(set(own)) == len(own), (
                f"samples: {min(twice, default='one')} is used again in step {number}, epoch {line['epoch'] + 1}")
            of_epoch.update(own)
    return used


def check_folder(folder, made, epochs, batch):
    """(samples used, the sentence). made: steps of the whole run; epochs: so many must be complete; batch: as above."""
    steps, samples, dropped = lineage(folder)
    check_steps(steps, made, epochs, batch)
    used = used_samples(steps)
    for epoch in range(epochs):
        missing = samples - len(used.get(epoch, ()))
        assert missing <= dropped, f"samples: {missing} of {samples} were not used in epoch {epoch + 1}"
    beyond = sorted(set(used) - set(range(epochs)))
    assert len(beyond) <= 1, f"samples: epochs {[epoch + 1 for epoch in beyond]} were begun and not told to be complete"
    told = f"audit: {epochs} complete epochs of {samples} samples, each used once"
    if beyond:
        told += f"; {len(used[beyond[0]])} of epoch {beyond[0] + 1}, each used once, as its steps want"
    return sum(map(len, used.values())), told


def agree(run, folder, epochs):
    """The trainers' own check has to come to the same."""
    done = subprocess.run([f"{run.bin}/muster_audit", folder, f"--epochs={epochs}"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"samples: {done.stdout}{done.stderr}"


def check(run, made, epochs, batch):
    """Nothing is told of a program that keeps no audit."""
    folder = f"{run.folder}/audit"
    if not os.path.isdir(folder):
        program = run.scenario.program[0]
        assert program == "python" or not run.setup.audits(program), "samples: the trainer has written no audit"
        return ""
    run.samples_checked, told = check_folder(folder, made, epochs, batch)
    agree(run, folder, epochs)
    return "; " + told
