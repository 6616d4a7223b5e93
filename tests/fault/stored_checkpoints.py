"""The checkpoints of a run, of the trainers and of PyTorch scripts: the newest is that of the newest run, whatever its step."""

import json
import os
import re

NAME = re.compile(r"step-(\d+)(?:-generation-(\d+)-round-(\d+))?")


def entries(run):
    """Also what is being written."""
    try:
        return os.listdir(f"{run.folder}/checkpoint")
    except FileNotFoundError:
        return []


def run_in(path):
    """(generation, round) by the index of a trainer's checkpoint; None where it cannot be read, or tells of none."""
    try:
        with open(f"{path}/index.json", encoding="utf-8") as f:
            told = json.load(f)["index"]["run"]
        return told["generation"], told["round"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def newest_first(run):
    """[(step, path)]. One of which the run is not known may be the newest run's, as trainers have it."""
    found = []
    for match in filter(None, map(NAME.fullmatch, entries(run))):
        path = f"{run.folder}/checkpoint/{match[0]}"
        found.append(((int(match[2]), int(match[3])) if match[2] else run_in(path), int(match[1]), path))
    newest = max((own for own, _, _ in found if own), default=(0, 0))
    return [(step, path) for _, step, path in sorted(((own or newest, *rest) for own, *rest in found), reverse=True)]
