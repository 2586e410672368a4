/* io/write_scores.h — a scoreboard of predictions against measurements, for
 * people and for programs (`validate --json`, names of DESIGN.md section 9). */
#ifndef LS_IO_WRITE_SCORES_H
#define LS_IO_WRITE_SCORES_H

#include <glib.h>

/* Statistics of a set of cases; sweep/score.h says how they are defined. NaN:
 * undefined, null in JSON. */
typedef struct {
  guint n;       /* simulated */
  guint refused;
  double mape_pct, median_abs_pct, bias_pct, worst_pct;
  double kendall_tau;
} LsScore;

typedef struct {
  const char *family;
  LsScore score;
} LsFamilyScore;

typedef struct {
  const char *id;
  double measured_s;
  double predicted_s; /* NaN: refused                      */
  const char *reason; /* of the refusal, one line, or NULL */
} LsScoreRow;

typedef struct {
  LsScore total;
  guint n_families;
  const LsFamilyScore *families;
  guint n_rows;
  const LsScoreRow *rows;
  const char *const *assumed; /* "knob=value" set for every row, NULL-terminated, or NULL */
} LsScores;

/* Signed, in percent of the measurement; NaN if refused. */
double ls_score_row_error_pct (const LsScoreRow *row);

/* Newly allocated, ending in a newline. */
char *ls_scores_to_json (const LsScores *s);
char *ls_scores_to_text (const LsScores *s);

#endif
