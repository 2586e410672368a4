/* ask/collective/collective_table.h — times of collectives as a table.
 *
 *     algbw = bytes / time          busbw = algbw * bus_factor
 *
 * in bytes/s; a call without data has no bandwidth: 0. bytes are those of nccl-tests: the whole array; of
 * all-to-all, what one rank sends. */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_TABLE_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_TABLE_H

#include <glib.h>
#include <stdint.h>

#include <lockstep/units.h>

#include "analysis/score.h"
#include "ask/collective/collective_messages.h"

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
