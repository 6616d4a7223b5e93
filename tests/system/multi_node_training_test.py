"""Training goes on while hosts come, go and are cut off, and while daemons die.

usage: multi_node_training_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import json
import os
import random
import signal

from multi_node import QUICK, main, options, real_network_only
from netns_lab import await_that

TRAINER = "ddp_mnist"
ALONE = {"OMP_NUM_THREADS": "1"}  # the "hosts" share this machine's few cores


def training(lab, epochs):
    return lab.program("ddp_mnist", f"--epochs={epochs}", f"--checkpoint-dir={lab.folder}/checkpoint",
                       "--checkpoint-every=20", f"--metrics-file={lab.folder}/metrics.jsonl", "--quiet")


def steps_done(lab):
    """The newest step that the metrics tell of; a line that is being written does not count yet."""
    try:
        with open(f"{lab.folder}/metrics.jsonl") as f:
            lines = [line for line in f.read().split("\n")[:-1] if '"event":"step"' in line]
    except FileNotFoundError:
        return 0
    return json.loads(lines[-1])["step"] if lines else 0


def await_steps(lab, more):
    target = steps_done(lab) + more
    await_that(lambda: steps_done(lab) >= target, f"training reaches step {target}")


def await_round(launches, text):
    """The same for all: one that was away may still stand in an older round of this size."""
    def together():
        newest = [launch.rounds()[-1] if launch.rounds() else "" for launch in launches]
        return all(text in line for line in newest) and len({line.split(":")[0] for line in newest}) == 1
    await_that(together, f"{', '.join(launch.node.name for launch in launches)} are in one round of {text}")


def expect_each_change_with_its_reason(rounds):
    """n3 joins two nodes, n2 is cut off and comes back, n3 leaves."""
    print("\n".join(rounds))
    sizes = [text.split(": ", 1)[1].split(",")[0] for text in rounds]
    assert sizes == ["2 nodes", "3 nodes", "2 nodes", "3 nodes", "2 nodes"], rounds
    for reason, line in zip(("n3 joined", "n2 was lost", "n2 joined", "n3 leaves"), rounds[1:]):
        assert reason in line, rounds


def scenario_D12_F4_a_node_that_joins_costs_no_step(lab):
    """Workers save when they are asked to, all at the same step, and the larger world goes on from there."""
    program = lab.program("ddp_mnist", "--epochs=3", f"--checkpoint-dir={lab.folder}/checkpoint",
                          "--checkpoint-every=1000000", f"--metrics-file={lab.folder}/metrics.jsonl")
    own = options(lab, "1:3")
    launches = [lab.launch(node, own, program, ALONE) for node in lab.nodes[:2]]
    await_steps(lab, 30)
    launches.append(lab.launch(lab.nodes[2], own, program, ALONE))
    for launch in launches:
        launch.await_exit(0, 200)
    assert "3 nodes, 3 workers" in launches[2].output(), launches[2].output()
    with open(f"{lab.folder}/metrics.jsonl") as f:
        events = [json.loads(line) for line in f]
    drained = [e["step"] for e in events if e["event"] == "drained"]
    assert drained and drained == [e["step"] for e in events if e["event"] == "resumed"], events
    steps = [e["step"] for e in events if e["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1)), "a step was repeated or left out"


def scenario_D1_D3_D12_three_hosts_train_while_one_joins_one_is_cut_off_and_one_leaves(lab):
    """The job ends well on those that are left; their transcript has each round with its reason."""
    if not real_network_only(lab):
        return
    lab.daemon(lab.nodes[3], "--heartbeat-timeout=2s")
    own = [*options(lab, "1:3", host=3), "--rdzv-conf=broken_grace=1s", "--stop-grace=5"]
    epochs = 2 if os.environ.get("MUSTER_SANITIZER") else 8  # long enough for all that happens, at ten steps a second too
    launches = [lab.launch(node, own, training(lab, epochs), ALONE) for node in lab.nodes[:2]]
    await_round(launches, "2 nodes, 2 workers")
    await_steps(lab, 30)

    launches.append(lab.launch(lab.nodes[2], own, training(lab, epochs), ALONE))  # in mid-epoch
    await_round(launches, "3 nodes, 3 workers")
    await_steps(lab, 30)

    lab.nodes[1].cut_off()
    await_round([launches[0], launches[2]], "2 nodes, 2 workers")
    await_steps(lab, 30)
    lab.nodes[1].connect_again()
    await_round(launches, "3 nodes, 3 workers")
    await_steps(lab, 30)

    launches[2].kill(signal.SIGTERM)
    launches[2].await_exit(128 + signal.SIGTERM)
    await_round(launches[:2], "2 nodes, 2 workers")
    await_steps(lab, 30)
    for launch in launches[:2]:
        launch.await_exit(0, 200)
    expect_each_change_with_its_reason(launches[0].rounds())


class MortalDaemon:
    """A standing one with a journal, that dies at random moments and comes back."""

    def __init__(self, lab, *options):
        self.lab, self.options = lab, [f"--state-dir={lab.folder}/state", *options]
        seed = int.from_bytes(os.urandom(4), "big")
        print(f"seed {seed}")
        self.dice, self.deaths = random.Random(seed), 0
        self.process = lab.daemon(lab.nodes[3], *self.options)

    def die(self, launches):
        """The workers of these launches do not notice."""
        before = workers_of(self.lab, launches)
        assert len(before) == len(launches), before
        await_steps(self.lab, self.dice.randrange(1, 15))
        self.process.kill(signal.SIGKILL)
        self.process.process.wait(60)
        self.deaths += 1
        if self.dice.random() < 0.5:
            await_steps(self.lab, self.dice.randrange(1, 10))  # nobody needs it to train
        told = [launch.output().count("connected again") for launch in launches]
        self.process = self.lab.daemon(self.lab.nodes[3], *self.options)
        for launch, times in zip(launches, told):
            await_that(lambda: launch.output().count("connected again") > times, f"{launch.node.name} is back")
        assert workers_of(self.lab, launches) == before


def workers_of(lab, launches):
    agents = {launch.process.pid for launch in launches}
    return sorted(pid for pid in lab.pids(TRAINER) if parent_of(pid) in agents)


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def scenario_D7_three_hosts_train_while_they_come_and_go_and_ten_daemons_die(lab):
    """Two start, the third joins in mid-epoch, one is cut off by the network and comes back, one gets SIGTERM; in
    between the daemon dies ten times, which changes no worker's pid. The survivors end well, and their transcript has
    each round with its reason, and no other."""
    if not real_network_only(lab):
        return
    daemon = MortalDaemon(lab, "--heartbeat-timeout=8s")  # patient, as the machine may be slow
    own = [*options(lab, "1:3", host=3), "--rdzv-conf=broken_grace=1s,closed_grace=20s", "--stop-grace=5"]
    epochs = 2 if os.environ.get("MUSTER_SANITIZER") else 8
    launches = [lab.launch(node, own, training(lab, epochs), ALONE) for node in lab.nodes[:2]]
    await_round(launches, "2 nodes, 2 workers")
    for _ in range(2):
        daemon.die(launches)
    launches.append(lab.launch(lab.nodes[2], own, training(lab, epochs), ALONE))
    await_round(launches, "3 nodes, 3 workers")
    for _ in range(3):
        daemon.die(launches)
    lab.nodes[1].cut_off()
    remaining = [launches[0], launches[2]]
    await_round(remaining, "2 nodes, 2 workers")
    for _ in range(2):
        daemon.die(remaining)
    lab.nodes[1].connect_again()
    await_round(launches, "3 nodes, 3 workers")
    for _ in range(2):
        daemon.die(launches)
    launches[2].kill(signal.SIGTERM)
    launches[2].await_exit(128 + signal.SIGTERM)
    await_round(launches[:2], "2 nodes, 2 workers")
    daemon.die(launches[:2])
    assert daemon.deaths == 10
    for launch in launches[:2]:
        launch.await_exit(0, 200)
    expect_each_change_with_its_reason(launches[0].rounds())


def scenario_D7_a_daemon_killed_ten_times_under_training_restarts_no_worker(lab):
    """A standing one with a journal, at random moments."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    dice = random.Random(seed)
    state = f"--state-dir={lab.folder}/state"
    daemon = lab.daemon(lab.nodes[3], state)
    launches = [lab.launch(node, options(lab, "1:3", host=3), training(lab, 2), ALONE) for node in lab.nodes[:3]]
    await_round(launches, "3 nodes, 3 workers")
    await_that(lambda: len(lab.pids(TRAINER)) == 3, "all three work")
    workers = sorted(lab.pids(TRAINER))
    for _ in range(10):
        await_steps(lab, dice.randrange(1, 40))
        daemon.kill(signal.SIGKILL)
        daemon.process.wait(60)
        if dice.random() < 0.5:
            await_steps(lab, dice.randrange(1, 20))  # nobody needs it to train
        daemon = lab.daemon(lab.nodes[3], state)
        assert sorted(lab.pids(TRAINER)) == workers
    for launch in launches:
        launch.await_exit(0, 200)
        assert len(launch.rounds()) == 1, launch.output()


if __name__ == "__main__":
    if os.environ.get("MUSTER_SANITIZER") == "thread":
        print("left out: at the thread sanitizer's pace this training takes many minutes; the other builds run it")
    else:
        main(globals())
