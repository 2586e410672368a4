/* validate/scores.h — a scoreboard of predictions against measurements. */
#ifndef LS_VALIDATE_SCORES_H
#define LS_VALIDATE_SCORES_H

#include <glib.h>

#include "analysis/score.h"
#include "validate/residuals.h"

typedef struct {
  const char *family;
  LsScore score;
  LsScore baseline[LS_N_BASELINES];
} LsFamilyScore;

/* Rows refused for one reason. */
typedef struct {
  char *reason; /* its numbers as "#" where they differ */
  guint n;
  const char *example; /* id of the first                      */
} LsRefusal;

/* The scores without one mechanism (validate/ablation.h). */
typedef struct {
  const char *key;   /* static: "contention"                      */
  const char *label; /* static: for people                        */
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
  guint n_ablations;         /* 0: not asked for */
  const LsAblationScore *ablations;
  const char *const *assumed; /* "knob=value" set for every row, NULL-terminated, or NULL */
  const char *const
      *own_knobs; /* families of which more is known than their tables say, NULL-terminated, or NULL */
  const LsCoverage *coverage; /* NULL: not asked for */
} LsScores;

#endif
