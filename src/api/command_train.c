/* `lockstep train`: a training run of weeks, with its failures. */
#include <string.h>

#include "api/commands.h"
#include "api/job_answer.h"
#include "show/draw/pictures.h"
#include "show/answers.h"
#include "train/train.h"

static const LsOption own[] = {
  { "tokens", .argument = "N", .meaning = "Tokens to train on: 15T, 300B, 2e11" },
  { "train-steps", .argument = "N", .meaning = "Steps to train for, in their place" },
  { "loss", .argument = "X",
    .meaning = "Loss to train to, in nats per token, in their place: a law says how many tokens that takes" },
  { "scaling-law", .argument = "NAME|FILE",
    .meaning = "The law of --loss, or what loss --tokens come to (lockstep list scaling); default: "
               "besiroglu-2024" },
  { "days", .argument = "N", .meaning = "Look at the run after so many days, if it is not done by then" },
  { "phase", .argument = "KEY=VALUE,..", .is_repeated = TRUE,
    .meaning
    = "A part of the run with its own knobs: tokens=2T (or steps=N), name=TEXT, and knobs of the job, "
      "such as global-batch=1024,seq=4096; may be repeated" },
  { "batch-ramp", .argument = "START:INCREMENT:N",
    .meaning = "The batch grows from START by INCREMENT to the job's over N sequences, as Megatron-LM's "
               "--rampup-batch-size" },
  { "critical-batch", .argument = "TOKENS|NAME|FILE",
    .meaning
    = "Where a larger batch begins to need more tokens: --tokens is then what small batches need, and "
      "steps of B tokens need 1 + B / TOKENS times as many; a law says it of the loss at the end" },
  { "batches", .argument = "N,..",
    .meaning = "Other global batches, each simulated, to the same end: 512,1024, or doublings 512..8192" },
  { "reliability", .argument = "NAME|FILE",
    .meaning = "How often what fails (lockstep list reliability); none: nothing; default: "
               "llama3-h100, of TPUs none" },
  { "jitter", .argument = "NAME|FILE|off",
    .meaning = "How steps vary (lockstep list jitter); off: each takes as predicted; default: mlperf-5.1, "
               "of TPUs off" },
  { "jitter-seed", .argument = "N", .is_rare = TRUE, .meaning = "What clusters are drawn by; default: 1" },
  { "checkpoint-every", .argument = "N|TIME|auto,..",
    .meaning
    = "Steps or time from a checkpoint to the next; auto: the best; scan: that and its multiples; of "
      "several the first is the run, the others are compared; default: auto" },
  { "checkpoint-to", .argument = "storage|peer|local",
    .meaning
    = "Where to: storage that all share, memory of another node, drives of the node; default: storage" },
  { "checkpoint-async", .argument = "0|1",
    .meaning = "The job waits for the copy to the host only, not for the storage; default: 0" },
  { "checkpoint-save", .argument = "TIME", .meaning = "How long the job waits, in place of size over rate" },
  { "checkpoint-write", .argument = "TIME", .meaning = "And until it may be read, while the job runs" },
  { "checkpoint-read", .argument = "TIME", .meaning = "And how long reading it takes at a restart" },
  { "storage-bandwidth", .argument = "RATE",
    .meaning = "Of the storage, for all GPUs together; default: 150 MB/s for each GPU" },
  { "storage-every", .argument = "N",
    .meaning = "With peer and local: every n-th checkpoint goes to storage too; default: 10" },
  { "spares", .argument = "N|any,..",
    .meaning = "Spare nodes; without one the job waits for a repair; several are compared; default: any" },
  { "elastic", .argument = "0|1", .meaning = "Without a spare it goes on with fewer replicas; default: 0" },
  { "seeds", .argument = "N", .meaning = "Runs to draw; default: 100" },
  { "first-seed", .argument = "N", .meaning = "The seed of the first; default: 1" },
  { "gpu-hour", .argument = "USD", .meaning = "Dollars for an hour of a GPU; default: of May 2026" },
  { "gpu-watts", .argument = "W",
    .meaning
    = "Power of a GPU, whatever it does; default: what is published of it by what it does, or its board "
      "limit" },
  { "pue", .argument = "X", .meaning = "Power of the data centre over that; default 1.1" },
  { "co2", .argument = "G", .meaning = "Grams of CO2 for a kWh; default: not counted" },
  { "ignore-memory", .meaning = "Answer also for a job that does not fit into memory; else exit 4" },
  { "threads", .letter = 'j', .argument = "N", .meaning = "Runs at once; default one per processor" },
  LS_OPTION_MPI,
  { "plot", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning
    = "Draw what held up the run of the first seed, and what is lost by kind and cause (.svg or .png; "
      ".gp: its script)" },
  LS_OPTION_REPORT,
  LS_OPTION_FORMAT ("text|json|csv|markdown"),
  { "json", .meaning = "Print JSON" },
  { "csv", .meaning = "Print a row for each cause of failures, interval and batch" },
  { NULL },
};

/* What the request reads itself: the rest is set by ls_train_spec_set(). */
static const char *const of_request[]
    = { "phase", "ignore-memory", "threads", "mpi", "plot", "report", "format", "json", "csv", NULL };

static const char **
keys_of_run (void)
{
  const char **keys = g_new0 (const char *, G_N_ELEMENTS (own));
  guint n = 0;
  for (const LsOption *o = own; o->key; o++)
    if (!g_strv_contains (of_request, o->key))
      keys[n++] = o->key;
  return keys;
}

/* Of one step that was measured. */
static const char *const without[] = { "measured", "published", NULL };

typedef struct {
  LsTrainReport *report;
  char *title, *subtitle;
} Data;

static void
data_free (gpointer data)
{
  Data *d = data;
  ls_train_report_free (d->report);
  g_free (d->title);
  g_free (d->subtitle);
  g_free (d);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Data *d = data;
  return ls_train_to_text (d->report, d->title, d->subtitle);
}

LS_ANSWER_FORM (to_json, ls_train_to_json (((const Data *) data)->report))
LS_ANSWER_FORM (to_csv, ls_train_to_csv (((const Data *) data)->report))

static gboolean
write_plot (gconstpointer data, const char *path, GError **error)
{
  const Data *d = data;
  g_autofree char *line = g_strndup (d->subtitle, strcspn (d->subtitle, "\n"));
  g_autoptr (LsDrawing) drawing = ls_draw_train (d->report, d->title, line);
  return ls_drawing_write (drawing, path, error);
}

static void
page (gconstpointer data, LsPage *p)
{
  const Data *d = data;
  ls_page_set_title (p, d->title, d->subtitle);
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free, page };

LS_REQUEST_SET (set_knob, ls_train_spec_set)

static gboolean
read_spec (const LsRequest *r, LsTrainSpec *spec, GError **error)
{
  guint n_threads;
  if (!ls_request_threads (r, &n_threads, error))
    return FALSE;
  spec->n_threads = n_threads;
  spec->progress = ls_request_progress (r);
  spec->team = ls_request_team (r);
  spec->keeps_timeline = ls_request_text (r, "plot") != NULL;
  g_autofree const char **phases = ls_request_texts (r, "phase");
  for (guint i = 0; phases && phases[i]; i++)
    g_ptr_array_add (spec->phases, g_strdup (phases[i]));
  g_autofree const char **keys = keys_of_run ();
  return ls_request_set_all (r, keys, set_knob, spec, error)
      && ls_request_set_job (r, ls_request_set_knob, &spec->job, error);
}

/* A job that cannot run has neither days nor costs, unless these are asked for all the same. */
static gboolean
check_fit (const LsRequest *r, const LsTrainReport *report, LsAnswer *a, GError **error)
{
  const LsTrainPhase *phase = NULL;
  for (guint i = 0; i < report->phases->len && (!phase || phase->fits); i++)
    phase = &g_array_index (report->phases, LsTrainPhase, i);
  if (phase->fits)
    return TRUE;
  g_autofree char *text
      = g_strdup_printf ("phase %s does not fit into memory: no such run is possible\nlockstep memory, with "
                         "the same options, simulates what would make it fit",
                         phase->name);
  if (ls_request_is_on (r, "ignore-memory")) {
    ls_answer_warn (a, g_steal_pointer (&text));
    return TRUE;
  }
  g_set_error (error, LS_ERROR, LS_ERROR_NO_FIT, "%s; --ignore-memory answers all the same", text);
  return FALSE;
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsTrainSpec spec;
  ls_train_spec_init (&spec);
  gboolean ok = read_spec (r, &spec, error);
  if (ok)
    ls_job_tell_from (&spec.job, a);
  LsTrainReport *report = ok ? ls_train_run (&spec, error) : NULL;
  if (report && !check_fit (r, report, a, error))
    g_clear_pointer (&report, ls_train_report_free);
  if (report)
    ls_job_tell_interval (&spec.job, report->job, "a step (days, money and energy are in proportion)", a);
  ls_train_spec_clear (&spec);
  if (!report)
    return FALSE;
  Data *d = g_new (Data, 1);
  *d = (Data) { report, ls_job_title (report->job), ls_job_subtitle (report->job) };
  ls_answer_note_all (a, report->notes);
  ls_answer_take (a, d, &forms);
  if (!ls_request_leads (r))
    return TRUE;
  ls_answer_write (a, r, "plot", write_plot);
  return TRUE;
}

const Command command_train = {
  .shown = {
    .name = "train",
    .line = "a training run: days, money, energy, failures, checkpoints",
    .usage = "train --model NAME|FILE --cluster NAME|FILE --tokens N [OPTION...]",
    .summary = "Simulates a step of each phase of a training run, and then the run: checkpoints, failures,\n"
               "restarts, spare nodes, event by event, for many seeds. Says how long it takes, what it\n"
               "costs, and where time is lost. The options that say which job are those of lockstep run.",
    .examples
    = "Examples:\n"
      "  lockstep train --model llama3.1-8b --cluster dgx-h100 --gpus 1024 --dp-kind fsdp2 "
      "--global-batch 2048 --tokens 15T\n"
      "  lockstep train --model gpt-18.4b --cluster dgx-a100-80g --gpus 256 --tp 8 --sp --global-batch 1024 "
      "--tokens 300B --reliability opt-a100 --checkpoint-every scan --spares 0,2,any\n"
      "  lockstep train --trace two-ranks --cluster dgx-h100 --train-steps 1000000",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .without = without,
  .run = run,
};
