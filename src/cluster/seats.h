/* cluster/seats.h — in which node each accelerator of a cluster is, and which of the node's it is.
 *
 * Accelerators are numbered node after node. Where all nodes have as many, arithmetic tells; where kinds of
 * nodes differ in that, tables do:
 *
 *     nodes of 8, 4, 8     first     0 8 12 20
 *     accelerator 11       node 1, its number 3 */
#ifndef LS_CLUSTER_SEATS_H
#define LS_CLUSTER_SEATS_H

#include <glib.h>
#include <stdint.h>

struct LsClusterSpec;

typedef struct {
  uint32_t n_nodes, n_gpus;
  uint32_t per_node; /* of each node; where nodes differ in that, of the largest */
  uint32_t *first;   /* [n_nodes + 1] accelerators before a node; NULL: all have per_node */
  uint32_t *node_of; /* [n_gpus]; NULL with first */
} LsSeats;

/* Of the nodes of a spec, whole. Linear in the number of nodes, and of accelerators where nodes differ. */
void ls_seats_init (LsSeats *seats, const struct LsClusterSpec *spec);
void ls_seats_clear (LsSeats *seats);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsSeats, ls_seats_clear)

static inline uint32_t
ls_seats_node (const LsSeats *s, uint32_t gpu)
{
  return s->first ? s->node_of[gpu] : gpu / s->per_node;
}

/* Accelerators of the nodes before this one; of n_nodes, of all. */
static inline uint32_t
ls_seats_first (const LsSeats *s, uint32_t node)
{
  return s->first ? s->first[node] : node * s->per_node;
}

static inline uint32_t
ls_seats_local (const LsSeats *s, uint32_t gpu)
{
  return s->first ? gpu - s->first[s->node_of[gpu]] : gpu % s->per_node;
}

static inline uint32_t
ls_seats_in_node (const LsSeats *s, uint32_t node)
{
  return s->first ? s->first[node + 1] - s->first[node] : s->per_node;
}

/* The largest number that divides the accelerators of every node. */
uint32_t ls_seats_common (const LsSeats *seats);

#endif
