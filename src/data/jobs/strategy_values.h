/* data/jobs/strategy_values.h — knobs whose values are neither numbers nor one word of several: read and
 * written (private). target: an LsStrategy. Parsing false: it is left alone. */
#ifndef LS_DATA_JOBS_STRATEGY_VALUES_H
#define LS_DATA_JOBS_STRATEGY_VALUES_H

#include <stdbool.h>

#include "data/text/field.h"

/* "core,norm"; "auto" */
bool strategy_parse_parts (const char *text, void *target);
char *strategy_format_parts (const void *target);
/* "auto", "0", "1", or the size of the groups that keep a copy */
bool strategy_parse_formats (const char *text, void *target);
char *strategy_format_formats (const void *target);
bool strategy_parse_reshard (const char *text, void *target);
char *strategy_format_reshard (const void *target);
/* a name or a file, which is loaded: what a strategy holds is what is lowered */
extern const LsFieldLoad strategy_kernels, strategy_optimizer;
char *strategy_why_kernels (const char *text);
char *strategy_why_optimizer (const char *text);
/* "whole", a formula, or a file */
extern const LsFieldLoad strategy_lengths;
char *strategy_why_lengths (const char *text);
#define LS_LENGTHS_FILE "file:"
/* "tp-pp-dp"; names of degrees */
bool strategy_parse_rank_order (const char *text, void *target);
char *strategy_format_rank_order (const void *target);
void strategy_clear_rank_order (void *target);
/* a word, a list of nodes, or a file (data/jobs/read_placement.h) */
extern const LsFieldLoad strategy_placement;
char *strategy_why_placement (const char *text);
/* "2" or "3@8": stage, and how many ranks share one copy */
bool strategy_parse_zero (const char *text, void *target);
char *strategy_format_zero (const void *target);

#endif
