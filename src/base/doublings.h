/* base/doublings.h — a number, or doublings of one: "8" is 8, "2..24" is 2, 4, 8, 16; "1k..2k" 1024, 2048. */
#ifndef LS_BASE_DOUBLINGS_H
#define LS_BASE_DOUBLINGS_H

#include <glib.h>
#include <stdbool.h>

/* Appends them to values (uint32_t). False, and nothing is appended, unless they are whole numbers from 1 to
 * max of which the last is no less than the first. */
bool ls_doublings_add (const char *text, guint32 max, GArray *values);

#endif
