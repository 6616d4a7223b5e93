"""Jobs of real PyTorch programs under muster, and of ours under PyTorch's torchrun.

usage: torch_jobs_test.py BIN_DIR PYTHON SCENARIO    PYTHON has PyTorch; SCENARIO is a function named scenario_*
"""

import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from netns_lab import Lab, free_port  # noqa: E402

QUICK = "join_timeout=60,last_call_timeout=500ms,closed_grace=200ms,settle_window=200ms"
LIMIT_S = 150


def script(name):
    return os.path.join(HERE, name)


def environment(lab, python):
    """Gloo looks this host's name up unless it is told where to listen."""
    return {"PYTHON_EXEC": python, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0" if lab.real else "lo"}


def launch_all(lab, python, workers, program, conf="", more=()):
    options = [f"--nnodes={lab.count}", f"--nproc-per-node={workers}", "--rdzv-id=job",
               f"--rdzv-endpoint={lab.nodes[0].address}:{lab.port}", f"--rdzv-conf={QUICK}{conf}", *more]
    return [lab.launch(node, options, program, environment(lab, python)) for node in lab.nodes]


def reports(folder, world):
    found = []
    for rank in range(world):
        with open(f"{folder}/rank{rank}.json") as f:
            found.append(json.load(f))
    return found


def expect_resumed(found, step):
    assert all(report["start"] == step for report in found), f"did not go on from step {step}: {found}"
    sums = [report["sum"] for report in found]
    assert all(math.isclose(total, sums[0], rel_tol=1e-6) for total in sums), f"ranks disagree: {sums}"


def scenario_ddp_on_two_nodes_survives_a_killed_rank(bin_dir, python):
    with Lab(bin_dir, 2) as lab:
        program = [script("torch_ddp.py"), lab.folder, "--fail-once-at", "5"]
        for launch in launch_all(lab, python, 2, program, more=["--max-restarts=1"]):
            launch.await_exit(0, LIMIT_S)
        expect_resumed(reports(lab.folder, 4), 5)


def scenario_rank_0_may_serve_the_store_on_two_nodes(bin_dir, python):
    with Lab(bin_dir, 2) as lab:
        program = [script("torch_ddp.py"), lab.folder, "--fail-once-at", "5"]
        for launch in launch_all(lab, python, 1, program, ",worker_store=rank0", ["--max-restarts=1"]):
            launch.await_exit(0, LIMIT_S)
        expect_resumed(reports(lab.folder, 2), 5)


def scenario_I9_rank_0_may_end_first(bin_dir, python):
    """On the node that serves the store nobody is left, and the others do not notice."""
    with Lab(bin_dir, 2) as lab:
        for launch in launch_all(lab, python, 1, [script("torch_store_worker.py"), "leave-early"]):
            launch.await_exit(0, LIMIT_S)
            assert "is done" in launch.output(), launch.output()


def scenario_I10_a_store_of_the_scripts_own_does_not_hang(bin_dir, python):
    with Lab(bin_dir, 1) as lab:
        options = ["--standalone", "--nproc-per-node=2", "--rdzv-conf=worker_store=rank0"]
        program = [script("torch_store_worker.py"), "own-store", str(free_port())]
        launch = lab.launch(lab.nodes[0], options, program, environment(lab, python))
        launch.await_exit(0, LIMIT_S)


def scenario_C9_two_open_ports_are_enough(bin_dir, python):
    """Between the nodes nothing but the endpoint's port and the store's passes."""
    with Lab(bin_dir, 2) as lab:
        port = free_port()
        if not lab.real:
            return print("left out: needs a firewall between the nodes")
        for node in lab.nodes:
            wall = [*node.prefix, "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn"]
            try:
                for open_port in (lab.port, port):
                    subprocess.run([*wall, "--dport", str(open_port), "-j", "ACCEPT"], check=True)
                subprocess.run([*wall, "-j", "REJECT"], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                return print(f"left out: needs iptables ({error})")
        launches = launch_all(lab, python, 1, [script("torch_store_worker.py"), "meet"], f",store_port={port}")
        for launch in launches:
            launch.await_exit(0, LIMIT_S)


def torchrun(python, *words):
    """Debian's 1.13.1 under Python 3.11 falls over its own defaults of -r and -t."""
    return [python, "-m", "torch.distributed.run", "-r", "1", "-t", "1", *words]


def run(command, **variables):
    result = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1", **variables}, capture_output=True,
                            text=True, timeout=LIMIT_S)
    assert result.returncode == 0, f"exit code {result.returncode} of {command}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


def scenario_ddp_mnist_under_torchrun(bin_dir, python):
    """Its store is PyTorch's: the agent's, or (1.13 with --standalone) none, and then rank 0 serves one."""
    with Lab(bin_dir, 1) as lab:
        exported = f"{lab.folder}/final.safetensors"
        for place in (["--master_addr=127.0.0.1", f"--master_port={free_port()}"], ["--standalone"]):
            run(torchrun(python, *place, "--nproc_per_node=2", "--no_python", f"{bin_dir}/ddp_mnist", "--epochs=1",
                         "--max-steps=20", f"--export={exported}"))
            assert os.path.getsize(exported) > 100_000
            os.remove(exported)


def scenario_torchrun_agents_meet_at_our_store(bin_dir, python):
    """Two agents of PyTorch's elastic launcher, c10d rendezvous, and our server as their store."""
    with Lab(bin_dir, 1) as lab:
        with subprocess.Popen([f"{bin_dir}/store_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as server:
            port = int(server.stdout.readline())
            command = torchrun(python, "--nnodes=2", "--nproc_per_node=1", "--rdzv_id=job", "--rdzv_backend=c10d",
                               f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_conf=is_host=false",
                               script("torch_ddp.py"), lab.folder)
            agents = [subprocess.Popen(command, env={**os.environ, **environment(lab, python)}) for _ in range(2)]
            try:
                codes = [agent.wait(LIMIT_S) for agent in agents]
            finally:
                for agent in agents:
                    agent.kill()
                server.stdin.close()
        assert codes == [0, 0], codes
        expect_resumed(reports(lab.folder, 2), 0)


def main():
    bin_dir, python, name = sys.argv[1:]
    globals()["scenario_" + name](bin_dir, python)


if __name__ == "__main__":
    main()
