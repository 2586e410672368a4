/* show/quantity.h — a quantity in a text: each has one form, in all commands. NaN: "-". Newly allocated.
 * Sizes, rates and FLOP/s are of lockstep/units.h. */
#ifndef LS_SHOW_QUANTITY_H
#define LS_SHOW_QUANTITY_H

#include <glib.h>

/* "412.3 us", "7.000 s", and from an hour on "3.089 h", from a day on "41.20 days"; "never". */
char *ls_text_time (double seconds);
/* Tokens, parameters, hours: "3.25", "603,659", "1.21 M", "15 T". */
char *ls_text_count (double n);
/* "$0.123", "$12,345.67", "$1.21 million" */
char *ls_text_money (double usd);
/* "812.4 kWh", "1.21 MWh" */
char *ls_text_energy (double kwh);
/* "1,234,567.8" */
char *ls_text_grouped (double value, int decimals);
/* As printf() in the C locale; plain: for programs, NaN "NaN". */
char *ls_text_number (const char *format, double value);
char *ls_text_plain (const char *format, double value);
/* A name of ours without its underscores: "exposed_tp" as "exposed tp". */
char *ls_text_words (const char *name);

#define LS_TEXT_GIB 1073741824.0

#endif
