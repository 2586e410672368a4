/* cluster/dealt.h — where the parts of a node of counts are: GPUs, NICs and drives dealt evenly to plugs,
 * plugs to CPU sockets, sockets to boards (private). */
#ifndef LS_CLUSTER_DEALT_H
#define LS_CLUSTER_DEALT_H

#include "cluster/cluster.h"

/* The i-th of n things dealt to `to` places in runs: 8 NICs on 4 switches give
 * 0 0 1 1 2 2 3 3; 2 NICs give 0 2. */
static inline uint32_t
deal (uint32_t i, uint32_t n, uint32_t to)
{
  return (uint32_t) ((uint64_t) i * to / n);
}

static inline bool
has_c2c (const LsClusterSpec *s)
{
  return s->server.c2c.bandwidth_bytes_per_s > 0;
}

/* Where GPUs, NICs and drives are plugged in: PCIe switches, or CPUs; 0: nowhere. */
static inline uint32_t
n_plugs (const LsClusterSpec *s)
{
  return s->server.pcie_switches > 0 ? s->server.pcie_switches : s->server.cpu_sockets;
}

static inline uint32_t
plug_of_gpu (const LsClusterSpec *s, uint32_t gpu)
{
  return deal (gpu, s->gpus_per_node, n_plugs (s));
}

static inline uint32_t
plug_of_nic (const LsClusterSpec *s, uint32_t nic)
{
  return deal (nic, s->nics.n, n_plugs (s));
}

static inline uint32_t
socket_of_plug (const LsClusterSpec *s, uint32_t plug)
{
  return s->server.cpu_sockets > 0 ? deal (plug, n_plugs (s), s->server.cpu_sockets) : 0;
}

static inline uint32_t
n_boards (const LsClusterSpec *s)
{
  return MAX (s->server.cpu_boards, 1);
}

static inline uint32_t
board_of_socket (const LsClusterSpec *s, uint32_t socket)
{
  return s->server.cpu_sockets > 0 ? deal (socket, s->server.cpu_sockets, n_boards (s)) : 0;
}

static inline uint32_t
sockets_per_board (const LsClusterSpec *s)
{
  return s->server.cpu_sockets / n_boards (s);
}

static inline uint32_t
pairs_among (uint32_t n)
{
  return n > 1 ? n * (n - 1) / 2 : 0;
}

static inline uint32_t
n_socket_pairs (const LsClusterSpec *s)
{
  return n_boards (s) * pairs_among (sockets_per_board (s));
}

/* Of sockets a < b of a board, in the order 01 02 .. 12 13 .. */
static inline uint32_t
socket_pair (const LsClusterSpec *s, uint32_t a, uint32_t b)
{
  uint32_t k = sockets_per_board (s), board = board_of_socket (s, a);
  a -= board * k;
  b -= board * k;
  return board * pairs_among (k) + a * (2 * k - a - 1) / 2 + (b - a - 1);
}

/* Whether what GPUs write into each other through a CPU has a rate of its own; ways to a bridge. */
static inline bool
has_writes (const LsClusterSpec *s)
{
  return s->server.write_bridge.bandwidth_bytes_per_s > 0;
}

static inline uint32_t
n_writers (const LsClusterSpec *s)
{
  return !has_writes (s) ? 0 : s->server.pcie_switches > 0 ? s->server.pcie_switches : s->gpus_per_node;
}

#endif
