/* base/tally.h — how often each of many numbers is there. */
#ifndef LS_BASE_TALLY_H
#define LS_BASE_TALLY_H

#include <glib.h>
#include <stdint.h>

typedef struct {
  uint64_t value;
  uint32_t n; /* so many times */
} LsTally;

/* LsTally; empty. */
GArray *ls_tally_new (void);
/* Cheap where few values follow each other again and again. */
void ls_tally_add_times (GArray *tally, uint64_t value, uint32_t n);
/* Each value once, in ascending order. */
void ls_tally_sort (GArray *tally);

#endif
