/* analysis/link_groups.h — links that differ in numbers alone, as one row of a table (private).
 * Sums over a group are over its levels in one order, however links come. */
#ifndef LS_ANALYSIS_LINK_GROUPS_H
#define LS_ANALYSIS_LINK_GROUPS_H

#include "analysis/report.h"

/* Links that a report has by name. */
#define LS_N_BUSIEST 32

/* Links of a group that are used alike. */
typedef struct {
  double utilisation, bytes;
  guint n;
} LsLinkLevel;

typedef struct {
  char *name;     /* of all of them: see ls_link_merge(); NULL: of none yet */
  GArray *levels; /* LsLinkLevel */
} LsLinkTally;

typedef struct {
  GArray *tallies;        /* LsLinkTally */
  GHashTable *by_pattern; /* place + 1 */
} LsLinkGroups;

#endif
