/* tests/support/nccl_tables.h — the tables of NCCL 2.30.7 (src/graph/tuning.cc, search.cc, topo.h@5067397) as
 * initializers, for tests of rooms that read no files. test_read_data.c compares topologies/nccl with them. */
#ifndef LS_TESTS_NCCL_TABLES_H
#define LS_TESTS_NCCL_TABLES_H

#include "network/nccl/nccl.h"

#define LS_TEST_RATES_INTRA_OLD                                                                              \
  {                                                                                                          \
    40e9, 30e9, 20e9, 18e9, 15e9, 12e9, 10e9, 9e9, 7e9, 6e9, 5e9, 4e9, 3e9                                   \
  }
#define LS_TEST_RATES_INTER_OLD                                                                              \
  {                                                                                                          \
    48e9, 30e9, 28e9, 24e9, 20e9, 18e9, 15e9, 12e9, 10e9, 9e9, 7e9, 6e9, 5e9, 4e9, 3e9, 2.4e9, 1.2e9,        \
        0.24e9, 0.12e9                                                                                       \
  }

/* Trees, rings, collnet direct and chain, NVLS, NVLS trees, PAT; LL, LL128, Simple. */
#define LS_TEST_US(ll, ll128, simple)                                                                        \
  {                                                                                                          \
    (LsTime) ((ll) *1e6), (LsTime) ((ll128) *1e6), (LsTime) ((simple) *1e6)                                  \
  }
#define LS_TEST_LATENCY                                                                                      \
  {                                                                                                          \
    { LS_TEST_US (6.8, 14, 8.4), LS_TEST_US (0.6, 1.25, 4), LS_TEST_US (1, 1.9, 4),                          \
      LS_TEST_US (5, 8.5, 14) },                                                                             \
        { LS_TEST_US (6.6, 14, 8.4), LS_TEST_US (0.6, 1.9, 3.4), LS_TEST_US (1, 2.5, 5.7),                   \
          LS_TEST_US (2.7, 4, 14) },                                                                         \
        { LS_TEST_US (0, 0, 0), LS_TEST_US (0, 0, 3.7), LS_TEST_US (0, 0, 3.7), LS_TEST_US (0, 0, 31) },     \
        { LS_TEST_US (0, 0, 0), LS_TEST_US (0, 0, 2.8), LS_TEST_US (0, 0, 2.8), LS_TEST_US (0, 0, 30) },     \
        { LS_TEST_US (0, 0, 0), LS_TEST_US (25, 25, 25), LS_TEST_US (0, 0, 0), LS_TEST_US (18, 18, 18) },    \
        { LS_TEST_US (0, 0, 0), LS_TEST_US (25, 25, 25), LS_TEST_US (0, 0, 0),                               \
          LS_TEST_US (20.9, 20.9, 20.9) },                                                                   \
        { LS_TEST_US (8, 8, 8), LS_TEST_US (0, 0, 4), LS_TEST_US (0, 0, 4), LS_TEST_US (0, 0, 14) },         \
  }
#define LS_TEST_BY_SIZE                                                                                      \
  {                                                                                                          \
    { 1,  1,  1,  1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6,                                         \
      .7, .8, .9, 1, 1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1 },                                        \
        { 1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6,                                    \
          .8, .9, .9, .9, .9, 1,  1,  1,  1,  1,  1,  1,  1,  1,  1,  1 },                                   \
        { .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6,                                    \
          .7, .8, .7, .7, .8, .9, .9, .9, 1,  1,  1,  1,  1,  1,  1,  1 },                                   \
  }
/* What all generations share. */
#define LS_TEST_NCCL_RELEASE                                                                                 \
  .ll_across = { { 39e9, 20.4e9 }, { 22.5e9, 19e9 } }, .latency = LS_TEST_LATENCY,                           \
  .tree_by_size = LS_TEST_BY_SIZE, .tree_alone = 0.85, .pat = 0.75

#define LS_TEST_NCCL_VOLTA                                                                                   \
  {                                                                                                          \
    .name = (char *) "volta", .compute_capability = 7, .nvlink = 20e9, .gpu = (char *) "v100",               \
    .rates_intra = LS_TEST_RATES_INTRA_OLD, .rates_inter = LS_TEST_RATES_INTER_OLD,                          \
    .double_many_from = 25e9, .ll = 39e9, .ring_ll128 = 20e9, .tree_ll128 = { 20e9, 20e9, 20e9 },            \
    .tree_simple = { 26.5e9, 18.5e9, 10e9 }, .collnet_direct = 1, .ring_plateau = 1.9, LS_TEST_NCCL_RELEASE  \
  }

#define LS_TEST_NCCL_AMPERE                                                                                  \
  {                                                                                                          \
    .name = (char *) "ampere", .compute_capability = 8, .nvlink = 20e9, .gpu = (char *) "a100-80g",          \
    .rates_intra = LS_TEST_RATES_INTRA_OLD, .rates_inter = LS_TEST_RATES_INTER_OLD,                          \
    .double_many_from = 25e9, .ll = 87.7e9, .ring_ll128 = 20e9, .tree_ll128 = { 20e9, 20e9, 20e9 },          \
    .tree_simple = { 24e9, 23.6e9, 17.8e9 }, .collnet_direct = 1, .ring_plateau = 1.4, LS_TEST_NCCL_RELEASE  \
  }

#define LS_TEST_NCCL_HOPPER                                                                                  \
  {                                                                                                          \
    .name = (char *) "hopper", .compute_capability = 9, .nvlink = 20.6e9, .gpu = (char *) "h100",            \
    .rates_intra = { 60e9, 50e9, 40e9, 30e9, 24e9, 20e9, 15e9, 12e9, 11e9, 6e9, 3e9 },                       \
    .rates_inter = { 48e9, 45e9, 42e9, 40e9, 30e9,  24e9,  22e9,   20e9,  17.5e9,                            \
                     15e9, 12e9, 6e9,  3e9,  2.4e9, 1.2e9, 0.24e9, 0.12e9 },                                 \
    .double_many_from = 50e9, .ll = 141e9, .ring_ll128 = 36.7e9, .tree_ll128 = { 36.7e9, 36.7e9, 29e9 },     \
    .tree_simple = { 38.7e9, 41.4e9, 36e9 }, .nvls_tree = { 0, 57.7e9, 45.5e9 }, .nvls_efficiency = 0.85,    \
    .tree_own_nics = 0.85, .collnet_direct = 0.85, .ring_plateau = 1.4, LS_TEST_NCCL_RELEASE                 \
  }

#define LS_TEST_NCCL_BLACKWELL                                                                               \
  {                                                                                                          \
    .name = (char *) "blackwell", .compute_capability = 10, .nvlink = 40.1e9, .gpu = (char *) "b200",        \
    .rates_intra = { 90e9, 80e9, 70e9, 60e9, 50e9, 45e9, 40e9, 30e9, 24e9, 20e9, 19e9, 18e9 },               \
    .rates_inter = { 96e9, 86e9, 80e9, 48e9, 45.1e9, 42e9, 40e9,  30e9,  24e9,   20e9,                       \
                     18e9, 15e9, 12e9, 10e9, 6e9,    3e9,  2.4e9, 1.2e9, 0.24e9, 0.12e9 },                   \
    .double_many_from = 50e9, .ll = 282e9, .ring_ll128 = 40e9, .tree_ll128 = { 55.6e9, 31.67e9, 20e9 },      \
    .tree_simple = { 70e9, 42.8e9, 24e9 }, .nvls_tree = { 0, 96e9, 80e9 }, .nvls_efficiency = 0.74,          \
    .tree_own_nics = 0.85, .collnet_direct = 0.85, .ring_plateau = 1.4, LS_TEST_NCCL_RELEASE                 \
  }

/* Rates and times of NCCL in round numbers: of a job, without what single GEMMs lose to a call, and without how
 * long gathers and reductions take at least; of collectives alone. */
#define LS_TEST_NCCL_OF_JOB                                                                                  \
  .tables = LS_TEST_NCCL_VOLTA, .channels_ring = 8, .channels_net = 2, .channels_p2p = 2,                    \
  .ring_bus_intra = 200e9, .ring_bus_per_nic = 20e9, .p2p_intra = 200e9, .p2p_inter = 20e9,                  \
  .base_all_reduce = 10 * LS_US, .base_p2p_intra = 5 * LS_US, .base_p2p_inter = 20 * LS_US,                  \
  .hbm_per_wire_all_reduce = 3, .hbm_per_wire_all_gather = 2, .hbm_per_wire_reduce_scatter = 3,              \
  .hbm_per_wire_p2p = 2

#define LS_TEST_NCCL_ALONE                                                                                   \
  .tables = LS_TEST_NCCL_VOLTA, .channels_ring = 24, .channels_net = 2, .channels_nvls = 16,                 \
  .channels_p2p = 2, .ring_bus_intra = 240e9, .ring_bus_per_nic = 16e9, .p2p_intra = 250e9,                  \
  .p2p_inter = 20e9, .base_all_reduce = 10 * LS_US, .base_all_gather = 9 * LS_US,                            \
  .base_reduce_scatter = 8 * LS_US, .base_nvls = 25 * LS_US, .base_p2p_intra = 12 * LS_US,                   \
  .base_p2p_inter = 36 * LS_US, .hop_intra = LS_US, .hop_inter = 14 * LS_US,                                 \
  .sm_share_per_channel = 1.0 / 108, .hbm_per_wire_all_reduce = 3, .hbm_per_wire_all_gather = 3,             \
  .hbm_per_wire_reduce_scatter = 3, .hbm_per_wire_p2p = 2

#endif
