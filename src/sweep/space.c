#include "sweep/space.h"

#include <stddef.h>
#include <string.h>

#include "base/doublings.h"
#include "base/order.h"
#include "base/suggest.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

static bool ls_space_has_layers (const LsSpace *space, const LsStrategy *base, const LsPoint *p);

/* ---- over how many ranks sequences are cut ---- */

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

/* Rules that two ranks break which share a sequence of the model, or compute one each, and run these parts of
 * its layers again; parts: in the words of the option; NULL: none. */
static guint
n_broken (const LsModel *m, uint32_t cp, const char *parts)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new_counting ();
  LsStrategy s;
  ls_strategy_init (&s);
  s.gpus = s.global_batch = 2;
  s.cp = cp;
  s.seq = LS_SPACE_LONG_SEQUENCE;
  s.use.attention = LS_ATTENTION_FLASH;
  if (parts) {
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    bool ok = ls_field_value_set (ls_field_find (ls_strategy_fields, "recompute_parts"), &s, parts);
    g_assert (ok); /* it was read before */
  }
  ls_strategy_resolve (&s, m, 2, 2, diags);
  ls_strategy_clear (&s);
  return ls_diag_list_n (diags);
}

bool
ls_space_may_cut_sequences (const LsModel *m)
{
  return n_broken (m, 2, NULL) <= n_broken (m, 1, NULL);
}

/* The largest degree that is tried without being asked for. */
static uint32_t
ls_space_most_cp (const LsSpace *space, const LsModel *m, const LsStrategy *base)
{
  uint32_t seq = longest_sequence (space, m, base);
  bool is_long = seq >= LS_SPACE_LONG_SEQUENCE || attention_share (m, seq) >= 0.5;
  return is_long && ls_space_may_cut_sequences (m) ? MAX (seq / LS_SPACE_TOKENS_OF_RANK, 1) : 1;
}

/* ---- the values of an axis in a text ---- */

/* Commas are part of a value. */
static bool
has_commas (LsSpaceAxis axis)
{
  const char *const keys[] = { "recompute_parts",
                               "layers_per_chunk",
                               "micro_batches_per_replica",
                               "recompute_stages",
                               "expert_load",
                               "lora_modules",
                               NULL };
  return g_strv_contains (keys, ls_space_axis_name (axis));
}

const char *
ls_space_separator (LsSpaceAxis axis)
{
  return has_commas (axis) ? "/" : ",";
}

/* What ends the first value: no comma in brackets, as in "node[0-3,7]". NULL: it is the last. */
static const char *
end_of_value (LsSpaceAxis axis, const char *text)
{
  int depth = 0;
  char separator = *ls_space_separator (axis);
  for (; *text != '\0' && (*text != separator || depth > 0); text++)
    depth += (*text == '[') - (*text == ']');
  return *text != '\0' ? text : NULL;
}

/* "1..8": of whole numbers. */
static bool
is_doublings (LsSpaceAxis axis, const char *text)
{
  const LsField *f = ls_field_find (ls_strategy_fields, ls_space_axis_name (axis));
  return f->kind == LS_FIELD_UINT && strstr (text, "..");
}

bool
ls_space_is_list (LsSpaceAxis axis, const char *text)
{
  return end_of_value (axis, text) || is_doublings (axis, text);
}

static void
add_items (LsSpaceAxis axis, const char *part, GPtrArray *items)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!is_doublings (axis, part) || !ls_doublings_add (part, G_MAXUINT32, values))
    g_ptr_array_add (items, g_strdup (part));
  for (guint k = 0; k < values->len; k++)
    g_ptr_array_add (items, g_strdup_printf ("%u", g_array_index (values, guint32, k)));
}

/* These, char *, owned: doublings spelt out; what is no value stays as it is. */
static GPtrArray *
ls_space_items (LsSpaceAxis axis, const char *text)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  for (const char *end; text; text = end ? end + 1 : NULL) {
    end = end_of_value (axis, text);
    g_autofree char *part = end ? g_strndup (text, (gsize) (end - text)) : g_strdup (text);
    add_items (axis, part, items);
  }
  return items;
}

#define MAX_SIZE (UINT64_C (1) << 40)

void
ls_space_init (LsSpace *space)
{
  *space = (LsSpace) { 0 };
  for (guint a = 0; a < LS_MAX_SPACE_AXES; a++) {
    space->values[a] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
    space->texts[a] = g_ptr_array_new_with_free_func (g_free);
  }
  space->layers_axis = ls_space_axis ("layers_per_chunk");
  space->order_axis = ls_space_axis ("rank_order");
  space->parts_axis = ls_space_axis ("recompute_parts");
  space->placement_axis = ls_space_axis ("placement");
}

void
ls_space_clear (LsSpace *space)
{
  if (!space)
    return;
  for (guint a = 0; a < LS_MAX_SPACE_AXES; a++) {
    g_clear_pointer (&space->values[a], g_array_unref);
    g_clear_pointer (&space->texts[a], g_ptr_array_unref);
  }
}

/* --- ranges ---------------------------------------------------------------------------- */

/* Whether an axis of numbers has that value. */
static bool
ls_space_holds (const LsSpace *space, LsSpaceAxis axis, uint32_t value)
{
  for (guint i = 0; i < space->values[axis]->len; i++)
    if (g_array_index (space->values[axis], uint32_t, i) == value)
      return true;
  return false;
}

static void
add_value (LsSpace *space, LsSpaceAxis axis, uint32_t value)
{
  if (!ls_space_holds (space, axis, value))
    g_array_append_val (space->values[axis], value);
}

static void
add_text (LsSpace *space, LsSpaceAxis axis, const char *text)
{
  GPtrArray *texts = space->texts[axis];
  if (g_ptr_array_find_with_equal_func (texts, text, g_str_equal, NULL))
    return;
  add_value (space, axis, texts->len);
  g_ptr_array_add (texts, g_strdup (text));
}

void
ls_space_unset (LsSpace *space, LsSpaceAxis axis)
{
  g_array_set_size (space->values[axis], 0);
  g_ptr_array_set_size (space->texts[axis], 0);
}

/* Its values are texts. */
static bool
is_of_texts (LsSpaceAxis axis)
{
  return axis == LS_SPACE_SCHEDULE || axis >= LS_N_SPACE_AXES;
}

static bool
is_switch (LsSpaceAxis axis)
{
  return axis == LS_SPACE_SP || axis == LS_SPACE_TP_OVERLAP;
}

static uint32_t
stage_of (uint32_t value)
{
  return value & ((1u << LS_SPACE_STAGE_BITS) - 1);
}

/* What a strategy holds on an axis that is not of texts, and sets it. */
static uint32_t
value_of (const LsStrategy *s, LsSpaceAxis axis)
{
  const char *at = (const char *) s + ls_space_axis_field (axis)->offset;
  if (axis == LS_SPACE_ZERO)
    return s->zero_stage | s->data.zero_group << LS_SPACE_STAGE_BITS;
  return is_switch (axis) ? *(const bool *) at : *(const uint32_t *) at;
}

void
ls_space_set_value (LsStrategy *s, LsSpaceAxis axis, uint32_t value)
{
  char *at = (char *) s + ls_space_axis_field (axis)->offset;
  if (axis == LS_SPACE_ZERO) {
    s->zero_stage = stage_of (value);
    s->data.zero_group = value >> LS_SPACE_STAGE_BITS;
  } else if (is_switch (axis)) {
    *(bool *) at = value != 0;
  } else {
    *(uint32_t *) at = value;
  }
}

/* What a strategy holds on it, in the words of its flag. */
static void
add_of (LsSpace *space, LsSpaceAxis axis, const LsStrategy *s)
{
  const LsField *f = ls_space_axis_field (axis);
  g_autofree char *text = is_of_texts (axis) ? ls_field_text (f, s, NULL) : NULL;
  if (!text && f->kind == LS_FIELD_UINT_LIST && f->names)
    text = g_strdup (f->names->name);     /* without a list */
  g_assert (text || !is_of_texts (axis)); /* what a flag or a file sets, has words */
  if (text)
    add_text (space, axis, text);
  else
    add_value (space, axis, value_of (s, axis));
}

static char *
near_schedule (const char *typed)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; ls_sched_at (i); i++)
    g_ptr_array_add (names, (gpointer) ls_sched_at (i)->name);
  g_ptr_array_add (names, NULL);
  return ls_did_you_mean (typed, (const char *const *) names->pdata);
}

/* Every value is read as the flag of that name would be. */
gboolean
ls_space_set (LsSpace *space, LsSpaceAxis axis, const char *text, LsDiagList *diags)
{
  g_autoptr (GPtrArray) items = ls_space_items (axis, text);
  LsStrategy s;
  ls_strategy_init (&s);
  bool ok = true;
  ls_space_unset (space, axis);
  space->is_given[axis] = true;
  for (guint i = 0; i < items->len; i++) {
    const char *item = g_ptr_array_index (items, i);
    if (!ls_field_set_text (ls_strategy_fields, &s, ls_space_axis_name (axis), item, diags)) {
      ok = false;
      continue;
    }
    bool is_no_stage = axis == LS_SPACE_ZERO
        && (s.zero_stage == LS_ZERO_AUTO || s.data.zero_group > LS_SPACE_MOST_IN_GROUP);
    bool is_unknown = axis == LS_SPACE_SCHEDULE && !ls_sched_find (item);
    if (is_no_stage || is_unknown) {
      g_autofree char *near = is_unknown ? near_schedule (item) : g_strdup ("");
      ls_diag_add (diags, LS_ERROR_USAGE, NULL, 0, 0, NULL, NULL,
                   is_unknown ? "lockstep list schedules" : NULL, "--%s: expected %s; got \"%s\"%s",
                   ls_space_axis_name (axis),
                   is_no_stage ? "stages from 0 to 3, as 3 or 3@8, separated by commas"
                               : "names of schedules, separated by commas",
                   item, near);
      ok = false;
    } else
      add_of (space, axis, &s);
  }
  ls_strategy_clear (&s);
  return ok;
}

static void
set_range (LsSpace *space, LsSpaceAxis axis, const GArray *values)
{
  ls_space_unset (space, axis);
  for (guint i = 0; i < values->len; i++)
    add_of (space, axis, &g_array_index (values, LsStrategy, i));
}

void
ls_space_set_ranges (LsSpace *space, const LsRanges *ranges)
{
  for (guint a = 0; a < ls_space_n_axes (); a++)
    if (ranges->values[a]) {
      set_range (space, (LsSpaceAxis) a, ranges->values[a]);
      space->is_given[a] = true;
    }
}

void
ls_space_add_range (LsSpace *space, const LsRanges *ranges, LsSpaceAxis axis)
{
  if (ranges->values[axis] && space->values[axis]->len == 0)
    set_range (space, axis, ranges->values[axis]);
}

/* Parts that the layers of the model do not have are not tried, unless somebody asks for them. */
static void
drop_parts (LsSpace *space, const LsModel *m)
{
  LsSpaceAxis axis = space->parts_axis;
  guint n_without = n_broken (m, 1, NULL), n = space->is_given[axis] ? 0 : space->texts[axis]->len;
  if (n == 0)
    return;
  g_auto (GStrv) texts = g_new0 (char *, n + 1);
  for (guint i = 0; i < n; i++)
    texts[i] = g_strdup (space->texts[axis]->pdata[i]);
  ls_space_unset (space, axis);
  for (guint i = 0; i < n; i++)
    if (n_broken (m, 1, texts[i]) <= n_without)
      add_text (space, axis, texts[i]);
}

static void
add_divisors (LsSpace *space, LsSpaceAxis axis, uint32_t n, uint32_t most)
{
  for (uint32_t d = 1; d <= n && d <= most; d++)
    if (n % d == 0)
      add_value (space, axis, d);
}

static void
add_divisors_of_each (LsSpace *space, LsSpaceAxis axis, const GArray *numbers, uint32_t most)
{
  for (guint i = 0; i < numbers->len; i++)
    add_divisors (space, axis, g_array_index (numbers, uint32_t, i), most);
  g_array_sort (space->values[axis], ls_compare_uint32);
}

static uint32_t
largest (const GArray *list)
{
  uint32_t most = 1;
  for (guint i = 0; i < list->len; i++)
    most = MAX (most, g_array_index (list, uint32_t, i));
  return most;
}

/* Whether several chunks per rank come out even for some number of them. */
static bool
has_even_chunks (uint32_t n_layers, uint32_t pp)
{
  for (uint32_t v = 2; (uint64_t) v * pp <= n_layers + UINT64_C (2); v++)
    if (ls_chunks_are_even (n_layers, (uint64_t) v * pp))
      return true;
  return false;
}

/* Chunks per rank that a sweep looks at by itself. */
static bool
ls_space_is_usual (uint32_t n_layers, uint32_t pp, uint32_t vpp)
{
  uint64_t n_chunks = (uint64_t) pp * vpp;
  if (vpp == 1 || ls_chunks_are_even (n_layers, n_chunks))
    return true;
  bool is_power = (vpp & (vpp - 1)) == 0;
  return is_power && n_layers >= 2 * n_chunks && !has_even_chunks (n_layers, pp);
}

static void
fill_vpp (LsSpace *space, uint32_t n_layers, const LsStrategy *base)
{
  const GArray *pp = space->values[LS_SPACE_PP];
  space->has_usual_vpp = true;
  add_value (space, LS_SPACE_VPP, 1);
  if (base->layout.layers_per_chunk)
    add_value (space, LS_SPACE_VPP, base->vpp);
  for (uint32_t v = 2; v <= n_layers + 2; v++)
    for (guint i = 0; i < pp->len; i++)
      if (g_array_index (pp, uint32_t, i) > 1
          && ls_space_is_usual (n_layers, g_array_index (pp, uint32_t, i), v))
        add_value (space, LS_SPACE_VPP, v);
}

static void
fill_list (LsSpace *space, LsSpaceAxis axis, const uint32_t *values, guint n)
{
  for (guint i = 0; i < n; i++)
    add_value (space, axis, values[i]);
}

static void
fill_degrees (LsSpace *space, LsSpaceAxis axis, const LsModel *m, const LsStrategy *base,
              uint32_t gpus_per_node)
{
  const GArray *gpus = space->values[LS_SPACE_GPUS], *batches = space->values[LS_SPACE_GLOBAL_BATCH];
  if (axis == LS_SPACE_TP)
    add_divisors (space, axis, gpus_per_node, largest (gpus));
  else if (axis == LS_SPACE_PP)
    add_divisors_of_each (space, axis, gpus, m->n_layers + 2);
  else if (axis == LS_SPACE_CP)
    add_divisors_of_each (space, axis, gpus, ls_space_most_cp (space, m, base));
  else if (axis == LS_SPACE_EP && m->moe.n_experts > 0)
    add_divisors (space, axis, m->moe.n_experts, largest (gpus));
  else if (axis == LS_SPACE_VPP)
    fill_vpp (space, m->n_layers, base);
  else if (axis == LS_SPACE_MICRO_BATCH)
    add_divisors_of_each (space, axis, batches, LS_SPACE_MAX_MICRO_BATCH);
  else
    add_value (space, axis, 1);
}

static void
fill_axis (LsSpace *space, LsSpaceAxis axis, const LsModel *m, const LsStrategy *base, uint32_t gpus_per_node,
           bool runs_xla)
{
  static const uint32_t off_on[] = { 0, 1 }, stages[] = { 0, 1, 2, 3 };
  static const uint32_t kinds[] = { LS_DP_AUTO, LS_DP_FSDP2 };
  static const uint32_t recompute[] = { LS_RECOMPUTE_NONE, LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_FULL };
  static const char *const schedules[] = { "1f1b", "interleaved-1f1b", "zb-h1" };
  if (is_switch (axis))
    fill_list (space, axis, off_on, 2);
  else if (axis == LS_SPACE_ZERO)
    fill_list (space, axis, stages + (runs_xla ? 3 : 0), runs_xla ? 1 : 4);
  else if (axis == LS_SPACE_DP_KIND && base->dp_kind != LS_DP_AUTO && base->dp_kind != LS_DP_NONE)
    add_value (space, axis, (uint32_t) base->dp_kind); /* of the program */
  else if (axis == LS_SPACE_DP_KIND && runs_xla)
    add_value (space, axis, LS_DP_XLA_FSDP);
  else if (axis == LS_SPACE_DP_KIND)
    fill_list (space, axis, kinds, G_N_ELEMENTS (kinds));
  else if (axis == LS_SPACE_RECOMPUTE)
    fill_list (space, axis, recompute, G_N_ELEMENTS (recompute));
  else if (axis == LS_SPACE_SCHEDULE)
    for (guint i = 0; i < (base->lora.rank > 0 ? 1 : G_N_ELEMENTS (schedules)); i++) /* as adapters are run */
      add_text (space, axis, schedules[i]);
  else
    fill_degrees (space, axis, m, base, gpus_per_node);
}

gboolean
ls_space_fill (LsSpace *space, const LsModel *m, const LsStrategy *base, uint32_t gpus_per_node,
               bool runs_xla, GError **error)
{
  for (int a = LS_SPACE_GPUS; a <= LS_SPACE_GLOBAL_BATCH; a++)
    if (space->values[a]->len == 0 && value_of (base, (LsSpaceAxis) a) > 0)
      add_value (space, (LsSpaceAxis) a, value_of (base, (LsSpaceAxis) a));
  if (space->values[LS_SPACE_GPUS]->len == 0 || space->values[LS_SPACE_GLOBAL_BATCH]->len == 0)
    return ls_fail (error, LS_ERROR_USAGE, "expected --%s",
                    space->values[LS_SPACE_GPUS]->len == 0 ? "gpus" : "global-batch");
  space->size = 1;
  space->n_varied = 0;
  drop_parts (space, m);
  for (guint a = 0; a < ls_space_n_axes (); a++) {
    if (a < LS_N_SPACE_AXES && space->values[a]->len == 0)
      fill_axis (space, (LsSpaceAxis) a, m, base, gpus_per_node, runs_xla);
    space->size *= ls_space_n (space, (LsSpaceAxis) a); /* each is at most 2^20 values, checked after each */
    if (space->size > MAX_SIZE)
      return ls_fail (error, LS_ERROR_LIMIT, "more than 2^40 configurations; narrow the ranges");
    if (ls_space_n (space, (LsSpaceAxis) a) > 1)
      space->varied[space->n_varied++] = (uint16_t) a;
  }
  return TRUE;
}

char *
ls_space_value_text (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  if (is_of_texts (axis))
    return g_strdup (space->values[axis]->len > 0 ? g_ptr_array_index (space->texts[axis], at)
                                                  : "as the job");
  uint32_t value = g_array_index (space->values[axis], uint32_t, at);
  if (axis == LS_SPACE_ZERO && value >> LS_SPACE_STAGE_BITS > 0)
    return g_strdup_printf ("%u@%u", stage_of (value), value >> LS_SPACE_STAGE_BITS);
  if (axis == LS_SPACE_DP_KIND)
    return g_strdup (ls_dp_kind_name ((int) value));
  return axis == LS_SPACE_RECOMPUTE ? g_strdup (ls_recompute_names[(int) value].name)
                                    : g_strdup_printf ("%u", value);
}

/* --- points ------------------------------------------------------------------------------ */

void
ls_space_point (const LsSpace *space, uint64_t index, LsPoint *ret_point)
{
  *ret_point = (LsPoint) { { 0 } };
  for (guint a = ls_space_n_axes (); a-- > 0;) {
    ret_point->at[a] = (uint32_t) (index % ls_space_n (space, (LsSpaceAxis) a));
    index /= ls_space_n (space, (LsSpaceAxis) a);
  }
}

bool
ls_space_next (const LsSpace *space, LsPoint *point)
{
  for (uint32_t i = space->n_varied; i-- > 0;) {
    LsSpaceAxis a = (LsSpaceAxis) space->varied[i];
    if (++point->at[a] < ls_space_n (space, a))
      return true;
    point->at[a] = 0;
  }
  return false;
}

/* The schedule of a point. */
static const LsSched *
ls_space_sched (const LsSpace *space, const LsPoint *p)
{
  return ls_sched_find (g_ptr_array_index (space->texts[LS_SPACE_SCHEDULE], p->at[LS_SPACE_SCHEDULE]));
}

uint64_t
ls_space_variant (const LsSpace *space, const LsPoint *p)
{
  uint64_t n = 0;
  for (uint32_t i = 0; i < space->n_varied; i++)
    if (space->varied[i] >= LS_N_SPACE_AXES)
      n = n * ls_space_n (space, (LsSpaceAxis) space->varied[i]) + p->at[space->varied[i]];
  return n;
}

bool
ls_space_is_refused (const LsSpace *space, const LsModel *m, const LsStrategy *base, const LsPoint *p)
{
  uint64_t tp = ls_space_value (space, p, LS_SPACE_TP), pp = ls_space_value (space, p, LS_SPACE_PP);
  uint64_t replica = tp * pp * ls_space_value (space, p, LS_SPACE_CP),
           gpus = ls_space_value (space, p, LS_SPACE_GPUS);
  if (gpus % replica != 0 || !ls_model_is_cut_evenly (m, (uint32_t) tp))
    return true;
  if (ls_space_value (space, p, LS_SPACE_GLOBAL_BATCH)
          % (gpus / replica * ls_space_value (space, p, LS_SPACE_MICRO_BATCH))
      != 0)
    return true;
  uint64_t ep = ls_space_value (space, p, LS_SPACE_EP), vpp = ls_space_value (space, p, LS_SPACE_VPP);
  if (m->moe.n_experts == 0 ? ep > 1 : m->moe.n_experts % ep != 0)
    return true;
  if (ls_space_has_layers (space, base, p) || (pp > 1 && ls_sched_fixes_chunks (ls_space_sched (space, p))))
    return false;
  const LsSched *sched = pp > 1 ? ls_space_sched (space, p) : NULL;
  LsSchedShape few = { .pp = (uint32_t) pp, .vpp = (uint32_t) vpp, .n_micro_batches = (uint32_t) pp },
               many = few;
  many.n_micro_batches = (uint32_t) (8 * pp * vpp); /* by either: whatever number there is */
  return pp * vpp > m->n_layers + UINT64_C (2)
      || (sched && ls_sched_own_refusal (sched, &few) && ls_sched_own_refusal (sched, &many));
}

/* The knobs behind the axes that have a range by themselves. */
static void
set_listed (const LsSpace *space, const LsPoint *p, LsStrategy *s)
{
  const guint n_axes = ls_space_n_axes ();
  for (guint a = LS_N_SPACE_AXES; a < n_axes; a++)
    if (space->texts[a]->len > 0) {
      bool ok = ls_field_value_set (ls_space_axis_field ((LsSpaceAxis) a), s,
                                    g_ptr_array_index (space->texts[a], p->at[a]));
      g_assert (ok); /* it was read before */
    }
}

void
ls_space_strategy (const LsSpace *space, const LsStrategy *base, const LsPoint *p, LsStrategy *ret_s)
{
  ls_strategy_copy (ret_s, base);
  for (guint a = 0; a < LS_N_SPACE_AXES; a++)
    if (!is_of_texts (a))
      ls_space_set_value (ret_s, a, ls_space_value (space, p, a));
  ret_s->dp = 0;
  g_free (ret_s->schedule);
  ret_s->schedule = ret_s->pp > 1
      ? g_strdup (g_ptr_array_index (space->texts[LS_SPACE_SCHEDULE], p->at[LS_SPACE_SCHEDULE]))
      : NULL;
  set_listed (space, p, ret_s);
  if (ret_s->pp > 1 && ls_sched_fixes_chunks (ls_space_sched (space, p)))
    ret_s->vpp = 1; /* what the schedule needs */
}

/* ---- which configurations of a space are others over again, as a knob says nothing in them ---- */

/* Whether something is said of its layers: what is, decides which chunks are possible. */
static bool
ls_space_has_layers (const LsSpace *space, const LsStrategy *base, const LsPoint *p)
{
  const GPtrArray *layers = space->texts[space->layers_axis];
  if (layers->len == 0)
    return base->layout.layers_per_chunk != NULL;
  return strcmp (g_ptr_array_index (layers, p->at[space->layers_axis]), "auto") != 0;
}

bool
ls_space_is_distinct (const LsSpace *space, const LsModel *m, const LsStrategy *base, const LsPoint *p)
{
  uint64_t tp = ls_space_value (space, p, LS_SPACE_TP), pp = ls_space_value (space, p, LS_SPACE_PP);
  bool is_alone = ls_space_is_alone (space, p);
  if (tp == 1 && (p->at[LS_SPACE_SP] > 0 || p->at[LS_SPACE_TP_OVERLAP] > 0))
    return false;
  if (pp == 1 && p->at[LS_SPACE_SCHEDULE] > 0)
    return false;
  if (p->at[space->parts_axis] > 0 && ls_space_value (space, p, LS_SPACE_RECOMPUTE) != LS_RECOMPUTE_SELECTIVE)
    return false;
  if (is_alone && (p->at[LS_SPACE_ZERO] > 0 || p->at[LS_SPACE_DP_KIND] > 0))
    return false;
  uint32_t zero = ls_space_value (space, p, LS_SPACE_ZERO);
  bool has_reshard = ls_dp_traits ((int) ls_space_value (space, p, LS_SPACE_DP_KIND))->has_reshard;
  if (pp > 1 && !is_alone && has_reshard && base->data.reshard_after_forward == LS_RESHARD_AUTO
      && stage_of (zero) == 2 && ls_space_holds (space, LS_SPACE_ZERO, zero + 1)) /* the same of stage 3 */
    return false;
  if (pp > 1 && p->at[LS_SPACE_VPP] > 0 && ls_sched_fixes_chunks (ls_space_sched (space, p)))
    return false;
  return !space->has_usual_vpp || ls_space_has_layers (space, base, p)
      || ls_space_is_usual (m->n_layers, (uint32_t) pp, ls_space_value (space, p, LS_SPACE_VPP));
}

const char *
ls_space_text (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  return space->texts[axis]->len > 0 ? g_ptr_array_index (space->texts[axis], at) : NULL;
}

void
ls_space_choose_parts (const LsSpace *space, const LsPoint *p, const LsStrategy *base, LsStrategy *s)
{
  const char *parts = ls_space_text (space, space->parts_axis, p->at[space->parts_axis]);
  bool is_open = parts ? strcmp (parts, "auto") == 0 : base->memory.recompute_parts == 0;
  if (is_open && ls_strategy_recompute_frees_nothing (s))
    s->memory.recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
}

static bool
is_word (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  return g_ascii_isalpha (*(const char *) g_ptr_array_index (space->texts[axis], at));
}

/* By weights or modules. */
static bool
is_by_rule (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  const char *text = g_ptr_array_index (space->texts[axis], at);
  return strcmp (text, "weights") == 0 || strcmp (text, "modules") == 0;
}

/* Whether layers lie as they would without a list. */
static bool
is_even_layout (const LsStrategy *s, uint32_t n_layers)
{
  const LsModel m = { .n_layers = n_layers };
  const LsStrategy even = { .pp = s->pp, .vpp = s->vpp };
  g_autofree uint32_t *layers = g_new (uint32_t, s->layout.n_layers_per_chunk);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  return !ls_chunks_want_balance (&even, &m) && ls_chunk_layers (&even, &m, layers, none)
      && memcmp (layers, s->layout.layers_per_chunk, s->layout.n_layers_per_chunk * sizeof *layers) == 0;
}

/* "auto" and "balanced" mean the same where layers do not come out even, or there is but one chunk, or where
 * what comes out even is balanced. The other words are
 * layouts of their own with more than one chunk. */
static bool
repeats_layers (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  LsSpaceAxis axis = space->layers_axis;
  uint32_t at = p->at[axis], n = s->pp * s->vpp, n_layers = 0;
  for (uint32_t i = 0; i < s->layout.n_layers_per_chunk; i++)
    n_layers += s->layout.layers_per_chunk[i];
  bool is_even = n > 1 && (!s->layout.layers_per_chunk || ls_chunks_are_even (n_layers, n));
  bool differs = is_even && !(s->layout.layers_per_chunk && is_even_layout (s, n_layers));
  if (at == 0 || differs || !is_word (space, axis, at) || (n > 1 && is_by_rule (space, axis, at)))
    return false;
  while (at-- > 0)
    if (is_word (space, axis, at) && (n == 1 || !is_by_rule (space, axis, at)))
      return true;
  return false;
}

/* Two orders are the same where all that they tell apart are degrees of 1. */
static bool
repeats_order (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  LsSpaceAxis axis = space->order_axis;
  const LsMesh own = ls_strategy_mesh (s);
  for (uint32_t at = 0; at < p->at[axis]; at++) {
    LsMesh other = own;
    uint32_t named;
    if (ls_rank_order_parse (ls_space_text (space, axis, at), &other.order, &named)
        && ls_mesh_is_alike (&own, &other))
      return true;
  }
  return false;
}

bool
ls_space_has_effect (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  if (repeats_layers (space, p, s) || repeats_order (space, p, s))
    return false;
  return !ls_strategy_recomputes_nothing (s)
      || !ls_space_holds (space, LS_SPACE_RECOMPUTE, LS_RECOMPUTE_NONE);
}
