/* sweep/compare.h — two results beside each other; measured spans beside predicted ones. */
#ifndef LS_SWEEP_COMPARE_H
#define LS_SWEEP_COMPARE_H

#include "io/read_spans.h"
#include "io/write_compare.h"

/* What either has, in the order of A, then what only B has. Names are borrowed from both
 * files, which must outlive it. Free with ls_result_compare_free(). */
LsResultCompare *ls_result_compare_new (const LsResultFile *a, const LsResultFile *b);
void ls_result_compare_free (LsResultCompare *compare); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsResultCompare, ls_result_compare_free)

/* The rank that was measured, class by class of spans with one name. LS_ERROR_CONFLICT: the
 * prediction has no spans of that rank, or several ranks were measured. Free with
 * ls_span_compare_free(). */
LsSpanCompare *ls_span_compare_new (const LsSpanTable *measured, const LsSpanTable *predicted, GError **error);
void ls_span_compare_free (LsSpanCompare *compare); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSpanCompare, ls_span_compare_free)

#endif
