/* `lockstep collective`: collectives timed alone. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "ask/collective/collective_table.h"
#include "ask/reruns.h"
#include "show/plot/plots.h"
#include "show/write_collective.h"

static const LsOption own[] = {
  { "cluster", .argument = "NAME|FILE", .meaning = "On which cluster" },
  { "nodes", .argument = "N",
    .meaning = "Nodes of the cluster; default: the file's, or as many as the GPUs need" },
  { "slice", .argument = "XxY[xZ]",
    .meaning
    = "Chips of a TPU slice along x, y (and z); default: as the GPUs need, with --nodes the largest" },
  { "gpus", .argument = "N,..",
    .meaning = "GPUs used, the first ones: 8, or each of 8,16,24, or doublings 2..1024; default: all of the "
               "nodes" },
  { "nccl", .argument = "NAME|FILE",
    .meaning = "What NCCL reaches (lockstep calibrate --nccl writes such a file); default: as the cluster's "
               "GPU names" },
  { "op", .argument = "KIND",
    .meaning = "Which operation, such as all-reduce; a wrong one is answered with a list; with --compare: "
               "only its rows" },
  { "algorithm", .argument = "KIND",
    .meaning = "By which algorithm, such as ring; a wrong one is answered with a list; default: as NCCL" },
  { "max-ctas", .argument = "N",
    .meaning = "Thread blocks of NCCL's kernel at most (ncclConfig_t.maxCTAs); default: as many as it has "
               "channels" },
  { "protocol", .argument = "auto|simple|ll|ll128", .meaning = "NCCL's protocol; default: as NCCL" },
  { "network", .argument = "flow|alphabeta|step|all",
    .meaning = "Fidelity of the network; all: next to each other, and how they disagree; default: flow" },
  { "min", .argument = "SIZE",
    .meaning = "Smallest size; default: 1KiB; of several numbers of GPUs 1MiB; of --compare all" },
  { "max", .argument = "SIZE", .meaning = "Largest size; default: 8GiB; of --compare all" },
  { "factor", .argument = "N",
    .meaning = "A size over the one before; default: 2; of several numbers of GPUs 8" },
  { "messages",
    .meaning = "Also every message of the algorithm, round by round, and who holds what before and after: of "
               "one size, --min, on 16 GPUs at most" },
  { "compare", .argument = "FILE",
    .meaning = "Simulate the rows of a CSV of measured times; the flags above select some" },
  { "trust", .argument = "LETTER|all",
    .meaning = "With --compare: only rows of this trust; default: A, if there is such a column" },
  LS_OPTION_REPORT,
  LS_OPTION_FORMAT ("text|json|csv|markdown"),
  { "json", .meaning = "Print JSON" },
  { "csv", .meaning = "Print CSV" },
  { "plot", .argument = "FILE", .writes = LS_WRITES_PICTURE, .is_repeated = TRUE,
    .meaning
    = "Draw bus bandwidth over size or GPUs (.svg or .png, by gnuplot; .gp: its script); may be repeated" },
  { NULL },
};

/* All but how it is printed. */
static const char *const keys[]
    = { "cluster", "op",       "nodes",   "gpus",  "algorithm", "protocol", "network",  "min", "max",
        "factor",  "messages", "compare", "trust", "slice",     "nccl",     "max-ctas", NULL };

LS_ANSWER_FORM (to_text, ls_collective_to_text (ls_collective_run_table (data)))
LS_ANSWER_FORM (to_json, ls_collective_to_json (ls_collective_run_table (data)))
LS_ANSWER_FORM (to_csv, ls_collective_to_csv (ls_collective_run_table (data)))
LS_ANSWER_FREE (run_free, ls_collective_run_free)

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, run_free };

/* CSV has a row for each call. */
static const LsAnswerForms message_forms = { to_text, to_json, NULL, NULL, run_free };

static gboolean
plot (gconstpointer run, const char *path, GError **error)
{
  return ls_plot_collective (ls_collective_run_table (run), path, error);
}

LS_REQUEST_SET (set_knob, ls_collective_spec_set)

static LsCollectiveRun *
simulate (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  spec.progress = ls_request_progress (r);
  LsCollectiveRun *run
      = ls_request_set_all (r, keys, set_knob, &spec, error) ? ls_collective_run_new (&spec, error) : NULL;
  if (run) {
    ls_override_note_collective (&spec, ls_collective_run_table (run), ls_collective_run_notes (run));
    ls_answer_note_all (a, ls_collective_run_notes (run));
  }
  ls_collective_spec_clear (&spec);
  return run;
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsCollectiveRun *run = simulate (r, a, error);
  if (!run)
    return FALSE;
  ls_answer_take (a, run, ls_collective_run_table (run)->messages ? &message_forms : &forms);
  ls_answer_write (a, r, "plot", plot);
  return TRUE;
}

const Command command_collective = {
  .shown = {
    .name = "collective",
    .line = "time a collective alone: a table over sizes, or errors",
    .usage = "collective --cluster NAME|FILE --op OP [OPTION...]",
    .summary
    = "Times one operation alone on a cluster, over sizes and numbers of GPUs, in the shape of nccl-tests;\n"
      "or, with --compare, measured ones, and how far off they are. Sizes are those of nccl-tests:\n"
      "the whole array; of all-to-all, what one rank sends.",
    .examples
    = "Operations: all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all, gather,\n"
      "scatter, barrier, permute, copy-permute, send-recv (or p2p: between the first GPUs of two nodes)\n\n"
      "Examples:\n"
      "  lockstep collective --cluster dgx-h100 --op all-reduce --plot all-reduce.svg\n"
      "  lockstep collective --cluster dgx-a100-80g --nodes 8 --op all-gather --network all\n"
      "  lockstep collective --cluster dgx-h100 --op all-to-all --gpus 2..1024 --plot scaling.svg\n"
      "  lockstep collective --compare measured.csv --cluster dgx-h100 --plot errors.png",
  },
  .own = own,
  .run = run,
};
