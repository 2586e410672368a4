/* Pins the round trip of `lockstep calibrate`: kernels timed by a known calibration, with
 * seeded noise, give its coefficients back within bounds, the same bytes each time, and a
 * file that kernels are costed by; collectives likewise. And what it refuses. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "calibrate/calibrate.h"
#include "calibrate/calibrate_nccl.h"
#include "compute/measured.h"
#include "data/machines/machines.h"
#include "network/coll.h"

#define NOISE 0.02

static const LsGpu gpu = { .n_sm = 100,
                           .hbm_bytes_per_s = 1e12,
                           .vector_flops = 10e12,
                           .peak_flops = { [LS_DTYPE_BF16] = 100e12, [LS_DTYPE_FP16] = 100e12 } };
static const LsKindFit known_gemm = { .is_fitted = true,
                                      .compute_efficiency = 0.85,
                                      .depth_half = 180,
                                      .tile_half = 25,
                                      .wave_rounding = 0.6,
                                      .memory_efficiency = 0.8,
                                      .launch = 3 * LS_US };
static const LsKindFit known_stream
    = { .is_fitted = true, .compute_efficiency = 1, .memory_efficiency = 0.8, .launch = 2500 * LS_NS };

/* A file in a folder of its own. */
typedef struct {
  char *folder, *path;
} File;

static File
file_new (const char *name, const char *text)
{
  File f = { .folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL) };
  f.path = g_build_filename (f.folder, name, NULL);
  LS_CHECK (g_file_set_contents (f.path, text, -1, NULL));
  return f;
}

static void
file_clear (File *f)
{
  g_unlink (f->path);
  g_rmdir (f->folder);
  g_free (f->path);
  g_free (f->folder);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (File, file_clear)

/* As the GPU flat of the golden tests, which has the figures above. */
static File
flat_new (void)
{
  return file_new (
      "flat.json",
      "{\"schema\":\"lockstep.gpu/1\",\"name\":\"flat\",\"source\":\"made up\","
      "\"peak_flops\":{\"bf16\":\"100TFLOP/s\",\"fp16\":\"100TFLOP/s\"},\"vector_flops\":\"10TFLOP/s\","
      "\"hbm_bandwidth\":\"1TB/s\",\"hbm_efficiency\":1,\"hbm_size\":\"16GiB\",\"sm\":100}");
}

/* Roughly normal, mean 1. */
static double
noise (GRand *rand)
{
  double sum = 0;
  for (int i = 0; i < 12; i++)
    sum += g_rand_double (rand);
  return 1 + NOISE * (sum - 6);
}

static void
append_row (GString *csv, const char *group, const char *name, const char *shape, const LsKernel *k,
            const LsKindFit *fit, double sustained, GRand *rand)
{
  double us = (double) ls_kernel_cost_by (fit, sustained, &gpu, k).alone / 1e6 * noise (rand);
  g_string_append_printf (csv, "%s,%s,%s,%s,%.0f,%.0f,%.3f\n", group, name, shape, ls_dtype_name (k->dtype),
                          k->bytes, k->flops, us);
}

static void
append_gemms (GString *csv, const char *group, double sustained, GRand *rand)
{
  static const uint64_t layers[][2]
      = { { 1024, 1024 }, { 2304, 6144 }, { 6144, 768 },  { 3072, 6144 }, { 4096, 4096 },
          { 512, 4096 },  { 8192, 2048 }, { 1536, 1024 }, { 2560, 2560 }, { 12288, 1536 } };
  for (uint64_t m = 512; m <= 8192; m *= 2)
    for (guint i = 0; i < G_N_ELEMENTS (layers); i++) {
      LsKernel k = ls_kernel_gemm ("forward", LS_DTYPE_BF16, m, layers[i][0], layers[i][1], 1, 2, false);
      g_autofree char *shape
          = g_strdup_printf ("%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT "x%" G_GUINT64_FORMAT, k.m, k.n, k.k);
      append_row (csv, group, "forward", shape, &k, &known_gemm, sustained, rand);
    }
}

static char *
profile_text (double sustained)
{
  GRand *rand = g_rand_new_with_seed (20261120);
  GString *csv = g_string_new ("group,name,shape,dtype,bytes,flops,time_us\n");
  append_gemms (csv, "gemm-isolated", 1, rand);
  if (sustained < 1)
    append_gemms (csv, "gemm-sustained", sustained, rand);
  for (uint64_t rows = 256; rows <= 65536; rows *= 2) {
    LsKernel k = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP16, rows, 3072,
                                   6.0 * (double) rows * 3072, 0);
    g_autofree char *shape = g_strdup_printf ("%" G_GUINT64_FORMAT "x3072", rows);
    append_row (csv, "streams", "add", shape, &k, &known_stream, 1, rand);
  }
  g_rand_free (rand);
  return g_string_free (csv, FALSE);
}

static LsCalibrateRun *
calibrate (const char *path, const char *gpu_path, GError **error)
{
  const char *const files[] = { path, NULL };
  const LsCalibrateSpec spec = { .files = files, .gpu = gpu_path, .version = "test" };
  return ls_calibrate_run_new (&spec, error);
}

/* Written under that name and read back. */
static bool
read_back (const char *json, LsCalibration *ret_calibration)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "mine.json", diags);
  bool ok = doc && ls_data_file_read (&ls_calibration_file, doc, ret_calibration, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return ok;
}

static void
check_coefficients (const LsCalibration *c)
{
  const LsKindFit *g = &c->kind[LS_KERNEL_GEMM], *s = &c->kind[LS_KERNEL_ELEMENTWISE];
  LS_CHECK (g->is_fitted && s->is_fitted && !c->kind[LS_KERNEL_SOFTMAX].is_fitted);
  LS_CHECK_NEAR (g->compute_efficiency, 0.85, 0.04);
  LS_CHECK_NEAR (g->depth_half, 180, 0.25);
  LS_CHECK_NEAR (g->wave_rounding, 0.6, 0.25);
  LS_CHECK_NEAR (s->memory_efficiency, 0.8, 0.03);
  LS_CHECK_NEAR ((double) s->launch, 2.5e6, 0.2);
  LS_CHECK_DOUBLE (g->mape, <=, 1.5 * NOISE);
  LS_CHECK_NEAR (c->sustained, 0.9, 0.03);
}

static void
known_coefficients_come_back (void)
{
  g_auto (File) flat = flat_new ();
  g_autofree char *text = profile_text (0.9);
  g_auto (File) profile = file_new ("profile.csv", text);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = calibrate (profile.path, flat.path, &error);
  g_autoptr (LsCalibrateRun) again = calibrate (profile.path, flat.path, NULL);
  LS_CHECK_NO_ERROR (error);
  if (!run || !again)
    return;
  g_autofree char *json = ls_calibrate_run_json (run, "mine"),
                  *json_again = ls_calibrate_run_json (again, "mine");
  LS_CHECK_STR (json, json_again);
  LS_CHECK (strstr (json, "\"timing\":\"burst and sustained\"") != NULL);
  LsCalibration c;
  if (!read_back (json, &c))
    return;
  check_coefficients (&c);
  LS_CHECK_INT (c.measured->len, ==, 50 + 9);
  LsKernel k = ls_kernel_gemm ("qkv", LS_DTYPE_BF16, 1024, 4096, 4096, 1, 2, false);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).source, ==, LS_COST_MEASURED);
  k = ls_kernel_gemm ("qkv", LS_DTYPE_BF16, 3000, 4096, 4096, 1, 2, false);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).source, ==, LS_COST_INTERPOLATED);
  k = ls_kernel_gemm ("qkv", LS_DTYPE_BF16, 16384, 4096, 4096, 1, 2, false);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).source, ==, LS_COST_FITTED);
  ls_calibration_clear (&c);
}

/* Streams of a layer as known_stream says of them alone, but `slower` times as long behind their launches. */
static void
append_layer (GString *csv, double slower)
{
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  c.kind[LS_KERNEL_ELEMENTWISE] = known_stream;
  c.around.streams_in_layer = slower;
  for (uint64_t rows = 1024; rows <= 16384; rows *= 4) {
    LsKernel k = ls_kernel_stream ("bias-gelu", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP16, rows, 6144,
                                   4.0 * (double) rows * 6144, 0);
    g_string_append_printf (csv, "context,bias-gelu,%" G_GUINT64_FORMAT "x6144,fp16,%.0f,0,%.3f\n", rows,
                            k.bytes, (double) ls_kernel_cost (&c, &gpu, &k).alone / 1e6);
  }
  ls_calibration_clear (&c);
}

/* Newly allocated: the file that rows of facts and a layer make, beside kernels; read back. */
static char *
calibrate_with (const char *rows, double slower, LsCalibration *ret_calibration)
{
  g_auto (File) flat = flat_new ();
  g_autofree char *kernels = profile_text (1);
  g_autoptr (GString) csv = g_string_new (kernels);
  g_string_append (csv, rows);
  append_layer (csv, slower);
  g_auto (File) profile = file_new ("profile.csv", csv->str);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = calibrate (profile.path, flat.path, &error);
  LS_CHECK_NO_ERROR (error);
  g_autofree char *json = run ? ls_calibrate_run_json (run, "mine") : NULL;
  return json && read_back (json, ret_calibration) ? g_steal_pointer (&json) : NULL;
}

/* The slower way has 5200 us alone and 6500 beside the other. Copies that are faster both ways than one, and
 * streams 100 times as slow, cannot be. */
static void
waits_shares_and_layers_come_back (void)
{
  LsCalibration c;
  g_autofree char *json = calibrate_with (
      "host,priority-wait,-,-,0,0,14.25\nhost,kernel-gap,-,-,0,0,0.0004\n"
      "copies,copy-host-to-device,-,-,268435456,0,5000\ncopies,copy-device-to-host,-,-,268435456,0,5200\n"
      "copies,copy-both-ways,-,-,536870912,0,6500\n",
      1.15, &c);
  if (!json)
    return;
  LS_CHECK_INT (c.around.priority_wait, ==, 14250 * LS_NS);
  LS_CHECK_INT (c.around.kernel_gap, ==, 400);
  LS_CHECK_NEAR (c.around.copy_duplex, 0.8, 1e-4);
  LS_CHECK_NEAR (c.around.streams_in_layer, 1.15, 0.02); /* the entry was fitted to noisy times */
  LS_CHECK (strstr (json, "\"streams_in_layer\":\"profile.csv, rows of streams of context\"") != NULL);
  ls_calibration_clear (&c);
  g_autofree char *odd = calibrate_with ("copies,copy-host-to-device,-,-,268435456,0,5000\n"
                                         "copies,copy-both-ways,-,-,536870912,0,4000\n",
                                         100, &c);
  if (!odd)
    return;
  LS_CHECK_DOUBLE (c.around.copy_duplex, ==, 1);
  LS_CHECK_DOUBLE (c.around.streams_in_layer, ==, 0);
  ls_calibration_clear (&c);
}

/* Nothing timed hot: burst, and it says so. Tables of others leave no measured rows. */
static void
tables_of_others_ship_coefficients (void)
{
  g_auto (File) flat = flat_new ();
  g_autoptr (GString) csv = g_string_new ("dtype,m,n,k,latency_ms\n");
  for (uint64_t m = 256; m <= 8192; m *= 2) {
    LsKernel k = ls_kernel_gemm ("gemm", LS_DTYPE_BF16, m, 4096, 1024, 1, 2, false);
    g_string_append_printf (csv, "bf16,%" G_GUINT64_FORMAT ",4096,1024,%.6f\n", m,
                            (double) ls_kernel_cost_by (&known_gemm, 1, &gpu, &k).alone / 1e9);
  }
  g_auto (File) table = file_new ("gemm.csv", csv->str);
  g_autoptr (LsCalibrateRun) run = calibrate (table.path, flat.path, NULL);
  if (!LS_CHECK (run != NULL))
    return;
  g_autofree char *json = ls_calibrate_run_json (run, "mine");
  LS_CHECK (strstr (json, "\"timing\":\"burst\"") != NULL);
  LS_CHECK (strstr (json, "\"measured\"") == NULL);
  LS_CHECK_INT (ls_calibrate_run_report (run)->n_measured, ==, 0);
}

/* Of a file's name only what JSON would have to escape is replaced. */
static void
files_are_named_as_they_are (void)
{
  g_auto (File) flat = flat_new (),
                table = file_new ("my \"best\" gemm.csv", "dtype,m,n,k,latency_ms\nbf16,4096,4096,4096,2\n");
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = calibrate (table.path, flat.path, &error);
  LS_CHECK_NO_ERROR (error);
  g_autofree char *json = run ? ls_calibrate_run_json (run, "mine") : NULL;
  LsCalibration c;
  if (!json || !read_back (json, &c))
    return;
  LS_CHECK (strstr (json, " of my _best_ gemm.csv; ") != NULL);
  ls_calibration_clear (&c);
}

static void
check_refused (const char *csv, LsErrorCode code, const char *why)
{
  g_auto (File) flat = flat_new (), table = file_new ("t.csv", csv);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCalibrateRun) run = calibrate (table.path, flat.path, &error);
  LS_CHECK (!run);
  ls_check_impl (g_error_matches (error, LS_ERROR, (int) code) && strstr (error->message, why), __FILE__,
                 __LINE__, "%s: %s", why, error ? error->message : "no error");
}

static void
nonsense_is_refused (void)
{
  check_refused ("dtype,m,n,k,latency_ms\nbf16,4096,4096,4096,1\n", LS_ERROR_INPUT,
                 "t.csv:2:21: error: /bf16/latency_ms: 137.4 TFLOP/s, 1.37 times the peak");
  check_refused ("dtype,m,n,k,latency_ms\nfp8,4096,4096,4096,5\n", LS_ERROR_INPUT,
                 "flat has no matrix units for fp8");
  check_refused ("dtype,m,n,k,latency_ms\nbf16,64,64,64,0.01\nbf16,64,64,64,0.02\n", LS_ERROR_INPUT,
                 "t.csv:3:15: error: /bf16/latency_ms: 20.00 us contradict the 10.00 us that row 1 has");
  check_refused ("group,name,shape,dtype,bytes,flops,time_us\nstreams,add,65536x8192,fp16,3221225472,0,100\n",
                 LS_ERROR_INPUT, "32.21 times the HBM bandwidth");
  check_refused ("dtype,m,n,k,latency_ms\nbf16,64,64,64,-1\n", LS_ERROR_INPUT, "latency_ms");
  check_refused ("group,name,shape,dtype,bytes,flops,time_us\nhost,event-bracket,-,-,0,0,4\n", LS_ERROR_INPUT,
                 "no kernel that an entry");
  check_refused (
      "group,name,shape,dtype,bytes,flops,time_us,implementation\nattention,flash-attention-fwd,1x64x1x1x64,bf16,1,1,4,own\n",
      LS_ERROR_INPUT, "it stands for none of fa2, fa3 and cudnn");
}

/* ---- collectives ---- */

typedef struct {
  const char *test; /* of nccl-tests */
  LsCollKind kind;
  uint32_t n, n_nodes;
} Shape;

static void
append_run (GString *text, const Shape *s, const LsCluster *cluster, const LsNccl *nccl, GRand *rand)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNcclCurve *curve = ls_nccl_curve_new ("x", s->kind, s->n, s->n_nodes);
  uint32_t per_node = s->n / s->n_nodes;
  g_string_append_printf (text, "# Collective test starting: %s_perf\n# nThread 1 nGpus %u\n", s->test,
                          per_node);
  for (uint32_t i = 0; i < s->n; i++)
    g_string_append_printf (text,
                            "#  Rank %2u Group  0 Pid  1 on  node-%u device %2u [0000:07:00] NVIDIA A100\n",
                            i, 1 + i / per_node, i % per_node);
  g_string_append (text, "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n");
  for (uint64_t bytes = 4096; bytes <= (uint64_t) 4 << 30; bytes *= 4) {
    double us = 1e6 * ls_nccl_predict_s (cluster, nccl, curve, bytes, arena) * noise (rand);
    double rate = (double) bytes / us / 1e3;
    g_string_append_printf (text, "%" G_GUINT64_FORMAT " 1 float sum -1 %.3f %.4f %.4f 0 %.3f %.4f %.4f 0\n",
                            bytes, us, rate, rate, us, rate, rate);
  }
  ls_nccl_curve_free (curve);
}

/* As dgx-a100-80g, with links that bound nothing. */
static LsCluster *
wide_a100 (uint32_t n_nodes)
{
  LsClusterSpec wide = { .gpu = { .n_sm = 108 },
                         .n_nodes = 1,
                         .gpus_per_node = 8,
                         .server.nvswitch_planes = 6,
                         .server.nvlinks_per_gpu = 12,
                         .server.pcie_switches = 4,
                         .server.cpu_sockets = 2,
                         .nics.n = 8,
                         .nics.port = { .bandwidth_bytes_per_s = 25e9, .efficiency = 1 },
                         .network.rails = 8,
                         .network.nodes_per_leaf = 20,
                         .network.oversubscription = 1,
                         .network.spine = { .bandwidth_bytes_per_s = 25e9, .efficiency = 1 } };
  g_autoptr (GError) error = NULL;
  LsCluster *cluster = ls_nccl_wide_cluster (&wide, n_nodes, &error);
  LS_CHECK_NO_ERROR (error);
  return cluster;
}

static bool
fitted_of (LsCalibrateNccl *run, LsNccl *ret_fitted)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *json = ls_calibrate_nccl_json (run, "nccl-mine");
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "nccl-mine.json", diags);
  return LS_CHECK (doc && ls_data_file_read (&ls_nccl_file, doc, ret_fitted, diags));
}

/* Times of an NCCL whose ring is slower and whose start is later than those of the file. */
static void
known_figures_of_nccl_come_back (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cluster = wide_a100 (1);
  LsNccl known, fitted;
  if (!cluster || !LS_CHECK (ls_data_file_load (&ls_nccl_file, "nccl-a100", &known, diags)))
    return;
  known.ring_bus_intra = 200e9;
  known.base_all_reduce = known.base_all_gather = known.base_reduce_scatter = 20 * LS_US;
  GRand *rand = g_rand_new_with_seed (7);
  g_autoptr (GString) reduce = g_string_new (NULL), gather = g_string_new (NULL),
                      held_out = g_string_new (NULL);
  append_run (reduce, &(Shape) { "all_reduce", LS_COLL_ALL_REDUCE, 8, 1 }, cluster, &known, rand);
  append_run (gather, &(Shape) { "all_gather", LS_COLL_ALL_GATHER, 8, 1 }, cluster, &known, rand);
  append_run (held_out, &(Shape) { "all_gather", LS_COLL_ALL_GATHER, 4, 1 }, cluster, &known, rand);
  g_rand_free (rand);
  ls_nccl_clear (&known);

  g_auto (File) a = file_new ("a.txt", reduce->str), b = file_new ("b.txt", gather->str),
                c = file_new ("c.txt", held_out->str);
  const char *const files[] = { a.path, b.path, c.path, NULL };
  const LsCalibrateNcclSpec spec = { .files = files, .cluster = "dgx-a100-80g" };
  g_autoptr (LsCalibrateNccl) run = ls_calibrate_nccl_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (!run)
    return;
  const LsNcclFitReport *report = ls_calibrate_nccl_report (run);
  LS_CHECK_INT (report->curves->len, ==, 3);
  LS_CHECK (report->all[0][1].n > 0 && report->all[0][1].mape < 1.5 * NOISE);
  LS_CHECK (report->all[1][1].n > 0 && report->all[1][1].mape < 2.5 * NOISE);
  if (!fitted_of (run, &fitted))
    return;
  LS_CHECK_NEAR (fitted.ring_bus_intra, 200e9, 0.03);
  LS_CHECK_NEAR ((double) fitted.base_all_reduce, 20e6, 0.15);
  LS_CHECK (fitted.base_all_gather == fitted.base_all_reduce && fitted.hop_inter == 14 * LS_US);
  ls_nccl_clear (&fitted);
}

/* A send to another node has a rate and a start of its own, inside a node a rate; collectives' figures stay. */
static void
known_figures_of_sends_come_back (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cluster = wide_a100 (2);
  LsNccl known, fitted, shipped;
  if (!cluster
      || !LS_CHECK (ls_data_file_load (&ls_nccl_file, "nccl-a100", &known, diags)
                    && ls_data_file_load (&ls_nccl_file, "nccl-a100", &shipped, diags)))
    return;
  known.p2p_inter = 15e9;
  known.base_p2p_inter = 60 * LS_US;
  known.p2p_intra = 150e9;
  GRand *rand = g_rand_new_with_seed (8);
  g_autoptr (GString) text = g_string_new (NULL);
  append_run (text, &(Shape) { "sendrecv", LS_COLL_SEND_RECV, 2, 2 }, cluster, &known, rand);
  append_run (text, &(Shape) { "sendrecv", LS_COLL_SEND_RECV, 2, 1 }, cluster, &known, rand);
  g_rand_free (rand);
  ls_nccl_clear (&known);

  g_auto (File) log = file_new ("sends.txt", text->str);
  const char *const files[] = { log.path, NULL };
  const LsCalibrateNcclSpec spec = { .files = files, .cluster = "dgx-a100-80g" };
  g_autoptr (LsCalibrateNccl) run = ls_calibrate_nccl_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (run && fitted_of (run, &fitted)) {
    LS_CHECK_NEAR (fitted.p2p_inter, 15e9, 0.03);
    LS_CHECK_NEAR (fitted.p2p_intra, 150e9, 0.03);
    LS_CHECK_NEAR ((double) fitted.base_p2p_inter, 60e6, 0.05);
    LS_CHECK (fitted.base_all_reduce == shipped.base_all_reduce
              && fitted.ring_bus_intra == shipped.ring_bus_intra);
    ls_nccl_clear (&fitted);
  }
  ls_nccl_clear (&shipped);
}

/* All-reduces of up to 16 KiB once fitted a bandwidth: 476 GB/s became 331 GB/s. */
static void
small_sizes_tell_no_bandwidth (void)
{
  g_autoptr (GString) text
      = g_string_new ("# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8\n");
  for (int i = 0; i < 8; i++)
    g_string_append_printf (
        text, "#  Rank %2d Group  0 Pid  1 on  node-1 device %2d [0000:07:00] NVIDIA H100\n", i, i);
  g_string_append (text, "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n");
  for (int bytes = 1024; bytes <= 16384; bytes *= 2) {
    double us = 30 + bytes / 8192.0, rate = bytes / us / 1e3;
    g_string_append_printf (text, "%d 1 float sum -1 %.3f %.4f %.4f 0 %.3f %.4f %.4f 0\n", bytes, us, rate,
                            rate, us, rate, rate);
  }
  g_auto (File) log = file_new ("small.txt", text->str);
  const char *const files[] = { log.path, NULL };
  const LsCalibrateNcclSpec spec = { .files = files, .cluster = "dgx-h100" };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsCalibrateNccl) run = ls_calibrate_nccl_new (&spec, &error);
  LsNccl fitted, shipped;
  LS_CHECK_NO_ERROR (error);
  g_autofree char *json = run ? ls_calibrate_nccl_json (run, "nccl-mine") : NULL;
  g_autoptr (LsJsonDoc) doc = json ? ls_json_doc_parse (json, strlen (json), "nccl-mine.json", diags) : NULL;
  if (!LS_CHECK (doc && ls_data_file_read (&ls_nccl_file, doc, &fitted, diags)
                 && ls_data_file_load (&ls_nccl_file, "nccl-h100", &shipped, diags)))
    return;
  LS_CHECK (fitted.nvls_bus == shipped.nvls_bus && fitted.ring_bus_intra == shipped.ring_bus_intra
            && fitted.ramp_bytes == shipped.ramp_bytes);
  LS_CHECK (strstr (json, "nvls_bus (no size depends on it)") != NULL);
  LS_CHECK (ls_calibrate_nccl_report (run)->changes->len > 0);
  ls_nccl_clear (&fitted);
  ls_nccl_clear (&shipped);
}

LS_TEST_SUITE (LS_TEST (known_coefficients_come_back), LS_TEST (waits_shares_and_layers_come_back),
               LS_TEST (tables_of_others_ship_coefficients), LS_TEST (files_are_named_as_they_are),
               LS_TEST (nonsense_is_refused), LS_TEST (known_figures_of_nccl_come_back),
               LS_TEST (known_figures_of_sends_come_back), LS_TEST (small_sizes_tell_no_bandwidth))
