/* show/run/write_parts.h — parts of a result, for people (sections of write_summary.h) and for programs. */
#ifndef LS_SHOW_RUN_WRITE_PARTS_H
#define LS_SHOW_RUN_WRITE_PARTS_H

#include "analysis/critical_summary.h"
#include "analysis/headroom.h"
#include "ask/sensitivity.h"
#include "data/text/json_out.h"

/* The critical path: sections of a summary, each behind an empty line. is_color: ANSI escapes. */
void ls_critical_to_text (const LsPathSummary *s, bool is_color, GString *out);

/* The member "critical_path" of an object. Seconds; the integers end in _ps. */
void ls_critical_to_json (const LsPathSummary *s, LsJsonOut *w);

/* How a step follows the hardware: a section of a summary, longest bar first. is_ascii: no block
 * characters. */
void ls_sensitivity_to_text (const LsSensitivityTable *t, bool is_color, bool is_ascii, GString *out);

/* The member "sensitivity" of an object. */
void ls_sensitivity_to_json (const LsSensitivityTable *t, LsJsonOut *w);

/* Whether a job fits: "fits, 7.80 GiB free", "fits, but leaves 0.02 of a headroom of 6.60 GiB", "does not
 * fit: 3.10 GiB too much"; newly allocated. What was asked for and is not left, does not fit. */
char *ls_headroom_verdict (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* A line with its parts, so far indented; nothing if there is no headroom. */
void ls_headroom_print (const LsHeadroom *h, guint indent, GString *out);

/* The keys "free_bytes" and "headroom" of the object that is open. */
void ls_json_headroom (LsJsonOut *w, const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* An object with a member for each category of memory (plan/plan.h). */
void ls_json_bytes_by_category (LsJsonOut *w, const char *key, const uint64_t bytes[LS_N_MEM]);

#endif
