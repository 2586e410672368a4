/* show/run/write_critical.h — a critical path for people and for programs. */
#ifndef LS_SHOW_RUN_WRITE_CRITICAL_H
#define LS_SHOW_RUN_WRITE_CRITICAL_H

#include "analysis/critical_summary.h"
#include "data/text/json_out.h"

/* Appends sections of a summary (show/run/write_summary.h), each behind an empty line. is_color: ANSI
 * escapes. */
void ls_critical_to_text (const LsPathSummary *s, bool is_color, GString *out);

/* The member "critical_path" of an object. Seconds; the integers end in _ps. */
void ls_critical_to_json (const LsPathSummary *s, LsJsonOut *w);

#endif
