/* show/write_place.h — where ranks sit best, for people and for programs. */
#ifndef LS_SHOW_WRITE_PLACE_H
#define LS_SHOW_WRITE_PLACE_H

#include "ask/place.h"

/* Newly allocated, ending in a newline. title, subtitle: of the job. */
char *ls_place_to_text (const LsPlace *p, const char *title, const char *subtitle);
char *ls_place_to_json (const LsPlace *p);
char *ls_place_to_csv (const LsPlace *p); /* a row for each order and way to deal the GPUs */

/* The options that make the job the best one; file: where its placement is, NULL: nowhere. Newly
 * allocated. */
char *ls_place_options (const LsPlace *p, const char *file);

#endif
