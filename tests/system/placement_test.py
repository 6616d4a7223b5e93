"""Workers are bound before they start, and see the GPUs that they were given: placement_test.py BIN_DIR CASE.

A folder stands for the machine's /sys, /proc/driver/nvidia and /dev; the CPUs are this machine's own.
"""

import os
import re
import signal

from jobs import await_that, run_named

SHOW = r"""
import os
status = open("/proc/self/status").read().split("\n")
allowed = [line.split()[1] for line in status if line.startswith("Cpus_allowed_list")][0]
print("local", os.environ["LOCAL_RANK"], "rank", os.environ["RANK"], "cpus", allowed,
      "sees", os.environ.get("CUDA_VISIBLE_DEVICES", "all"), "threads", os.environ.get("OMP_NUM_THREADS"), flush=True)
"""


def machine(job, nodes, gpus=()):
    """nodes: lists of CPUs; gpus: (address, UUID, node)."""
    def put(name, text):
        path = job.path("machine/" + name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text + "\n")
    for number, cpus in enumerate(nodes):
        put(f"sys/devices/system/node/node{number}/cpulist", ",".join(map(str, cpus)))
        for cpu in cpus:
            put(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(number))
            put(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", str(cpu))
    for address, uuid, node in gpus:
        put(f"proc/driver/nvidia/gpus/{address}/information", f"GPU UUID: \t {uuid}")
        put(f"sys/bus/pci/devices/{address}/numa_node", str(node))
    return {"MUSTER_MACHINE_ROOT": job.path("machine")}


def seen(job, options, variables):
    """By rank: what each worker says of itself."""
    clean = {**variables}
    job.start(options, ["python3", job.write("show.py", SHOW)], clean)
    job.await_exit(0)
    lines = re.findall(r"^local (\d+) rank (\d+) cpus (\S+) sees (\S+) threads (\S+)$", job.output(), re.MULTILINE)
    return {int(rank): {"local": local, "cpus": cpus, "sees": gpus, "threads": threads}
            for local, rank, cpus, gpus, threads in lines}


def two_cpus():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print("left out: needs two CPUs")
        raise SystemExit(0)
    return cpus[:2]


def case_K2_four_workers_are_bound_to_two_nodes_in_turn(job):
    first, second = two_cpus()
    got = seen(job, ["--nproc-per-node=4", "--numa-binding=node"], machine(job, [[first], [second]]))
    assert [got[rank]["cpus"] for rank in range(4)] == [str(first), str(second)] * 2, got
    printed = re.search(r"bound: local rank (.*)", job.output()).group(1)
    assert printed == ", ".join(f"{rank}: CPUs {got[rank]['cpus']} (node {rank % 2})" for rank in range(4)), printed


def case_K2_a_worker_is_bound_near_its_gpu(job):
    first, second = two_cpus()
    variables = machine(job, [[first], [second]], [("0000:3b:00.0", "GPU-a", 1), ("0000:af:00.0", "GPU-b", 0)])
    got = seen(job, ["--nproc-per-node=gpu", "--numa-binding=exclusive"], variables)
    assert [got[rank]["cpus"] for rank in range(2)] == [str(second), str(first)], got


def case_K2_a_machine_that_tells_nothing_binds_nobody_and_says_why(job):
    got = seen(job, ["--nproc-per-node=1", "--numa-binding=node"], machine(job, [[4095]]))
    assert "--numa-binding: nobody is bound: " in job.output(), job.output()
    assert got[0]["sees"] == "all", got


def case_K3_each_worker_sees_exactly_its_entry(job):
    variables = {**machine(job, [[0]]), "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,3"}
    got = seen(job, ["--nproc-per-node=3", "--isolate-gpus"], variables)
    assert [(got[rank]["sees"], got[rank]["local"]) for rank in range(3)] == [
        ("GPU-a", "0"), ("GPU-b", "1"), ("3", "2")], got
    assert "GPUs: local rank 0: GPU-a, 1: GPU-b, 2: 3" in job.output(), job.output()


def case_K3_a_choice_and_virtual_local_ranks(job):
    variables = machine(job, [[0]], [(f"0000:{n}0:00.0", f"GPU-{n}", 0) for n in range(1, 5)])
    got = seen(job, ["--nproc-per-node=2", "--gpus=3,GPU-1", "--virtual-local-rank"], variables)
    assert [(got[rank]["sees"], got[rank]["local"]) for rank in range(2)] == [("3", "0"), ("0", "0")], got
    got = seen(job, ["--nproc-per-node=auto", "--gpus=1,2"], variables)
    assert [got[rank]["sees"] for rank in range(2)] == ["1,2", "1,2"], got


def case_K3_workers_with_virtual_local_ranks_are_still_told_apart(job):
    """By the channel on which they are asked to save."""
    worker = ("import os, sys, time, muster_worker\nworker = muster_worker.join()\nprint('ready', worker.rank, flush=True)\n"
              "while not worker.asked_to_save(): time.sleep(0.01)\n"
              "open(sys.argv[1] + os.environ['RANK'], 'w')\nworker.drained(1)\n")
    job.start(["--nproc-per-node=2", "--virtual-local-rank"], ["python3", job.write("worker.py", worker), job.path("saved-")],
              machine(job, [[0]]))
    await_that(lambda: job.output().count("ready") == 2, job.output)
    job.process.send_signal(signal.SIGTERM)
    job.await_exit(143)
    assert "2 workers asked to save" in job.output(), job.output()
    assert os.path.exists(job.path("saved-0")) and os.path.exists(job.path("saved-1"))


def case_K3_too_few_are_refused_before_anything_starts(job):
    job.start(["--nproc-per-node=3", "--isolate-gpus"], ["echo", "no"], {**machine(job, [[0]]), "CUDA_VISIBLE_DEVICES": "0,1"})
    job.await_exit(2)
    assert "3 workers, 2 GPUs" in job.output(), job.output()


if __name__ == "__main__":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    run_named(globals())
