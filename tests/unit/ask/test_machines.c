/* Pins shipped hardware against published figures that nothing was fitted to: machines, and kernels on GPUs. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "ask/collective/collective_table.h"
#include "ask/kernel_times.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "job/job.h"

/* Pins machines that are not NVIDIA's usual ones against published figures that no constant was fitted to, and
 * that nothing of NVIDIA is there where it is not: all-reduces of RCCL on 8 MI300X at the sizes held out of
 * the fit, and over two nodes; products of PyTorch on MI300X; no NVLS, no LL128, no nvfp4 on GPUs of AMD. */

static LsCollectiveRun *
calls (const char *cluster, const char *op, const char *gpus, const char *min, const char *max)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_collective_spec_set (&spec, "cluster", cluster, diags)
            && ls_collective_spec_set (&spec, "op", op, diags)
            && ls_collective_spec_set (&spec, "gpus", gpus, diags)
            && ls_collective_spec_set (&spec, "min", min, diags)
            && ls_collective_spec_set (&spec, "max", max, diags)
            && ls_collective_spec_set (&spec, "factor", "4", diags));
  LsCollectiveRun *r = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  return r;
}

static LsCollectiveRun *
all_reduces (const char *cluster, const char *gpus, const char *min, const char *max)
{
  return calls (cluster, "all-reduce", gpus, min, max);
}

/* Microseconds of all-reduces of 2 MiB, times 4 each (ROCm/rocm-blogs, mi300x-rccl-xgmi@0e81c2c): the sizes that
 * topologies/calib/nccl.set.json holds out. */
static const double mi300x_us[] = { 34.81, 83.68, 244.1, 797.4, 3026.2, 11891, 47278 };

static void
rccl_is_as_measured_at_sizes_held_out (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "8", "2MiB", "8GiB");
  const LsCollectiveTable *t = run ? &run->table : NULL;
  if (!t || !LS_CHECK_INT (t->n_rows, ==, G_N_ELEMENTS (mi300x_us)))
    return;
  for (guint i = 0; i < t->n_rows; i++)
    LS_CHECK_NEAR ((double) t->rows[i].time / LS_US, mi300x_us[i], 0.15);
}

/* Microseconds of all-gathers over 4 chips of TPU7x, 2 MiB and times 4 each, of the two cores together
 * (AI-Hypercomputer/accelerator-microbenchmarks, Ironwood/guides/collectives/all_gather.md: the array of one core,
 * and the bandwidth at which both receive three quarters of it). The rate is the book's, the start the table's. */
static const double tpu7x_us[] = { 21.92, 48.70, 155.4, 576.0, 2252.4 };

static void
gathers_of_tpu7x_are_as_measured (void)
{
  g_autoptr (LsCollectiveRun) run = calls ("tpu7x", "all-gather", "4", "2MiB", "512MiB");
  const LsCollectiveTable *t = run ? &run->table : NULL;
  if (!t || !LS_CHECK_INT (t->n_rows, ==, G_N_ELEMENTS (tpu7x_us)))
    return;
  for (guint i = 0; i < t->n_rows; i++)
    LS_CHECK_NEAR ((double) t->rows[i].time / LS_US, tpu7x_us[i], 0.03);
}

/* 361 GB/s of bus bandwidth with 16 GiB (ROCm/rccl, pull request 2078); no more than its NICs carry. */
static void
two_nodes_of_mi300x_fill_their_nics (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "16", "16GiB", "16GiB");
  const LsCollectiveTable *t = run ? &run->table : NULL;
  if (!t)
    return;
  double bus = 2 * 15 / 16.0 * (double) t->rows[0].bytes / ls_time_to_s (t->rows[0].time);
  LS_CHECK_NEAR (bus, 361e9, 0.15);
  LS_CHECK (bus < 8 * 50e9 * 0.97);
}

/* Two of them have one link, of which RCCL gets what TransferBench does. */
static void
two_mi300x_have_one_link (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi300x-8", "2", "1GiB", "1GiB");
  const LsCollectiveTable *t = run ? &run->table : NULL;
  if (t)
    LS_CHECK_NEAR ((double) t->rows[0].bytes / ls_time_to_s (t->rows[0].time), 46.55e9, 0.03);
}

static void
amd_has_nothing_of_nvidia (void)
{
  g_autoptr (LsCollectiveRun) run = all_reduces ("mi355x-8", "8", "4KiB", "4GiB");
  const LsCollectiveTable *t = run ? &run->table : NULL;
  for (guint i = 0; t && i < t->n_rows; i++) {
    LS_CHECK_STR (t->rows[i].algorithm, "ring");
    LS_CHECK (strcmp (t->rows[i].protocol, "LL128") != 0);
  }
  static const char *const refused[][3]
      = { { "mi355x-8", "nvfp4", "--dtype nvfp4: mi355x gives no peak_flops" },
          { "mi300x-8:gpu=mi250x-gcd", "fp8", "--dtype fp8: mi250x-gcd gives" } };
  for (guint i = 0; i < G_N_ELEMENTS (refused); i++) {
    LsJobSpec spec;
    ls_job_spec_init (&spec);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (GError) error = NULL;
    LS_CHECK (ls_job_spec_set (&spec, "cluster", refused[i][0], diags)
              && ls_job_spec_set (&spec, "model", "gpt-1.7b", diags)
              && ls_job_spec_set (&spec, "gpus", "8", diags)
              && ls_job_spec_set (&spec, "dtype", refused[i][1], diags));
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
    LS_CHECK (!r && error && strstr (error->message, refused[i][2]) != NULL);
    ls_job_spec_clear (&spec);
  }
}

/* m, n, k and microseconds of linear layers in bf16, PyTorch 2.6 with ROCm (a profile of AMD-AGI/TraceLens). */
static const double products[][4]
    = { { 8944, 1024, 1024, 40.7 }, { 8944, 2816, 1024, 110.5 }, { 8944, 1024, 2816, 98.3 } };

static void
products_of_mi300x_are_as_measured (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsGpu gpu = { 0 };
  LsCalibration c = { 0 };
  if (LS_CHECK (ls_data_file_load (&ls_gpu_file, "mi300x", &gpu, diags)
                && ls_data_file_load (&ls_calibration_file, gpu.calibration, &c, diags)))
    for (guint i = 0; i < G_N_ELEMENTS (products); i++) {
      const double *p = products[i];
      LsKernel k = ls_kernel_gemm ("g", LS_DTYPE_BF16, (uint64_t) p[0], (uint64_t) p[1], (uint64_t) p[2], 1,
                                   2, false);
      LS_CHECK_NEAR ((double) ls_kernel_cost (&c, &gpu, &k).alone / LS_US, p[3], 0.15);
    }
  ls_calibration_clear (&c);
  ls_gpu_clear (&gpu);
}

/* TFLOP/s, causal, heads of 128. AUTO: AITER's assembly, 8 sequences, 64 heads, 8 of keys (ROCm/aiter,
 * op_tests/cpp/mha/README.md and, MI355X backward, pull request 815). AOTriton's and Composable Kernel's (FA2) on
 * MI355X: 16 sequences of 16 heads, FA2's backward of 64 (HazyResearch/HipKittens, analysis/attn); AOTriton's forward on MI300X:
 * midiareshadi/attn-dsl-bench. MI300X's are below the clock of its peak: 0.919 of it is left. */
static const struct {
  const char *gpu;
  LsAttentionKernel kernel;
  uint64_t tokens;
  bool backward;
  double rate, clock;
} attentions[] = {
  { "mi300x", LS_ATTENTION_KERNEL_AUTO, 1024, false, 321.9, 0.919 },
  { "mi300x", LS_ATTENTION_KERNEL_AUTO, 4096, false, 509.3, 0.919 },
  { "mi300x", LS_ATTENTION_KERNEL_AUTO, 8192, false, 550.7, 0.919 },
  { "mi300x", LS_ATTENTION_KERNEL_AUTO, 1024, true, 324.2, 0.919 },
  { "mi300x", LS_ATTENTION_KERNEL_AUTO, 8192, true, 474.0, 0.919 },
  { "mi355x", LS_ATTENTION_KERNEL_AUTO, 8192, true, 1052.5, 1 },
  { "mi300x", LS_ATTENTION_KERNEL_AOTRITON, 8192, false, 289.5, 0.919 },
  { "mi355x", LS_ATTENTION_KERNEL_AOTRITON, 8192, false, 630.4, 1 },
  { "mi355x", LS_ATTENTION_KERNEL_AOTRITON, 8192, true, 224.0, 1 },
  { "mi355x", LS_ATTENTION_KERNEL_FA2, 8192, false, 843.5, 1 },
  { "mi355x", LS_ATTENTION_KERNEL_FA2, 8192, true, 489.2, 1 },
};

static void
attention_of_amd_is_as_measured (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (attentions); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsGpu gpu = { 0 };
    LsCalibration c = { 0 };
    LsKernel k = ls_kernel_attention ("a", LS_DTYPE_BF16, 8, attentions[i].tokens, 64, 8, 128, true,
                                      attentions[i].backward);
    if (LS_CHECK (ls_data_file_load (&ls_gpu_file, attentions[i].gpu, &gpu, diags)
                  && ls_data_file_load (&ls_calibration_file, gpu.calibration, &c, diags))) {
      c.attention_kernel = (int) attentions[i].kernel;
      double s = ls_time_to_s (ls_kernel_cost (&c, &gpu, &k).alone) / attentions[i].clock;
      LS_CHECK_NEAR (k.flops / s / 1e12, attentions[i].rate, 0.04);
    }
    ls_calibration_clear (&c);
    ls_gpu_clear (&gpu);
  }
}

/* TFLOP/s of H20, whose calibration is the H100's over the balance of its SMs: 2 sequences of 2,048 tokens without a
 * mask, a width of 2,048 in all (Dao-AILab/flash-attention, issue 1310). None is fitted; of FlashAttention-2 the tail is as long as
 * on the H100, which is too long here. */
static void
attention_of_h20_follows_from_the_h100 (void)
{
  static const struct {
    LsAttentionKernel kernel;
    uint64_t width;
    double rate, within;
  } cases[] = {
    { LS_ATTENTION_KERNEL_CUDNN, 64, 126.1, 0.12 }, { LS_ATTENTION_KERNEL_CUDNN, 128, 129.1, 0.12 },
    { LS_ATTENTION_KERNEL_FA3, 64, 120.1, 0.12 },   { LS_ATTENTION_KERNEL_FA3, 128, 126.2, 0.12 },
    { LS_ATTENTION_KERNEL_FA2, 64, 81.8, 0.21 },    { LS_ATTENTION_KERNEL_FA2, 128, 83.7, 0.21 },
  };
  LsCalibration c = { 0 };
  LsGpu gpu = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_data_file_load (&ls_gpu_file, "h20", &gpu, diags)
                 && ls_data_file_load (&ls_calibration_file, gpu.calibration, &c, diags)))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    uint64_t heads = 2048 / cases[i].width;
    LsKernel k
        = ls_kernel_attention ("a", LS_DTYPE_BF16, 2, 2048, heads, heads, cases[i].width, false, false);
    c.attention_kernel = (int) cases[i].kernel;
    LS_CHECK_NEAR (k.flops / ls_time_to_s (ls_kernel_cost (&c, &gpu, &k).alone) / 1e12, cases[i].rate,
                   cases[i].within);
  }
  ls_calibration_clear (&c);
  ls_gpu_clear (&gpu);
}

/* --- networks without GPUDirect --------------------------------------------------------------------- */

/* Pins what a network without GPUDirect, or over TCP, does to collectives: on every shipped cluster of servers
 * with it none is faster than without PXN (which it has not), and small ones are slower; a large one over all
 * nodes moves no more than the links from switch to CPU carry of it; nothing changes inside a node; and what
 * crosses nodes over TCP is no faster, and is said to be bound by a core unless the user gives a rate. */

static LsCollectiveRun *
run_with (const char *cluster, const char *changes, const char *op, uint32_t n_gpus, const char *nccl)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strconcat (cluster, changes, NULL), *gpus = g_strdup_printf ("%u", n_gpus);
  LS_CHECK (ls_collective_spec_set (&spec, "cluster", name, diags)
            && ls_collective_spec_set (&spec, "op", op, diags)
            && ls_collective_spec_set (&spec, "gpus", gpus, diags)
            && ls_collective_spec_set (&spec, "min", "64KiB", diags)
            && ls_collective_spec_set (&spec, "max", "1GiB", diags)
            && ls_collective_spec_set (&spec, "factor", "128", diags));
  if (nccl)
    LS_CHECK (ls_collective_spec_set (&spec, "nccl", nccl, diags));
  LsCollectiveRun *r = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  return r;
}

static void
check_rows (const char *cluster, const char *op, uint32_t n_gpus, bool is_same, bool is_bound)
{
  g_autoptr (LsCollectiveRun) past = run_with (cluster, ":fabric.pxn=false", op, n_gpus, NULL);
  g_autoptr (LsCollectiveRun) through = run_with (cluster, ":node.nics.gpudirect=false", op, n_gpus, NULL);
  g_autoptr (LsCollectiveRun) tcp = run_with (cluster, ":node.nics.transport=tcp", op, n_gpus, NULL);
  if (!past || !through || !tcp)
    return;
  const LsCollectiveTable *a = &past->table, *b = &through->table, *c = &tcp->table;
  for (guint i = 0; i < a->n_rows; i++) {
    bool ok = is_same ? b->rows[i].time == a->rows[i].time : b->rows[i].time >= a->rows[i].time + (i == 0);
    ok = ok && (is_same ? c->rows[i].time == b->rows[i].time : c->rows[i].time > b->rows[i].time);
    ls_check_impl (ok, __FILE__, __LINE__, "%s of %u GPUs of %s, row %u", op, n_gpus, cluster, i);
  }
  guint n = past->notes->len; /* of what was not measured there */
  LS_CHECK_INT (through->notes->len, ==, n);
  LS_CHECK_INT (tcp->notes->len, ==, n + is_bound);
}

static void
nothing_is_faster_through_host_memory (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_CLUSTERS);
  guint n = 0;
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((LsDataEntry *) entries->pdata[i])->name;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsClusterSpec spec;
    if (!LS_CHECK (ls_cluster_load (name, &spec, diags)))
      continue;
    bool has_network = spec.interior == LS_INTERIOR_SERVER && spec.nics.n > 0
        && spec.nics.transport == LS_NIC_RDMA && !spec.nics.is_staged;
    bool is_bound = ls_link_capacity (&spec.nics.port) > LS_SOCKET_RATE; /* others are slower than sockets */
    for (guint k = 0; has_network && k < 3; k++)
      check_rows (name, ((const char *const[]) { "all-reduce", "all-to-all", "all-gather" })[k],
                  2 * spec.gpus_per_node, false, is_bound);
    if (has_network)
      check_rows (name, "all-reduce", spec.gpus_per_node, true, false);
    n += has_network;
    ls_cluster_spec_clear (&spec);
  }
  LS_CHECK (n > 10);
}

/* Two of the eight GPUs share a PCIe switch of dgx-h100, and so its link to the CPU, 55.4 GB/s: what one
 * sends goes up and what its NIC takes comes down; what it receives does both the other way: 2 x 2 streams
 * over each direction. */
static void
links_to_the_cpu_carry_all_of_it (void)
{
  g_autoptr (LsCollectiveRun) r = run_with ("dgx-h100", ":node.nics.gpudirect=false", "all-gather", 16, NULL);
  if (!r)
    return;
  const LsCollectiveTable *t = &r->table;
  const LsCollectiveRow *last = &t->rows[t->n_rows - 1];
  double bytes = (double) last->bytes / 2,
         seconds = (double) last->time / 1e12; /* half of the array crosses, once over 8 NICs */
  LS_CHECK (bytes / 8 / seconds < 63e9 * 0.88 / 4);
  LS_CHECK (bytes / 8 / seconds > 0.5 * 63e9 * 0.88 / 4);
}

static void
figures_of_the_user_are_no_bound (void)
{
  g_autoptr (LsCollectiveRun) r = run_with ("dgx-h100", ":node.nics.transport=tcp", "all-reduce", 16, NULL);
  g_autoptr (LsCollectiveRun) said = run_with (
      "dgx-h100", ":node.nics.transport=tcp,node.nics.socket_rate=20GB/s", "all-reduce", 16, NULL);
  LS_CHECK (r && r->notes->len == 1);
  LS_CHECK (said && said->notes->len == 0);
}

/* What a collective or a kernel alone rests on where its machine was not measured; the user's own figures replace it. */
static void
what_is_scaled_is_told (void)
{
  static const struct {
    const char *cluster, *nccl, *told;
    uint32_t gpus;
  } cases[] = {
    { "aws-p5", NULL,
      "not measured on this machine, with what a time is typically off for that: "
      "collectives across nodes scaled from dgx-h100 (15 %)",
      16 },
    { "aws-p5", "nccl-h100", NULL, 16 },
    { "aws-p5", NULL, NULL, 8 },
    { "dgx-h100", NULL, NULL, 16 },
    { "l40s-pcie", NULL,
      "not measured on this machine, with what a time is typically off for that: "
      "collectives in a node scaled from a100-80g (25 %)",
      8 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsCollectiveRun) r
        = run_with (cases[i].cluster, "", "all-reduce", cases[i].gpus, cases[i].nccl);
    const GPtrArray *notes = r ? r->notes : NULL;
    LS_CHECK_INT (notes->len, ==, cases[i].told != NULL);
    LS_CHECK (!cases[i].told || g_str_equal (notes->pdata[0], cases[i].told));
  }
  static const char *const gpus[] = { "h20", "h100" };
  for (guint i = 0; i < G_N_ELEMENTS (gpus); i++) {
    LsKernelSpec spec;
    ls_kernel_spec_init (&spec);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LS_CHECK (ls_kernel_spec_set (&spec, "gpu", gpus[i], diags)
              && ls_kernel_spec_set (&spec, "gemm", "4096,4096,4096", diags));
    g_autoptr (LsKernelRows) rows = ls_kernel_rows_new (&spec, NULL);
    LS_CHECK (rows && rows->notes->len == (i == 0));
    ls_kernel_spec_clear (&spec);
  }
}

/* Times of kernels on the shipped GPUs: the accuracy that is promised, on families that
 * no fit saw, and published figures that no fit used. Targets: 7 % for 16-bit GEMMs of
 * 1 GFLOP and more, 10 % in fp8, 8 % for attention from 1024 tokens on, 15 % for
 * streaming kernels of 8 MB and more; medians within 2 %. The large tables of the other
 * GPUs are left to fit/kernels, which holds all calibrations to the same. */

typedef struct {
  const char *key, *value;
} Knob;

static LsKernelRows *
rows_of (const Knob *knobs, GError **error)
{
  LsKernelSpec spec;
  ls_kernel_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (; knobs->key; knobs++)
    LS_CHECK (ls_kernel_spec_set (&spec, knobs->key, knobs->value, diags));
  LsKernelRows *rows = ls_kernel_rows_new (&spec, error);
  ls_kernel_spec_clear (&spec);
  return rows;
}

static LsKernelRow
one (const Knob *knobs)
{
  g_autoptr (LsKernelRows) rows = rows_of (knobs, NULL);
  LsKernelRow none = { .time_s = NAN };
  LS_CHECK (rows && rows->rows->len == 1);
  return rows ? g_array_index (rows->rows, LsKernelRow, 0) : none;
}

/* Held-out error of a table, at least `n` rows, must stay under `mape`; the median too. */
static void
check_table (const char *gpu, const char *file, const char *dtype, const char *min_key, const char *min,
             guint n, double mape, double median)
{
  const char *data = ls_test_shared_data ();
  if (!data)
    return;
  g_autofree char *path = g_build_filename (data, "kernels", file, NULL);
  const Knob knobs[] = { { "gpu", gpu },   { "from", path },   { "dtype", dtype },
                         { min_key, min }, { "holdout", "1" }, { NULL } };
  g_autoptr (LsKernelRows) rows = rows_of (knobs, NULL);
  if (!LS_CHECK (rows != NULL))
    return;
  const LsKernelErrors *e = &rows->held_out;
  ls_check_impl (e->n >= n && e->mape_pct <= mape && fabs (e->median_pct) <= median, __FILE__, __LINE__,
                 "%s, %s, %s: %u rows, error %.2f %%, median %+.2f %%", gpu, file, dtype, e->n, e->mape_pct,
                 e->median_pct);
}

static void
gemms_are_within_7_percent (void)
{
  check_table ("a100-80g", "gemm_a100.csv", "bf16", "min-flops", "1e9", 300, 7, 2);
}

static void
attention_is_within_3_percent (void)
{
  check_table ("a100-80g", "attn_fwd_a100.csv", "bf16", "min-seq", "1024", 350, 3, 2);
}

static void
streams_are_within_15_percent (void)
{
  check_table ("a100-80g", "elementwise_vidur.csv", "fp16", "min-bytes", "8MB", 12, 15, 2);
}

/* Worked examples fa-2 and fa-3: FlashAttention-3 on an H100, bf16, no mask, 16,384 tokens:
 * 620.7 and 648 TFLOP/s by two readings, which differ by 4 %. Ours is fitted to another
 * kernel, TensorRT-LLM's, and to causal masks only: slower, but within 15 %. */
static void
attention_without_a_mask_is_near_flash_attention_3 (void)
{
  const Knob knobs[]
      = { { "gpu", "h100" }, { "attention", "1,16384,16,16,128" }, { "causal", "0" }, { NULL } };
  LsKernelRow row = one (knobs);
  LS_CHECK_NEAR (row.kernel.flops / row.time_s, 634e12, 0.15);
}

/* MAMF table (stas00/ml-engineering compute/accelerator: 794.5, 271.2 TFLOP/s): best sustained rates at their
 * shapes. */
static void
best_matmuls_are_near_the_best_sustained_rate (void)
{
  const Knob h100[] = { { "gpu", "h100" }, { "gemm", "2048,2048,13312" }, { NULL } };
  const Knob a100[] = { { "gpu", "a100-80g" }, { "gemm", "1024,10240,5120" }, { NULL } };
  LsKernelRow h = one (h100), a = one (a100);
  LS_CHECK_NEAR (h.kernel.flops / h.time_s, 794.5e12, 0.1);
  LS_CHECK_NEAR (a.kernel.flops / a.time_s, 271.2e12, 0.1);
}

static void
a_step_is_hotter_than_a_loop (void)
{
  const Knob loop[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { NULL } };
  const Knob step[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "sustained", "1" }, { NULL } };
  LS_CHECK_DOUBLE (one (step).time_s, >, one (loop).time_s);
}

static void
what_was_not_measured_is_flagged (void)
{
  const Knob usual[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { NULL } };
  const Knob layout[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "layout", "nt" }, { NULL } };
  const Knob dtype[] = { { "gpu", "h100" }, { "gemm", "4096,4096,4096" }, { "dtype", "tf32" }, { NULL } };
  const Knob huge[] = { { "gpu", "h100" }, { "gemm", "900000,90000,90000" }, { NULL } };
  LS_CHECK (!one (usual).extrapolated);
  LS_CHECK_INT (one (usual).source, ==, LS_COST_FITTED);
  LS_CHECK (one (layout).extrapolated);
  LS_CHECK (one (dtype).extrapolated);
  LS_CHECK (one (huge).extrapolated);
}

static void
an_a100_has_no_fp8 (void)
{
  g_autoptr (GError) error = NULL;
  const Knob knobs[] = { { "gpu", "a100-80g" }, { "gemm", "1,1,1" }, { "dtype", "fp8" }, { NULL } };
  LS_CHECK (rows_of (knobs, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
}

LS_TEST_SUITE (LS_TEST (rccl_is_as_measured_at_sizes_held_out), LS_TEST (gathers_of_tpu7x_are_as_measured),
               LS_TEST (two_nodes_of_mi300x_fill_their_nics), LS_TEST (two_mi300x_have_one_link),
               LS_TEST (amd_has_nothing_of_nvidia), LS_TEST (products_of_mi300x_are_as_measured),
               LS_TEST (attention_of_amd_is_as_measured), LS_TEST (attention_of_h20_follows_from_the_h100),
               LS_TEST (nothing_is_faster_through_host_memory), LS_TEST (links_to_the_cpu_carry_all_of_it),
               LS_TEST (figures_of_the_user_are_no_bound), LS_TEST (what_is_scaled_is_told),
               LS_TEST (gemms_are_within_7_percent), LS_TEST (attention_is_within_3_percent),
               LS_TEST (streams_are_within_15_percent),
               LS_TEST (attention_without_a_mask_is_near_flash_attention_3),
               LS_TEST (best_matmuls_are_near_the_best_sustained_rate),
               LS_TEST (a_step_is_hotter_than_a_loop), LS_TEST (what_was_not_measured_is_flagged),
               LS_TEST (an_a100_has_no_fp8))
