/* analysis/link_groups.h — links that differ in numbers alone, as one row of a table (private to link_use.c
 * and link_places.c). Sums over a group are over its levels in one order, however links come. */
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

LsLinkGroups ls_link_groups_new (void);
/* Of links with a name of this pattern; *ret_place: which one it is. Valid up to the next call. */
LsLinkTally *ls_link_tally_of (LsLinkGroups *g, const char *name, guint *ret_place);
void ls_link_add_name (LsLinkTally *tally, const char *name);
void ls_link_add_level (GArray *levels, double utilisation, double bytes, guint n);
/* LsLinkGroup, the busiest first, to be unref'ed. Frees the tallies. */
GArray *ls_link_groups_take (LsLinkGroups *g);

/* Orders: the busiest first. */
int ls_link_compare_levels (const void *a, const void *b);
int ls_link_compare_uses (const void *a, const void *b); /* LsLinkUse; then by name */
void ls_link_clear_use (gpointer link);                  /* LsLinkUse */

/* link_places.c: the report by places; false: the cluster has none, or some of it did not run. */
bool ls_link_use_by_places (LsReport *r, const LsTimeline *t, const LsCluster *c);

#endif
