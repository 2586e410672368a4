/* Pins what a job runs that names no program: the textbook, whatever its way to be data parallel, its schedule
 * and its accelerator, so that a comparison of strategies compares these; that a program that is named gives
 * all its defaults, under what the job says; that the options of a result, typed, are the same job; that a
 * program has other defaults on some accelerators; and that an accelerator that was not measured with the
 * program's attention is no reason to refuse it. The programs are those that are shipped. */
#include "run_options.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/read_software.h"
#include "job/job.h"
#include "job/knobs.h"
#include "job/softwares.h"
#include "model/operators.h"

/* Each with nothing but its own way, schedule or accelerator, and the bytes a parameter that it steps on. */
static void
a_job_that_names_no_program_runs_the_textbook (void)
{
  static const char *const jobs[] = {
    JOB,
    JOB "zero=1",
    JOB "zero=3",
    JOB "dp-kind=ddp",
    JOB "dp-kind=fsdp1",
    JOB "dp-kind=fsdp2 recompute=selective",
    JOB "dp-kind=ps",
    JOB "dp-kind=xla-fsdp",
    JOB "tp=2 pp=2 vpp=1 schedule=zb-h1",
    MACHINE ("mi300x-8") SIZE,
    MACHINE ("tpu-v5e") "gpus=4 global-batch=4",
    MACHINE ("tpu-v5e") "gpus=4 global-batch=4 dp-kind=ddp",
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_autoptr (LsJobResult) r = run (jobs[i]);
    const LsStrategy *s = &r->strategy;
    bool is_textbook = g_strcmp0 (s->program.software, "textbook") == 0 && !s->use.kernels
        && s->opt.master == LS_MASTER_FP32 && s->opt.grad_dtype == LS_DTYPE_BF16
        && s->use.attention_kernel == LS_ATTENTION_KERNEL_AUTO
        && s->memory.recompute_parts == LS_RECOMPUTE_CORE;
    ls_check_impl (is_textbook, __FILE__, __LINE__, "%s: software %s", jobs[i], s->program.software);
  }
}

/* Naming it says nothing: its file changes no default. */
static void
a_named_textbook_is_the_same_job (void)
{
  static const char *const jobs[] = { SIZE, SIZE "dp-kind=ddp", SIZE "zero=3", SIZE "pp=2 vpp=1" };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_autofree char *silent = g_strconcat (MACHINE ("dgx-h100"), jobs[i], NULL),
                    *named = g_strconcat (MACHINE ("dgx-h100"), "software=textbook ", jobs[i], NULL);
    g_autoptr (LsJobResult) a = run (silent), b = run (named);
    LS_CHECK (a->report.digest == b->report.digest && a->report.needed_bytes == b->report.needed_bytes);
  }
}

/* The table of lecture notes, of 7.5 billion parameters on 64 GPUs (Rajbhandari et al. 2020, figure 1): 119.5,
 * 31.3, 16.6 and 1.9 GB of model states; the same activations at each stage; bytes as 2 : 2 : 2 : 3. */
static void
stages_of_zero_are_those_of_the_notes (void)
{
#define NOTES "model=gpt-7.5b cluster=dgx-a100-80g gpus=64 "
  static const struct {
    const char *options;
    double states_gb, bytes;
  } rows[] = {
    { NOTES "dp-kind=ddp", 119.5, 2 }, { NOTES "zero=1", 31.3, 2 },       { NOTES "zero=2", 16.6, 2 },
    { NOTES "zero=3", 1.9, 3 },        { NOTES "dp-kind=fsdp2", 1.9, 3 },
  };
  double activations = 0, unit = 0;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const uint64_t *own = r->report.by_category;
    double states = (double) (own[LS_MEM_PARAMETERS] + own[LS_MEM_GRADIENTS] + own[LS_MEM_OPTIMIZER]) / 1e9,
           bytes = 0;
    for (guint k = 0; k < r->report.n_link_groups; k++)
      if (g_str_has_suffix (r->report.link_groups[k].name, ">nvswitch"))
        bytes = r->report.link_groups[k].bytes / r->report.link_groups[k].n;
    activations = i == 0 ? (double) own[LS_MEM_ACTIVATIONS] : activations;
    unit = i == 0 ? bytes / 2 : unit;
    ls_check_impl (fabs (states - rows[i].states_gb) < 0.051, __FILE__, __LINE__, "%s: %.2f GB",
                   rows[i].options, states);
    ls_check_impl (fabs (bytes / unit / rows[i].bytes - 1) < 0.03, __FILE__, __LINE__, "%s: %.3f of bytes",
                   rows[i].options, bytes / unit);
    LS_CHECK_DOUBLE ((double) own[LS_MEM_ACTIVATIONS], ==, activations);
  }
}

/* A program on accelerators that it does not run on is told, with their names; a way to be data parallel is
 * nobody's program. */
static void
what_does_not_run_there_is_told (void)
{
  static const struct {
    const char *options, *note;
  } rows[] = {
    { MACHINE ("tpu-v5e") SIZE, NULL },
    { MACHINE ("tpu-v5e") SIZE "dp-kind=xla-fsdp", NULL },
    { MACHINE ("tpu-v5e") "gpus=1 global-batch=8 dp-kind=none", NULL },
    { MACHINE ("tpu-v5e") "software=maxtext-2024 " SIZE, NULL },
    { MACHINE ("mi300x-8") SIZE "dp-kind=deepspeed", NULL },
    { MACHINE ("mi300x-8") "software=primus-2025 " SIZE, NULL },
    { MACHINE ("tpu-v5e") SIZE "dp-kind=deepspeed", NULL },
    { MACHINE ("tpu-v5e") "software=megatron-lm-2022-05 " SIZE,
      "software megatron-lm-2022-05: Megatron-LM runs on GPUs, not on tpu-v5e; it is simulated there as if it "
      "did" },
    { MACHINE ("dgx-h100") "software=maxtext-2024 " SIZE,
      "software maxtext-2024: MaxText runs on TPUs, not on h100; it is simulated there as if it did" },
    { MACHINE ("dgx-h100") "software=primus-2025 " SIZE,
      "software primus-2025: Primus runs on accelerators of architecture cdna3,cdna4, not on h100; it is "
      "simulated there as if it did" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; r && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], " as if it did"))
        found = r->notes->pdata[k];
    ls_check_impl (g_strcmp0 (found, rows[i].note) == 0, __FILE__, __LINE__, "%s: %s", rows[i].options,
                   found);
  }
}

/* Of a program that is known to run them otherwise than they are simulated, and of models that have them. */
static void
experts_that_run_otherwise_are_told (void)
{
#define MIXTRAL "model=mixtral-8x7b:layers=2 cluster=dgx-h100 "
  static const struct {
    const char *options, *note;
  } rows[] = {
    { MIXTRAL "software=deepspeed " SIZE "dp-kind=deepspeed",
      "DeepSpeed runs experts one after the other, after a count of their tokens that the host waits "
      "for; here they run as Megatron-LM's, which is faster" },
    { MIXTRAL "software=hf-trainer-2024 " SIZE "dp-kind=ddp", NULL }, /* its kernels are listed */
    { MIXTRAL "software=megatron " SIZE, NULL },
    { MACHINE ("dgx-h100") "software=hf-trainer-2024 " SIZE "dp-kind=ddp", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; r && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], " runs experts "))
        found = r->notes->pdata[k];
    LS_CHECK_STR (found, rows[i].note);
  }
}

/* Grace takes longer for a call than the x86 servers for which a program's costs are told; what the job says
 * is of its own hosts. */
static void
calls_cost_what_the_cpu_takes (void)
{
  static const struct {
    const char *options;
    LsTime launch, comm, product;
  } rows[] = {
    { MACHINE ("dgx-h100") "software=pytorch-ddp " SIZE, 10 * LS_US, 20 * LS_US, 10 * LS_US },
    { MACHINE ("gb200-nvl72") "software=pytorch-ddp " SIZE, 27500 * LS_NS, 55 * LS_US, 27500 * LS_NS },
    { MACHINE ("gh200") SIZE, 24600 * LS_NS, 49200 * LS_NS, 81180 * LS_NS },
    { MACHINE ("gb200-nvl72") "software=pytorch-ddp " SIZE "host-launch=5us host-comm=7us", 5 * LS_US,
      7 * LS_US, 27500 * LS_NS },
    { MACHINE ("gb200-nvl72") SIZE "host-launch=0us", 0, 55 * LS_US, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    LsHostCosts costs;
    ls_host_costs_default (&costs);
    if (!LS_CHECK (r))
      continue;
    ls_hardware_host (r->hardware, &r->strategy, &costs);
    LS_CHECK_INT (costs.cost[LS_HOST_LAUNCH], ==, rows[i].launch);
    LS_CHECK_INT (costs.cost[LS_HOST_COMM], ==, rows[i].comm);
    LS_CHECK_INT (costs.cost[LS_HOST_PRODUCT], ==, rows[i].product);
  }
}

/* torchtitan has sequence parallelism and gradients in fp32 by itself; what the job says goes before these. */
static void
a_named_program_gives_all_its_defaults (void)
{
  g_autoptr (LsJobResult) named = run (MACHINE ("dgx-h100") "software=torchtitan " SIZE "tp=2"),
                          said
      = run (MACHINE ("dgx-h100") "software=torchtitan " SIZE
                                  "tp=2 kernels=built-in tp_async=1 grad-dtype=bf16");
  if (!LS_CHECK (named && said))
    return;
  LS_CHECK (named->strategy.sp && !named->strategy.mp.tp_async && named->strategy.use.kernels);
  LS_CHECK_INT (named->strategy.opt.grad_dtype, ==, LS_DTYPE_FP32);
  LS_CHECK_INT (named->strategy.memory.recompute_parts, ==, LS_RECOMPUTE_OP);
  LS_CHECK (said->strategy.sp && said->strategy.mp.tp_async && !said->strategy.use.kernels);
  LS_CHECK_INT (said->strategy.opt.grad_dtype, ==, LS_DTYPE_BF16);
}

/* Options with the path of a file for FILE. Newly allocated. */
static char *
with_file (const char *machine, const char *options, const char *file, const char *size)
{
  g_auto (GStrv) parts = g_strsplit (options, "FILE", 2);
  g_autofree char *said = g_strjoinv (file, parts);
  return g_strconcat (machine, said, size, NULL);
}

/* What words are padded to is the program's, over it that of a strategy file, over both that of a flag: of
 * GPT-2's 50,257 words. */
static void
what_words_are_padded_to_is_said_by_the_nearest (void)
{
  static const struct {
    const char *options;
    guint64 multiple, words;
  } rows[] = { { "software=nanotron-2024", 1, 50257 },
               { "strategy=FILE", 64, 50304 },
               { "software=nanotron-2024 strategy=FILE", 64, 50304 },
               { "software=nanotron-2024 vocab_multiple=1024", 1024, 51200 },
               { "software=nanotron-2024 strategy=FILE vocab_multiple=1024", 1024, 51200 } };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *file = g_build_filename (folder, "s.json", NULL);
  LS_CHECK (g_file_set_contents (file,
                                 "{ \"schema\": \"lockstep.strategy/1\", \"name\": \"s\", "
                                 "\"source\": \"made up\", \"vocab_multiple\": 64 }",
                                 -1, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *options = with_file ("model=gpt2-xl:layers=1 cluster=dgx-h100 ", rows[i].options, file,
                                          " gpus=1 global-batch=1");
    g_autoptr (LsJobResult) r = run (options);
    LS_CHECK_INT (r->strategy.use.vocab_multiple, ==, rows[i].multiple);
    LS_CHECK_INT (ls_model_padded_vocab (&r->model, r->strategy.use.vocab_multiple, 1), ==, rows[i].words);
  }
  g_unlink (file);
  g_rmdir (folder);
}

/* "--tp 2 --sp --set a=0" as it would be typed behind the model and the cluster. */
static void
type (LsJobSpec *spec, const char *options)
{
  g_auto (GStrv) words = g_strsplit (options, " ", -1);
  for (guint i = 0; words[i]; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    bool is_set = strcmp (words[i], "--set") == 0,
         has_value = words[i + 1] && !g_str_has_prefix (words[i + 1], "--");
    const char *value = has_value ? words[i + 1] : "1";
    g_auto (GStrv) pair = is_set ? g_strsplit (value, "=", 2) : NULL;
    LS_CHECK (ls_job_spec_set (spec, is_set ? pair[0] : words[i] + 2, is_set ? pair[1] : value, diags));
    i += has_value;
  }
}

static void
options_are_the_same_job_again (void)
{
  static const char *const jobs[] = {
    JOB,
    JOB "dp-kind=fsdp2",
    JOB "dp-kind=ddp kernels=built-in",
    JOB "grad_fusion=0",
    MACHINE ("dgx-h100") "gpus=1 global-batch=1 dp-kind=fsdp2",
    MACHINE ("gb200-nvl72") SIZE "dp-kind=ddp",
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_autoptr (LsJobResult) first = run (jobs[i]), again = NULL;
    g_autoptr (GError) error = NULL;
    g_autofree char *options = ls_knobs_format (&first->strategy);
    LsJobSpec spec;
    set_all (&spec, strstr (jobs[i], "gb200") ? MACHINE ("gb200-nvl72") : MACHINE ("dgx-h100"));
    type (&spec, options);
    again = ls_job_spec_run (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    ls_check_impl (again && again->report.digest == first->report.digest, __FILE__, __LINE__, "%s is not %s",
                   options, jobs[i]);
    ls_job_spec_clear (&spec);
  }
}

static void
attention_that_was_not_measured_is_no_refusal (void)
{
  static const char *const jobs[]
      = { MACHINE ("dgx-b300") "software=lingua-2025 " SIZE, MACHINE ("dgx-b300") "software=olmo-2025 " SIZE,
          MACHINE ("dgx-b300") SIZE "attention_kernel=fa2" };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    g_autoptr (LsJobResult) r = run (jobs[i]);
    if (!LS_CHECK (r))
      continue;
    const char *note = r->notes->len > 0 ? g_ptr_array_index (r->notes, r->notes->len - 1) : "";
    LS_CHECK (strstr (note, "attention by fa2 was not measured on b300: it takes the time of "));
  }
}

/* Sweeps and validations begin with the defaults of a release, and do not name it again: as a run does. */
static void
a_release_lends_its_attention (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJobResult) r = run (MACHINE ("dgx-h100") "software=lingua-2025 attention_kernel=pallas " SIZE);
  LsHardware *hardware = ls_hardware_load ("dgx-h100", diags);
  LsSoftwareSpec software;
  if (!LS_CHECK (hardware && r && ls_software_load ("lingua-2025", &software, diags)))
    return;
  LsStrategy s;
  ls_strategy_copy (&s, &software.defaults);
  ls_softwares_settle (NULL, hardware, NULL, &s);
  LS_CHECK_INT (s.program.attention_else, ==, LS_ATTENTION_KERNEL_FA2);
  LS_CHECK_INT (r->strategy.program.attention_else, ==, LS_ATTENTION_KERNEL_FA2);
  ls_strategy_clear (&s);
  ls_software_clear (&software);
  ls_hardware_free (hardware);
}

/* Defaults of some accelerators go before the others of the program, there alone, and after what is said: of
 * the job, of the program's name, of a file that is based on the program's. The file is based on nemo-2024.
 * */
static void
defaults_of_an_accelerator_hold_there (void)
{
  static const struct {
    const char *machine, *options;
    int kernel;
  } rows[] = {
    { MACHINE ("dgx-h100"), "", LS_ATTENTION_KERNEL_AUTO },
    { MACHINE ("dgx-a100-80g"), "software=megatron ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("dgx-h100"), "software=megatron ", LS_ATTENTION_KERNEL_CUDNN },
    { MACHINE ("dgx-h100"), "attention_kernel=fa2 ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("dgx-h100"), "software=megatron:attention_kernel=fa2 ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("dgx-h100"), "software=nemo-2024:grad_check=false ", LS_ATTENTION_KERNEL_CUDNN },
    { MACHINE ("dgx-a100-80g"), "software=nemo-2025 ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("gb200-nvl72"), "software=torchtitan ", LS_ATTENTION_KERNEL_CUDNN },
    { MACHINE ("gb200-nvl72"), "software=torchtitan-2025-03-compile ", LS_ATTENTION_KERNEL_CUDNN },
    { MACHINE ("dgx-h100"), "software=torchtitan ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("gb200-nvl72"), "software=pytorch ", LS_ATTENTION_KERNEL_CUDNN },
    { MACHINE ("dgx-b200"), "software=olmo-2025 ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("mi355x-8"), "software=torchtitan-2025-03-compile ", LS_ATTENTION_KERNEL_AOTRITON },
    { MACHINE ("mi355x-8"), "software=hf-trainer-2026-autocast ", LS_ATTENTION_KERNEL_AOTRITON },
    { MACHINE ("mi355x-8"), "software=hf-trainer-2026:attention_kernel=fa2 ", LS_ATTENTION_KERNEL_FA2 },
    { MACHINE ("mi355x-8"), "software=primus-2025 ", LS_ATTENTION_KERNEL_AUTO },
    { MACHINE ("dgx-h100"), "software=FILE ", LS_ATTENTION_KERNEL_FA3 },
    { MACHINE ("dgx-a100-80g"), "software=FILE ", LS_ATTENTION_KERNEL_AUTO },
    { MACHINE ("dgx-h200"), "software=FILE:attention_kernel=fa2 ", LS_ATTENTION_KERNEL_FA2 },
  };
  g_autofree char *folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *file = g_build_filename (folder, "mine.json", NULL);
  LS_CHECK (g_file_set_contents (
      file,
      "{ \"schema\": \"lockstep.software/1\", \"name\": \"mine\", \"source\": \"made up\", \"program\": \"a\","
      "  \"based_on\": \"nemo-2024\", \"defaults\": { \"attention_kernel\": \"auto\" }, \"by_architecture\": ["
      "  { \"architectures\": \"hopper\", \"source\": \"made up\","
      "    \"defaults\": { \"attention_kernel\": \"triton\" } },"
      "  { \"architectures\": \"volta,hopper\", \"source\": \"made up\","
      "    \"defaults\": { \"attention_kernel\": \"fa3\" } } ] }",
      -1, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autofree char *options = with_file (rows[i].machine, rows[i].options, file, SIZE);
    g_autoptr (LsJobResult) r = run (options);
    if (!LS_CHECK (r))
      continue;
    ls_check_impl (r->strategy.use.attention_kernel == rows[i].kernel, __FILE__, __LINE__,
                   "%s: attention kernel %d", options, r->strategy.use.attention_kernel);
    g_autofree char *knobs = ls_knobs_format (&r->strategy);
    if (!strstr (options, "software="))
      LS_CHECK ((strstr (knobs, "attention_kernel") != NULL)
                == (strstr (options, "attention_kernel") != NULL));
    for (guint k = 0; k < r->notes->len; k++)
      LS_CHECK (!strstr (r->notes->pdata[k], "attention by"));
  }
  g_unlink (file);
  g_rmdir (folder);
}

/* Their bytes are those of 16 bits; a list that is asked for is refused as ever. */
static void
listed_kernels_are_no_refusal_in_fp32 (void)
{
  g_autoptr (LsJobResult) r = run (MACHINE ("dgx-h100") "software=pytorch-ddp " SIZE "dtype=fp32");
  if (LS_CHECK (r))
    LS_CHECK (!r->strategy.use.kernels && !r->strategy.use.recipes);
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  set_all (&spec, JOB "dtype=fp32 kernels=torchtitan-2025-03");
  g_autoptr (LsJobResult) asked = ls_job_spec_run (&spec, &error);
  LS_CHECK (!asked && error);
  ls_job_spec_clear (&spec);
}

/* A program's habit is idle where it means nothing: torchtitan's recomputation ends early, without any too.
 * */
static void
ending_early_needs_no_recomputation (void)
{
#define TITAN MACHINE ("dgx-h100") "software=torchtitan " SIZE
  g_autoptr (LsJobResult) without = run (TITAN), with = run (TITAN "recompute=full"),
                          late = run (TITAN "recompute=full recompute_early_stop=0");
  if (!LS_CHECK (without && with && late))
    return;
  LS_CHECK (with->strategy.memory.recompute_early_stop);
  LS_CHECK (ls_job_result_step_time_s (with) < ls_job_result_step_time_s (late));
}

/* A release without words of its own has those of the program that has its way to be data parallel. */
static void
runs_like_are_those_of_the_program (void)
{
  static const struct {
    const char *software, *named;
    int dp_kind;
    const char *architecture, *words;
  } rows[] = {
    { NULL, NULL, LS_DP_NONE, "hopper", "any program, each simulated as textbook" },
    { "textbook", NULL, LS_DP_FSDP2, "hopper", "any program, each simulated as textbook" },
    { "mine", "a loop of our own", LS_DP_NONE, "tpu", "a loop of our own" },
    { "mine", NULL, LS_DP_NONE, "hopper", "Megatron-LM" },
    { "mine", NULL, LS_DP_NONE, "tpu", "XLA on TPUs" },
    { "mine", NULL, LS_DP_FSDP2, "hopper", "loops on PyTorch" },
    { "mine", NULL, LS_DP_XLA_FSDP, "hopper", "JAX on GPUs" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsStrategy s;
    ls_strategy_init (&s);
    s.program.software = g_strdup (rows[i].software);
    s.dp_kind = rows[i].dp_kind;
    LS_CHECK_STR (ls_softwares_runs_like (rows[i].named, &s, rows[i].architecture), rows[i].words);
    s.lora.rank = 8; /* whatever the program */
    LS_CHECK_STR (ls_softwares_runs_like (rows[i].named, &s, rows[i].architecture),
                  "adapters on frozen weights");
    ls_strategy_clear (&s);
  }
}

/* Hugging Face's layers have PyTorch's attention, whoever shards them: a window is a mask. */
static void
layers_of_hugging_face_mask_windows (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_SOFTWARE);
  guint n = 0;
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((const LsDataEntry *) entries->pdata[i])->name;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsSoftwareSpec software;
    if (!LS_CHECK (ls_software_load (name, &software, diags)))
      continue;
    const char *kernels = software.defaults.use.kernels;
    if (kernels && g_str_has_prefix (kernels, "hf-transformers")) {
      ls_check_impl (software.defaults.use.window_mask, __FILE__, __LINE__, "%s", name);
      n++;
    }
    ls_software_clear (&software);
  }
  LS_CHECK_INT (n, >=, 6);
}

/* torch's reducer has buckets beside the gradients, and copies the sums back; not where gradients are views
 * of buckets, and not where nothing overlaps, which is not torch's. */
static void
ddp_has_buckets_beside_its_gradients (void)
{
  static const char *const options[] = { JOB "seq=512 dp-kind=ddp bucket_view=0", JOB "seq=512 dp-kind=ddp",
                                         JOB "seq=512 dp-kind=ddp bucket_view=0 dp-overlap=0" };
  uint64_t bytes[G_N_ELEMENTS (options)] = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (options); i++) {
    g_autoptr (LsJobResult) r = run (options[i]);
    if (!LS_CHECK (r))
      return;
    bool is_copied = false;
    for (uint32_t s = 0; s < r->plan->n_segments; s++)
      for (uint32_t o = 0; o < r->plan->segments[s].n_ops; o++)
        is_copied |= g_strcmp0 (r->plan->segments[s].ops[o].name, "grad-from-bucket") == 0;
    LS_CHECK (is_copied == (i == 0));
    bytes[i] = r->report.needed_bytes;
  }
  LS_CHECK (bytes[0] > bytes[1]);
  LS_CHECK_INT (bytes[1], ==, bytes[2]);
}

LS_TEST_SUITE (LS_TEST (layers_of_hugging_face_mask_windows), LS_TEST (ddp_has_buckets_beside_its_gradients),
               LS_TEST (a_job_that_names_no_program_runs_the_textbook),
               LS_TEST (a_named_textbook_is_the_same_job), LS_TEST (stages_of_zero_are_those_of_the_notes),
               LS_TEST (what_does_not_run_there_is_told), LS_TEST (experts_that_run_otherwise_are_told),
               LS_TEST (calls_cost_what_the_cpu_takes), LS_TEST (a_named_program_gives_all_its_defaults),
               LS_TEST (what_words_are_padded_to_is_said_by_the_nearest),
               LS_TEST (options_are_the_same_job_again),
               LS_TEST (attention_that_was_not_measured_is_no_refusal),
               LS_TEST (a_release_lends_its_attention), LS_TEST (defaults_of_an_accelerator_hold_there),

               LS_TEST (listed_kernels_are_no_refusal_in_fp32), LS_TEST (ending_early_needs_no_recomputation),
               LS_TEST (runs_like_are_those_of_the_program))
