/* Pins that no knob is ignored in silence: on jobs of each way of data parallelism, on GPUs and TPUs, dense
 * and with experts, each value of each knob of the strategy changes the result (or at least what ranks do),
 * or is refused, or is the value that the job has anyway, or a note of the run says that it makes no
 * difference; and that such a note is true: the result then has the same bytes. What a knob would be anyway
 * is no note. A step on TPUs costs the host nothing. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/traces/traces.h"
#include "job/job.h"
#include "schedules/sched.h"
#include "show/run/write_run.h"

/* Options that make a job, "key=value". */
typedef struct {
  const char *name, *options;
} Job;

static const Job jobs[] = {
  { "one GPU", "model=tiny cluster=pair gpus=1 global-batch=4" },
  { "tp", "model=tiny cluster=pair gpus=2 tp=2 global-batch=4" },
  { "tp with sp", "model=tiny cluster=pair gpus=4 tp=2 sp=1 global-batch=4 attention=unfused" },
  { "ddp", "model=tiny cluster=pair gpus=2 dp-kind=ddp global-batch=8" },
  { "megatron", "model=tiny cluster=pair gpus=4 tp=2 zero=1 global-batch=8" },
  { "ps", "model=tiny cluster=pair gpus=2 dp-kind=ps global-batch=8" },
  { "fsdp1", "model=tiny cluster=pair gpus=4 dp-kind=fsdp1 global-batch=8" },
  { "fsdp2", "model=tiny cluster=pair gpus=4 dp-kind=fsdp2 global-batch=8" },
  { "deepspeed 1", "model=tiny cluster=pair gpus=4 dp-kind=deepspeed zero=1 global-batch=8" },
  { "deepspeed 2", "model=tiny cluster=pair gpus=4 dp-kind=deepspeed zero=2 global-batch=8" },
  { "deepspeed 3", "model=tiny cluster=pair gpus=4 dp-kind=deepspeed zero=3 global-batch=8" },
  { "pipeline", "model=tiny cluster=pair gpus=4 pp=2 global-batch=16" },
  { "interleaved", "model=tiny cluster=pair gpus=4 pp=2 vpp=2 p2p=overlapped global-batch=16" },
  { "context", "model=tiny cluster=pair gpus=2 cp=2 attention=flash global-batch=4" },
  { "experts", "model=tiny-moe cluster=pair gpus=4 ep=2 global-batch=8" },
  { "full", "model=tiny cluster=pair gpus=2 recompute=full global-batch=8" },
  { "selective, flash", "model=tiny cluster=pair gpus=2 recompute=selective attention=flash global-batch=8" },
  { "fp8", "model=llama3.1-8b:layers=2 cluster=dgx-h100 gpus=2 tp=2 dtype=fp8 global-batch=2" },
  { "TPU", "model=llama3.1-8b:layers=2 cluster=tpu-v5e gpus=4 global-batch=4" },
  { "one TPU", "model=llama3.1-8b:layers=1 cluster=tpu-v5e gpus=1 global-batch=2 seq=1024" },
};

static gboolean
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_job_spec_set (spec, key, value, diags);
}

static void
init_job (LsJobSpec *spec, const Job *job)
{
  ls_job_spec_init (spec);
  g_auto (GStrv) options = g_strsplit (job->options, " ", -1);
  for (char **option = options; *option; option++) {
    char *equals = strchr (*option, '=');
    *equals = '\0';
    ls_check_impl (set (spec, *option, equals + 1), __FILE__, __LINE__, "%s of %s", *option, job->name);
  }
}

static char *
report_of (const LsJobResult *r)
{
  const LsReportProvenance none = { 0 };
  return ls_report_to_json (&r->report, &none, &(LsReportExtras) { 0 });
}

static char *
plan_of (const LsJobResult *r)
{
  const LsMesh mesh = { r->strategy.tp, r->strategy.cp, r->strategy.dp, r->strategy.pp };
  return ls_trace_format (r->plan, &(LsTraceHead) { .name = "", .source = "", .mesh = &mesh }, NULL);
}

/* Everything that a run says and what ranks do in it, but for how it was asked. */
typedef struct {
  const LsJobResult *result;
  char *report, *plan;
} Base;

/* Plans are long: written only where reports are the same. */
static gboolean
is_same (const LsJobResult *r, const Base *base)
{
  g_autofree char *report = report_of (r);
  if (strcmp (report, base->report) != 0)
    return FALSE;
  g_autofree char *plan = plan_of (r);
  return strcmp (plan, base->plan) == 0;
}

static gboolean
has_note (const LsJobResult *r, const char *flag)
{
  for (guint i = 0; i < r->notes->len; i++)
    if (g_str_has_prefix (g_ptr_array_index (r->notes, i), flag)
        && strstr (g_ptr_array_index (r->notes, i), "has no effect here: "))
      return TRUE;
  return FALSE;
}

/* Values that are worth a try, of each kind of knob. Without a pipeline one job tries all schedules. */
static void
add_values (const Job *job, const LsField *f, GPtrArray *values)
{
  static const char *const numbers[] = { "1", "2", "3", "4", NULL };
  static const char *const elements[] = { "1000", "100000", "1000000000", NULL };
  static const struct {
    const char *key, *values;
  } own[] = {
    { "zero", "0 1 2 3 1@2 3@2" },
    { "reshard_after_forward", "0 1 2" },
    { "recompute_parts", "core norm activation core,norm,activation op dots dots-flash" },
    { "expert_load", "zipf:1 lognormal:0.5:1" },
    { "expert_capacity", "1 1.5" },
    { "layers_per_chunk", "1,3 3,1 1,1,1,1 2,1,1,0" },
    { "micro_batches_per_replica", "1,1 2,2 1,3 3,1 4,4 2,6 1,2,1 1,2,1,4" },
    { "recompute_stages", "1,0 1" },
    { "bucket_bytes", "64KiB 1MiB" },
    { "seq", "64 128" },
    { "lengths", "whole fixed:100 fixed:65536 lognormal:50:1" },
    { "gpus", "1 2 4" },
    { "kernels", "built-in torchtitan-2024-12" },
    { "optimizer", "adam sgd muon" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (strcmp (own[i].key, f->key) == 0) {
      g_auto (GStrv) words = g_strsplit (own[i].values, " ", -1);
      for (char **w = words; *w; w++)
        g_ptr_array_add (values, g_strdup (*w));
      return;
    }
  if (strcmp (f->key, "schedule") == 0 && (strstr (job->options, " pp=") || job == &jobs[0]))
    for (guint i = 0; ls_sched_at (i); i++)
      g_ptr_array_add (values, g_strdup (ls_sched_at (i)->name));
  for (const LsEnumName *e = f->kind == LS_FIELD_ENUM ? f->names : NULL; e && e->name; e++)
    g_ptr_array_add (values, g_strdup (e->name));
  if (f->kind == LS_FIELD_BOOL) {
    g_ptr_array_add (values, g_strdup ("0"));
    g_ptr_array_add (values, g_strdup ("1"));
  }
  for (const char *const *n = f->kind == LS_FIELD_UINT ? numbers
           : f->kind == LS_FIELD_UINT64                ? elements
                                                       : NULL;
       n && *n; n++)
    g_ptr_array_add (values, g_strdup (*n));
}

static char *
default_of (const LsField *f)
{
  LsStrategy blank;
  ls_strategy_init (&blank);
  char *text = ls_field_text (f, &blank, NULL);
  ls_strategy_clear (&blank);
  return text;
}

/* Whether the job says itself what the knob is. */
static gboolean
is_set (const Job *job, const LsField *f)
{
  g_autofree char *flag = g_strdelimit (g_strconcat (" ", f->key, "=", NULL), "_", '-');
  g_autofree char *options = g_strconcat (" ", job->options, NULL);
  return strstr (options, flag) != NULL;
}

/* Returns whether the value was legal. What the job has anyway is not run again: there is nothing to say of
 * it. */
static gboolean
check_value (const Job *job, const LsField *f, const char *value, const Base *base)
{
  LsJobSpec spec;
  init_job (&spec, job);
  g_autoptr (GError) error = NULL;
  gboolean is_value = set (&spec, f->key, value);
  g_autofree char *given = ls_field_text (f, &spec.strategy, NULL),
                  *anyway = ls_field_text (f, &base->result->strategy, NULL);
  gboolean is_other = g_strcmp0 (given, anyway) != 0;
  g_autoptr (LsJobResult) r = is_value && is_other ? ls_job_spec_run (&spec, &error) : NULL;
  ls_job_spec_clear (&spec);
  if (is_value && !is_other)
    return TRUE;
  if (!r)
    return FALSE;
  g_autofree char *usual = default_of (f), *flag = ls_field_flag (f);
  gboolean is_noted = has_note (r, flag), is_asked = given && g_strcmp0 (given, usual) != 0;
  if (is_noted)
    ls_check_impl (is_same (r, base), __FILE__, __LINE__, "%s: %s %s is said to have no effect, and has one",
                   job->name, flag, value);
  else if (is_asked)
    ls_check_impl (!is_same (r, base), __FILE__, __LINE__, "%s: %s %s changes nothing, and nothing says so",
                   job->name, flag, value);
  return TRUE;
}

/* A third of what each job has, of each knob another third from job to job, but for all of it. */
static void
check_job (const Job *job)
{
  bool is_full = ls_test_has_all_cases ();
  guint place = (guint) (job - jobs);
  LsJobSpec spec;
  init_job (&spec, job);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) result = ls_job_spec_run (&spec, &error);
  ls_job_spec_clear (&spec);
  if (!ls_check_impl (result != NULL, __FILE__, __LINE__, "%s: %s", job->name, error ? error->message : ""))
    return;
  g_autofree char *report = report_of (result), *plan = plan_of (result);
  const Base base = { result, report, plan };
  guint n_legal = 0;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func (g_free);
    if (!f->file_only && strcmp (f->topic, "host") != 0 && !is_set (job, f))
      add_values (job, f, values);
    for (guint i = 0; i < values->len; i++, place++)
      if (is_full || place % 3 == 0)
        n_legal += check_value (job, f, g_ptr_array_index (values, i), &base);
  }
  LS_CHECK_INT (n_legal, >=, is_full ? 50 : 15);
}

static void
no_knob_is_ignored_in_silence (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++)
    check_job (&jobs[i]);
}

/* Other letters are not another value. */
static void
what_a_knob_is_anyway_is_not_noted (void)
{
  static const char *const options[] = { "schedule=1F1B",  "schedule=1f1b", "p2p=batched",
                                         "recompute=none", "dp-overlap=1",  "etp=1 schedule=zb-auto" };
  for (guint i = 0; i < G_N_ELEMENTS (options); i++) {
    g_autofree char *text
        = g_strconcat ("model=tiny cluster=pair gpus=4 pp=2 global-batch=8 ", options[i], NULL);
    const Job job = { options[i], text };
    LsJobSpec spec;
    init_job (&spec, &job);
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
    ls_job_spec_clear (&spec);
    LS_CHECK (r);
    for (guint n = 0; r && n < r->notes->len; n++)
      ls_check_impl (!strstr (g_ptr_array_index (r->notes, n), "no effect"), __FILE__, __LINE__, "%s: %s",
                     options[i], (char *) g_ptr_array_index (r->notes, n));
  }
}

/* Issuing ops costs the host of a TPU nothing, whether there is data parallelism or not. */
static void
a_step_on_tpus_is_one_executable (void)
{
  static const char *const sizes[] = { "gpus=1", "gpus=4 tp=4", "gpus=4" };
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    LsTime steps[2];
    for (guint k = 0; k < 2; k++) {
      g_autofree char *text
          = g_strdup_printf ("model=llama3.1-8b:layers=2 cluster=tpu-v5e seq=1024 host-launch=%s %s",
                             k ? "90us" : "0us", sizes[i]);
      const Job job = { sizes[i], text };
      LsJobSpec spec;
      init_job (&spec, &job);
      g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
      ls_job_spec_clear (&spec);
      if (!LS_CHECK (r != NULL))
        return;
      LS_CHECK_DOUBLE (r->report.breakdown_s[LS_PART_HOST], ==, 0);
      steps[k] = r->timeline->window_end - r->timeline->window_start;
    }
    LS_CHECK_INT (steps[0], ==, steps[1]);
  }
}

/* The host pays for what it does, however fast it is: of what it never does, a note says so. */
static void
costs_of_no_op_are_noted (void)
{
  static const struct {
    const char *job, *knob;
    bool is_idle;
  } cases[] = {
    { "model=tiny cluster=pair gpus=1", "host-launch", false },
    { "model=tiny cluster=pair gpus=1", "host-comm", true },
    { "model=tiny cluster=pair gpus=2 dp-kind=ddp", "host-comm", false },
    { "model=tiny cluster=pair gpus=2 dp-kind=ddp", "host-view", true },
    { "model=tiny cluster=pair gpus=2 dp-kind=deepspeed zero=3 collective-lists=1", "host-view", false },
    { "model=tiny cluster=pair gpus=2 dp-kind=ddp", "host-batch", true },
    { "model=tiny cluster=pair gpus=2 dp-kind=ddp batch-sync=1", "host-batch", false },
    { "model=llama3.1-8b:layers=2 cluster=tpu-v5e gpus=4", "host-launch", true },
    { "model=llama3.1-8b:layers=2 cluster=tpu-v5e gpus=4", "host-sync", true },
    { "model=llama3.1-8b:layers=2 cluster=tpu-v5e gpus=4", "cuda-graphs", true },
    { "model=tiny cluster=pair gpus=1", "cuda-graphs", false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    bool is_graph = strcmp (cases[i].knob, "cuda-graphs") == 0;
    g_autofree char *text
        = g_strdup_printf ("%s %s=%s", cases[i].job, cases[i].knob, is_graph ? "step" : "90us");
    const Job job = { cases[i].job, text };
    LsJobSpec spec;
    init_job (&spec, &job);
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
    ls_job_spec_clear (&spec);
    bool is_noted = false;
    for (guint n = 0; r && n < r->notes->len; n++)
      is_noted |= strstr (g_ptr_array_index (r->notes, n), " has no effect here: ") != NULL;
    ls_check_impl (r && is_noted == cases[i].is_idle, __FILE__, __LINE__, "%s", text);
  }
}

/* Without it a knob is as the program that is named has it: 50,257 words are 50,304 with 64 and with 128, and
 * are not padded by PyTorch. */
static void
what_a_program_has_is_not_the_usual (void)
{
  static const char *const options[] = { "", "software=pytorch " };
  for (guint i = 0; i < G_N_ELEMENTS (options); i++) {
    g_autofree char *text = g_strconcat (
        options[i], "model=gpt2-xl:layers=1 cluster=pair gpus=1 global-batch=1 vocab_multiple=64", NULL);
    const Job job = { "words", text };
    LsJobSpec spec;
    init_job (&spec, &job);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    ls_job_spec_clear (&spec);
    ls_check_impl (r && has_note (r, "--set vocab_multiple") == (i == 0), __FILE__, __LINE__, "%s: %s", text,
                   error ? error->message : "");
  }
}

static void
before (void)
{
  if (g_chdir (g_getenv ("LS_DATA_DIR")) != 0) /* where the data that ship are found */
    g_error ("%s: no such folder", g_getenv ("LS_DATA_DIR"));
  ls_test_golden_data ();
}

LS_TEST_SUITE_WITH (before, NULL, LS_TEST (no_knob_is_ignored_in_silence),
                    LS_TEST (what_a_knob_is_anyway_is_not_noted), LS_TEST (a_step_on_tpus_is_one_executable),
                    LS_TEST (costs_of_no_op_are_noted), LS_TEST (what_a_program_has_is_not_the_usual))
