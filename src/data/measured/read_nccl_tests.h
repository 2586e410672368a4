/* data/measured/read_nccl_tests.h — measured collectives: rows of a table, runs of nccl-tests, in the
 * text or the JSON that it writes.
 *
 * Facts of the format: NVIDIA/nccl-tests, src/util.cu and src/common.cu. Text: lines that
 * begin with '#' say what ran ("# Collective test starting: all_reduce_perf"), on which
 * devices, and name the columns; the others are rows: size, count, type, redop, root, then
 * time, algbw, busbw and #wrong out of place, and again in place. JSON has the same under
 * `results`; `devices` names one rank of each process only, `config` how many it has.
 *
 * A text may hold several runs, one after the other, as a job's output or joined logs do: each begins with
 * its own first lines (version, "# Collective test starting:", "# nThread"), and says of itself which
 * operation, devices and columns it has. JSON holds one.
 *
 * The time is that out of place, as collectives are judged elsewhere here. */
#ifndef LS_DATA_MEASURED_READ_NCCL_TESTS_H
#define LS_DATA_MEASURED_READ_NCCL_TESTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

typedef struct {
  uint64_t bytes; /* as nccl-tests counts them */
  double time_us;
} LsNcclTestsRow;

typedef struct {
  char *path, *sha256;
  char *test;            /* "all_reduce", also of a command line above it; NULL: the file does not say */
  char *op;              /* of a table: "all-reduce", as its column has it; else NULL    */
  char *cluster, *trust; /* of a table: what its columns say; "" or NULL: nothing */
  int line;              /* of the file, where the run begins; 0: its only one */
  guint n_ranks, n_hosts;
  char *gpu;            /* the first device's name; NULL: not said            */
  char *date, *version; /* of the run, of NCCL; NULL: not said               */
  GArray *rows;         /* LsNcclTestsRow; at least one, sizes above 0        */
  /* NCCL_ALGO and NCCL_PROTO of such a line, as they stand there; NULL: none */
  char *algorithm, *protocol;
  /* Of the last row of a text: busbw over algbw, 0: not known; whether it has an operator; a root */
  double bus_factor;
  bool reduces, has_root;
} LsNcclTests;

/* LsNcclTests of each run in n bytes, or, text NULL, in the file of that name: at least one; of a table in
 * the order in which they first appear. NULL, with located diagnostics (LS_ERROR_INPUT): no such file, a
 * damaged or impossible line (a time of 0 or less, a rate that is not size / time), wrong results (#wrong
 * above 0, out of bounds values), host times (-C), several groups at once, no rows, no devices; lines that
 * no run's first lines announce (a second title line, devices after rows, anything after the end), runs
 * whose lines are mixed. Free with g_ptr_array_unref(). */
GPtrArray *ls_nccl_tests_parse (const char *path, const char *text, size_t n, LsDiagList *diags);
void ls_nccl_tests_free (LsNcclTests *tests); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsNcclTests, ls_nccl_tests_free)

/* The operation as --op calls it, static: by the table's column, or by the program's name. NULL: it is not
 * said, or is none of ours. */
const char *ls_nccl_tests_op (const LsNcclTests *tests);
/* Where it is not said: by what busbw is of algbw, and by the columns redop and root. All-gather and
 * all-to-all cannot be told apart. NULL: several could be. Static. */
const char *ls_nccl_tests_likely_op (const LsNcclTests *tests);

/* Whether a text is a table of measured collectives, by its header. */
bool ls_is_collectives (const char *text);

/* --- measured collectives, one a row, as `lockstep collective --compare` reads them -------------- */

/* Columns, found by name in the header row, in any order; others are ignored:
 *   cluster     a name of topologies/, or empty: not known
 *   op          all-reduce, all-gather, ...; as --op
 *   gpus nodes  ranks, and the nodes that they are spread over evenly
 *   size_bytes  as nccl-tests counts
 *   time_us     of one call, out of place
 *   trust       optional: a letter
 *   algorithm, protocol   optional: as --algorithm and --protocol, that were forced; empty: none were
 *   source      optional: where it is from; if it names LS_SINGLE_CALLS, or is "the same, ..." below a row
 *               that does, each call was timed by itself */

/* A benchmark that waits for all ranks (dist.barrier ()) and lets PyTorch launch one call between two events:
 * stas00/ml-engineering@744d01e network/benchmarks/all_reduce_bench.py, timed_allreduce (). */
#define LS_SINGLE_CALLS "all_reduce_bench.py"

/* Sizes that a picosecond clock can time: 2^50 bytes take 11 days at 1 GB/s. */
#define LS_COLLECTIVE_MAX_BYTES (UINT64_C (1) << 50)
#define LS_COLLECTIVE_MAX_GPUS  1048576

typedef struct {
  char *cluster;              /* "": not known                   */
  char *trust;                /* NULL where the column is absent */
  char *op;                   /* as it stands there              */
  char *algorithm, *protocol; /* NULL or "": none was forced      */
  char *source;               /* NULL: not said                  */
  bool is_single;             /* launched by itself, by its source */
  uint32_t n_gpus, n_nodes;   /* n_nodes divides n_gpus */
  uint64_t bytes;
  double time_us;
} LsMeasuredCollective;

/* An empty list of LsMeasuredCollective that frees them. */
GPtrArray *ls_measured_collectives_new (void);

/* Reads all rows of the file, or of its text if that is not NULL; NULL, with located diagnostics, if any
 * cell is wrong or there is no row. A GPtrArray of LsMeasuredCollective that frees them. ret_unread: NULL
 * allowed; names of columns that nothing reads (ls_csv_unread()). */
GPtrArray *ls_read_collectives (const char *path, const char *text, char **ret_unread, LsDiagList *diags);

#endif
