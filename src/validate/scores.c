#include "validate/scores.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "validate/ablation.h"

/* --- what a calculator that knows one MFU would say ---------------------------------------------- */

/* A row that may teach. */
typedef struct {
  guint row;
  double mfu;
  const char *family;
} Lesson;

static int
compare_mfu (gconstpointer a, gconstpointer b)
{
  double x = ((const Lesson *) a)->mfu, y = ((const Lesson *) b)->mfu;
  return (x > y) - (x < y);
}

/* Sorted by MFU. */
static GArray *
lessons_of (const LsScoreRow *rows, guint n)
{
  GArray *lessons = g_array_new (FALSE, FALSE, sizeof (Lesson));
  for (guint i = 0; i < n; i++) {
    Lesson lesson = { i, rows[i].ideal_s / rows[i].measured_s, rows[i].family };
    if (!isnan (rows[i].predicted_s) && isfinite (lesson.mfu))
      g_array_append_val (lessons, lesson);
  }
  g_array_sort (lessons, compare_mfu);
  return lessons;
}

static bool
teaches (const Lesson *lesson, guint row, const char *family, LsBaseline baseline)
{
  bool is_own = g_str_equal (lesson->family, family);
  return baseline == LS_BASELINE_OWN ? is_own && lesson->row != row : !is_own;
}

/* The median; NaN: nobody teaches. chosen: room for as many as there are lessons. */
static double
learn_mfu (const GArray *lessons, guint row, const char *family, LsBaseline baseline, double *chosen)
{
  guint n = 0;
  for (guint i = 0; i < lessons->len; i++) {
    const Lesson *lesson = &g_array_index (lessons, Lesson, i);
    if (teaches (lesson, row, family, baseline))
      chosen[n++] = lesson->mfu;
  }
  return n > 0 ? (chosen[(n - 1) / 2] + chosen[n / 2]) / 2 : NAN;
}

void
ls_baseline (LsScoreRow *rows, guint n)
{
  g_autoptr (GArray) lessons = lessons_of (rows, n);
  g_autofree double *room = g_new (double, lessons->len);
  for (guint i = 0; i < n; i++) {
    double own = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OWN, room);
    double others = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OTHERS, room);
    double ideal_s = isnan (rows[i].predicted_s) ? NAN : rows[i].ideal_s;
    rows[i].baseline_s[LS_BASELINE_OWN] = ideal_s / (isnan (own) ? others : own);
    rows[i].baseline_s[LS_BASELINE_OTHERS] = ideal_s / others;
  }
}

/* --- a scoreboard of predictions against measurements -------------------------------------------- */

/* --- refusals --------------------------------------------------------------------------------------- */

/* Every run of digits that stands by itself becomes "#"; in words, such as "1f1b", they stay. */
static char *
without_numbers (const char *reason)
{
  GString *out = g_string_new (NULL);
  for (const char *c = reason; *c;) {
    size_t n = strspn (c, "0123456789");
    bool is_in_word
        = n == 0 || (c > reason && (g_ascii_isalpha (c[-1]) || c[-1] == '_')) || g_ascii_isalpha (c[n]);
    if (is_in_word)
      g_string_append_len (out, c, (gssize) MAX (n, 1));
    else
      g_string_append_c (out, '#');
    c += MAX (n, 1);
  }
  return g_string_free (out, FALSE);
}

static void
refusal_clear (gpointer data)
{
  g_free (((LsRefusal *) data)->reason);
}

static void
add (GArray *refusals, const LsScoreRow *row)
{
  g_autofree char *pattern = without_numbers (row->reason);
  for (guint i = 0; i < refusals->len; i++) {
    LsRefusal *r = &g_array_index (refusals, LsRefusal, i);
    g_autofree char *same = without_numbers (r->reason);
    if (!g_str_equal (pattern, same))
      continue;
    r->n++;
    if (!g_str_equal (r->reason, row->reason)) {
      g_free (r->reason);
      r->reason = g_steal_pointer (&pattern);
    }
    return;
  }
  LsRefusal first = { g_strdup (row->reason), 1, row->id };
  g_array_append_val (refusals, first);
}

/* Stable: few reasons, many rows. */
static void
sort (GArray *refusals)
{
  for (guint i = 1; i < refusals->len; i++) {
    LsRefusal moved = g_array_index (refusals, LsRefusal, i);
    guint at = i;
    for (; at > 0 && g_array_index (refusals, LsRefusal, at - 1).n < moved.n; at--)
      g_array_index (refusals, LsRefusal, at) = g_array_index (refusals, LsRefusal, at - 1);
    g_array_index (refusals, LsRefusal, at) = moved;
  }
}

GArray *
ls_refusals (const LsScoreRow *rows, guint n_rows)
{
  GArray *refusals = g_array_new (FALSE, FALSE, sizeof (LsRefusal));
  g_array_set_clear_func (refusals, refusal_clear);
  for (guint i = 0; i < n_rows; i++)
    if (isnan (rows[i].predicted_s) && rows[i].reason)
      add (refusals, &rows[i]);
  sort (refusals);
  return refusals;
}

/* --- without some of the rows ----------------------------------------------------------------------- */

static double
figure_of (const LsScoreRow *row, int aspect)
{
  return row->traits.figure[aspect - LS_N_WORD_ASPECTS];
}

static const char *
word_of (const LsScoreRow *row, int aspect)
{
  return aspect == LS_ASPECT_ARCHITECTURE ? row->architecture : row->traits.word[aspect];
}

bool
ls_left_out_has (const LsLeftOut *l, const LsScoreRow *row)
{
  if (isnan (row->predicted_s))
    return false;
  if (l->aspect < LS_N_WORD_ASPECTS)
    return g_strcmp0 (word_of (row, l->aspect), l->word) == 0;
  return ls_aspect_is_beyond ((LsAspect) l->aspect, figure_of (row, l->aspect), l->figure);
}

static bool
is_listed (const GArray *list, const LsLeftOut *one)
{
  for (guint i = 0; i < list->len; i++) {
    const LsLeftOut *l = &g_array_index (list, LsLeftOut, i);
    if (one->word ? g_str_equal (l->word, one->word) : l->figure >= one->figure && l->figure <= one->figure)
      return true;
  }
  return false;
}

static bool
divides (const LsLeftOut *l, const LsScoreRow *rows, guint n_rows)
{
  guint n_out = 0, n_in = 0;
  for (guint i = 0; i < n_rows; i++) {
    bool is_out = ls_left_out_has (l, &rows[i]);
    n_out += is_out;
    n_in += !is_out && !isnan (rows[i].predicted_s);
  }
  return n_out > 0 && n_in > 0;
}

GArray *
ls_left_out_list (const LsScoreRow *rows, guint n_rows, LsAspect aspect)
{
  GArray *list = g_array_new (FALSE, TRUE, sizeof (LsLeftOut));
  for (guint i = 0; i < n_rows; i++) {
    if (isnan (rows[i].predicted_s))
      continue;
    LsLeftOut l = { .aspect = (int) aspect };
    if (aspect < LS_N_WORD_ASPECTS)
      l.word = word_of (&rows[i], (int) aspect);
    else
      l.figure = figure_of (&rows[i], (int) aspect);
    if ((l.word || l.figure > 0) && !is_listed (list, &l) && divides (&l, rows, n_rows))
      g_array_append_val (list, l);
  }
  return list;
}

GArray *
ls_rows_without (const LsScoreRow *rows, guint n_rows, const LsLeftOut *left_out)
{
  GArray *some = g_array_new (FALSE, FALSE, sizeof (LsScoreRow));
  for (guint i = 0; i < n_rows; i++)
    if (!isnan (rows[i].predicted_s) && !ls_left_out_has (left_out, &rows[i]))
      g_array_append_val (some, rows[i]);
  return some;
}

/* ---- ablation ---- */

static void
ablate_contention (LsAblated *a)
{
  a->options.network = LS_NETWORK_ALPHABETA;
}

static void
ablate_slowdown (LsAblated *a)
{
  LsNccl *n = &a->hardware.nccl;
  n->sm_share_per_channel = n->stall_per_byte = 0;
  n->hbm_per_wire_all_reduce = n->hbm_per_wire_all_gather = n->hbm_per_wire_reduce_scatter
      = n->hbm_per_wire_p2p = 0;
}

static void
ablate_host (LsAblated *a)
{
  a->options.host = (LsHostCosts) { .is_final = true };
}

static void
ablate_grad_norm (LsAblated *a)
{
  a->strategy.opt.grad_norm = false;
}

static void
ablate_p2p (LsAblated *a)
{
  LsStrategy *s = &a->strategy;
  if (s->pp > 1 && s->schedule && ls_sched_find (s->schedule) != ls_sched_usual (s->pp, 1))
    s->mp.p2p = LS_P2P_OVERLAPPED;
}

static void
ablate_latency (LsAblated *a)
{
  const LsHardware whole = a->hardware;
  ls_scaled_init (&a->scaled, &whole.spec, &whole, &a->options.host, LS_SCALE_NETWORK_LATENCY, 0);
  a->hardware = (LsHardware) { a->scaled.spec, a->scaled.calibration, a->scaled.nccl };
}

/* Calls f for every entry that a training kernel may be timed by. */
static void
for_each_fit (LsCalibration *c, void (*f) (LsKindFit *fit))
{
  for (int i = 0; i < LS_N_KERNEL_KINDS; i++)
    f (&c->kind[i]);
  f (&c->gemm_fp8);
  f (&c->gemm_fp8_blocks);
  f (&c->gemm_nvfp4);
  f (&c->attention_fp8);
  for (int i = 0; i < LS_N_ATTENTION_KERNELS; i++)
    for (int pass = 0; pass < 2; pass++)
      f (&c->attention[i][pass]);
}

static void
fit_without_heat (LsKindFit *fit)
{
  fit->throttle = 0;
}

static void
ablate_clocks (LsAblated *a)
{
  a->hardware.calibration.sustained = 1;
  a->hardware.calibration.sustained_fp8 = a->hardware.calibration.sustained_nvfp4 = 0;
  a->hardware.spec.gpu.clock_spread = a->hardware.spec.gpu.power_limited_flops = 0;
  for_each_fit (&a->hardware.calibration, fit_without_heat);
}

static void
fit_without_tiles (LsKindFit *fit)
{
  fit->wave_rounding = fit->tail = 0;
}

static void
ablate_tiles (LsAblated *a)
{
  for_each_fit (&a->hardware.calibration, fit_without_tiles);
}

static void
fit_with_whole_hbm (LsKindFit *fit)
{
  fit->memory_efficiency = 1;
  fit->bytes_half = 0;
}

static void
ablate_hbm (LsAblated *a)
{
  a->hardware.spec.gpu.hbm_efficiency = 1;
  for_each_fit (&a->hardware.calibration, fit_with_whole_hbm);
}

/* "is_fitted" stays: by it an implementation of attention is known. */
static void
fit_roofline (LsKindFit *fit)
{
  *fit = (LsKindFit) { .is_fitted = fit->is_fitted, .compute_efficiency = 1, .memory_efficiency = 1 };
}

static void
ablate_kernels (LsAblated *a)
{
  ablate_clocks (a);
  ablate_hbm (a);
  for_each_fit (&a->hardware.calibration, fit_roofline);
  a->hardware.calibration.measured = NULL;
}

static const struct {
  const char *key, *label;
  void (*apply) (LsAblated *a);
} mechanisms[LS_N_ABLATIONS] = {
  [LS_ABLATE_CONTENTION] = { "contention", "shared links", ablate_contention },
  [LS_ABLATE_SLOWDOWN] = { "slowdown", "slowdown of kernels", ablate_slowdown },
  [LS_ABLATE_HOST] = { "host", "host costs", ablate_host },
  [LS_ABLATE_GRAD_NORM] = { "grad_norm", "gradient norm", ablate_grad_norm },
  [LS_ABLATE_P2P] = { "p2p", "waits for p2p", ablate_p2p },
  [LS_ABLATE_LATENCY] = { "latency", "network latency", ablate_latency },
  [LS_ABLATE_CLOCKS] = { "clocks", "sustained clocks", ablate_clocks },
  [LS_ABLATE_TILES] = { "tiles", "tiles and waves", ablate_tiles },
  [LS_ABLATE_HBM] = { "hbm", "HBM efficiency", ablate_hbm },
  [LS_ABLATE_KERNELS] = { "kernels", "kernels but roofline", ablate_kernels },
};

const char *
ls_ablation_key (LsAblation ablation)
{
  return mechanisms[ablation].key;
}

const char *
ls_ablation_label (LsAblation ablation)
{
  return mechanisms[ablation].label;
}

void
ls_ablated_init (LsAblated *a, LsAblation ablation, const LsHardware *hardware, const LsStrategy *strategy,
                 const LsRunOptions *options)
{
  *a = (LsAblated) { .hardware = *hardware, .options = *options };
  ls_strategy_copy (&a->strategy, strategy);
  mechanisms[ablation].apply (a);
}

void
ls_ablated_clear (LsAblated *a)
{
  ls_strategy_clear (&a->strategy);
  ls_scaled_clear (&a->scaled);
}
