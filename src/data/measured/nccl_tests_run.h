/* data/measured/nccl_tests_run.h — what the two formats of nccl-tests share (private). */
#ifndef LS_DATA_MEASURED_NCCL_TESTS_RUN_H
#define LS_DATA_MEASURED_NCCL_TESTS_RUN_H

#include <stdbool.h>

#include "data/measured/read_nccl_tests.h"

/* Who takes part, as the lines of devices say it. */
typedef struct {
  GHashTable *hosts; /* names */
  guint n_listed;
  guint64 last_rank;
  guint per_process; /* ranks of one process */
  bool has_groups;   /* more than one */
} LsNcclTestsDevices;

void ls_nccl_tests_devices_init (LsNcclTestsDevices *d);
void ls_nccl_tests_devices_clear (LsNcclTestsDevices *d);
void ls_nccl_tests_add_device (LsNcclTestsDevices *d, guint64 rank, guint64 group, const char *host);
/* A process that names only its first rank has per_process of them. */
guint ls_nccl_tests_n_ranks (const LsNcclTestsDevices *d);

/* What is wrong with a row, newly allocated, or NULL. algbw in GB/s. */
char *ls_nccl_tests_row_trouble (double bytes, double time_us, double algbw, double n_wrong);

/* "all_reduce" of "/opt/nccl-tests/build/all_reduce_perf_mpi"; newly allocated, NULL if it
 * is no such name. */
char *ls_nccl_tests_name (const char *program);

/* Where the runs of a text begin: ascending indices of lines (guint), the first 0. */
GArray *ls_nccl_tests_split (char *const *lines);

/* One run: lines first to last - 1, which it may change. */
bool ls_nccl_tests_read_lines (LsNcclTests *t, char **lines, guint first, guint last, LsDiagList *diags);
bool ls_nccl_tests_read_json (LsNcclTests *t, const char *text, size_t n, LsDiagList *diags);

#endif
