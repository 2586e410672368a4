/* Pins that experts go with everything: every schedule, with tp, sp, etp, cp, every way to be data
 * parallel, recomputation, uneven loads; in each run FLOPs, bytes and memory are conserved
 * (analysis/conservation.h, exec/conserve.c), and folded and unfolded runs are the same. */
#include "ls_test.h"

#include <string.h>

#include "job/job.h"
#include "lower/lower.h"
#include "schedules/sched.h"

static LsModel
moe_model (bool is_latent)
{
  LsModel m = {
    .name = (char *) "experts",
    .n_layers = 8,
    .hidden = 256,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 32,
    .ffn = 1024,
    .vocab = 1024,
    .seq = 256,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH,
    .n_experts = 8,
    .top_k = 2,
    .expert_ffn = 256,
    .shared_ffn = 256,
    .n_dense_layers = 1,
    .moe_every = 1,
  };
  if (is_latent) {
    m.kv_lora = 64;
    m.q_lora = 96;
    m.rope_dim = 16;
    m.v_dim = 24;
  }
  return m;
}

/* knobs: "ep 4 tp 2 sp 1". The step time, or a negative number. */
static double
run (const LsHardware *hardware, const LsModel *m, const char *knobs, const char *schedule, LsShortcut fold)
{
  LsJobSpec spec;
  LsRunOptions options;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (knobs, " ", -1);
  ls_job_spec_init (&spec);
  for (guint i = 0; words[i] && words[i + 1]; i += 2)
    LS_CHECK (ls_job_spec_set (&spec, words[i], words[i + 1], diags));
  if (schedule)
    LS_CHECK (ls_job_spec_set (&spec, "schedule", schedule, diags));
  spec.strategy.gpus = 16;
  ls_run_options_init (&options);
  options.n_steps = 1;
  options.fold = fold;
  g_autoptr (LsJobResult) r = ls_job_simulate (m, hardware, 2, &spec.strategy, &options, &error);
  ls_check_impl (error == NULL, __FILE__, __LINE__, "%s, %s: %s", schedule ? schedule : "", knobs,
                 error ? error->message : "");
  double seconds = r ? ls_job_result_step_time_s (r) : -1;
  if (r)
    LS_CHECK (r->report.breakdown_s[LS_PART_OTHER] < 1e-9);
  ls_job_spec_clear (&spec);
  return seconds;
}

static LsHardware *
hardware_new (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_hardware_load ("dgx-h100", diags);
}

static void
every_schedule (void)
{
  static const char knobs[]
      = "pp 4 tp 2 sp 1 ep 2 etp 2 expert-load zipf:0.7 expert-capacity 1.1 global-batch 16";
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  for (guint i = 0; hardware && ls_sched_at (i); i++) {
    const LsSched *sched = ls_sched_at (i);
    if (strcmp (sched->name, "none") == 0)
      continue;
    LsSchedShape shape = { .pp = 4, .vpp = 1, .n_micro_batches = 8 };
    g_autofree char *all = g_strdup_printf ("%s%s", knobs, sched->refusal (&shape) ? " vpp 2" : "");
    run (hardware, &m, all, sched->name, LS_SHORTCUT_AUTO);
  }
  ls_hardware_free (hardware);
}

static void
every_way_to_be_data_parallel (void)
{
  static const char *const knobs[] = {
    "dp-kind ddp",
    "dp-kind megatron zero 1",
    "dp-kind megatron dp-overlap 0",
    "dp-kind ps",
    "dp-kind fsdp1",
    "dp-kind fsdp2",
    "zero 2",
    "zero 3",
    "recompute full",
    "recompute selective",
    "cp 2",
    "cp 2 cp-kind ulysses",
    "cp 2 cp-balance 0",
    "network alphabeta",
  };
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  for (guint k = 0; hardware && k < G_N_ELEMENTS (knobs); k++) {
    g_autofree char *even = g_strdup_printf ("%s ep 4", knobs[k]),
                    *uneven = g_strdup_printf ("%s ep 4 tp 2 sp 1 etp 1 expert-load zipf:1", knobs[k]);
    run (hardware, &m, even, NULL, LS_SHORTCUT_AUTO);
    run (hardware, &m, uneven, NULL, k % 4 == 0 ? LS_SHORTCUT_CHECK : LS_SHORTCUT_AUTO);
  }
  ls_hardware_free (hardware);
}

/* tp 8, dp 1: two ranks have the same experts all the same. */
static void
experts_alone_are_data_parallel (void)
{
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (false);
  if (!hardware)
    return;
  run (hardware, &m, "tp 8 sp 1 cp 1 pp 2 ep 4 etp 1", NULL, LS_SHORTCUT_CHECK);
  run (hardware, &m, "tp 8 sp 1 cp 1 pp 2 ep 4 etp 1 zero 1", NULL, LS_SHORTCUT_CHECK);
  ls_hardware_free (hardware);
}

static void
latent_attention_runs (void)
{
  LsHardware *hardware = hardware_new ();
  LsModel m = moe_model (true);
  if (!hardware)
    return;
  run (hardware, &m, "ep 8", NULL, LS_SHORTCUT_CHECK);
  run (hardware, &m, "tp 4 sp 1 ep 4 etp 1 pp 2", "zb-h1", LS_SHORTCUT_AUTO);
  m.n_experts = m.top_k = m.expert_ffn = m.shared_ffn = m.n_dense_layers = m.moe_every = 0;
  run (hardware, &m, "tp 4", NULL, LS_SHORTCUT_AUTO); /* latents on every rank: repeated FLOPs */
  m.q_lora = 0;
  run (hardware, &m, "tp 4 sp 1 tp-overlap 1", NULL, LS_SHORTCUT_AUTO);
  ls_hardware_free (hardware);
}

LS_TEST_MAIN ("experts", LS_TEST (every_schedule), LS_TEST (every_way_to_be_data_parallel),
              LS_TEST (experts_alone_are_data_parallel), LS_TEST (latent_attention_runs))
