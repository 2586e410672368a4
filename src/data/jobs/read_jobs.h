/* data/jobs/read_jobs.h — jobs that share a cluster: which nodes each has, when it starts, what it does.
 *
 *     { "schema": "lockstep.jobs/1", "cluster": "dgx-h100", "nodes": 4,
 *       "jobs": [
 *         { "name": "a", "nodes": "0-1", "options": { "model": "llama3.1-8b", "tp": 2 } },
 *         { "name": "b", "nodes": "2-3", "start": "0.5s", "options": { "trace": "b.json" } } ] }
 *
 * Besides there may be traffic of no job: so many bytes from each of some nodes, over and over.
 *
 *       "traffic": [{ "name": "checkpoints", "from": "0-1", "to": "3", "bytes": "20GB", "period": "5s" }]
 *
 * The options of a job are those of `lockstep run`; what they mean is not looked at here. */
#ifndef LS_DATA_JOBS_READ_JOBS_H
#define LS_DATA_JOBS_READ_JOBS_H

#include <lockstep/units.h>

#include "data/text/field.h"

#define LS_JOBS_MAX 64

typedef struct {
  char *name;
  char *nodes; /* a list of nodes (cluster/allocation.h) */
  LsTime start;
  char **options; /* "key=value", NULL: none */
} LsJobsEntry;

typedef struct {
  char *name;
  char *from, *to; /* lists of nodes: the nodes of `from` send to those of `to` in turn */
  uint64_t bytes;  /* of each node of `from` */
  LsTime period;   /* 0: one after the other */
  LsTime start;
  double rate; /* of each node of `from`, bytes/s at most; 0: any */
} LsJobsTraffic;

typedef struct {
  char *cluster;    /* name or path */
  uint32_t n_nodes; /* 0: those of its file */
  GArray *jobs;     /* LsJobsEntry, 1 to LS_JOBS_MAX with names of their own */
  GArray *traffic;  /* LsJobsTraffic; NULL: none */
  LsJsonDoc *doc;   /* what was read, to say where it stands */
} LsJobsFile;

/* The keys of such a file. */
extern const LsField ls_jobs_fields[];

/* LS_ERROR_INPUT. On success the caller clears *ret_file; on failure it is untouched. */
bool ls_jobs_load (const char *path, LsJobsFile *ret_file, LsDiagList *diags);
bool ls_jobs_read (const LsJsonDoc *doc, LsJobsFile *ret_file, LsDiagList *diags);
void ls_jobs_clear (LsJobsFile *file);

/* What is wrong with a key of a job, or with the job where it has no such key. option: whose key, of its
 * options; NULL: key is the job's own. text: may have several lines, of which further ones are notes. */
void ls_jobs_diag (const LsJobsFile *file, guint job, const char *key, bool is_option, LsErrorCode code,
                   const char *text, LsDiagList *diags);
/* The same of traffic. */
void ls_jobs_diag_traffic (const LsJobsFile *file, guint traffic, const char *key, LsErrorCode code,
                           const char *text, LsDiagList *diags);

#endif
