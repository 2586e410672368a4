/* data/measured/nsys_reader.h — an export of Nsight Systems on the way (private to read_nsys.c and
 * nsys_nccl.c). */
#ifndef LS_DATA_MEASURED_NSYS_READER_H
#define LS_DATA_MEASURED_NSYS_READER_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/diag.h"
#include "data/measured/kineto_reader.h"
#include "data/measured/read_kineto.h"

/* --- nsys_db.c ------------------------------------------------------------------------------------- */

/* An SQLite file that may be anybody's.
 *
 * Only plain tables are read, by queries of ours; functions that a schema names are not trusted; no text or
 * row is longer than 16 MiB; a query that takes too long is stopped. */

typedef struct {
  sqlite3 *sqlite;
  const char *name; /* of the file, borrowed */
  LsDiagList *diags;
} NsysDb;

/* By path, or n bytes of memory, which stay the caller's. False, with a diagnostic (LS_ERROR_INPUT). Close in
 * either case. */
bool nsys_db_open (NsysDb *db, const char *name, const void *bytes, size_t n, LsDiagList *diags);
void nsys_db_close (NsysDb *db);

/* Whether there is such a table, and such a column of it. */
bool nsys_db_has (NsysDb *db, const char *table, const char *column);
/* The first of these columns that there is, as "alias.column"; NULL: none. Newly allocated. */
char *nsys_db_column (NsysDb *db, const char *table, const char *alias, const char *const *columns);

/* A query, run row by row: false at its end, and, with a diagnostic, if it fails. NULL: it cannot be run,
 * with a diagnostic. */
sqlite3_stmt *nsys_db_query (NsysDb *db, const char *sql);
bool nsys_db_next (NsysDb *db, sqlite3_stmt *rows);

/* --- an export ----------------------------------------------------------------------------------- */

#define NSYS_MAX_ROWS 20000000

typedef struct {
  NsysDb db;
  KinetoReader r;
  int64_t device, process; /* whose kernels are taken; process -1: not said */
} NsysReader;

/* nsys_nccl.c: what collectives move, from NVTX ranges of NCCL. Once ops and launches are there, before
 * kineto_finish(). */
void nsys_add_messages (NsysReader *n);

/* --- what Nsight Systems wrote of a run: `nsys export --type sqlite` ----------------------------- */

/* CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName)
 *     CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET     the same without a name; copyKind
 *     CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId, globalTid, nameId)
 *     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (streamId, correlationId, ...)
 *     NVTX_EVENTS (start, end, text or textId, globalTid, jsonText or jsonTextId)
 *     StringIds (id, value), TARGET_INFO_GPU (id, name)
 *
 * Times are nanoseconds. Which columns there are differs by release: what is missing is done without, but
 * for start, end and stream of kernels. It becomes what a profile of torch.profiler does
 * (data/measured/read_kineto.h):
 *
 *     steps         NVTX ranges "ProfilerStep#N", "step N" or "iteration N", also with "_", "#", ":" or
 *                   nothing between
 *     collectives   of kernels of NCCL that were launched within a range of NCCL's own (nsys_nccl.c)
 *     one device    of several that with the lowest number, of its first process; said as a note */

/* Whether the bytes begin as SQLite's do. */
bool ls_nsys_is (const void *bytes, size_t n);

/* By path; or, with bytes not NULL, n bytes in memory of that name. NULL, with diagnostics
 * (LS_ERROR_INPUT). */
LsKineto *ls_nsys_load (const char *path, const void *bytes, size_t n, LsDiagList *diags);

#endif
