/* sweep/space_context.c — over how many ranks a sweep cuts sequences by itself: see space.h. */
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "sweep/space.h"

/* Tokens of the longest sequence that is tried. */
static uint32_t
longest_sequence (const LsSpace *space, const LsModel *m, const LsStrategy *base)
{
  LsSpaceAxis axis = ls_space_axis ("seq");
  uint32_t most = space->texts[axis]->len > 0 ? 0 : base->seq > 0 ? base->seq : m->seq;
  for (guint i = 0; i < space->texts[axis]->len; i++) {
    LsStrategy s = { 0 };
    if (ls_field_value_set (ls_space_axis_field (axis), &s, ls_space_text (space, axis, i)))
      most = MAX (most, s.seq > 0 ? s.seq : m->seq);
  }
  return most;
}

/* FLOPs of a sequence are a s + b s^2: the share of the second, which is attention's. */
static double
attention_share (const LsModel *m, uint32_t seq)
{
  return 1 - seq * ls_model_flops (m, m->vocab, 1, 1, true) / ls_model_flops (m, m->vocab, seq, 1, true);
}

/* Rules that two ranks break which share a sequence of the model, or compute one each. */
static guint
n_broken (const LsModel *m, uint32_t cp)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new_counting ();
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 2;
  s.cp = cp;
  s.seq = LS_SPACE_LONG_SEQUENCE;
  s.attention = LS_ATTENTION_FLASH;
  ls_strategy_resolve (&s, m, 2, 2, diags);
  ls_strategy_clear (&s);
  return ls_diag_list_n (diags);
}

bool
ls_space_may_cut_sequences (const LsModel *m)
{
  return n_broken (m, 2) <= n_broken (m, 1);
}

uint32_t
ls_space_most_cp (const LsSpace *space, const LsModel *m, const LsStrategy *base)
{
  uint32_t seq = longest_sequence (space, m, base);
  bool is_long = seq >= LS_SPACE_LONG_SEQUENCE || attention_share (m, seq) >= 0.5;
  return is_long && ls_space_may_cut_sequences (m) ? MAX (seq / LS_SPACE_TOKENS_OF_RANK, 1) : 1;
}
