/* Pins what factors fitted to runs change of a machine: each link inside a node and outside, listed ones
 * too, up to their bandwidth, and NCCL's rates through them; and that 0 and 1 change nothing. */
#include "ls_test.h"

#include "job/fitted.h"
#include "tiny_cluster.h"

/* Three links each, of efficiency 0.5, in a node and between nodes. */
static LsHardware
listed_hardware (void)
{
  LsHardware h
      = { .nccl = { .ring_bus_intra = 100, .ring_bus_per_nic = 10, .p2p_intra = 50, .p2p_inter = 5 } };
  LsLinkSpec link = tiny_link (1e9, 0.5, LS_US);
  h.spec.nvlink = h.spec.nic = link;
  h.spec.list_links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  h.spec.switch_links = g_array_new (FALSE, TRUE, sizeof (LsListLink));
  for (int i = 0; i < 3; i++) {
    LsListLink listed = { .link = link };
    g_array_append_val (h.spec.list_links, listed);
    g_array_append_val (h.spec.switch_links, listed);
  }
  return h;
}

static void
check_links (const LsHardware *h, double inside, double outside)
{
  for (guint i = 0; i < 3; i++) {
    LS_CHECK_NEAR (g_array_index (h->spec.list_links, LsListLink, i).link.efficiency, inside, 1e-12);
    LS_CHECK_NEAR (g_array_index (h->spec.switch_links, LsListLink, i).link.efficiency, outside, 1e-12);
  }
  LS_CHECK_NEAR (h->spec.nvlink.efficiency, inside, 1e-12);
  LS_CHECK_NEAR (h->spec.nic.efficiency, outside, 1e-12);
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
    g_array_unref (h.spec.list_links);
    g_array_unref (h.spec.switch_links);
  }
}

LS_TEST_SUITE (LS_TEST (each_link_has_its_factor))
