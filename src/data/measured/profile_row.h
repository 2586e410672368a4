/* data/measured/profile_row.h — a row of a kernelbench profile, and the kernel that it is of (private to
 * read_profile.c and profile_kernels.c). */
#ifndef LS_DATA_MEASURED_PROFILE_ROW_H
#define LS_DATA_MEASURED_PROFILE_ROW_H

#include "data/measured/read_profile.h"

/* What kernelbench says of a kernel, as text where only some groups spell it alike. */
typedef struct {
  char *group, *name, *shape, *dtype, *note, *disturbed, *implementation;
  double bytes, flops, time_us;
} LsProfileRow;

/* Appends the kernel of row number `row` to those of the profile, or counts it as passed over. Diagnostics: a
 * shape, number format, time or count is wrong. */
void ls_profile_take_row (LsProfile *p, guint row, const LsProfileRow *r, LsDiagList *diags);
/* profile_spans.c: the kernels of a plan that was run. */
bool ls_profile_has_spans (const LsCsv *csv);
void ls_profile_read_spans (LsProfile *p, LsDiagList *diags);
bool ls_profile_row_is_disturbed (const LsProfileRow *r);
/* A diagnostic (LS_ERROR_INPUT) at a key of a row. */
void ls_profile_error_at (const LsProfile *p, guint row, const char *key, LsDiagList *diags,
                          const char *format, ...) G_GNUC_PRINTF (5, 6);

#endif
