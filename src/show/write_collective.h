/* show/write_collective.h — times of collectives as a table in the shape of nccl-tests,
 * as CSV and as JSON (`collective --json`); next
 * to measured ones, their errors.
 *
 *     algbw = bytes / time          busbw = algbw * bus_factor
 *
 * in GB/s of 1e9 bytes; a call without data has no bandwidth: 0. bytes are those of
 * nccl-tests: the whole array; of all-to-all, what one rank sends. */
#ifndef LS_SHOW_WRITE_COLLECTIVE_H
#define LS_SHOW_WRITE_COLLECTIVE_H

#include "ask/collective/collective_table.h"
#include "data/text/json_out.h"
#include "show/fits/write_fits.h"

/* Newly allocated, ending in a newline. Of a comparison the text has a line per
 * family, JSON and CSV all rows. */
char *ls_collective_to_text (const LsCollectiveTable *t);
char *ls_collective_to_json (const LsCollectiveTable *t);
char *ls_collective_to_csv (const LsCollectiveTable *t);

/* By how much a measured one is off, percent (private). */
double ls_collective_error_pct (const LsCollectiveRow *row);

#endif
