#include "calibrate/assumed.h"

#include <math.h>
#include <string.h>

#include "exec/run.h"

typedef struct {
  const LsProfile *profile;
  const LsGpu *gpu;
  const LsCalibration *calibration;
  const LsClusterSpec *cluster;
  GArray *assumptions;
} Comparison;

static void
add (const Comparison *c, const char *what, const char *unit, double assumed, double measured, const char *note, char *use)
{
  const LsAssumption a = { what, unit, assumed, measured, note, use };
  g_array_append_val (c->assumptions, a);
}

/* ---- what the profile says ---- */

/* The last row of that name, the largest of its sizes; NULL: there is none. */
static const LsProfileFact *
find_fact (const Comparison *c, const char *group, const char *name)
{
  for (guint i = c->profile->facts->len; i > 0; i--) {
    const LsProfileFact *f = &g_array_index (c->profile->facts, LsProfileFact, i - 1);
    if (strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0)
      return f;
  }
  return NULL;
}

/* "ratio=1.08" of a note; NaN: it is not there. */
static double
noted (const LsProfileFact *f, const char *key)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  for (char **word = words; *word; word++)
    if (g_str_has_prefix (*word, key) && (*word)[strlen (key)] == '=')
      return g_ascii_strtod (*word + strlen (key) + 1, NULL);
  return NAN;
}

/* Mean of a value of the notes over all rows of a name, of a variant unless that is NULL. */
static double
mean_noted (const Comparison *c, const char *group, const char *name, const char *variant, const char *key)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < c->profile->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (c->profile->facts, LsProfileFact, i);
    double value = noted (f, key);
    if (strcmp (f->group, group) != 0 || strcmp (f->name, name) != 0 || isnan (value) || (variant && !strstr (f->note, variant)))
      continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : NAN;
}

/* ---- against what is assumed ---- */

static void
compare_launch (const Comparison *c)
{
  const LsProfileFact *launch = find_fact (c, "host", "launch");
  LsHostCosts costs;
  if (!launch)
    return;
  ls_host_costs_default (&costs);
  bool is_fitted = c->cluster && c->cluster->fitted.host_launch > 0;
  double assumed = ls_time_to_s (is_fitted ? c->cluster->fitted.host_launch : costs.cost[LS_HOST_LAUNCH]);
  add (c, "launch on the host", "us", assumed * 1e6, launch->time_s * 1e6, "of a C++ loop: a framework pays more",
       g_strdup_printf ("--host-launch %.3gus", launch->time_s * 1e6));
}

/* From the end of a kernel to the start of the next, queued or in a graph. */
static void
compare_gap (const Comparison *c, const char *name, const char *what)
{
  const LsProfileFact *gap = find_fact (c, "host", name);
  if (gap)
    add (c, what, "us", ls_time_to_s (c->calibration->kind[LS_KERNEL_ELEMENTWISE].launch) * 1e6, gap->time_s * 1e6, NULL, NULL);
}

static void
compare_priority (const Comparison *c)
{
  const LsProfileFact *wait = find_fact (c, "host", "priority-wait");
  if (wait)
    add (c, "wait of a stream with priority", "us", 0, wait->time_s * 1e6, "communication is assumed to start at once", NULL);
}

static double
rate_of (const LsLinkSpec *link, double n)
{
  return link->bandwidth_bytes_per_s * link->efficiency * n;
}

/* A link that is faster than its rate has another rate. */
static char *
use_of_link (const Comparison *c, const LsLinkSpec *link, const char *key, double measured)
{
  double share = measured / link->bandwidth_bytes_per_s;
  return share <= 1 ? g_strdup_printf ("--cluster %s:%s.efficiency=%.3f", c->cluster->name, key, share)
                    : g_strdup_printf ("--cluster %s:%s.bandwidth=%.4gGB/s,%s.efficiency=1", c->cluster->name, key, measured / 1e9, key);
}

/* n links side by side; key: of a link in the cluster's file, NULL: no single one. */
static void
compare_copy (const Comparison *c, const char *name, const char *what, const LsLinkSpec *link, double n, const char *key)
{
  const LsProfileFact *copy = find_fact (c, "copies", name);
  if (!copy)
    return;
  bool has_link = link && link->bandwidth_bytes_per_s > 0;
  double measured = copy->bytes / copy->time_s;
  char *use = has_link && key ? use_of_link (c, link, key, measured / n) : NULL;
  add (c, what, "GB/s", has_link ? rate_of (link, n) / 1e9 : NAN, measured / 1e9, NULL, use);
}

static void
compare_copies (const Comparison *c)
{
  static const char pcie_key[] = "node.pcie.link";
  const LsClusterSpec *s = c->cluster;
  const LsLinkSpec *pcie = s ? (s->c2c.bandwidth_bytes_per_s > 0 ? &s->c2c : &s->pcie) : NULL;
  const char *key = s && pcie == &s->pcie ? pcie_key : NULL;
  compare_copy (c, "copy-host-to-device", "copy, host to device", pcie, 1, key);
  compare_copy (c, "copy-device-to-host", "copy, device to host", pcie, 1, key);
  compare_copy (c, "copy-both-ways", "copies both ways at once", pcie, 2, NULL);
  compare_copy (c, "copy-peer", "copy, GPU to GPU", s ? &s->nvlink : NULL, s ? s->nvlinks_per_gpu : 0, "node.nvswitch.link");
  const LsProfileFact *within = find_fact (c, "copies", "copy-device-to-device");
  if (!within)
    return;
  const LsKernel k = ls_kernel_stream ("copy", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1, (uint64_t) (within->bytes / 4), within->bytes, 0);
  double assumed = ls_time_to_s (ls_kernel_cost (c->calibration, c->gpu, &k).alone);
  add (c, "copy within the GPU", "GB/s", within->bytes / assumed / 1e9, within->bytes / within->time_s / 1e9, NULL, NULL);
}

/* GEMM time beside over time alone. GEMMs that were told how many SMs are left go by 1 / (1 - r/n);
 * persistent ones that were not run in a second wave (exec/kernel.c). */
static void
compare_slowdown (const Comparison *c, const char *name, const char *variant, const char *what, bool is_told)
{
  double measured = mean_noted (c, "slowdown", name, variant, "ratio_at_equal_clock");
  double rule = mean_noted (c, "slowdown", name, variant, "rule");
  if (!isnan (measured) && !isnan (rule))
    add (c, what, "", !is_told && c->gpu->persistent_gemms ? 2 : rule, measured, NULL,
         !is_told && c->gpu->persistent_gemms != (measured > (2 + rule) / 2)
           ? g_strdup_printf ("\"persistent_gemms\": %s in the GPU's file", c->gpu->persistent_gemms ? "false" : "true") : NULL);
}

/* A layer, and what it is made of, against the sum of the times alone. */
static void
compare_context (const Comparison *c, const char *name, const char *what, bool is_gemm)
{
  double measured = mean_noted (c, "context", name, NULL, "ratio");
  double sustained = c->calibration->sustained > 0 ? c->calibration->sustained : 1;
  if (!isnan (measured))
    add (c, what, "", is_gemm ? 1 / sustained : 1, measured, NULL,
         is_gemm && measured >= 1 ? g_strdup_printf ("\"sustained\": %.3f in the calibration", 1 / measured) : NULL);
}

void
ls_assumed_compare (const LsProfile *profile, const LsGpu *gpu, const LsCalibration *calibration, const LsClusterSpec *cluster,
                    GArray *assumptions)
{
  const Comparison c = { profile, gpu, calibration, cluster, assumptions };
  compare_launch (&c);
  compare_gap (&c, "kernel-gap", "between two kernels");
  compare_gap (&c, "graph-kernel-gap", "between two kernels of a graph");
  compare_priority (&c);
  compare_copies (&c);
  compare_slowdown (&c, "beside-spin", "variant=default", "GEMM beside a kernel that waits", false);
  compare_slowdown (&c, "beside-spin", "variant=sm-target", "the same, told of the SMs left", true);
  compare_slowdown (&c, "beside-copy", "variant=default", "GEMM beside a kernel that copies", false);
  compare_slowdown (&c, "beside-copy", "variant=sm-target", "the same, told of the SMs left", true);
  compare_context (&c, "layer-gemms", "products inside a layer", true);
  compare_context (&c, "layer-streams", "streams inside a layer", false);
}

void
ls_assumption_clear (gpointer assumption)
{
  g_free (((LsAssumption *) assumption)->use);
}
