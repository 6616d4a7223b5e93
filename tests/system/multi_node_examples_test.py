"""The examples of README.md and docs/operations.md, run as they stand there as far as one machine can.

usage: multi_node_examples_test.py BIN_DIR SCENARIO    with SCENARIO one of the functions named scenario_* below
"""

import os
import re
import shlex
import shutil
import subprocess

from multi_node import main, real_network_only, said_environments, say_environment
from netns_lab import await_that

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PATHS = {"PYTHONUNBUFFERED": "1"}


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def section(text, title):
    return re.split(r"^## ", text.split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def example(text, first):
    """The indented block that begins with `first`, without its indent."""
    lines = text.split(f"    {first}\n", 1)[1].split("\n")
    block = [first]
    for line in lines:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block).strip() + "\n"


def with_our_programs(lab, environment=None):
    return {**PATHS, "PATH": f"{lab.bin}:{os.environ['PATH']}", **(environment or {})}


def scenario_two_shells_on_one_machine_as_README_says(lab):
    """Both commands as they stand there, but for fewer steps and a port that is free."""
    commands = re.findall(r"^muster --nnodes=2 --nproc-per-node=1 .*$", section(page("README.md"), "Several nodes"), re.MULTILINE)
    assert len(commands) == 2 and commands[0] == commands[1], commands
    launches = []
    for command in commands:
        words = shlex.split(command.replace(":29400", f":{lab.port}"))
        words = ["env", f"TMPDIR={lab.folder}", "sh", "-c", f"cd {lab.folder} && exec " + shlex.join([*words, "--max-steps=20"])]
        launches.append(lab.start(lab.nodes[0], words, with_our_programs(lab, {"OMP_NUM_THREADS": "1"})))
    for launch in launches:
        launch.await_exit(0, 120)
        assert "2 nodes, 2 workers" in launch.output(), launch.output()


SRUN = """#!/bin/sh
# Stands for Slurm's: the same command, once on each node of the job.
for node in 1 2 3 4; do
  {run} "$@" > {folder}/srun-$node.txt 2>&1 &
  pids="$pids $!"
done
code=0
for pid in $pids; do wait $pid || code=$?; done
exit $code
"""


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def scenario_P1_the_batch_script_for_Slurm(lab):
    """`srun` and `scontrol` are stand-ins; four hosts run what the script says, with another program in train.py's place."""
    if not real_network_only(lab):
        return
    script = example(section(page("docs/operations.md"), "Slurm"), "#!/bin/bash")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    tools = f"{lab.folder}/tools"
    os.mkdir(tools)
    names = "".join(f"{node.address} {node.name}\n" for node in lab.nodes)
    for node in lab.nodes:
        lab.name_table(node, f"127.0.0.1 localhost\n{names}")
    namespace = lab.nodes[0].prefix[3].rsplit("-", 1)[0]
    run = f"ip netns exec {namespace}-$node unshare --uts sh -c 'hostname n$0 && exec \"$@\"' $node"
    write_program(f"{tools}/srun", SRUN.format(run=run, folder=lab.folder))
    write_program(f"{tools}/scontrol", "#!/bin/sh\ntest \"$*\" = 'show hostnames n[1-4]' && printf 'n1\\nn2\\nn3\\nn4\\n'\n")
    program = shlex.join(say_environment(lab))
    script, replaced = re.subn(r"train\.py .*", lambda _: program, script)
    assert replaced == 1
    script = script.replace("--nproc-per-node=gpu", "--nproc-per-node=1").replace("--nnodes=2:4", "--nnodes=2:4 --log-dir=" + lab.folder)
    write_program(f"{lab.folder}/job.sh", script)
    slurm = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_NTASKS": "4", "PATH": f"{tools}:{lab.bin}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", f"{lab.folder}/job.sh"], env={**os.environ, **slurm, "TMPDIR": lab.folder}, capture_output=True,
                          text=True, check=False, timeout=120)
    outputs = [open(f"{lab.folder}/srun-{number}.txt", encoding="utf-8").read() for number in range(1, 5)]
    assert done.returncode == 0, (done.stderr, outputs)
    workers = said_environments(lab, 4)
    assert workers[0]["MUSTER_NODE"].startswith("n1"), "the first node of the list hosts, and has rank 0"
    assert {worker["MASTER_ADDR"] for worker in workers} == {lab.nodes[0].address}
    assert {worker["TORCHELASTIC_RUN_ID"] for worker in workers} == {"4711"}
    assert sum("(hosted here)" in output for output in outputs) == 1, outputs


def kubernetes_environment(text):
    return dict(re.findall(r"- \{name: (PET_\w+), value: \"?([^\"}]*)\"?\}", text))


def scenario_P1_the_job_for_Kubernetes(lab):
    """Each host is a pod: its name, the service's names in its table once the pod is there, the PET_ variables of the
    manifest, and the command with another program in train.py's place. The first pod comes last."""
    if not real_network_only(lab):
        return
    text = section(page("docs/operations.md"), "Kubernetes")
    variables = kubernetes_environment(text)
    assert variables["PET_RDZV_ENDPOINT"] == "train-0.train:29400", variables
    command = re.search(r"command: \[muster, train\.py\]", text)
    assert command, "the manifest's command"
    variables["PET_NPROC_PER_NODE"] = "1"  # no GPU here
    variables["PET_RDZV_CONF"] = "last_call_timeout=60"
    started = []
    for number in (1, 2, 3, 0):
        known = [*started, number]
        for index in known:
            table = "".join(f"{lab.nodes[other].address} train-{other}.train train-{other}\n" for other in known)
            if index == number:
                lab.name_table(lab.nodes[index], f"127.0.0.1 localhost\n{table}")
            else:
                lab.change_name_table(lab.nodes[index], f"127.0.0.1 localhost\n{table}")
        pod = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', f"train-{number}"]
        os.mkdir(f"{lab.folder}/tmp-{number}")  # a pod's files are its own
        variables["TMPDIR"] = f"{lab.folder}/tmp-{number}"
        launch = lab.start(lab.nodes[number], [*pod, os.path.join(lab.bin, "muster"), f"--log-dir={lab.folder}/logs-{number}",
                                               *say_environment(lab)], variables)
        if number:
            launch.await_output("cannot be looked up")
        started.append(number)
    for launch in lab.launches:
        launch.await_exit(0, 120)
    workers = said_environments(lab, 4)
    assert workers[0]["MUSTER_NODE"] == "train-0"
    assert {worker["MUSTER_NODE"] for worker in workers} == {f"train-{number}" for number in range(4)}
    assert {worker["MASTER_ADDR"] for worker in workers} == {lab.nodes[0].address}


def scenario_the_unit_of_a_standing_musterd_is_the_one_that_is_installed(lab):
    """The text in the page is the file, and systemd finds nothing wrong with it."""
    shown = example(section(page("docs/operations.md"), "A standing musterd"), "[Unit]")
    path = os.path.join(ROOT, "scripts/packaging/musterd.service")
    with open(path, encoding="utf-8") as f:
        installed = f.read()
    assert shown.strip() in installed, shown
    if not shutil.which("systemd-analyze"):
        return print("left out: needs systemd-analyze")
    unit = f"{lab.folder}/musterd.service"
    with open(unit, "w", encoding="utf-8") as f:
        f.write(installed.replace("/usr/bin/musterd", os.path.join(lab.bin, "musterd")))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "musterd.service" in line]
    assert not ours, ours


if __name__ == "__main__":
    main(globals())
