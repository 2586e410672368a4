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

#include "analysis/interval.h"
#include "base/diag.h"
#include "base/parallel.h"
#include "cluster/cluster.h"
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

/* Ranks, and switches after them. */
static inline uint32_t
n_places (const LsCollectiveMessages *m)
{
  return m->n + m->n_switches;
}

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
  const char *name; /* "dgx-h100/all-reduce"; "all"; static or interned */
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
  GArray *assumptions; /* LsAssumption (job/assumptions.h), of what is not compared; NULL: none */
  guint n_skipped;     /* rows that were asked for and cannot be simulated, or name no cluster */
} LsCollectiveTable;

static inline double
ls_collective_time_us (const LsCollectiveRow *row)
{
  return (double) row->time / LS_US;
}

/* bytes/s */
static inline double
ls_collective_algbw (const LsCollectiveRow *row)
{
  return row->time > 0 ? (double) row->bytes / ls_collective_time_us (row) * 1e6 : 0;
}

static inline double
ls_collective_busbw (const LsCollectiveRow *row)
{
  return ls_collective_algbw (row) * row->bus_factor;
}

/* NaN: not compared. */
static inline double
ls_collective_measured_busbw (const LsCollectiveRow *row)
{
  return (double) row->bytes / row->measured_us * 1e6 * row->bus_factor;
}

/* --- collectives timed alone: a table over sizes, or the errors against measured ones ---------------- */

/* The GPUs of a table are the first of --gpus, by default all of --nodes; of several
 * numbers each is timed. Between two nodes or more, p2p is from the first GPU of node 0
 * to the first of node 1. Measured
 * rows are placed as nccl-tests does: their GPUs spread evenly over their nodes, the
 * first ones of each. */

typedef struct {
  char *cluster;                 /* name or path; of a comparison NULL: all that the file names */
  char *nccl;                    /* NCCL file; NULL: that of the cluster's GPU */
  char *nccl_env;                /* variables of its environment; NULL: none   */
  char *op;                      /* of a comparison NULL: all            */
  uint32_t n_nodes;              /* 0: the file's, or as many as the GPUs need; of a comparison: all */
  uint32_t slice[LS_TORUS_AXES]; /* of a torus; all 0: as the file says, or the GPUs need */
  GArray *gpus;                  /* uint32_t, numbers of GPUs, ascending; NULL: all */
  char *algorithm;               /* NULL: choose                         */
  int protocol;                  /* LsProtocol                           */
  uint32_t max_ctas;             /* thread blocks of NCCL; 0: any        */
  char *network;                 /* a fidelity's name or "all" */
  uint64_t min_bytes,
      max_bytes;   /* 0: 1 KiB (of several numbers of GPUs 1 MiB) to 8 GiB; of a comparison: all */
  uint32_t factor; /* of a size over the one before; 0: 2, of several numbers of GPUs 8 */
  bool messages;   /* also each message, and who holds what: of one size, min_bytes */
  char *compare;   /* path of measured rows, or NULL */
  char **more;     /* paths of further ones; NULL: none */
  char *trust;     /* measured rows of this trust; "all"; NULL: "A" where the column exists */
  /* of the messages that --network step moves one by one, on the GPUs that are timed; func NULL: nobody
   * asks */
  LsProgress progress;
} LsCollectiveSpec;

void ls_collective_spec_init (LsCollectiveSpec *spec);
void ls_collective_spec_clear (LsCollectiveSpec *spec);

/* Sets one knob from text; key is a long flag of `lockstep collective` without dashes.
 * Diagnostics are LS_ERROR_USAGE; spec is then unchanged. */
gboolean ls_collective_spec_set (LsCollectiveSpec *spec, const char *key, const char *value,
                                 LsDiagList *diags);

/* The kind of an operation: the names of network/coll.h, and "p2p" for send-recv. LS_ERROR_USAGE that says
 * what was probably meant. */
gboolean ls_collective_find_kind (const char *op, LsCollKind *ret_kind, GError **error);

typedef struct {
  LsCollectiveTable table;        /* borrows: */
  GArray *rows;                   /* LsCollectiveRow */
  GArray *families;               /* LsCollectiveFamily */
  GPtrArray *measured;            /* LsMeasuredCollective, or NULL */
  bool has_ways;                  /* one says its algorithm or protocol */
  LsCollectiveMessages *messages; /* or NULL */
  char *cluster, *op, *title;
  GPtrArray *notes; /* char *, one line each */
} LsCollectiveRun;

/* LS_ERROR_USAGE: no cluster or op, an unknown name, min above max, no measured row matches; LS_ERROR_INPUT:
 * a file; LS_ERROR_CONFLICT: more GPUs than there are, an algorithm that does not apply; LS_ERROR_LIMIT: more
 * messages than can be waited for. A measured row that cannot be simulated is skipped, with a note. Free with
 * ls_collective_run_free(). */
LsCollectiveRun *ls_collective_run_new (const LsCollectiveSpec *spec, GError **error);
void ls_collective_run_free (LsCollectiveRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCollectiveRun, ls_collective_run_free)

#endif
