/* Pins which GPU file a driver's name means, and when it contradicts a cluster's. */
#include "ls_test.h"

#include "job/gpu_called.h"

static void
drivers_names (void)
{
  static const char *const names[][2] = {
    { "NVIDIA A100-SXM4-80GB", "a100-80g" },
    { "NVIDIA A100-SXM4-40GB", "a100-40g" },
    { "NVIDIA H100 80GB HBM3", "h100" },
    { "NVIDIA H200", "h200" },
    { "NVIDIA H20", "h20" },
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

static void
contradictions (void)
{
  LS_CHECK (ls_gpu_is_other ("NVIDIA A100-SXM4-80GB", "h100"));
  LS_CHECK (ls_gpu_is_other ("NVIDIA A100-SXM4-80GB", "a100-40g"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100 80GB HBM3", "h100"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100 80GB HBM3", "my-h100"));
  LS_CHECK (!ls_gpu_is_other ("NVIDIA H100", "h100-96g"));
  LS_CHECK (!ls_gpu_is_other ("AMD Instinct MI400X", "h100")); /* nobody knows */
  LS_CHECK (ls_gpu_is_other ("AMD Instinct MI300X", "h100"));
}

LS_TEST_MAIN ("gpu_called", LS_TEST (drivers_names), LS_TEST (contradictions))
