/* tools/fit/fit_nccl.c — fits the NCCL constants of topologies/calib/nccl.set.json to
 * measured collectives, with the very functions that predict them.
 *
 *     fit_nccl DATA CALIB           fit, print the constants and the errors
 *     fit_nccl --check DATA CALIB   the same, and exit 1 if a shipped constant differs;
 *                                   exit 77 (skip) where the data are not
 *
 * DATA: collectives.csv. CALIB: the folder of that set, which also holds what is not
 * fitted, with its sources. Per generation at most six numbers are fitted; H100 and H200,
 * B200 and GB200 share theirs. Data: rows of trust A, all sizes (V100: trust B, one curve,
 * two numbers). A curve is one (cluster, op, gpus); calibrate/calibrate_nccl.h has the objective and
 * the method. What is held out is printed, never fitted. LS_FIT_POINTS=1 prints every point.
 *
 * Links are made wider than any collective, NICs too as far as rings fill them: what is
 * fitted is the limit of NCCL, not of a link. Of A100's it is the NICs all the same: the one cluster of
 * several nodes has virtual machines, whose limit stands in its own file. */
#include <gsl/gsl_errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/calibrate_nccl.h"
#include "data/machines/machines.h"

#define MAX_FITTED 6
#define MAX_GPUS   32
#define SKIP       77

#define FIT LS_NCCL_FIT

typedef struct {
  const char *members[3], *clusters[3], *trust;
  uint32_t only_gpus; /* curves of others are left aside; 0: none are */
  double nic;         /* bytes/s of one, 8 to a node */
  const char *
      of_cluster; /* a number that is of the last cluster, not of NCCL: fitted, but not shipped in `members`; or NULL */
  LsNcclFitted fitted[MAX_FITTED + 1];
} Generation;

static const Generation generations[] = {
  /* The GPUs are joined by a mesh: fewer than 8 have the bandwidth of their links. */
  { .members = { "nccl-v100" },
    .clusters = { "v100-nvswitch" },
    .trust = "B",
    .only_gpus = 8,
    .nic = 12.5e9,
    .fitted = { FIT (hop_intra, LS_NCCL_TIME, 1e-6), FIT (ramp_bytes, LS_NCCL_BYTES, 8e6) } },
  { .members = { "nccl-a100" },
    .clusters = { "dgx-a100-80g", "azure-ndv4-a100-40g" },
    .trust = "A",
    .nic = 25e9,
    .of_cluster
    = "ring_bus_per_nic", /* NICs of virtual machines: azure-ndv4-a100-40g of topologies/measured.set.json */
    .fitted = { FIT (base_all_reduce, LS_NCCL_TIME, 8e-6), FIT (hop_intra, LS_NCCL_TIME, 1e-6),
                FIT (handshake, LS_NCCL_TIME, 7e-6), FIT (ramp_bytes, LS_NCCL_BYTES, 8e6),
                FIT (drain, LS_NCCL_RATIO, 0.5), FIT (ring_bus_per_nic, LS_NCCL_RATE, 16e9) } },
  { .members = { "nccl-h100", "nccl-h200" },
    .clusters = { "dgx-h100", "dgx-h200" },
    .trust = "A",
    .nic = 50e9,
    .fitted = { FIT (base_all_reduce, LS_NCCL_TIME, 5e-6), FIT (hop_intra, LS_NCCL_TIME, 1e-6),
                FIT (handshake, LS_NCCL_TIME, 7e-6), FIT (ramp_bytes, LS_NCCL_BYTES, 8e6),
                FIT (drain, LS_NCCL_RATIO, 0.5), FIT (self_copy, LS_NCCL_RATIO, 0.2) } },
  { .members = { "nccl-b200", "nccl-gb200" },
    .clusters = { "dgx-b200", "gb200-nvl72" },
    .trust = "A",
    .nic = 50e9,
    .fitted = { FIT (base_all_reduce, LS_NCCL_TIME, 8e-6), FIT (hop_intra, LS_NCCL_TIME, 1e-6),
                FIT (handshake_hop, LS_NCCL_TIME, 5e-6), FIT (ramp_bytes, LS_NCCL_BYTES, 8e6),
                FIT (drain, LS_NCCL_RATIO, 0.5), FIT (nvls_step_cost, LS_NCCL_BYTES, 2e4) } },
};

typedef struct {
  const Generation *generation;
  LsNcclProblem fit;
} Problem;

/* --- collectives.csv by curves -------------------------------------------------------------------- */

static bool
parse_op (const char *op, LsCollKind *ret_kind)
{
  for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++)
    if (strcmp (op, kind == LS_COLL_SEND_RECV ? "p2p" : ls_coll_kind_name (kind)) == 0) {
      *ret_kind = kind;
      return true;
    }
  return false;
}

static LsNcclCurve *
curve_of (GPtrArray *curves, const char *cluster, LsCollKind kind, uint32_t n_gpus, uint32_t n_nodes)
{
  for (guint i = 0; i < curves->len; i++) {
    LsNcclCurve *c = curves->pdata[i];
    if (strcmp (c->name, cluster) == 0 && c->kind == kind && c->n_gpus == n_gpus && c->n_nodes == n_nodes)
      return c;
  }
  LsNcclCurve *c = ls_nccl_curve_new (cluster, kind, n_gpus, n_nodes);
  g_ptr_array_add (curves, c);
  return c;
}

/* Rows of these clusters (a NULL ends the list) and of this trust. Curves of several sources on one cluster are
 * one. NULL and error: no such file. Owned by the caller: LsNcclCurve. The first seven columns hold no quotes:
 * cluster, trust, op, gpus, nodes, size_bytes, time_us. */
static GPtrArray *
read_curves (const char *path, const char *const *clusters, const char *trust, GError **error)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, error))
    return NULL;
  GPtrArray *curves = g_ptr_array_new_with_free_func (ls_nccl_curve_free);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (size_t i = 1; lines[i]; i++) {
    g_auto (GStrv) f = g_strsplit (lines[i], ",", 8);
    LsCollKind kind;
    if (g_strv_length (f) < 8 || strcmp (f[1], trust) != 0 || !parse_op (f[2], &kind)
        || !g_strv_contains (clusters, f[0]))
      continue;
    LsNcclPoint p
        = { .bytes = g_ascii_strtoull (f[5], NULL, 10), .measured_s = g_ascii_strtod (f[6], NULL) * 1e-6 };
    g_array_append_val (curve_of (curves, f[0], kind, (uint32_t) strtoul (f[3], NULL, 10),
                                  (uint32_t) strtoul (f[4], NULL, 10))
                            ->points,
                        p);
  }
  return curves;
}

/* --- the fit ------------------------------------------------------------------------------------- */

static LsCluster *
wide_cluster (double nic)
{
  LsLinkSpec wide = { .bandwidth_bytes_per_s = 1e15, .efficiency = 1 };
  LsLinkSpec net = { .bandwidth_bytes_per_s = nic, .efficiency = 1 }; /* NCCL's choice sees it */
  LsClusterSpec spec = { .gpu = { .hbm_bytes_per_s = 1e15, .hbm_efficiency = 1 },
                         .n_nodes = MAX_GPUS / 8,
                         .gpus_per_node = 8,
                         .server.nvswitch_planes = 6,
                         .server.nvlinks_per_gpu = 12,
                         .server.nvlink = wide,
                         .server.pcie_switches = 4,
                         .server.pcie = wide,
                         .server.cpu_sockets = 2,
                         .server.cpu_interconnect = wide,
                         .server.cpu_memory = wide,
                         .nics.n = 8,
                         .nics.port = net,
                         .network.rails = 8,
                         .network.nodes_per_leaf = 20,
                         .network.oversubscription = 1,
                         .network.spine = net };
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (&spec, &error);
  if (!c)
    g_error ("%s", error->message);
  return c;
}

/* --- report --- */

typedef struct {
  double abs_sum, sum, worst;
  uint32_t n;
} Error;

static void
count (Error *e, double relative)
{
  e->abs_sum += fabs (relative);
  e->sum += relative;
  e->worst = fabs (relative) > fabs (e->worst) ? relative : e->worst;
  e->n++;
}

static void
print_error (const char *what, const char *sizes, const Error *e)
{
  if (e->n > 0)
    printf ("  %-46s %-8s n %3u  MAPE %5.1f %%  bias %+6.1f %%  worst %+6.1f %%\n", what, sizes, e->n,
            100 * e->abs_sum / e->n, 100 * e->sum / e->n, 100 * e->worst);
}

static void
print_errors (const char *what, const Error e[2])
{
  print_error (what, "< 1 MiB", &e[0]);
  print_error (what, ">= 1 MiB", &e[1]);
}

static void
report_curve (const Problem *p, const LsNccl *nccl, const LsNcclCurve *c, Error all[2][2])
{
  Error e[2] = { 0 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  bool is_held_out = c->held_out;
  for (guint k = 0; k < c->points->len; k++) {
    const LsNcclPoint *point = &g_array_index (c->points, LsNcclPoint, k);
    int side = point->bytes >= LS_NCCL_SMALL_BYTES;
    double relative
        = ls_nccl_predict_s (p->fit.cluster, nccl, c, point->bytes, arena) / point->measured_s - 1;
    count (&e[side], relative);
    count (&all[is_held_out][side], relative);
    if (g_getenv ("LS_FIT_POINTS"))
      printf ("    %s %s %u %12.1f KiB %10.1f us %+6.1f %%\n", c->name, ls_coll_kind_name (c->kind),
              c->n_gpus, (double) point->bytes / 1024, point->measured_s * 1e6, 100 * relative);
  }
  g_autofree char *what = g_strdup_printf ("%s %s %u%s", c->name, ls_coll_kind_name (c->kind), c->n_gpus,
                                           is_held_out ? " (held out)" : "");
  print_errors (what, e);
}

static void
report (const Problem *p, const LsNccl *nccl)
{
  for (const LsNcclFitted *f = p->fit.fitted; f->name; f++) {
    g_autofree char *value = ls_nccl_spell (nccl, f);
    printf ("  %-18s %s\n", f->name, value);
  }
  Error all[2][2] = { 0 };
  for (guint i = 0; i < p->fit.curves->len; i++)
    report_curve (p, nccl, p->fit.curves->pdata[i], all);
  print_errors ("all fitted curves", all[0]);
  print_errors ("all held-out curves", all[1]);
}

/* --- against what is shipped --- */

static bool
load (const char *folder, const char *name, LsNccl *ret_nccl)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *file = g_strconcat ("nccl.set.json#", name, NULL);
  g_autofree char *path = g_build_filename (folder, file, NULL);
  bool ok = ls_data_file_load (&ls_nccl_file, path, ret_nccl, diags);
  if (!ok)
    fprintf (stderr, "%s: cannot be read\n", path);
  return ok;
}

static uint32_t
count_differences (const Problem *p, const LsNccl *fitted, const char *folder)
{
  static const LsNcclFitted derived[]
      = { FIT (base_all_reduce, LS_NCCL_TIME, 0), FIT (base_all_gather, LS_NCCL_TIME, 0),
          FIT (base_reduce_scatter, LS_NCCL_TIME, 0), FIT (base_p2p_intra, LS_NCCL_TIME, 0),
          FIT (self_copy, LS_NCCL_RATIO, 0) };
  uint32_t n_bad = 0;
  size_t n_fitted = 0;
  while (p->fit.fitted[n_fitted].name)
    n_fitted++;
  for (size_t i = 0; p->generation->members[i]; i++) {
    LsNccl shipped;
    if (!load (folder, p->generation->members[i], &shipped))
      return 1;
    for (size_t k = 0; k < n_fitted + G_N_ELEMENTS (derived); k++) {
      const LsNcclFitted *f = k < n_fitted ? &p->generation->fitted[k] : &derived[k - n_fitted];
      double is = ls_nccl_get (&shipped, f), should = ls_nccl_get (fitted, f);
      if (g_strcmp0 (f->name, p->generation->of_cluster) == 0)
        continue;
      if (fabs (is - should) <= 1e-9 * should)
        continue;
      printf ("  %s: %s is %.6g, fitted %.6g\n", p->generation->members[i], f->name, is, should);
      n_bad++;
    }
    ls_nccl_clear (&shipped);
  }
  return n_bad;
}

static void
leave_aside (GPtrArray *curves, uint32_t only_gpus)
{
  for (guint i = curves->len; i-- > 0 && only_gpus > 0;)
    if (((const LsNcclCurve *) curves->pdata[i])->n_gpus != only_gpus)
      g_ptr_array_remove_index (curves, i);
}

/* One base for all collectives, a send with its hop, and copies to oneself like those at the end of a ring
 * unless fitted. */
static void
complete (LsNccl *nccl, const LsNcclFitted *fitted)
{
  bool has_self_copy = false;
  for (const LsNcclFitted *f = fitted; f->name; f++)
    has_self_copy = has_self_copy || f->offset == offsetof (LsNccl, self_copy);
  nccl->base_all_gather = nccl->base_reduce_scatter = nccl->base_all_reduce;
  nccl->base_p2p_intra = nccl->base_all_reduce + nccl->hop_intra;
  if (!has_self_copy)
    nccl->self_copy = nccl->drain;
}

/* How many shipped constants differ; negative: a file is missing. */
static int
run (const Generation *g, const char *data, const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cluster = wide_cluster (g->nic);
  g_autoptr (GPtrArray) curves = read_curves (data, g->clusters, g->trust, &error);
  LsNccl fixed;
  if (!curves)
    fprintf (stderr, "%s\n", error->message);
  if (!curves || !load (folder, g->members[0], &fixed))
    return -1;
  leave_aside (curves, g->only_gpus);
  const Problem p = {
    .generation = g,
    .fit
    = { .cluster = cluster, .fixed = &fixed, .fitted = g->fitted, .curves = curves, .complete = complete }
  };
  double loss;
  LsNccl nccl = ls_nccl_fit (&p.fit, &loss);
  printf ("%s: loss %.5f\n", g->members[0], loss);
  report (&p, &nccl);
  int n_bad = (int) count_differences (&p, &nccl, folder);
  ls_nccl_clear (&fixed);
  return n_bad;
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "C");
  gsl_set_error_handler_off ();
  bool is_check = argc == 4 && strcmp (argv[1], "--check") == 0;
  if (argc != 3 && !is_check) {
    fprintf (stderr, "usage: fit_nccl [--check] DATA CALIB\n");
    return 2;
  }
  const char *data = argv[argc - 2], *folder = argv[argc - 1];
  if (is_check && !g_file_test (data, G_FILE_TEST_EXISTS)) {
    printf ("skipped: measured data not here\n");
    return SKIP;
  }
  int n_bad = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (generations); i++) {
    int n = run (&generations[i], data, folder);
    if (n < 0)
      return 3;
    n_bad += n;
  }
  printf ("%d shipped constants differ\n", n_bad);
  return is_check && n_bad > 0 ? 1 : 0;
}
