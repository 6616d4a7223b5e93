"""What the consoles of several nodes show.

usage: multi_node_logs_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import glob
import re
import signal

from multi_node import environment_of, main, options, until_marked
from netns_lab import await_that


def said_here(launch, size):
    """Both of its workers have, in the newest round, which is of this size."""
    rounds = re.findall(r"^muster: round (\d+): (.*?workers?),", launch.output(), re.MULTILINE)
    return bool(rounds) and rounds[-1][1] == size and launch.output().count(f":r{rounds[-1][0]}|here 0") == 2


def scenario_J2_lines_name_node_and_rank_after_a_change_of_ranks_too(lab):
    """The node that leads leaves, so that the others' ranks move."""
    program, go = until_marked(lab, "env", f"{lab.folder}/env-{{rank}}-{{round}}", "then", "out", "1", "here")
    own = options(lab, "1:3", "--nproc-per-node=2", "--log-line-prefix-template={node}:{rank}:${local_rank}:r{round}|")
    launches = [lab.launch(node, own, program) for node in lab.nodes[:3]]
    for launch in launches:  # the third may come after the last call, and begin another round
        launch.await_output("3 nodes, 6 workers")
        await_that(lambda: said_here(launch, "3 nodes, 6 workers"), launch.output)
    launches[0].kill(signal.SIGTERM)
    launches[0].await_exit(128 + signal.SIGTERM)
    for launch in launches[1:]:
        await_that(lambda: said_here(launch, "2 nodes, 4 workers"), launch.output)
    go()
    for launch in launches[1:]:
        launch.await_exit(0)
    environments = [environment_of(path) for path in glob.glob(f"{glob.escape(lab.folder)}/env-*-*")]
    wanted = sorted((e["MUSTER_NODE"], e["RANK"], e["LOCAL_RANK"], e["MUSTER_ROUND"]) for e in environments)
    shown = []
    for launch in launches:
        shown += re.findall(r"^(.*):(\d+):(\d+):r(\d+)\|here 0$", launch.output(), re.MULTILINE)
    assert sorted(shown) == wanted, (sorted(shown), wanted)
    assert len(wanted) >= 6 + 4, wanted


if __name__ == "__main__":
    main(globals())
