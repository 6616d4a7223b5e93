#include "launcher/option_table.hpp"

#include "launcher/log_options.hpp"
#include "launcher/option_values.hpp"

namespace muster::launcher {

namespace {

using Options = LauncherOptions;
using Value = const std::string&;
using Done = Result<void>;
using enum Section;

constexpr long kMaxRestarts = 1'000'000;
constexpr long kMaxNodeRank = 100'000;

template <auto Member>
Done flag(Options& options, Value value) {
  return read_flag(options.*Member, value);
}

constexpr OptionRow kTable[] = {
    {.long_name = "--nproc-per-node",
     .variable = "PET_NPROC_PER_NODE",
     .kind = ValueKind::number,
     .value_name = "N",
     .words = "auto cpu gpu",
     .fallback = "1",
     .help = "workers on this node: a number, or auto, cpu, gpu for what this process may use",
     .apply = [](Options& options, Value value) -> Done { return read_workers(options.workers, value); }},
    {.long_name = "--nnodes",
     .variable = "PET_NNODES",
     .kind = ValueKind::number,
     .value_name = "N",
     .fallback = "1",
     .help = "nodes of the job: N or MIN:MAX",
     .apply = [](Options& options, Value value) -> Done { return read_nodes(options, value); }},
    {.long_name = "--standalone",
     .variable = "PET_STANDALONE",
     .kind = ValueKind::flag,
     .help = "one node, nothing to agree on with others",
     .apply = flag<&Options::standalone>},
    {.long_name = "--role",
     .variable = "PET_ROLE",
     .value_name = "NAME",
     .fallback = "default",
     .help = "what the workers of this node are called: ROLE_NAME; nodes of one role share its ROLE_RANKs",
     .apply = [](Options& options, Value value) -> Done { return read_id(options.role, value); }},
    {.long_name = "--node-id",
     .variable = "MUSTER_NODE_ID",
     .of_torchrun = false,
     .value_name = "ID",
     .help = "name of this node (the host's name)",
     .apply = [](Options& options, Value value) -> Done { return read_id(options.node_id, value); }},
    {.long_name = "--health",
     .variable = "MUSTER_HEALTH",
     .of_torchrun = false,
     .section = job,
     .value_name = "WHERE",
     .help = "this node's health over HTTP at HOST:PORT or unix:PATH: 200, or 503 naming who is stuck",
     .apply = [](Options& options, Value value) -> Done { return read_health_place(options.health, value); }},
    {.long_name = "--progress-timeout",
     .variable = "MUSTER_PROGRESS_TIMEOUT",
     .of_torchrun = false,
     .section = job,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .help = "a worker that tells of its steps and tells of none for so long is stuck, for --health (never)",
     .apply = [](Options& options, Value value) -> Done {
       return read_time(options.progress_timeout, value);
     }},
    {.long_name = "--expect-done",
     .variable = "MUSTER_EXPECT_DONE",
     .of_torchrun = false,
     .section = job,
     .kind = ValueKind::flag,
     .help = "a worker that exits with 0 and did not call done() of the SDK has failed",
     .apply = flag<&Options::expect_done>},

    {.long_name = "--rdzv-id",
     .variable = "PET_RDZV_ID",
     .section = rendezvous,
     .value_name = "ID",
     .help = "name of the job, the same on each node (one node: a fresh one; several: none)",
     .apply = [](Options& options, Value value) -> Done { return read_id(options.run_id, value); }},
    {.long_name = "--rdzv-endpoint",
     .variable = "PET_RDZV_ENDPOINT",
     .section = rendezvous,
     .value_name = "HOST:PORT",
     .help =
         "where several nodes meet, the same on each of them; the node that has HOST hosts it (port 29400)",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.rendezvous.endpoint, value, "HOST or HOST:PORT");
     }},
    {.long_name = "--rdzv-backend",
     .variable = "PET_RDZV_BACKEND",
     .section = rendezvous,
     .value_name = "NAME",
     .words = "c10d static",
     .help = "c10d, or static: --master-addr and --master-port are the endpoint (c10d)",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.rendezvous.backend, value, "c10d or static");
     }},
    {.long_name = "--rdzv-conf",
     .variable = "PET_RDZV_CONF",
     .section = rendezvous,
     .kind = ValueKind::pairs,
     .value_name = "K=V,...",
     .words = kConfKeys,
     .help = "join_timeout, membership_changes, first_step_timeout, worker_store, store_port, ...; see "
             "docs/multi-node.md, docs/worker-store.md",
     .apply = [](Options& options, Value value) -> Done {
       return parse_rendezvous_conf(options.rendezvous.conf, value);
     }},
    {.long_name = "--node-rank",
     .variable = "PET_NODE_RANK",
     .section = rendezvous,
     .kind = ValueKind::number,
     .value_name = "N",
     .help = "the place that this node would like to have, from 0",
     .apply = [](Options& options, Value value) -> Done {
       return read_number(options.rendezvous.node_rank, value, 0, kMaxNodeRank);
     }},
    {.long_name = "--master-addr",
     .variable = "PET_MASTER_ADDR",
     .section = rendezvous,
     .value_name = "HOST",
     .help = "with static: the endpoint's host",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.rendezvous.master_addr, value, "a host name or an address");
     }},
    {.long_name = "--master-port",
     .variable = "PET_MASTER_PORT",
     .section = rendezvous,
     .kind = ValueKind::number,
     .value_name = "PORT",
     .help = "with static: the endpoint's port (29500)",
     .apply = [](Options& options, Value value) -> Done {
       return read_number(options.rendezvous.master_port, value, 0, 65535);
     }},
    {.long_name = "--local-addr",
     .variable = "PET_LOCAL_ADDR",
     .section = rendezvous,
     .value_name = "ADDRESS",
     .help = "address of this node that the others' workers connect to (the one that leads to the endpoint)",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.rendezvous.local_addr, value, "an address of this node");
     }},

    {.short_name = "-m",
     .long_name = "--module",
     .variable = "PET_MODULE",
     .section = program,
     .kind = ValueKind::flag,
     .help = "the program is a Python module, as with python -m",
     .apply = flag<&Options::module>},
    {.long_name = "--no-python",
     .variable = "PET_NO_PYTHON",
     .section = program,
     .kind = ValueKind::flag,
     .help = "run the program directly, whatever its name",
     .apply = flag<&Options::no_python>},
    {.long_name = "--run-path",
     .variable = "PET_RUN_PATH",
     .section = program,
     .kind = ValueKind::flag,
     .help = "the program is a Python script, whatever its name",
     .apply = flag<&Options::run_path>},
    {.long_name = "--env-file",
     .variable = "MUSTER_ENV_FILE",
     .of_torchrun = false,
     .section = program,
     .kind = ValueKind::list,
     .value_name = "FILE",
     .help = "a file of NAME=VALUE lines, variables of the workers; may be repeated",
     .apply = [](Options& options, Value value) -> Done {
       return add_variables_of(options.variables, value);
     }},
    {.long_name = "--env",
     .variable = "MUSTER_ENV",
     .of_torchrun = false,
     .section = program,
     .kind = ValueKind::list,
     .value_name = "NAME=VALUE",
     .help = "a variable of the workers; may be repeated, and comes after those of files",
     .apply = [](Options& options, Value value) -> Done { return add_variable(options.variables, value); }},
    {.long_name = "--scrub-env",
     .variable = "MUSTER_SCRUB_ENV",
     .of_torchrun = false,
     .section = program,
     .kind = ValueKind::list,
     .value_name = "GLOB",
     .help = "variables that the workers do not inherit: 'SLURM_*'; may be repeated",
     .apply = [](Options& options, Value value) -> Done { return add_scrubbed(options.variables, value); }},

    {.long_name = "--log-dir",
     .variable = "PET_LOG_DIR",
     .section = logs,
     .kind = ValueKind::folder,
     .value_name = "FOLDER",
     .help = "where FOLDER/JOB/[NODE/]round-N/rank-R/{stdout,stderr}.log go; with {job}, {node} or {host} in "
             "it the whole of FOLDER/; ${NAME} is a variable; /dev/null: nowhere (a fresh temporary one)",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.log_dir, value, "the path of a folder, or /dev/null for no logs");
     }},
    {.short_name = "-r",
     .long_name = "--redirects",
     .variable = "PET_REDIRECTS",
     .section = logs,
     .value_name = "STREAMS",
     .words = "0 1 2 3",
     .help = "streams that go to files alone: 0 none, 1 stdout, 2 stderr, 3 both, or LOCAL-RANK:0-3,...",
     .apply = [](Options& options, Value value) -> Done {
       return read_streams(options.logs.redirects, value);
     }},
    {.short_name = "-t",
     .long_name = "--tee",
     .variable = "PET_TEE",
     .section = logs,
     .value_name = "STREAMS",
     .words = "0 1 2 3",
     .help = "streams that go to files and to the console, written as for --redirects",
     .apply = [](Options& options, Value value) -> Done { return read_streams(options.logs.tee, value); }},
    {.long_name = "--local-ranks-filter",
     .variable = "PET_LOCAL_RANKS_FILTER",
     .section = logs,
     .value_name = "N,...",
     .help = "local ranks whose output the console shows (all)",
     .apply = [](Options& options, Value value) -> Done {
       return read_rank_set(options.logs.console_local_ranks, value);
     }},
    {.long_name = "--ranks-filter",
     .variable = "MUSTER_RANKS_FILTER",
     .of_torchrun = false,
     .section = logs,
     .value_name = "N,...",
     .help = "ranks of the whole job whose output the console shows: 0 or 0-3,8 (all)",
     .apply = [](Options& options, Value value) -> Done {
       return read_rank_set(options.logs.console_ranks, value);
     }},
    {.long_name = "--log-line-prefix-template",
     .variable = "PET_LOG_LINE_PREFIX_TEMPLATE",
     .older_variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .section = logs,
     .value_name = "TEXT",
     .may_be_empty = true,
     .help =
         "before each line on the console: ${role_name}, ${local_rank}, ${rank}, ${hostname}, ${job}, "
         "${node}, ${round}, ${attempt}, ${time} (for --tee \"[${role_name}${local_rank}]:\", else nothing)",
     .apply = [](Options& options, Value value) -> Done {
       options.logs.line_prefix = value;
       return {};
     }},
    {.long_name = "--duplicate-stdout-filters",
     .variable = "PET_DUPLICATE_STDOUT_FILTERS",
     .section = logs,
     .value_name = "TEXT,...",
     .help = "lines of stdout that contain one of the texts go to one more file, of all workers",
     .apply = [](Options& options, Value value) -> Done {
       options.logs.stdout_filters = parse_filter_texts(value);
       return {};
     }},
    {.long_name = "--duplicate-stderr-filters",
     .variable = "PET_DUPLICATE_STDERR_FILTERS",
     .section = logs,
     .value_name = "TEXT,...",
     .help = "the same for stderr",
     .apply = [](Options& options, Value value) -> Done {
       options.logs.stderr_filters = parse_filter_texts(value);
       return {};
     }},
    {.long_name = "--log-match",
     .variable = "MUSTER_LOG_MATCH",
     .of_torchrun = false,
     .section = logs,
     .value_name = "REGEX",
     .help = "lines of both streams that match, as grep -E says, also go to round-N/matched.log",
     .apply = [](Options& options, Value value) -> Done {
       return read_expression(options.logs.match, value);
     }},
    {.long_name = "--log-file",
     .variable = "MUSTER_LOG_FILE",
     .of_torchrun = false,
     .section = logs,
     .value_name = "PATH",
     .fallback = "round-{round}/rank-{rank}/{stream}.log",
     .help = "one worker's file in the folder of the job (or elsewhere, if absolute); also {job}, {node}, "
             "{host}, {role}, {local_rank}, {attempt}, and ${NAME} for a variable",
     .apply = [](Options& options, Value value) -> Done {
       options.logs.file = value;
       return {};
     }},
    {.long_name = "--pty",
     .variable = "MUSTER_PTY",
     .of_torchrun = false,
     .section = logs,
     .kind = ValueKind::flag,
     .help = "workers write to terminals, so that lines come at once and progress bars are drawn",
     .apply = [](Options& options, Value value) -> Done { return read_flag(options.logs.terminals, value); }},
    {.long_name = "--collapse",
     .variable = "MUSTER_COLLAPSE",
     .of_torchrun = false,
     .section = logs,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .help = "equal lines of several workers within TIME (such as 200ms) are one on the console, with their "
             "ranks",
     .apply = [](Options& options, Value value) -> Done {
       return read_time(options.logs.collapse.emplace(), value);
     }},
    {.long_name = "--logs-specs",
     .section = logs,
     .value_name = "NAME",
     .words = "default",
     .fallback = "default",
     .help = "only default: there are no plug-ins for logs",
     .apply = [](Options&, Value value) -> Done { return check_word(value, {"default"}); }},

    {.long_name = "--max-restarts",
     .variable = "PET_MAX_RESTARTS",
     .section = stopping,
     .kind = ValueKind::number,
     .value_name = "N",
     .fallback = "0",
     .help = "restarts of all workers after failures; a program that ends twice within 5 s of its start, "
             "with the same code and before it joined its group, is not started a third time",
     .apply = [](Options& options, Value value) -> Done {
       return read_number(options.max_restarts, value, 0, kMaxRestarts);
     }},
    {.long_name = "--stop-grace",
     .variable = "MUSTER_STOP_GRACE",
     .of_torchrun = false,
     .section = stopping,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .fallback = "30",
     .help = "from SIGTERM to SIGKILL when workers are stopped: 30, 500ms, 2m",
     .apply = [](Options& options, Value value) -> Done { return read_time(options.stop_grace, value); }},
    {.long_name = "--restart-grace",
     .variable = "MUSTER_RESTART_GRACE",
     .of_torchrun = false,
     .section = stopping,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .help = "the same when a worker failed and all start anew (that of --stop-grace)",
     .apply = [](Options& options, Value value) -> Done {
       return read_time(options.restart_grace.emplace(), value);
     }},
    {.long_name = "--rescale-grace",
     .variable = "MUSTER_RESCALE_GRACE",
     .of_torchrun = false,
     .section = stopping,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .help = "the same when nodes come or go; workers that can be asked to save have as long for it before "
             "(that of --stop-grace)",
     .apply = [](Options& options, Value value) -> Done {
       return read_time(options.rescale_grace.emplace(), value);
     }},
    {.long_name = "--shutdown-timeout",
     .variable = "PET_SHUTDOWN_TIMEOUT",
     .older_variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
     .section = stopping,
     .kind = ValueKind::time,
     .value_name = "TIME",
     .help = "from the signal that ends the job to SIGKILL (that of --stop-grace)",
     .apply = [](Options& options, Value value) -> Done {
       return read_time(options.shutdown_timeout.emplace(), value);
     }},
    {.long_name = "--signals-to-handle",
     .variable = "PET_SIGNALS_TO_HANDLE",
     .section = stopping,
     .value_name = "NAME,...",
     .fallback = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "signals that stop the workers before muster leaves",
     .apply = [](Options& options, Value value) -> Done { return read_signals(options, value); }},
    {.long_name = "--die-with-parent",
     .variable = "MUSTER_DIE_WITH_PARENT",
     .of_torchrun = false,
     .section = stopping,
     .kind = ValueKind::flag,
     .help = "SIGTERM to muster, and so the end of the job, when the process that started it dies",
     .apply = flag<&Options::die_with_parent>},

    {.long_name = "--numa-binding",
     .section = placement,
     .value_name = "MODE",
     .words = "node socket exclusive core-complex",
     .help = "bind each worker to CPUs near its GPU, else near the nodes in turn: node, socket, exclusive, "
             "core-complex",
     .apply = [](Options& options, Value value) -> Done {
       return read_numa_mode(options.numa_binding, value);
     }},
    {.long_name = "--gpus",
     .variable = "MUSTER_GPUS",
     .of_torchrun = false,
     .section = placement,
     .value_name = "LIST",
     .help = "GPUs for the workers here: positions among those that may be used, or UUIDs: 0,2 (all)",
     .apply = [](Options& options, Value value) -> Done {
       return read_text(options.gpus.emplace(), value, "a list such as 0,2 or GPU-8f2c...");
     }},
    {.long_name = "--isolate-gpus",
     .variable = "MUSTER_ISOLATE_GPUS",
     .of_torchrun = false,
     .section = placement,
     .kind = ValueKind::flag,
     .help = "each worker sees one GPU alone, by local rank",
     .apply = flag<&Options::isolate_gpus>},
    {.long_name = "--virtual-local-rank",
     .variable = "PET_VIRTUAL_LOCAL_RANK",
     .section = placement,
     .kind = ValueKind::flag,
     .help = "each worker sees one device alone and has LOCAL_RANK 0",
     .apply = flag<&Options::virtual_local_rank>},

    {.short_name = "-h",
     .long_name = "--help",
     .section = information,
     .kind = ValueKind::flag,
     .help = "print this and leave",
     .apply = flag<&Options::help>},
    {.long_name = "--version",
     .of_torchrun = false,
     .section = information,
     .kind = ValueKind::flag,
     .help = "print the version and leave",
     .apply = flag<&Options::version>},
    {.long_name = "--dry-run",
     .of_torchrun = false,
     .section = information,
     .kind = ValueKind::flag,
     .help = "print what would be started, with each worker's variables, and leave",
     .apply = flag<&Options::dry_run>},
    {.long_name = "--print-config",
     .of_torchrun = false,
     .section = information,
     .kind = ValueKind::flag,
     .help = "print the effective configuration as JSON, as --config reads it, and leave",
     .apply = flag<&Options::print_config>},
    {.long_name = "--config",
     .variable = "MUSTER_CONFIG",
     .of_torchrun = false,
     .section = information,
     .kind = ValueKind::file,
     .value_name = "FILE",
     .help = "a file of settings in JSON; variables and options come before it",
     .apply = [](Options&, Value) -> Done { return {}; }},  // read before all others
    {.long_name = "--print-completion",
     .section = information,
     .value_name = "SHELL",
     .words = "bash zsh",
     .help = "print the shell's completion for muster, bash or zsh, and leave",
     .apply = [](Options& options, Value value) -> Done {
       options.print_completion = value;
       return check_word(value, {"bash", "zsh"});
     }},
    {.long_name = "--print-man",
     .of_torchrun = false,
     .section = information,
     .kind = ValueKind::flag,
     .help = "print the manual page, and leave",
     .apply = flag<&Options::print_man>},

    {.long_name = "--monitor-interval",
     .variable = "PET_MONITOR_INTERVAL",
     .section = without_effect,
     .kind = ValueKind::time,
     .value_name = "S",
     .help = "nothing is polled: the end of a worker is an event",
     .no_effect = "has no effect here: nothing is polled, the end of a worker is seen at once",
     .apply = [](Options&, Value value) -> Done {
       Duration ignored{};
       return read_time(ignored, value);
     }},
    {.long_name = "--start-method",
     .variable = "PET_START_METHOD",
     .section = without_effect,
     .value_name = "METHOD",
     .words = "spawn fork forkserver",
     .help = "each worker is a program of its own",
     .no_effect = "has no effect here: each worker is a program of its own, none is a copy of an interpreter",
     .apply = [](Options&, Value value) -> Done {
       return check_word(value, {"spawn", "fork", "forkserver"});
     }},
    {.long_name = "--event-log-handler",
     .variable = "PET_EVENT_LOG_HANDLER",
     .section = without_effect,
     .value_name = "NAME",
     .help = "there are no plug-ins: what happened is in status.json",
     .no_effect = "has no effect here: there are no plug-ins for events, what happened is in status.json",
     .apply = [](Options&, Value) -> Done { return {}; }},
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace muster::launcher
