/* io/write_scores.h — a scoreboard of predictions against measurements, for
 * people and for programs (`validate --json`, names of DESIGN.md section 9), and as
 * the table of a README. */
#ifndef LS_IO_WRITE_SCORES_H
#define LS_IO_WRITE_SCORES_H

#include <glib.h>

#include "io/write_residuals.h"

/* Statistics of a set of cases; sweep/score.h says how they are defined. NaN:
 * undefined, null in JSON. */
typedef struct {
  guint n;       /* simulated */
  guint refused;
  double mape_pct, median_abs_pct, bias_pct, worst_pct;
  double kendall_tau;
} LsScore;

/* What a calculator that knows one MFU says; from which runs it knows it is in
 * sweep/baseline.h. */
typedef enum { LS_BASELINE_OWN, LS_BASELINE_OTHERS, LS_N_BASELINES } LsBaseline;

typedef struct {
  const char *family;
  LsScore score;
  LsScore baseline[LS_N_BASELINES];
} LsFamilyScore;

typedef struct {
  const char *id, *family;
  double measured_s;
  double predicted_s; /* NaN: refused                      */
  const char *reason; /* of the refusal, one line, or NULL */
  double ideal_s;     /* FLOPs of the model at the peak of all its GPUs; NaN: refused */
  double baseline_s[LS_N_BASELINES]; /* NaN: refused, or nothing to know an MFU from  */
  const char *architecture; /* of its GPUs, static; NULL: refused */
  double mfu;         /* predicted; NaN: refused */
  const char *software; /* whose training loop, interned: of its row, else of the program that it is taken to run */
  LsTraits traits;    /* but for its architecture; strings static or interned */
  double measured_gib, predicted_gib; /* memory; 0: not measured. Predicted NaN: refused */
} LsScoreRow;

/* Rows refused for one reason. */
typedef struct {
  char *reason;        /* its numbers as "#" where they differ */
  guint n;
  const char *example; /* id of the first                      */
} LsRefusal;

/* The scores without one mechanism (sweep/ablation.h). */
typedef struct {
  const char *key;         /* static: "contention"                      */
  const char *label;       /* static: for people                        */
  LsScore total;
  const LsScore *families; /* as those of LsScores, in the same order   */
} LsAblationScore;

typedef struct {
  LsScore total;
  LsScore total_baseline[LS_N_BASELINES];
  LsScore memory; /* of rows whose memory was measured: n + refused is 0 if none */
  guint n_families;
  const LsFamilyScore *families;
  guint n_rows;
  const LsScoreRow *rows;
  guint n_refusals;
  const LsRefusal *refusals; /* most rows first */
  guint n_ablations; /* 0: not asked for */
  const LsAblationScore *ablations;
  const char *const *assumed; /* "knob=value" set for every row, NULL-terminated, or NULL */
  const char *const *own_knobs; /* families of which more is known than their tables say, NULL-terminated, or NULL */
  const LsCoverage *coverage; /* NULL: not asked for */
} LsScores;

/* Signed, in percent of the measurement; NaN if refused. */
double ls_score_row_error_pct (const LsScoreRow *row);
double ls_score_row_memory_error_pct (const LsScoreRow *row);

/* Newly allocated, ending in a newline. */
char *ls_scores_to_json (const LsScores *s);
char *ls_scores_to_text (const LsScores *s);
/* Why rows were refused: a line for each reason, how many and which for example. */
char *ls_scores_refusals (const LsScores *s);
/* The scores by family as a table in Markdown; its numbers are those of the text. */
char *ls_scores_to_markdown (const LsScores *s);

#endif
