"""muster where torchrun was: the cases of torchrun's own launcher tests, and the rest of the command line.

usage: drop_in_test.py BIN_DIR BUILD_DIR SCENARIO    SCENARIO is a function named scenario_*
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from drop_in_place import DUMP, LIMIT_S, TOUCH, Place, free_port

# ---- section 17 of the specification: what torchrun's own tests check


def scenario_torchruns_usual_options(place):
    script = place.write("touch.py", TOUCH)
    _, err = place.run(["--nnodes=1", "--nproc-per-node=4", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                        "--rdzv-id=job", "--monitor-interval=1", "--start-method=spawn", script, place.out])
    place.expect_ranks(4)
    assert err.count("has no effect") == 2, err


def scenario_the_static_form(place):
    script = place.write("touch.py", TOUCH)
    place.run(["--nnodes=1", "--nproc_per_node=4", "--rdzv_id=job", "--master_addr=localhost",
               f"--master_port={free_port()}", "--node_rank=0", script, place.out])
    place.expect_ranks(4)


def scenario_without_python_a_shell_script_and_one_worker(place):
    script = place.write("touch.sh", "#!/bin/sh\ntouch \"$1/$RANK\"\n", 0o755)
    place.run(["--nnodes=1", "--no-python", script, place.out])
    place.expect_ranks(1)


def scenario_a_folder_or_an_archive_with_a_main(place):
    os.mkdir(place.path("app"))
    place.write("app/__main__.py", TOUCH)
    subprocess.run([sys.executable, "-m", "zipapp", "app"], cwd=place.folder, check=True)
    for words in (["app"], ["--run-path", "app"], ["app.pyz"]):
        place.run([*words, place.out])
        place.expect_ranks(1)
        os.remove(os.path.join(place.out, "0"))


def scenario_a_temporary_folder_that_cannot_be_used(place):
    script = place.write("dump.py", DUMP)
    _, err = place.run([script, place.out], {"TMPDIR": "/no/such", "TEMP": "tmp"})
    assert "files cannot lie in /no/such, which TMPDIR names (No such file" in err, err
    assert place.dumped()["env"]["TORCHELASTIC_ERROR_FILE"].startswith(place.temporary + "/muster-"), err
    place.run(["--log-dir=/proc/no", script, place.out], code=70)


def scenario_no_python_and_module_exclude_each_other(place):
    script = place.write("touch.sh", "#!/bin/sh\ntouch \"$1/$RANK\"\n", 0o755)
    assert "--no-python with --module" in place.refused(["--no-python", "--module", script])
    place.refused([script], {"PET_NO_PYTHON": "1", "PET_MODULE": "1"})
    place.run([script, place.out], {"PET_NO_PYTHON": "1", "PET_MODULE": "0"})
    place.expect_ranks(1)


def scenario_variables_alone_are_enough(place):
    script = place.write("touch.sh", "#!/bin/sh\ntouch \"$1/$RANK\"\n", 0o755)
    place.run([script, place.out], {"PET_NNODES": "1", "PET_NPROC_PER_NODE": "4", "PET_RDZV_ID": "job",
                                    "PET_MONITOR_INTERVAL": "1", "PET_START_METHOD": "spawn", "PET_NO_PYTHON": "1"})
    place.expect_ranks(4)


def scenario_K5_auto_counts_what_may_be_used_and_says_how(place):
    script = place.write("touch.py", TOUCH)
    cpu = min(os.sched_getaffinity(0))
    out, err = place.run(["-c", str(cpu), place.muster, "--nproc-per-node=cpu", script, place.out],
                         program=shutil.which("taskset"))
    place.expect_ranks(1)
    assert "1 worker here (1 CPU in the affinity mask" in err, err
    assert "'unknown' is not allowed" in place.refused(["--nproc-per-node=unknown", script])
    assert "'xpu' is not allowed" in place.refused(["--nproc-per-node=xpu", script])


def machine_with_gpus(place, count):
    """Variables that let muster see so many GPUs, whatever this machine has."""
    for number in range(count):
        folder = place.path(f"machine-{count}/proc/driver/nvidia/gpus/0000:{number}0:00.0")
        os.makedirs(folder)
        with open(f"{folder}/information", "w", encoding="utf-8") as f:
            f.write(f"GPU UUID: \t GPU-{number}\n")
    os.makedirs(place.path(f"machine-{count}"), exist_ok=True)
    return {"MUSTER_MACHINE_ROOT": place.path(f"machine-{count}")}


def scenario_the_words_for_the_number_of_workers(place):
    """Like torchrun's cases with mocked counts: an accelerator's devices, and CPUs where there is none."""
    script = place.write("touch.py", TOUCH)
    cpus = min(len(os.sched_getaffinity(0)), 64)
    only = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cpus]))
    none, three = machine_with_gpus(place, 0), machine_with_gpus(place, 3)
    for word, machine, ranks in [("auto", none, None), ("4", none, 4), ("gpu", three, 3), ("auto", three, 3)]:
        shutil.rmtree(place.out)
        os.mkdir(place.out)
        _, err = place.run(["-c", only, place.muster, f"--nproc-per-node={word}", script, place.out], machine,
                           program=shutil.which("taskset"))
        if ranks:
            place.expect_ranks(ranks)
        else:  # a container may have less of its CPUs than the mask says
            assert 1 <= len(place.ranks()) <= cpus and "CPU" in err, (place.ranks(), err)
    assert "this process may use no GPU" in place.refused(["--nproc-per-node=gpu", script], none)


def scenario_an_elastic_job_of_one_node_with_quotes_in_its_conf(place):
    script = place.write("touch.py", TOUCH)
    place.run(["--nnodes=1:2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}",
               "--rdzv-conf='join_timeout=20,last_call_timeout=1,timeout=20'", "--rdzv-id=job", script, place.out])
    place.expect_ranks(2)


def scenario_two_launchers_on_one_host_make_one_job(place):
    script = place.write("touch.py", TOUCH)
    options = ["--nnodes=1:2", "--nproc-per-node=4", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}",
               "--rdzv-id=job", script, place.out]
    launchers = [place.start(options), place.start(options)]
    for launcher in launchers:
        _, err = launcher.communicate(timeout=LIMIT_S)
        assert launcher.returncode == 0, err
    place.expect_ranks(8)


def scenario_a_failing_worker_ends_the_job(place):
    script = place.write("fail.py", "import sys; sys.exit(3)\n")
    _, err = place.run(["--nproc-per-node=2", "--max-restarts=0", script], code=3)
    assert err.count(" FAILED: ") == 1, err


def scenario_standalone_and_run_path(place):
    script = place.write("script-without-ending", TOUCH)
    place.run(["--standalone", "--nproc-per-node=2", "--run-path", script, place.out])
    place.expect_ranks(2)
    place.run(["--nnodes=1", "--nproc-per-node=4", "--run-path", script, place.out])
    place.expect_ranks(4)
    place.run(["--standalone", "--nproc-per-node=5", place.write("touch.py", TOUCH), place.out])
    place.expect_ranks(5)


def scenario_what_muster_itself_cannot_do_is_said_once(place):
    """As the agent's own exception comes out of torchrun: not as a worker's failure, and one event."""
    script = place.write("touch.py", TOUCH)
    _, err = place.run([f"--log-dir={place.write('taken', '')}", script, place.out], code=70)
    assert err.count("\n") == 1 and "Not a directory" in err and "FAILED" not in err, err
    assert place.ranks() == []


def scenario_a_success_shuts_the_rendezvous_down(place):
    """Once: the daemon that this launcher hosted is gone, and the same command works again at the same place."""
    script = place.write("touch.py", TOUCH)
    port = free_port()
    options = ["--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=job",
               "--rdzv-conf=last_call_timeout=0.1", script, place.out]
    for _ in range(2):
        _, err = place.run(options)
        assert err.count(" succeeded") == 1 and "FAILED" not in err, err
        deadline = time.monotonic() + LIMIT_S
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) != 0:
                    break
            assert time.monotonic() < deadline, "the hosted daemon outlives its job"
            time.sleep(0.05)


def scenario_wrong_values_are_one_line(place):
    assert "--nnodes: '2:20:30' is not allowed" in place.refused(["--nnodes=2:20:30", "p"])
    assert "--logs-specs: 'DOESNOT_EXIST'" in place.refused(["--logs_specs=DOESNOT_EXIST", "p"])
    assert "program: none was given" in place.refused(["--standalone"])
    assert "--sr: there is no such option" in place.refused(["--sr", "p"])
    script = place.write("touch.py", TOUCH)
    place.run(["--logs_specs=default", script, place.out])
    place.expect_ranks(1)


def scenario_the_parents_variables_are_inherited(place):
    script = place.write("dump.py", DUMP)
    place.run([script, place.out], {"TEST_SENTINEL_PARENT": "FOOBAR"})
    assert place.dumped()["env"]["TEST_SENTINEL_PARENT"] == "FOOBAR"


def scenario_prefixes_of_lines_by_template_and_without(place):
    script = place.write("print.py", "print('hello')\n")
    options = ["--nproc-per-node=2", "--redirect=3", "--tee=3", script]
    out, _ = place.run(options, {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: "})
    assert sorted(out.splitlines()) == ["[rank0]: hello", "[rank1]: hello"], out
    out, _ = place.run(options)
    assert sorted(out.splitlines()) == ["[default0]:hello", "[default1]:hello"], out


def scenario_virtual_local_ranks_see_one_gpu_each(place):
    """Both ranks of two see their device as cuda:0."""
    script = place.write("dump.py", DUMP)
    options = ["--nproc-per-node=2", "--virtual-local-rank", "--rdzv-id=job", "--log-dir=logs", script, place.out]
    for given, seen in [({}, ["0", "1"]), ({"CUDA_VISIBLE_DEVICES": "4,GPU-8f2c,6"}, ["4", "GPU-8f2c"])]:
        place.run(options, {**machine_with_gpus(place, 0 if given else 2), **given})
        for rank in (0, 1):
            env = place.dumped(rank)["env"]
            assert (env["LOCAL_RANK"], env["CUDA_VISIBLE_DEVICES"]) == ("0", seen[rank]), (rank, env)
            assert (env["RANK"], env["LOCAL_WORLD_SIZE"]) == (str(rank), "2"), (rank, env)
            assert env["TORCHELASTIC_ERROR_FILE"].endswith(f"/rank-{rank}/error.json"), env
    assert "2 workers, 1 GPU" in place.refused(options, {"CUDA_VISIBLE_DEVICES": "4"})
    flag = {"PET_VIRTUAL_LOCAL_RANK": "1", "CUDA_VISIBLE_DEVICES": "4,5"}
    place.run(["--nproc-per-node=2", script, place.out], flag)
    assert place.dumped(1)["env"]["CUDA_VISIBLE_DEVICES"] == "5"


# ---- the rest


def scenario_a_link_called_torchrun(place):
    """And it finds the daemon that lies beside the real program."""
    script = place.write("touch.py", TOUCH)
    link = place.path("torchrun")
    os.symlink(place.muster, link)
    place.run(["--nnodes=1:2", "--rdzv-id=job", f"--rdzv-endpoint=127.0.0.1:{free_port()}",
               "--rdzv-conf=last_call_timeout=0.1", script, place.out], program=link)
    place.expect_ranks(1)


def scenario_the_local_rank_in_arguments(place):
    script = place.write("dump.py", DUMP)
    place.run(["--nproc-per-node=2", script, place.out, "a-${local_rank}", "$local_rank", "$$"])
    assert place.dumped(1)["argv"] == [place.out, "a-1", "1", "$$"], place.dumped(1)["argv"]


def scenario_O1_variables_by_option_and_file(place):
    script = place.write("dump.py", DUMP)
    file = place.write("variables", "# of the job\nA=file\nB=two words\n")
    place.run([f"--env-file={file}", "--env", "A=option", script, place.out], {"A": "inherited"})
    env = place.dumped()["env"]
    assert (env["A"], env["B"]) == ("option", "two words"), env


def scenario_O2_what_muster_gives_itself_is_refused_by_name(place):
    """So that no option promises what the worker then does not see. The list is the workers' own environment."""
    script = place.write("dump.py", DUMP)
    place.run([script, place.out])
    given = place.dumped()["env"]
    bare = place.environment()
    unless_set = {"OMP_NUM_THREADS", "PYTHONUNBUFFERED", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
    ours = {name for name in given if given[name] != bare.get(name)} - {"LC_CTYPE"}
    assert unless_set < ours, ours
    for name in sorted(ours - unless_set):
        assert f"'{name}' is not allowed" in place.refused([f"--env={name}=x", script]), name
    place.run([f"--env={name}=7" for name in unless_set] + [script, place.out])
    assert all(place.dumped()["env"][name] == "7" for name in unless_set)


def scenario_P3_scrubbed_variables_do_not_reach_workers(place):
    script = place.write("dump.py", DUMP)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_NODELIST": "n[1-2]"}
    place.run([script, place.out], slurm)
    assert "SLURM_JOB_ID" in place.dumped()["env"]
    place.run(["--scrub-env", "SLURM_*", script, place.out], slurm)
    env = place.dumped()["env"]
    assert not [name for name in env if name.startswith("SLURM_")], env
    assert "TORCHELASTIC_RUN_ID" in env


def scenario_P2_slurm_variables_that_disagree_are_named(place):
    script = place.write("touch.py", TOUCH)
    _, err = place.run([script, place.out], {"SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "2"})
    lines = [line for line in err.splitlines() if "SLURM_NTASKS=1 and SLURM_NTASKS_PER_NODE=2" in line]
    assert len(lines) == 1 and "Slurm starts 1 launcher in all" in lines[0], err


def scenario_A6_print_config_is_the_same_by_flag_variable_and_file(place):
    flags, _ = place.run(["--print-config", "--nproc-per-node=4", "--nnodes=2", "--rdzv-endpoint=n1", "--env=A=1"])
    variables, _ = place.run(["--print-config"], {"PET_NPROC_PER_NODE": "4", "PET_NNODES": "2",
                                                  "PET_RDZV_ENDPOINT": "n1", "MUSTER_ENV": "A=1"})
    file = place.write("job.json", '{"nproc-per-node": 4, "nnodes": 2, "rdzv-endpoint": "n1", "env": {"A": 1}}')
    from_file, _ = place.run(["--print-config", "--config", file])
    assert flags == variables == from_file, f"{flags}\n{variables}\n{from_file}"
    assert json.loads(flags)["nproc-per-node"] == 4
    again, _ = place.run(["--print-config"], {"MUSTER_CONFIG": place.write("again.json", flags)})
    assert again == flags


def scenario_A6_a_job_by_its_configuration_file(place):
    script = place.write("dump.py", DUMP)
    file = place.write("job.json", json.dumps({"nproc-per-node": 2, "env": {"A": "1"}, "program": [script, place.out]}))
    place.run(["--config", file])
    assert place.dumped(1)["env"]["A"] == "1"


def scenario_a_dry_run_starts_binds_and_makes_nothing(place):
    script = place.write("touch.py", TOUCH)
    port = free_port()
    out, err = place.run(["--dry-run", "--nnodes=2", f"--rdzv-endpoint=127.0.0.1:{port}", "--nproc-per-node=2",
                          "--log-dir=logs", "--rdzv-id=job", script, place.out])
    assert err == "", err
    assert f"rendezvous  127.0.0.1:{port}, hosted here unless a daemon answers there" in out, out
    assert "  RANK=<the round's>" in out and "  LOCAL_RANK=1" in out, out
    assert place.ranks() == [] and os.listdir(place.temporary) == [] and not os.path.exists(place.path("logs"))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def scenario_a_dry_run_says_what_workers_then_get(place):
    """Variable by variable, but for those that only the running job knows."""
    script = place.write("dump.py", DUMP)
    options = ["--nproc-per-node=2", "--rdzv-id=job", "--role=trainer", "--max-restarts=2", "--env=A=1", "--log-dir=logs"]
    out, _ = place.run(["--dry-run", *options, script, place.out])
    place.run([*options, script, place.out])
    bare = place.environment()
    for rank in (0, 1):
        block = out[out.index(f"\nworker {rank}   "):].split("\n\n")[0]
        promised = dict(line.strip().split("=", 1) for line in block.splitlines()[2:])
        given = {k: v for k, v in place.dumped(rank)["env"].items() if bare.get(k) != v and k != "LC_CTYPE"}
        assert promised.keys() == given.keys(), promised.keys() ^ given.keys()
        for name, value in promised.items():
            assert value == given[name] or re.fullmatch("<.*>", value), f"{name}: {value}, not {given[name]}"
        open_ones = {name for name, value in promised.items() if value.startswith("<")}
        assert open_ones == {"MASTER_PORT", "MUSTER_AGENT", "MUSTER_CHANNEL"}, open_ones


def scenario_J7_two_live_jobs_of_one_name_keep_their_logs_apart(place):
    script = place.write("wait.py", "import os, sys, time\nprint('up', flush=True)\n"
                                    "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n")
    options = ["--rdzv-id=job", "--log-dir=logs", script, place.path("go on")]
    jobs = []
    for _ in range(2):
        jobs.append(place.start(options))
        line = jobs[-1].stdout.readline()
        assert line == "up\n", (line, jobs[-1].communicate())
    place.write("go on", "")
    errors = [job.communicate(timeout=LIMIT_S)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], errors
    assert "in use" not in errors[0], errors[0]
    assert f"logs/job is in use by process {jobs[0].pid}: this job's logs are in " in errors[1], errors[1]
    for name in ("job", "job-2"):
        assert os.path.exists(place.path(f"logs/{name}/status.json")), name
    _, third = place.run(options)
    assert "in use" not in third, third


def scenario_a_script_whose_interpreter_is_missing_starts_no_round(place):
    script = place.write("run", "#!/no/such/interpreter\n", 0o755)
    _, err = place.run([script], code=127)
    assert err.count("\n") == 1 and "to be run by /no/such/interpreter: No such file" in err, err
    assert os.listdir(place.temporary) == []


def scenario_a_missing_module_names_the_interpreter(place):
    script = place.write("fail.py", "import no_such_module_of_anybody\n")
    _, err = place.run(["--log-dir=/dev/null", script], code=1)
    python = shutil.which("python3")
    assert f"module no_such_module_of_anybody is missing; install it for {python}" in err, err


def scenario_J5_without_logs_the_report_names_none(place):
    script = place.write("fail.py", "import os; os._exit(4)\n")
    _, err = place.run(["--log-dir=/dev/null", script], code=4)
    report = err[err.index("FAILED"):]
    assert ".log" not in report and "see its log" not in report and "/dev/null" in report, report


# ---- completion, manual page, installation


def typed_into_bash(place, setup, typed):
    """What bash shows after these keys, at a terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place.folder)
        os.execve(shutil.which("bash"), ["bash", "--norc", "--noprofile", "-i"],
                  {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "> ", "HISTFILE": "/dev/null", "INPUTRC": "/dev/null"})
    shown = ""
    try:
        os.write(terminal, (setup + "; echo RE''ADY\n").encode())
        deadline = time.monotonic() + LIMIT_S
        sent = False
        while "DO" + "NE" not in shown:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([terminal], [], [], left)[0], shown
            shown += os.read(terminal, 65536).decode(errors="replace")
            if not sent and "READY" in shown:
                sent = True
                os.write(terminal, (typed + "; echo DO''NE\n").encode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


def scenario_bash_completes_options_values_and_files(place):
    script, _ = place.run(["--print-completion=bash"])
    place.write("completion", script)
    place.write("train_me.py", "")
    os.mkdir(place.path("log_folder_here"))
    os.symlink(place.muster, place.path("torchrun"))
    setup = ("PATH=$PWD:$PATH; source ./completion; muster() { printf 'g''ot:%s\\n' \"$@\"; }; "
             "torchrun() { muster \"$@\"; }")
    for typed, got in [
        ("muster --standal\t train_m\t", ["--standalone", "train_me.py"]),
        ("muster --nproc-per-node a\t --max-res\t 3 p", ["--nproc-per-node", "auto", "--max-restarts", "3", "p"]),
        ("muster --nproc-per-node=au\t p", ["--nproc-per-node=auto", "p"]),
        ("torchrun --nproc_per_node=au\t --max-res\t 3 p", ["--nproc_per_node=auto", "--max-restarts", "3", "p"]),
        ("muster --numa-binding=core\t p", ["--numa-binding=core-complex", "p"]),
        ("muster --log-dir log_fo\t p", ["--log-dir", "log_folder_here", "p"]),
        ("muster --rdzv-endpoint h:1 --standal\t p", ["--rdzv-endpoint", "h:1", "--standalone", "p"]),
        ("muster ./train_me.py --standal\t", ["./train_me.py", "--standal"]),
        ("muster -- train_m\t", ["--", "train_me.py"]),
    ]:
        shown = typed_into_bash(place, setup, typed)
        seen = [word.rstrip("/") for word in re.findall(r"got:(\S*)", shown.replace("\r", ""))]
        assert seen == got, f"{typed!r}: {seen}, not {got}\n{shown}"


def scenario_zsh_reads_its_completion(place):
    script, _ = place.run(["--print-completion", "zsh"])
    assert script.startswith("#compdef muster torchrun\n")
    if not shutil.which("zsh"):
        print("zsh is not here: its own syntax check was left out; the quoting is checked by the unit tests")
        return
    place.write("_muster", script)
    for words in (["-n", "_muster"],
                  ["-f", "-c", "source ./_muster && [[ $_comps[muster] == _muster && $_comps[torchrun] == _muster ]]"],
                  ["-f", "-c", "fpath=($PWD $fpath); autoload -Uz compinit && compinit -D -u && "
                               "[[ $_comps[muster] == _muster ]]"]):
        checked = subprocess.run(["zsh", *words], cwd=place.folder, env={**os.environ, "HOME": place.folder},
                                 capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), (words, checked)


def scenario_man_reads_the_page_without_warnings(place):
    page, _ = place.run(["--print-man"])
    file = place.write("muster.1", page)
    if shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww", file]
    elif shutil.which("mandoc"):
        command = ["mandoc", "-Tutf8", "-Wwarning", file]
    else:
        print("neither groff nor mandoc is here: the page's form is checked by the unit tests")
        return
    read = subprocess.run(command, capture_output=True, text=True, check=False)
    assert read.returncode == 0 and read.stderr == "", read.stderr
    text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", read.stdout)
    for words in ("--nproc-per-node N", "-m, --module", "PET_RDZV_CONF", "EXIT STATUS"):
        assert words in text, f"{words} is not in the page:\n{text}"


def scenario_what_is_installed_is_whole(place):
    prefix = place.path("usr")
    installed = subprocess.run(["cmake", "--install", place.build, "--component", "launcher", "--prefix", prefix],
                               capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    out, _ = place.run(["--version"], program=os.path.join(prefix, "bin/muster"))
    assert out.startswith("muster "), out
    for words, file in [(["--print-man"], "share/man/man1/muster.1"),
                        (["--print-completion=bash"], "share/bash-completion/completions/muster"),
                        (["--print-completion=zsh"], "share/zsh/site-functions/_muster")]:
        printed, _ = place.run(words)
        with open(os.path.join(prefix, file), encoding="utf-8") as f:
            assert f.read() == printed, file


def main():
    bin_dir, build_dir, scenario = sys.argv[1:4]
    place = Place(bin_dir, build_dir)
    try:
        globals()["scenario_" + scenario](place)
    finally:
        shutil.rmtree(place.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
