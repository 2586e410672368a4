/* ask/compare.h — results next to each other; measured spans next to predicted ones. */
#ifndef LS_ASK_COMPARE_H
#define LS_ASK_COMPARE_H

#include <glib.h>
#include <stdint.h>

#include "data/measured/read_result.h"

/* ---- results ---- */

/* NaN: the file lacks it. */
double ls_compare_number (const LsResultFile *file, LsResultSection section, const char *name);
/* What any file has of a section, in the order in which it appears; char *, borrowed from the files. Free
 * with g_ptr_array_unref(). */
GPtrArray *ls_compare_names (LsResultFile *const *files, guint n, LsResultSection section);

/* ---- measured and predicted spans ---- */

/* All spans of one name on a rank. */
typedef struct {
  const char *name; /* interned */
  guint n_predicted, n_measured;
  double predicted_us, measured_us; /* sums; NaN without spans */
} LsSpanClass;

/* A side as a whole. Gaps are those between the first and the last span of the compute
 * stream. */
typedef struct {
  double step_us; /* measured: undisturbed; predicted: to the end of the last span */
  double busy_us, gap_us;
} LsSpanTotal;

typedef struct {
  uint32_t rank;
  GArray *classes; /* LsSpanClass, most time first */
  LsSpanTotal predicted, measured;
} LsSpanCompare;

/* The rank that was measured, class by class of spans with one name. LS_ERROR_CONFLICT: the
 * prediction has no spans of that rank, or several ranks were measured. Free with
 * ls_span_compare_free(). */
LsSpanCompare *ls_span_compare_new (const LsSpanTable *measured, const LsSpanTable *predicted,
                                    GError **error);
void ls_span_compare_free (LsSpanCompare *compare); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSpanCompare, ls_span_compare_free)

#endif
