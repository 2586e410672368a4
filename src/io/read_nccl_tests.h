/* io/read_nccl_tests.h — one run of nccl-tests, as text or as JSON (its -J).
 *
 * Facts of the format: NVIDIA/nccl-tests, src/util.cu and src/common.cu. Text: lines that
 * begin with '#' say what ran ("# Collective test starting: all_reduce_perf"), on which
 * devices, and name the columns; the others are rows: size, count, type, redop, root, then
 * time, algbw, busbw and #wrong out of place, and again in place. JSON has the same under
 * `results`; `devices` names one rank of each process only, `config` how many it has.
 *
 * The time is that out of place, as collectives are judged elsewhere here. */
#ifndef LS_IO_READ_NCCL_TESTS_H
#define LS_IO_READ_NCCL_TESTS_H

#include <stdint.h>

#include "base/diag.h"

typedef struct {
  uint64_t bytes; /* as nccl-tests counts them */
  double time_us;
} LsNcclTestsRow;

typedef struct {
  char *path, *sha256;
  char *test;          /* "all_reduce"; NULL: the file does not say          */
  guint n_ranks, n_hosts;
  char *gpu;           /* the first device's name; NULL: not said            */
  char *date, *version; /* of the run, of NCCL; NULL: not said               */
  GArray *rows;        /* LsNcclTestsRow; at least one, sizes above 0        */
} LsNcclTests;

/* NULL, with located diagnostics (LS_ERROR_INPUT): no such file, a damaged or impossible
 * line (a time of 0 or less, a rate that is not size / time), wrong results (#wrong above
 * 0, out of bounds values), host times (-C), several groups at once, no rows, no devices.
 * Free with ls_nccl_tests_free(). */
LsNcclTests *ls_nccl_tests_load (const char *path, LsDiagList *diags);
/* The same from memory. */
LsNcclTests *ls_nccl_tests_parse (const char *path, const char *text, size_t n, LsDiagList *diags);
void ls_nccl_tests_free (LsNcclTests *tests); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsNcclTests, ls_nccl_tests_free)

#endif
