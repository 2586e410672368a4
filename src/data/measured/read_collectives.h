/* data/measured/read_collectives.h — measured collectives, one a row, as `lockstep collective
 * --compare` reads them.
 *
 * Columns, found by name in the header row, in any order; others are ignored:
 *   cluster     a name of topologies/, or empty: not known
 *   op          all-reduce, all-gather, ...; as --op
 *   gpus nodes  ranks, and the nodes that they are spread over evenly
 *   size_bytes  as nccl-tests counts
 *   time_us     of one call, out of place
 *   trust       optional: a letter */
#ifndef LS_DATA_MEASURED_READ_COLLECTIVES_H
#define LS_DATA_MEASURED_READ_COLLECTIVES_H

#include <glib.h>
#include <stdint.h>

#include "base/diag.h"

/* Sizes that a picosecond clock can time: 2^50 bytes take 11 days at 1 GB/s. */
#define LS_COLLECTIVE_MAX_BYTES (UINT64_C (1) << 50)
#define LS_COLLECTIVE_MAX_GPUS  1048576

typedef struct {
  char *cluster;            /* "": not known                   */
  char *trust;              /* NULL where the column is absent */
  char *op;                 /* as it stands there              */
  uint32_t n_gpus, n_nodes; /* n_nodes divides n_gpus */
  uint64_t bytes;
  double time_us;
} LsMeasuredCollective;

/* Reads all rows; NULL, with located diagnostics, if any cell is wrong or there is no
 * row. A GPtrArray of LsMeasuredCollective that frees them. */
GPtrArray *ls_read_collectives (const char *path, LsDiagList *diags);
/* The same from memory; `name` stands for the file in diagnostics. */
GPtrArray *ls_parse_collectives (const char *name, const char *text, LsDiagList *diags);

#endif
