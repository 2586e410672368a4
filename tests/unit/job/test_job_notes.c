/* Pins what the notes of a result tell of kernels: what is not simulated, what costs and need not, what frees
 * nothing. */
#include "run_options.h"

#include <string.h>

#include "data/datadir.h"
#include "data/machines/machines.h"
#include "job/job_steps.h"

#define MIXTRAL "model=mixtral-8x7b:layers=2 cluster=dgx-h100 "

/* Of DeepSpeed's stage 3, and of models whose experts run one after the other. */
static void
fetches_of_experts_are_told (void)
{
  static const struct {
    const char *options;
    gboolean is_told;
  } rows[] = {
    { MIXTRAL "software=hf-trainer-2024 " SIZE "dp-kind=deepspeed zero=3", TRUE },
    { MIXTRAL "software=hf-trainer-2024 " SIZE "dp-kind=deepspeed zero=2", FALSE },
    { MIXTRAL "software=hf-trainer-2024 " SIZE "dp-kind=fsdp1 zero=3", FALSE },
    { MACHINE ("dgx-h100") "software=hf-trainer-2024 " SIZE "dp-kind=deepspeed zero=3", FALSE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    gboolean is_told = FALSE;
    for (guint k = 0; r && k < r->notes->len; k++)
      is_told |= strstr (r->notes->pdata[k], "fetches and frees the parameters of 8 experts") != NULL;
    LS_CHECK_INT (is_told, ==, rows[i].is_told);
  }
}

/* Products of experts one by one: the host takes most of the step, by a cost that was measured once. */
static void
lone_products_are_told_where_they_cost (void)
{
#define EXPERTS "model=qwen3-30b-a3b:layers=2 cluster=dgx-h100 gpus=8 global-batch=8 seq=4096 "
  for (int is_grouped = 0; is_grouped < 2; is_grouped++) {
    g_autoptr (LsJobResult) r = run (is_grouped ? EXPERTS "grouped-gemm=1" : EXPERTS);
    bool is_told = false;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      is_told |= g_str_has_prefix (r->notes->pdata[k], "the host takes ");
    LS_CHECK (is_told == !is_grouped);
  }
}

/* Under Megatron-Core selective recomputation of attention runs flash attention again, and frees nothing; not in
 * software that leaves it out, nor where there are scores to free, nor of other parts. */
static void
flash_that_runs_again_is_told (void)
{
#define CORE MACHINE ("dgx-h100") "software=megatron " SIZE
  static const struct {
    const char *options;
    bool is_told;
  } rows[] = {
    { CORE "recompute=selective", true },
    { CORE "recompute=selective recompute-parts=norm,activation", false },
    { CORE "recompute=selective attention=unfused", false },
    { MACHINE ("dgx-h100") "software=megatron-lm-2023-08 " SIZE "attention=flash recompute=selective",
      false },
    { CORE "recompute=full", false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    bool is_told = false;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      is_told |= strstr (r->notes->pdata[k], "frees next to nothing here") != NULL;
    ls_check_impl (is_told == rows[i].is_told, __FILE__, __LINE__, "%s", rows[i].options);
  }
}

/* More layers are asked for than a stage has: all of it runs again, as in Megatron-LM. */
static void
recomputed_layers_beyond_a_stage_are_told (void)
{
#define EIGHT                                                                                                \
  "model=llama3.1-8b:layers=8 cluster=dgx-h100 gpus=8 global-batch=8 recompute=full recompute-method=block "
  static const struct {
    const char *options, *told; /* NULL: nothing */
  } rows[] = {
    { EIGHT "recompute-layers=8", NULL },
    { EIGHT "recompute-layers=9", "9 layers are to be recomputed, and no stage has more than 8 at once" },
    { EIGHT "pp=2 recompute-layers=4", NULL },
    { EIGHT "pp=2 recompute-layers=5", "and no stage has more than 4 at once" },
    { EIGHT "pp=2 recompute-stages=5,0",
      "5 layers are to be recomputed, and no stage has more than 4 at once" },
    { EIGHT "pp=2 recompute-stages=4,0", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], "are to be recomputed"))
        found = r->notes->pdata[k];
    ls_check_impl (rows[i].told ? found && strstr (found, rows[i].told) : !found, __FILE__, __LINE__, "%s",
                   rows[i].options);
  }
}

/* Bytes for bits and giga for tera; no machine at hand looks so. */
static void
rates_in_another_unit_are_told (void)
{
  static const struct {
    const char *cluster, *told; /* NULL: nothing */
  } rows[] = {
    { "dgx-h100:node.nics.link.bandwidth=400GB/s", "a NIC of 400.0 GB/s is behind PCIe of 63.0 GB/s" },
    { "dgx-h100:node.nics.link.bandwidth=400Gbit/s", NULL },
    { "{\"extends\":\"dgx-h100\",\"gpu\":{\"extends\":\"h100\",\"hbm_bandwidth\":\"3.35GB/s\"}}",
      "is the unit of peak_flops or hbm_bandwidth wrong?" },
    { "{\"extends\":\"dgx-h100\",\"gpu\":{\"extends\":\"h100\",\"peak_flops\":{\"bf16\":\"989GFLOP/s\","
      "\"fp16\":\"989GFLOP/s\"}}}",
      "is the unit of peak_flops or hbm_bandwidth wrong?" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (rows[i].cluster, &spec, diags)))
      continue;
    ls_cluster_doubts (&spec, notes);
    LS_CHECK_INT (notes->len, ==, rows[i].told ? 1 : 0);
    LS_CHECK (notes->len == 0 || strstr (notes->pdata[0], rows[i].told));
    ls_cluster_spec_clear (&spec);
  }
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (entry->path, &spec, diags)))
      continue;
    ls_cluster_doubts (&spec, notes);
    ls_check_impl (notes->len == 0, __FILE__, __LINE__, "%s", entry->name);
    ls_cluster_spec_clear (&spec);
  }
}

/* Short layers with experts in mxfp8, by a host that is not simulated; not long ones, those in 16 bits, those of
 * one kernel, and a step that is one graph. */
static void
a_host_that_is_not_simulated_is_told (void)
{
#define IN_MXFP8                                                                                             \
  "model=qwen3-30b-a3b:layers=2 cluster=dgx-b200 gpus=8 ep=8 global-batch=8 micro-batch=1 dtype=fp8 "        \
  "fp8_recipe=mxfp8 "
  static const struct {
    const char *options;
    gboolean is_told;
  } rows[] = {
    { IN_MXFP8 "seq=4096", TRUE },
    { IN_MXFP8 "seq=4096 cuda-graphs=layer", TRUE },
    { IN_MXFP8 "seq=4096 cuda-graphs=step", FALSE },
    { IN_MXFP8 "seq=4096 grouped_gemm=1", FALSE },
    { IN_MXFP8 "seq=32768", FALSE },
    { "model=qwen3-30b-a3b:layers=2 cluster=dgx-b200 gpus=8 ep=8 global-batch=8 micro-batch=1 seq=4096",
      FALSE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    gboolean is_told = FALSE;
    LS_CHECK (r != NULL);
    for (guint k = 0; r && k < r->notes->len; k++)
      is_told |= strstr (r->notes->pdata[k], "with experts in mxfp8") != NULL;
    ls_check_impl (is_told == rows[i].is_told, __FILE__, __LINE__, "%s", rows[i].options);
  }
}

/* On TPUs, chips of the last slice that a job leaves idle; of several slices also what the parameters then cross.
 * Nothing where slices are full, or the job says which they are. */
static void
slices_that_are_not_full_are_told (void)
{
#define CHIPS "model=llama3.1-8b:layers=1 cluster=tpu-v5e "
  static const struct {
    const char *options, *note;
  } rows[] = {
    { CHIPS "gpus=16 global-batch=16", NULL },
    { CHIPS "gpus=512 global-batch=512", NULL },
    { CHIPS "gpus=100 global-batch=100",
      "100 chips are no whole slice: they lie in 1 of 112 chips, of which 12 are idle" },
    { CHIPS "gpus=300 global-batch=300",
      "300 chips are no whole slices: they lie in 2 of 160 chips, of which 20 are idle; what is cut over slices "
      "that are not alike goes round all chips in one ring, by a NIC of each slice: 320 chips would be a copy in "
      "each" },
    { CHIPS "gpus=300 global-batch=300 dp-kind=ddp",
      "300 chips are no whole slices: they lie in 2 of 160 chips, of which 20 are idle" },
    { CHIPS "slice=4x4 gpus=8 global-batch=8", NULL },
    { MACHINE ("dgx-h100") "gpus=3 global-batch=3", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    const char *found = NULL;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      if (strstr (r->notes->pdata[k], " no whole slice"))
        found = r->notes->pdata[k];
    LS_CHECK_STR (found, rows[i].note);
  }
}

/* Speeds that are drawn take the place of the slowest GPU's, so that a step may be shorter with them. */
static void
drawn_speeds_are_told (void)
{
#define RANKS MACHINE ("dgx-h100") SIZE
  static const struct {
    const char *options;
    bool is_told;
  } rows[] = { { RANKS "slow=seed=1,sigma=0.001", true },
               { RANKS "slow=rank=1:1.2", false },
               { CHIPS "gpus=16 global-batch=16 slow=sigma=0.001", false } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsJobResult) r = run (rows[i].options);
    bool is_told = false;
    for (guint k = 0; LS_CHECK (r) && k < r->notes->len; k++)
      is_told |= g_str_has_prefix (r->notes->pdata[k], "--slow draws speeds around that of a mean GPU");
    LS_CHECK (is_told == rows[i].is_told);
  }
}

/* CUDA's, which waits on GPUs alone. */
static void
no_host_waits_for_the_ops_of_tpus (void)
{
  g_autoptr (LsJobResult) on_tpus = run (CHIPS "gpus=16 global-batch=16 launch_blocking=1"),
                          on_gpus = run (RANKS "launch_blocking=1");
  LS_CHECK (on_tpus && !on_tpus->strategy.launch.launch_blocking);
  LS_CHECK (on_gpus && on_gpus->strategy.launch.launch_blocking);
}

/* What nobody measured there takes the time of what its program runs by itself, which the note names. */
static void
attention_that_is_not_there_is_the_programs_own (void)
{
#define TITAN MACHINE ("mi300x-8") "software=torchtitan " SIZE
  static const char *const lacks[] = { TITAN "attention_kernel=cudnn", TITAN "attention_kernel=pallas" };
  g_autoptr (LsJobResult) own = run (TITAN), fa2 = run (TITAN "attention_kernel=fa2");
  LS_CHECK (own && fa2 && own->report.digest != fa2->report.digest);
  for (guint i = 0; own && i < G_N_ELEMENTS (lacks); i++) {
    g_autoptr (LsJobResult) r = run (lacks[i]);
    LS_CHECK (r && r->report.step_time_s == own->report.step_time_s);
    const char *note = r && r->notes->len > 0 ? g_ptr_array_index (r->notes, r->notes->len - 1) : "";
    ls_check_impl (strstr (note, "was not measured on mi300x: it takes the time of aotriton") != NULL,
                   __FILE__, __LINE__, "%s", note);
  }
#undef TITAN
}

LS_TEST_SUITE (LS_TEST (rates_in_another_unit_are_told), LS_TEST (a_host_that_is_not_simulated_is_told),
               LS_TEST (fetches_of_experts_are_told), LS_TEST (lone_products_are_told_where_they_cost),
               LS_TEST (flash_that_runs_again_is_told), LS_TEST (recomputed_layers_beyond_a_stage_are_told),
               LS_TEST (slices_that_are_not_full_are_told), LS_TEST (drawn_speeds_are_told),
               LS_TEST (no_host_waits_for_the_ops_of_tpus),
               LS_TEST (attention_that_is_not_there_is_the_programs_own));
