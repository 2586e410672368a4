/* Pins how NCCL's figures follow the links of a machine: by the same links not at all, twice a NIC
 * twice what crosses nodes and nothing inside, there and back exactly, latencies by the difference of the
 * way; links that either side has none of change nothing. */
#include "ls_test.h"

#include <string.h>

#include "network/nccl/nccl_links.h"

static const LsNcclLinks links = {
  .nvlink = 450e9,
  .nic = 50e9,
  .nvlink_latency = 300 * LS_NS,
  .nic_latency = 300 * LS_NS,
  .pcie_latency = 500 * LS_NS,
};

static LsNccl
measured (void)
{
  return (LsNccl) {
    .measured_on = links,
    .nvlink = 370e9,
    .ring_bus_intra = 360e9,
    .nvls_bus = 476e9,
    .p2p_intra = 376e9,
    .ring_bus_per_nic = 36.5e9,
    .p2p_inter = 40e9,
    .base_all_reduce = 5 * LS_US,
    .base_nvls = 25 * LS_US,
    .base_p2p_intra = 6 * LS_US,
    .base_p2p_inter = 36 * LS_US,
    .hop_intra = 800 * LS_NS,
    .hop_inter = 14 * LS_US,
  };
}

static void
the_same_links_change_nothing (void)
{
  LsNccl a = measured (), b = measured ();
  ls_nccl_carry (&a, &links);
  LS_CHECK (memcmp (&a, &b, sizeof a) == 0);
}

static void
a_faster_nic_is_for_what_crosses_nodes (void)
{
  LsNccl n = measured (), before = measured ();
  LsNcclLinks to = links;
  to.nic *= 2;
  ls_nccl_carry (&n, &to);
  LS_CHECK_DOUBLE (n.ring_bus_per_nic, ==, 73e9);
  LS_CHECK_DOUBLE (n.p2p_inter, ==, 80e9);
  LS_CHECK (n.ring_bus_intra == before.ring_bus_intra && n.p2p_intra == before.p2p_intra
            && n.hop_inter == before.hop_inter);
  ls_nccl_carry (&n, &links);
  LS_CHECK (memcmp (&n, &before, sizeof n) == 0);
}

static void
faster_nvlinks_are_for_what_stays_inside (void)
{
  LsNccl n = measured (), before = measured ();
  LsNcclLinks to = links;
  to.nvlink *= 2;
  ls_nccl_carry (&n, &to);
  LS_CHECK (n.nvlink == 2 * before.nvlink && n.ring_bus_intra == 2 * before.ring_bus_intra
            && n.nvls_bus == 2 * before.nvls_bus && n.p2p_intra == 2 * before.p2p_intra);
  LS_CHECK (n.ring_bus_per_nic == before.ring_bus_per_nic && n.p2p_inter == before.p2p_inter);
}

/* Two NIC links and four of PCIe lie on the way to another node, two NVLinks on that to a neighbour. */
static void
latencies_follow_the_way (void)
{
  LsNccl n = measured ();
  LsNcclLinks to = links;
  to.nic_latency = 100 * LS_NS;
  to.pcie_latency = 600 * LS_NS;
  to.nvlink_latency = 250 * LS_NS;
  ls_nccl_carry (&n, &to);
  LS_CHECK_INT (n.hop_inter, ==, 14 * LS_US);
  LS_CHECK_INT (n.hop_intra, ==, 700 * LS_NS);
  LS_CHECK_INT (n.base_p2p_inter, ==, 36 * LS_US);
  LS_CHECK_INT (n.base_all_reduce, ==, 5 * LS_US);
  to.nic_latency = 0;
  ls_nccl_carry (&n, &to);
  LS_CHECK_INT (n.hop_inter, ==, 14 * LS_US - 200 * LS_NS);
  LS_CHECK_INT (n.base_p2p_inter, ==, 36 * LS_US - 200 * LS_NS);
}

static void
links_that_are_not_there_change_nothing (void)
{
  LsNccl a = measured (), b;
  const LsNcclLinks none = { 0 };
  memcpy (&b, &a, sizeof b); /* with its padding */
  ls_nccl_carry (&a, &none);
  LS_CHECK (a.ring_bus_intra == b.ring_bus_intra && a.p2p_inter == b.p2p_inter && a.hop_inter == b.hop_inter);
  ls_nccl_carry (&a, &links);
  LS_CHECK (memcmp (&a, &b, sizeof a) == 0);
}

LS_TEST_SUITE (LS_TEST (the_same_links_change_nothing), LS_TEST (a_faster_nic_is_for_what_crosses_nodes),
               LS_TEST (faster_nvlinks_are_for_what_stays_inside), LS_TEST (latencies_follow_the_way),
               LS_TEST (links_that_are_not_there_change_nothing))
