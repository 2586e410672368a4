/* analysis/critical_summary.h — a critical path added up: by kind, op, link and rank. */
#ifndef LS_ANALYSIS_CRITICAL_SUMMARY_H
#define LS_ANALYSIS_CRITICAL_SUMMARY_H

#include "analysis/critical_path.h"

/* Pieces of one kind of ops with one name. */
typedef struct {
  const char *name; /* of the plan, or static */
  LsPathKind kind;
  LsTime time;
  guint n;
} LsPathOp;

/* Data that moved, and what they would have needed with the link for themselves. */
typedef struct {
  char *name;
  uint32_t n_alike; /* the most links that limit one of these calls alike, this one included */
  LsTime time;
  double busy_s;
  guint n;
} LsPathLink;

typedef struct {
  uint32_t rank, stage;
  uint32_t class, n_class; /* who stands for it, and for how many */
  LsTime time;
} LsPathRank;

/* From what one rank does to what another does next, as it ended. */
typedef struct {
  uint32_t from, to;
  LsTime at;        /* after the start of the window */
  const char *name; /* of the op on the second rank  */
} LsPathHop;

typedef struct {
  LsTime step; /* the sum of all pieces, and of each of these lists but the links */
  LsTime by_kind[LS_N_PATH_KINDS];
  GArray *ops;   /* LsPathOp, longest first     */
  GArray *links; /* LsPathLink, longest first   */
  GArray *ranks; /* LsPathRank, longest first   */
  GArray *hops;  /* LsPathHop, in order of time */
} LsPathSummary;

/* Borrows names from the path's plan. Free with ls_path_summary_free(). */
LsPathSummary *ls_path_summary_new (const LsCriticalPath *path);
void ls_path_summary_free (LsPathSummary *s); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsPathSummary, ls_path_summary_free)

#endif
