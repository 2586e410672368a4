/* Pins the links of a job's machine: which kind limits a step, and factors fitted to runs. */
#include "ls_test.h"
#include "tiny_cluster.h"

#include <glib/gstdio.h>
#include <string.h>

#include "job/hardware.h"
#include "job/job.h"

/* Pins that no kind of link is dead code: for each there is a small trace whose step is
 * limited by exactly that link once it alone is narrowed, it is the busiest of the report,
 * and with half of what was left the step takes longer by the bytes at that rate. The same
 * for a job over oversubscribed spines, one with a failed link, and hashed collisions.
 *
 * Of NVMe drives there is no op that moves anything: they are vertices only. */

#define MIB   (1024.0 * 1024)
#define BYTES (64 * MIB)

static char *folder;

/* Ranks 0 .. n-1 on gpus[i] each send BYTES to rank n + i on gpus[n + i]. */
static char *
write_sends (const uint32_t *gpus, uint32_t n)
{
  GString *text = g_string_new (
      "{\"schema\": \"lockstep.trace/1\", \"name\": \"sends\", \"source\": \"test\", \"segments\": ["
      "{\"name\": \"s\", \"ops\": [{\"op\": \"p2p\", \"stream\": \"pp-fwd\", \"transfers\": [{\"send\": \"next\", \"bytes\": \"64MiB\"}]}]},"
      "{\"name\": \"r\", \"ops\": [{\"op\": \"p2p\", \"stream\": \"pp-fwd-recv\", \"transfers\": [{\"receive\": \"prev\", \"bytes\": \"64MiB\"}]}]}],"
      "\"roles\": [{\"instances\": [[0]]}, {\"instances\": [[1]]}], \"communicators\": [], \"ranks\": [");
  for (uint32_t i = 0; i < 2 * n; i++)
    g_string_append_printf (text, "%s{\"role\": %u, \"gpu\": %u, \"%s\": %u}", i > 0 ? ", " : "", i / n,
                            gpus[i], i < n ? "next" : "prev", (i + n) % (2 * n));
  g_string_append (text, "]}");
  char *path = g_build_filename (folder, "sends.json", NULL);
  LS_CHECK (g_file_set_contents (path, text->str, -1, NULL));
  g_string_free (text, TRUE);
  return path;
}

/* GPUs 0 and 1 copy BYTES each to the host, or to their drives. */
static char *
write_copies (const char *direction)
{
  char *path = g_build_filename (folder, "copies.json", NULL);
  g_autofree char *text = g_strdup_printf (
      "{\"schema\": \"lockstep.trace/1\", \"name\": \"copies\", \"source\": \"test\", \"segments\": [{\"name\": \"c\", \"ops\": ["
      "{\"op\": \"copy\", \"direction\": \"%s\", \"bytes\": \"64MiB\"}]}], \"roles\": [{\"instances\": [[0]]}],"
      "\"communicators\": [], \"ranks\": [{\"role\": 0, \"gpu\": 0}, {\"role\": 0, \"gpu\": 1}]}",
      direction);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static LsJobResult *
run (const char *trace, const char *cluster)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (&spec, "trace", trace, diags)
            && ls_job_spec_set (&spec, "cluster", cluster, diags));
  g_autoptr (GError) error = NULL;
  LsJobResult *r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return r;
}

static double
capacity_of (const LsCluster *c, const char *name)
{
  for (uint32_t t = 0; t < c->n_trunks; t++) {
    g_autofree char *own = ls_cluster_resource_name (c, t);
    if (strcmp (own, name) == 0)
      return ls_cluster_trunk (c, t)->capacity_bytes_per_s;
  }
  return 0;
}

typedef struct {
  const char *cluster, *link;
  double share;      /* of its capacity that is left, then half of that */
  double bytes;      /* over the link in a step                         */
  uint32_t from, to; /* GPUs; equal: copies to the host or a drive      */
} Case;

static void
check_case (const Case *k)
{
  g_autofree char *trace = k->from == k->to ? write_copies (strstr (k->link, "nvme") ? "to-nvme" : "to-host")
                                            : write_sends ((const uint32_t[]) { k->from, k->to }, 1);
  char share[2][G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *narrow = g_strdup_printf ("%sfaults.%s=%s", k->cluster, k->link,
                                             g_ascii_dtostr (share[0], sizeof share[0], k->share));
  g_autofree char *narrower = g_strdup_printf ("%sfaults.%s=%s", k->cluster, k->link,
                                               g_ascii_dtostr (share[1], sizeof share[1], k->share / 2));
  g_autoptr (LsJobResult) a = run (trace, narrow), b = run (trace, narrower);
  if (!LS_CHECK (a && b && a->report.n_links > 0))
    return;
  double longer = b->report.step_time_s - a->report.step_time_s;
  double expected
      = k->bytes / capacity_of (b->cluster, k->link) - k->bytes / capacity_of (a->cluster, k->link);
  if (longer < expected * (1 - 1e-3) || longer > expected * (1 + 1e-3))
    ls_check_impl (false, __FILE__, __LINE__, "%s%s: %g s longer, expected %g", k->cluster, k->link, longer,
                   expected);
  LS_CHECK_STR (a->report.links[0].name, k->link);
  LS_CHECK_STR (b->report.links[0].name, k->link);
}

#define CORES                                                                                                       \
  "fabric.kind=fat-tree,fabric.nodes_per_leaf=1,fabric.nodes_per_pod=1,fabric.core_link={\"bandwidth\":\"50GB/s\"," \
  "\"efficiency\":0.97,\"latency\":\"300ns\",\"source\":\"test\"},"

static void
each_link_limits_some_job (void)
{
  static const Case cases[] = {
    { "dgx-h100:", "node0/gpu0>nvswitch", 0.01, BYTES, 0, 1 },
    { "dgx-1-v100:", "node0/gpu0>gpu1", 0.05, BYTES, 0, 1 },
    { "pcie-a100:node.pcie.p2p=true,", "node0/gpu0>pcie0", 0.05, BYTES, 0, 1 },
    { "pcie-a100:node.pcie.p2p=true,", "node0/cpu0>cpu1", 0.05, BYTES, 0, 7 },
    { "dgx-h100:", "node0/pcie0>cpu0", 0.05, 2 * BYTES, 0, 0 },
    { "dgx-h100:", "node0/cpu0>memory0", 0.01, 2 * BYTES, 0, 0 },
    { "dgx-h100:", "node0/pcie0>nvme0", 0.05, BYTES, 0, 0 },
    { "gb200-nvl72:", "node0/gpu0>cpu0", 0.01, BYTES, 0, 0 },
    { "dgx-h100:", "node0/pcie0>nic0", 0.05, BYTES, 0, 8 },
    { "dgx-h100:", "node0/nic0>leaf0", 0.05, BYTES, 0, 8 },
    { "dgx-h100:fabric.nodes_per_leaf=1,", "leaf0>spines", 0.05, BYTES, 0, 8 },
    { "dgx-h100:" CORES, "pod0>cores", 0.005, BYTES, 0, 8 },
    { "dgx-h100:" CORES, "cores>pod1", 0.005, BYTES, 0, 8 },
    { "tpu-v5e:", "node0/gpu0>gpu1", 0.05, BYTES, 0, 1 },
    { "tpu-v5e:node.torus.slice=[2,2],nodes=2,", "node0/nic0>leaf0", 0.05, BYTES, 0, 4 },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    check_case (&cases[i]);
}

static void
drives_that_are_not_there_are_named (void)
{
  g_autofree char *trace = write_copies ("from-nvme");
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (&spec, "trace", trace, diags)
            && ls_job_spec_set (&spec, "cluster", "gb200-nvl72", diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK (!r && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  LS_CHECK_STR (error ? error->message : NULL,
                "segment 0 (c) copies from or to NVMe, but the nodes have no drives");
  ls_job_spec_clear (&spec);
}

/* Four nodes below a leaf send to four below another; with oversubscription 4 they share
 * one uplink of 48.5 GB/s, with 2 two. */
static void
oversubscribed_spines_cost_what_their_capacity_says (void)
{
  static const uint32_t gpus[] = { 0, 8, 16, 24, 32, 40, 48, 56 };
  g_autofree char *trace = write_sends (gpus, 4);
  double step[3], uplink = 50e9 * 0.97;
  for (int i = 0; i < 3; i++) {
    g_autofree char *cluster
        = g_strdup_printf ("dgx-h100:fabric.nodes_per_leaf=4,fabric.oversubscription=%d", 1 << i);
    g_autoptr (LsJobResult) r = run (trace, cluster);
    step[i] = r ? r->report.step_time_s : 0;
    if (r && i > 0)
      LS_CHECK (g_str_equal (r->report.links[0].name, "leaf0>spines")
                || g_str_equal (r->report.links[0].name, "spines>leaf8"));
  }
  LS_CHECK (step[0] < step[1]);
  LS_CHECK_NEAR (step[2] - step[1], 4 * BYTES / uplink - 4 * BYTES / (2 * uplink), 1e-3);
}

/* GPU 0 and 1 both send through NIC 1 if NIC 0 has failed, and finish, later. */
static void
a_job_goes_on_with_a_failed_link (void)
{
  static const uint32_t gpus[] = { 0, 1, 8, 9 };
  g_autofree char *trace = write_sends (gpus, 2);
  g_autoptr (LsJobResult) sound = run (trace, "dgx-h100:nodes=2"),
                          broken = run (trace, "dgx-h100:nodes=2,faults.node0/nic0>leaf0=0");
  if (!LS_CHECK (sound && broken))
    return;
  double nic = 50e9 * 0.97;
  LS_CHECK (broken->report.step_time_s > 1.5 * sound->report.step_time_s);
  LS_CHECK (broken->report.step_time_s > 2 * BYTES / nic && broken->report.step_time_s < 2.1 * BYTES / nic);
  LS_CHECK_STR (broken->report.links[0].name, "node0/nic1>leaf1");
}

/* Hashed, some uplink carries more than its part; another seed, another step; the same
 * seed, the same digest. */
static void
hashed_flows_collide_and_repeat (void)
{
  static const uint32_t gpus[] = { 0, 8, 16, 24, 32, 40, 48, 56 };
  g_autofree char *trace = write_sends (gpus, 4);
  const char *base = "dgx-h100:fabric.nodes_per_leaf=4";
  g_autoptr (LsJobResult) ideal
      = run (trace, base),
      a = run (trace, "dgx-h100:fabric.nodes_per_leaf=4,fabric.routing=ecmp,fabric.seed=1"),
      b = run (trace, "dgx-h100:fabric.nodes_per_leaf=4,fabric.routing=ecmp,fabric.seed=1"),
      other = run (trace, "dgx-h100:fabric.nodes_per_leaf=4,fabric.routing=ecmp,fabric.seed=2");
  if (!LS_CHECK (ideal && a && b && other))
    return;
  LS_CHECK (a->report.step_time_s > ideal->report.step_time_s);
  LS_CHECK (a->report.digest == b->report.digest && a->report.digest != other->report.digest);
}

static void
finish (void)
{
  static const char *const files[] = { "sends.json", "copies.json" };
  for (size_t i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree char *path = g_build_filename (folder, files[i], NULL);
    g_remove (path);
  }
  LS_CHECK (g_rmdir (folder) == 0);
  g_free (folder);
}

static void
begin (void)
{
  folder = g_dir_make_tmp ("lockstep-XXXXXX", NULL);
  LS_CHECK (folder != NULL);
}

/* Pins what factors fitted to runs change of a machine: each link inside a node and outside, listed ones
 * too, up to their bandwidth, and NCCL's rates through them; and that 0 and 1 change nothing. */

/* Three links each, of efficiency 0.5, in a node and between nodes. */
static LsHardware
listed_hardware (void)
{
  LsHardware h
      = { .nccl = { .ring_bus_intra = 100, .ring_bus_per_nic = 10, .p2p_intra = 50, .p2p_inter = 5 } };
  LsLinkSpec link = tiny_link (1e9, 0.5, LS_US);
  h.spec.server.nvlink = h.spec.nics.port = link;
  h.spec.list.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  h.spec.network.links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  for (int i = 0; i < 3; i++) {
    LsListLink listed = { .link = link };
    g_array_append_val (h.spec.list.links, listed);
    g_array_append_val (h.spec.network.links, listed);
  }
  return h;
}

static void
check_links (const LsHardware *h, double inside, double outside)
{
  for (guint i = 0; i < 3; i++) {
    LS_CHECK_NEAR (g_array_index (h->spec.list.links, LsListLink, i).link.efficiency, inside, 1e-12);
    LS_CHECK_NEAR (g_array_index (h->spec.network.links, LsListLink, i).link.efficiency, outside, 1e-12);
  }
  LS_CHECK_NEAR (h->spec.server.nvlink.efficiency, inside, 1e-12);
  LS_CHECK_NEAR (h->spec.nics.port.efficiency, outside, 1e-12);
}

static void
each_link_has_its_factor (void)
{
  static const struct {
    LsFitted fitted;
    double inside, outside, ring_intra, ring_per_nic;
  } cases[] = {
    { { .intra_node = 1.5 }, 0.75, 0.5, 150, 10 },
    { { .inter_node = 0.5 }, 0.5, 0.25, 100, 5 },
    { { .intra_node = 3, .inter_node = 1 }, 1, 0.5, 300, 10 }, /* a link has no more than its bandwidth */
    { { .intra_node = 0 }, 0.5, 0.5, 100, 10 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsHardware h = listed_hardware ();
    ls_fitted_apply (&h, &cases[i].fitted);
    check_links (&h, cases[i].inside, cases[i].outside);
    LS_CHECK_NEAR (h.nccl.ring_bus_intra, cases[i].ring_intra, 1e-12);
    LS_CHECK_NEAR (h.nccl.ring_bus_per_nic, cases[i].ring_per_nic, 1e-12);
    g_array_unref (h.spec.list.links);
    g_array_unref (h.spec.network.links);
  }
}

LS_TEST_SUITE (LS_TEST (begin), LS_TEST (each_link_limits_some_job),
               LS_TEST (drives_that_are_not_there_are_named),
               LS_TEST (oversubscribed_spines_cost_what_their_capacity_says),
               LS_TEST (a_job_goes_on_with_a_failed_link), LS_TEST (hashed_flows_collide_and_repeat),
               LS_TEST (finish), LS_TEST (each_link_has_its_factor))
