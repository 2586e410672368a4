/* ask/collective/collective_table.h — times of collectives as a table, and the messages of one of them.
 *
 * algbw = bytes / time          busbw = algbw * bus_factor
 *
 * in bytes/s; a call without data has no bandwidth: 0. bytes are those of nccl-tests: the whole array; of
 * all-to-all, what one rank sends. */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_TABLE_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_TABLE_H

#include <glib.h>
#include <lockstep/units.h>
#include <stdint.h>

#include "analysis/score.h"
#include "network/coll.h"
#include "network/script.h"

/* --- a collective's messages, and who holds what after each round -------------------------------- */

/* The array is cut into blocks. A place is a rank, or behind the ranks a switch that computes. Rounds are
 * those of network/script.h: each place goes through them by itself. A block that a place holds is a set of
 * contributions: of an all-reduce whose gradients are in the sum; of an all-gather, whose part it is. */

#define LS_COLLECTIVE_MESSAGES_MAX_RANKS 16 /* more cannot be read */

typedef struct {
  uint32_t round, from; /* a place */
  LsSend send;
} LsCollectiveMessage;

typedef struct {
  uint32_t n, n_switches, n_blocks, n_rounds;
  double block_bytes;
  GArray *messages; /* LsCollectiveMessage, by round, then by sender */
  uint32_t *held;   /* [after 0 .. n_rounds rounds][place][block]: bit i: of rank i; 0: nothing */
} LsCollectiveMessages;

/* Block i of a message's blocks, i < send.n. */
uint32_t ls_collective_messages_block (const LsCollectiveMessages *m, const LsCollectiveMessage *message,
                                       uint32_t i);
uint32_t ls_collective_messages_held (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t place,
                                      uint32_t block);

/* --- times of collectives as a table ------------------------------------------------------------- */

/* Where curves are judged apart: below it latency counts, above it bandwidth. */
#define LS_COLLECTIVE_LARGE_BYTES (UINT64_C (1) << 20)

typedef struct {
  const char *cluster;
  const char *op;
  const char *algorithm, *protocol; /* "": with one rank nothing is done */
  const char *network;              /* "flow"                            */
  uint32_t n_ranks, n_nodes;
  uint64_t bytes;
  LsTime time;
  double bus_factor;
  double measured_us; /* NaN: not compared */
  const char *chips;  /* what n_ranks accelerators are called: "GPUs"; static */
} LsCollectiveRow;

typedef struct {
  const char *name; /* "dgx-h100/all-reduce"; "all" */
  LsScore all;
  LsScore large, small; /* from LS_COLLECTIVE_LARGE_BYTES on; below */
} LsCollectiveFamily;

/* All borrowed. */
typedef struct {
  const char *title;
  const char *chips; /* what accelerators are called: "GPUs"; NULL: of a comparison */
  guint n_rows;
  const LsCollectiveRow *rows;          /* by size; the n_networks of a size side by side */
  guint n_networks;                     /* 1, or several beside each other                */
  gboolean is_scaling;                  /* over numbers of GPUs, too; then by these first */
  uint32_t gpus_per_node;               /* 0: not known or no such thing                  */
  uint64_t gpus_per_leaf, gpus_per_pod; /* on all rails                          */
  gboolean is_comparison;               /* then: */
  guint n_families;
  const LsCollectiveFamily *families; /* by name */
  LsCollectiveFamily total;
  const LsCollectiveMessages *messages; /* of the one row there is then; NULL: nobody asked */
  guint n_skipped; /* rows that were asked for and cannot be simulated, or name no cluster */
} LsCollectiveTable;

double ls_collective_time_us (const LsCollectiveRow *row);
double ls_collective_algbw (const LsCollectiveRow *row); /* bytes/s */
double ls_collective_busbw (const LsCollectiveRow *row);
double ls_collective_measured_busbw (const LsCollectiveRow *row); /* NaN: not compared */

#endif
