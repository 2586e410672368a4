/* show/run/write_headroom.h — whether a job fits and what it leaves free, for people and for programs. */
#ifndef LS_SHOW_RUN_WRITE_HEADROOM_H
#define LS_SHOW_RUN_WRITE_HEADROOM_H

#include "analysis/headroom.h"
#include "data/text/json_out.h"

/* "fits, 7.80 GiB free", "fits, but leaves 0.02 of a headroom of 6.60 GiB", "does not fit: 3.10 GiB too
 * much"; newly allocated. What was asked for and is not left, does not fit. */
char *ls_headroom_verdict (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* A line with its parts, so far indented; nothing if there is no headroom. */
void ls_headroom_print (const LsHeadroom *h, guint indent, GString *out);

/* The keys "free_bytes" and "headroom" of the object that is open. */
void ls_json_headroom (LsJsonOut *w, const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

#endif
