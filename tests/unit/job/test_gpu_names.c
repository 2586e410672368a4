/* Pins what GPUs are called: which file a driver's name means, which cluster the words of a table, and whose
 * calibration and NCCL a job has. */
#include "ls_test.h"

#include <unistd.h>

#include "job/hardware.h"
#include "job/job_cases.h"

static void
drivers_names (void)
{
  static const char *const names[][2] = {
    { "NVIDIA A100-SXM4-80GB", "a100-80g" },
    { "NVIDIA A100-SXM4-40GB", "a100-40g" },
    { "NVIDIA H100 80GB HBM3", "h100" },
    { "NVIDIA H200", "h200" },
    { "NVIDIA H200 NVL", "h200-nvl" },
    { "NVIDIA H20", "h20" },
    { "NVIDIA A10G", "a10g" },
    { "NVIDIA A10", "a10" },
    { "Tesla T4", "t4" },
    { "NVIDIA RTX A6000", "rtx-a6000" },
    { "NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada" },
    { "NVIDIA GeForce RTX 3090", "rtx-3090" },
    { "NVIDIA H100 PCIe", "h100-pcie" },
    { "NVIDIA H100 NVL", "h100-nvl" },
    { "NVIDIA A100-PCIE-80GB", "a100-80g-pcie" },
    { "NVIDIA GB10", "gb10" },
    { "Tesla V100-SXM2-16GB", "v100-16g" },
    { "NVIDIA A30", "a30" },
    { "NVIDIA A40", "a40" },
    { "NVIDIA L4", "l4" },
    { "NVIDIA L40S", "l40s" },
    { "NVIDIA GeForce RTX 4090", "rtx-4090" },
    { "NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000" },
    { "Tesla V100-SXM2-32GB", "v100" },
    { "NVIDIA A100", NULL },
    { "A100 40GB or 80GB", NULL },
    { "AMD Instinct MI300X", "mi300x" },
    { "AMD Instinct MI400X", NULL },
    { "", NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *called = ls_gpu_called (names[i][0]);
    LS_CHECK_STR (called, names[i][1]);
  }
}

/* Which cluster a measured row means that names its accelerator alone: of several the one that the
 * accelerator's file names, a rack by its trays, none without a reason. */
static void
clusters_of_words (void)
{
  static const struct {
    const char *hardware, *per_node, *cluster; /* "": refused */
  } rows[] = {
    { "H200-SXM-141GB", "4", "hgx-h200-4" },
    { "AMD Instinct MI355X", "8", "mi355x-8" },
    { "DGX H100-80GB", "8", "dgx-h100" },
    { "H100 8-GPU nodes", "", "dgx-h100" },
    { "A100-SXM4-40GB", "8", "dgx-a100-40g" },
    { "8x A100-80GB SXM", "8", "dgx-a100-80g" },
    { "GB200 (Tyche)", "4", "gb200-nvl72" },
    { "GB300 NVL72", "72", "gb300-nvl72" },
    { "B200-SXM-180GB (OCI)", "8", "dgx-b200" },
    { "B300-SXM", "8", "dgx-b300" },
    { "NVIDIA A10G", "8", "aws-g5" },
    { "L4-24GB", "8", "aws-g6" },
    { "L40S", "8", "l40s-pcie" },
    { "H200-NVL-141GB", "8", "h200-nvl-pcie" },
    { "TPU v5e", "", "tpu-v5e" },
    { "H100-80GB", "2", "" },
    { "A100 server", "8", "" },
  };
  g_autofree char *path = NULL, *sum = NULL;
  close (g_file_open_tmp ("cases-XXXXXX.csv", &path, NULL));
  g_autoptr (GString) csv = g_string_new (
      "id,gpus,layers,hidden,heads,kv_heads,ffn,vocab,seq,mlp,attention,dtype,grad_dtype,global_batch,micro_batch,"
      "tp,pp,vpp,dp,cp,ep,zero,sp,recompute,schedule,dp_kind,dp_overlap,tp_overlap,p2p,iteration_s,hardware,"
      "gpus_per_node\n");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    g_string_append_printf (
        csv,
        "%u,8,2,1024,8,8,4096,50000,1024,swiglu,flash,bf16,fp32,8,1,1,1,1,8,1,1,1,0,none,none,"
        "megatron,1,0,none,1,%s,%s\n",
        i, rows[i].hardware, rows[i].per_node);
  g_file_set_contents (path, csv->str, -1, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *const paths[] = { path, NULL };
  g_autoptr (GPtrArray) cases = ls_job_cases_load (paths, NULL, true, &sum, diags);
  unlink (path);
  if (!LS_CHECK (cases && cases->len == G_N_ELEMENTS (rows)))
    return;
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = cases->pdata[i];
    LS_CHECK_STR (c->cluster, rows[i].cluster);
    LS_CHECK (c->by_hardware == (*rows[i].cluster != '\0') && (c->wrong != NULL) == !c->by_hardware);
  }
}

static void
contradictions (void)
{
  LS_CHECK (ls_gpu_is_other ("NVIDIA A100-SXM4-80GB", "h100"));
  LS_CHECK (ls_gpu_is_other ("NVIDIA A100-SXM4-80GB", "a100-40g"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100 80GB HBM3", "h100"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100 80GB HBM3", "my-h100"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100", "h100-96g"));
  LS_CHECK (ls_gpu_is_other ("AMD Instinct MI400X", "h100") && !ls_gpu_is_other ("MI400X", "my-mi400x"));
  LS_CHECK (ls_gpu_is_other ("AMD Instinct MI300X", "h100"));
}

/* Whichever NCCL is asked for: what runs a job is like, by its interval, hangs on its GPUs. */
static void
the_architecture_is_of_the_gpu (void)
{
  static const struct {
    const char *cluster, *nccl, *architecture;
    bool is_other;
  } cases[] = { { "mi300x-8", NULL, "cdna3", false },           { "mi300x-8", "nccl-h100", "cdna3", true },
                { "mi300x-8", "rccl-mi300x", "cdna3", false },  { "mi350x-8", NULL, "cdna4", false },
                { "mi355x-8", "rccl-mi300x", "cdna4", true },   { "l40s-pcie", NULL, "ada", false },
                { "rtx-4090-pcie", "nccl-a100", "ada", true },  { "dgx-h200", "nccl-h100", "hopper", false },
                { "dgx-a100-80g", "nccl-h100", "ampere", true } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const LsMeasuredFiles files = { NULL, cases[i].nccl };
    g_autoptr (LsHardware) h = ls_hardware_load_with (cases[i].cluster, &files, diags);
    if (!LS_CHECK (h != NULL))
      continue;
    LS_CHECK_STR (ls_hardware_architecture (h), cases[i].architecture);
    LS_CHECK_INT (ls_hardware_has_other_nccl (h), ==, cases[i].is_other);
  }
}

/* A calibration that another GPU's file names is told of, with its changes or without; one's own is not. Of
 * those that name it only those that it was measured on are said. */
static void
a_calibration_of_another_gpu_is_known (void)
{
  static const struct {
    const char *cluster, *calibration, *of;
  } cases[] = { { "mi300x-8", "h100", "h100, h100-96g, h800" },
                { "dgx-b200", "h100:sustained=0.9", "h100, h100-96g, h800" },
                { "tpu-v5p", "mi355x", "mi355x" },
                { "dgx-h100", "tpu", "tpu7x" },
                { "dgx-h100", "h100", NULL },
                { "hgx-h800", "h100:sustained=0.9", NULL },
                { "mi300x-8", NULL, NULL } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const LsMeasuredFiles files = { cases[i].calibration, NULL };
    g_autoptr (LsHardware) h = ls_hardware_load_with (cases[i].cluster, &files, diags);
    if (LS_CHECK (h != NULL))
      LS_CHECK_STR (h->calibration_of, cases[i].of);
  }
}

LS_TEST_SUITE (LS_TEST (drivers_names), LS_TEST (clusters_of_words), LS_TEST (contradictions),
               LS_TEST (the_architecture_is_of_the_gpu), LS_TEST (a_calibration_of_another_gpu_is_known))
