/* Defaults and legality of a strategy (src/manual/formats/legal.md).
 *
 * First what is derived is filled in, then each rule (rules.txt) looks at the result on its own,
 * so that all broken rules are reported at once. A number that could not be derived
 * stays 0 and silences the rules that need it. */
#include <stddef.h>
#include <string.h>

#include "base/suggest.h"
#include "model/expert_load.h"
#include "model/mixer.h"
#include "model/operators.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

#define conflict(diags, pointer, ...)                                                                        \
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)

/* ---- values that rules and defaults need ---- */

/* Of a strategy and a model. */
#define VALUE(name_, expression_)                                                                            \
  static int64_t name_ (const LsStrategy *s, const LsModel *m)                                               \
  {                                                                                                          \
    return expression_;                                                                                      \
  }
/* Static or borrowed; NULL: there is none. */
#define TEXT(name_, expression_)                                                                             \
  static const char *name_ (const LsStrategy *s, const LsModel *m)                                           \
  {                                                                                                          \
    return expression_;                                                                                      \
  }
/* Of a value of an enum. */
#define NAME(name_, expression_)                                                                             \
  static const char *name_ (int64_t x)                                                                       \
  {                                                                                                          \
    return expression_;                                                                                      \
  }

VALUE (n_copies, ls_strategy_n_copies (s))
VALUE (n_expert_copies, ls_strategy_n_expert_copies (s, m))
VALUE (may_reduce_before_flush, ls_strategy_may_reduce_before_flush (s))
VALUE (needs_matrices, ls_strategy_needs_matrices (s))

/* ---- rules ---- */

/* What they look at. */
typedef struct {
  const LsStrategy *s;
  const LsModel *m;
  const LsSched *sched;                    /* NULL: there is none of that name     */
  uint32_t gpus_per_node, n_micro_batches; /* 0: not known                         */
  bool is_asked;          /* whether it is legal, and not why not: the first rule that is broken says so */
  const void *records[5]; /* those above, the row of the mixer, and itself: by Base   */
} Job;

/* An operand of a condition: a constant, a function's value, or a member of a record. */
typedef enum { OF_STRATEGY, OF_MODEL, OF_SCHED, OF_MIXER, OF_JOB, CONSTANT, CALL, TEXT } Base;
typedef enum { KIND_BYTE, KIND_INT, KIND_COUNT, KIND_REAL, KIND_POINTER } Kind;
#define KIND(type_, member_)                                                                                 \
  _Generic(((type_ *) 0)->member_, bool                                                                      \
           : KIND_BYTE, uint8_t                                                                              \
           : KIND_BYTE, int                                                                                  \
           : KIND_INT, uint32_t                                                                              \
           : KIND_COUNT, double                                                                              \
           : KIND_REAL, default                                                                              \
           : KIND_POINTER)

typedef struct {
  Base base;
  Kind kind;
  size_t offset;
  int64_t value;
  int64_t (*call) (const LsStrategy *s, const LsModel *m);
  const char *(*text) (const LsStrategy *s, const LsModel *m);
} Operand;

/* A condition is steps of a machine with a stack, up to END: PUSH an operand; TEST, whether one is less than
 * a value (1), equal (2) or more (4), one of a set of these; COMPARE likewise two that were pushed; AND, OR:
 * so many steps are left out where the left side decides. */
typedef enum { TEST, COMPARE, PUSH, NOT, AND, OR, END, PLUS, MINUS, TIMES, OVER, REST, BITS } Op;

typedef struct {
  uint16_t op, at; /* at: an operand, or how many steps */
  uint32_t set;
  int64_t value;
} Step;

/* A test of a member, by itself, as most rows end with it; is_all: it is the condition. */
typedef struct {
  uint8_t base, kind, set; /* Base, Kind */
  bool is_all;
  uint16_t offset;
  int64_t value;
} Guard;

/* A piece of words, up to END_OF_WORDS. code: of a number, of what is named, of what decides between text and
 * other; of TEXT_OF the operand. */
typedef struct {
  enum { LITERAL, NUMBER, NAME, CHOICE, TEXT_OF, END_OF_WORDS } kind;
  guint code;
  const char *text, *other;
  const char *(*name) (int64_t value);
} Word;

/* A row of rules.txt, up to END_OF_ROWS. */
typedef struct {
  Guard guard; /* without which its condition does not hold */
  enum { RULE, WHEN, DO, END_OF_ROWS } kind;
  guint code;    /* its condition              */
  guint n_below; /* of WHEN: rows              */
  bool is_else;  /* not where the one before holds */
  LsErrorCode error;
  const Word *pointer, *words;
  const char *keys; /* of a reason */
  void (*check) (const Job *j, LsDiagList *diags);
} Row;

/* --- their values --- */

VALUE (may_be_cut_unevenly,
       m->n_heads % s->tp != 0 || m->n_kv_heads % s->tp != 0 || m->ffn % s->tp != 0
           || m->moe.attention_experts > 0 || ls_model_widths_differ (m))
VALUE (mixer_conv_width, (int64_t) ls_mixer_conv_width (m))
VALUE (mixer_may_be_cut, ls_mixer_has_context_parallelism (m))
VALUE (heads_differ, ls_model_heads_differ (m))
VALUE (has_latents, ls_model_has_latents (m))
VALUE (has_streams, ls_model_n_streams (m) > 1)
VALUE (has_beside, ls_model_has_beside (m))
VALUE (has_layernorm, ls_norm_is_layernorm (m->norm))
/* What few models have, and rules on encoders, on weights that are used again and on parts of layers need. */
VALUE (has_rare_parts,
       m->sides.encoder_layers > 0 || m->predict.shared || m->layers.own > 0 || m->layers.shared_blocks > 0
           || m->halves.layer_input > 0 || m->halves.layer_vocab > 0 || m->halves.kv_shared_layers > 0
           || m->halves.ngram_tables > 0 || m->attn.qk_conv > 0 || m->attn.kv_conv > 0 || m->attn.difference)
VALUE (n_moe_layers, ls_model_n_moe_layers (m))
VALUE (n_attention_layers, ls_model_n_attention_layers (m))
VALUE (ngram_rows, (int64_t) ls_ngram_rows (m))
VALUE (v_dim, ls_model_v_dim (m))
VALUE (second_heads, m->attn.noise_heads > 0 ? m->attn.noise_heads : m->n_heads / 2)
VALUE (decoder_seq, ls_model_decoder_seq (m, s->seq))
VALUE (encoder_chunks, ls_encoder_chunks (s, m))
VALUE (is_usual, ls_sched_find (s->schedule) == ls_sched_usual (s->pp, 1))
VALUE (lacks_stage,
       ls_dp_traits (s->dp_kind)->stages != 0 && !(ls_dp_traits (s->dp_kind)->stages >> s->zero_stage & 1))
VALUE (is_megatron, ls_dp_traits (s->dp_kind)->is_megatron)
VALUE (keeps_gradients, ls_dp_traits (s->dp_kind)->keeps_gradients)
/* Of a sequence that is cut over ranks: whether each has an early and a late part; how many divide it. */
VALUE (is_halved, s->mp.cp_balance && s->mp.cp_kind != LS_CP_ULYSSES)
VALUE (n_parts, INT64_C (1) * s->cp * (is_halved (s, m) ? 2 : 1) * (s->sp ? s->tp : 1))
/* Of a rank of tp. */
VALUE (own_heads, MAX (m->n_heads / s->tp, 1))
VALUE (own_kv_heads, MAX (m->n_kv_heads / s->tp, 1))
/* What selective recomputation drops. */
VALUE (parts, s->recompute == LS_RECOMPUTE_SELECTIVE ? s->memory.recompute_parts : 0)
VALUE (recomputes_nothing, ls_strategy_recomputes_nothing (s))
VALUE (layers_of_unit, s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2 ? s->data.layers_per_unit : 1)
VALUE (has_expert_knobs,
       s->ep > 1 || s->experts.etp != s->tp || s->experts.capacity > 0 || s->experts.load || s->mp.ep_overlap
           || s->mp.delay_wgrad)
VALUE (loops_over_experts, ls_recipes_loop (s->use.recipes, m))
VALUE (load_is_even, ls_expert_load_is_even (s->experts.load))
VALUE (load_is_in_turn, ls_expert_load_is_in_turn (s->experts.load))
VALUE (drops_none, s->experts.capacity >= 1 && s->experts.padding != LS_EXPERT_PADDING_CAPACITY)
VALUE (capacity_is_mean, s->experts.capacity == 1)
VALUE (is_scaled, ls_dtype_is_scaled ((LsDtype) s->dtype))
VALUE (is_bf16, ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16)
VALUE (delays_scales, ls_strategy_delays_scales (s))
VALUE (usual_grad_dtype, ls_strategy_usual_grad_dtype (s))
VALUE (weights_dtype, ls_strategy_weights (s))
VALUE (has_own_weights, ls_master_is_the_weight ((LsMaster) s->opt.master))
VALUE (has_tiles, (ls_optimizer_needs (s->opt.kind) & LS_NEEDS_TILES) != 0)
VALUE (sums_products, (ls_optimizer_needs (s->opt.kind) & LS_NEEDS_SUMMED_PRODUCTS) != 0)
VALUE (multiplies, s->opt.kind && (ls_optimizer_needs (s->opt.kind) & LS_NEEDS_PRODUCTS))
VALUE (has_module_formats, ls_formats_any (&s->fp8.module_formats))
VALUE (fills_groups, s->vpp > 1 && s->schedule && ls_sched_find (s->schedule)->recipe == LS_RECIPE_MEGATRON)
VALUE (has_bf16_experts, s->fp8.bf16_experts && (m->moe.n_experts > 0 || m->moe.attention_experts > 0))
VALUE (fc1_is_bf16, s->fp8.module_formats.of[LS_MODULE_EXPERT_FC1] == LS_FORMAT_BF16)
VALUE (adapts_all, !s->lora.modules || g_str_equal (s->lora.modules, "all-linear"))
VALUE (has_listed_kernels, ls_recipes_fit (s->use.recipes, m))

TEXT (optimizer_note, s->opt.kind ? s->opt.kind->note : NULL)
TEXT (stages_in_words, ls_dp_traits (s->dp_kind)->expected)
TEXT (kernels_name, s->use.recipes->name)
TEXT (adapters_barred, ls_strategy_bars_adapters (m))

/* The first of Adam's states that is narrower than usual. */
static const char *
narrow_state (const LsStrategy *s, const LsModel *m)
{
  const LsAdamStates states = ls_strategy_adam (s);
  return ls_adam_is_plain (&states)          ? NULL
      : s->opt.master != LS_MASTER_FP32      ? "master"
      : s->opt.moment_dtype != LS_DTYPE_FP32 ? "moment_dtype"
                                             : "variance_dtype";
}

/* Of the micro-batches of replicas. */
typedef struct {
  uint32_t least, most;
  int64_t sum;
} Replicas;

static Replicas
replicas_of (const LsStrategy *s)
{
  Replicas x = { .least = s->layout.n_micro_batches_per_replica > 0 ? UINT32_MAX : 0 };
  for (uint32_t d = 0; d < s->layout.n_micro_batches_per_replica; d++) {
    x.least = MIN (x.least, s->layout.micro_batches_per_replica[d]);
    x.most = MAX (x.most, s->layout.micro_batches_per_replica[d]);
    x.sum += s->layout.micro_batches_per_replica[d];
  }
  return x;
}

VALUE (sum_of_replicas, replicas_of (s).sum)
VALUE (has_idle_replica, replicas_of (s).least == 0)
VALUE (has_alike_replicas, replicas_of (s).least == replicas_of (s).most)

NAME (name_dp_kind, ls_dp_kind_name ((int) x))
NAME (name_p2p, ls_enum_name (ls_p2p_names, (int) x))
NAME (name_dtype, ls_dtype_name ((LsDtype) x))
NAME (name_recompute, ls_recompute_names[x].name)
NAME (name_dispatcher, ls_dispatcher_names[x].name)

/* --- values of a model's rules --- */

static bool
has_any (const char *pattern, const char *letters)
{
  return pattern && strpbrk (pattern, letters);
}

/* Whether it is empty, or has others. */
static bool
has_others (const char *pattern, const char *letters)
{
  return pattern && (!*pattern || pattern[strspn (pattern, letters)]);
}

VALUE (has_odd_letters, has_others (m->layers.pattern, "ABDMPSHamde"))
VALUE (has_mlps, !m->layers.pattern || has_others (m->layers.pattern, "Bma"))
VALUE (has_s, has_any (m->layers.pattern, "S"))
VALUE (has_h, has_any (m->layers.pattern, "H"))
VALUE (has_b, has_any (m->layers.pattern, "B"))
VALUE (has_e, has_any (m->layers.pattern, "e"))
VALUE (has_halves, has_any (m->layers.pattern, "amdeB"))
VALUE (has_other_than_mamba1,
       m->layers.pattern
           && (m->layers.pattern[strspn (m->layers.pattern, "AM")] || m->mixer.kind != LS_MIXER_MAMBA1))
VALUE (predicts_odd_letters,
       has_others (m->predict.pattern, "ADMPSHamde") || strlen (m->predict.pattern) > LS_MAX_BLOCK_LAYERS)
VALUE (predicts_mixers, has_any (m->predict.pattern, "MmP"))
VALUE (predicts_s, has_any (m->predict.pattern, "S"))
VALUE (predicts_h, has_any (m->predict.pattern, "H"))
VALUE (predicts_e, has_any (m->predict.pattern, "e"))
VALUE (predicts_halves, has_any (m->predict.pattern, "amde"))
VALUE (experts_differ, ls_model_experts_differ (m))
VALUE (widths_differ, ls_model_widths_differ (m))
VALUE (has_lists, ls_model_has_lists (m))
VALUE (n_layer_kinds, ls_model_n_layer_kinds (m))
VALUE (mixes_streams, ls_streams_mix (m))
VALUE (streams_alternate, ls_streams_alternate (m))
VALUE (has_gated_mlp, ls_mlp_is_gated (m->mlp))
/* Weights are counted in 64 bits, as are the bytes of some of them. */
VALUE (has_too_many_experts, 3.0 * m->n_layers * m->moe.n_experts * m->hidden * m->moe.expert_ffn > 1e18)

static int64_t
rest_of_windowed_heads (const LsStrategy *s, const LsModel *m)
{
  const LsModel windowed = ls_model_of_kind (m, LS_LAYER_WINDOWED);
  return windowed.n_heads % windowed.n_kv_heads;
}

/* Of the first layer whose lists do not fit together: 1, its heads; 2, its experts; 0: there is none. */
static int64_t
listed_fault (const LsStrategy *s, const LsModel *m)
{
  for (uint32_t i = 0; i < m->n_layers; i++) {
    const LsModel own = ls_model_of_kind (m, LS_N_LAYER_TRAITS * i);
    if (own.n_heads % own.n_kv_heads != 0)
      return 1;
    if (ls_model_experts_differ (m) && own.moe.top_k > own.moe.n_experts)
      return 2;
  }
  return 0;
}

/* A layer that shares has none of its kind before it that does not. Of listed windows none is known to be
 * that of another layer. */
static int64_t
lacks_sources (const LsStrategy *s, const LsModel *m)
{
  uint32_t own = 0, first = m->n_layers - m->halves.kv_shared_layers;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    /* What it shares: keys and values as far as all see, or as a window goes; a memory. */
    uint32_t kind = ls_model_layer_kind (m, i),
             bit = !ls_layer_has_attention (kind) ? 4
        : kind & LS_LAYER_WINDOWED                ? 2
                                                  : 1;
    if (i >= first && ((bit == 2 && m->layers.n_window > 0) || !(own & bit)))
      return 1;
    own |= i < first ? bit : 0;
  }
  return 0;
}

/* --- rules that are functions --- */

/* Layers that are not as wide as others are cut evenly, too. */
static void
check_widths (const Job *j, LsDiagList *diags)
{
  const LsModel *m = j->m;
  uint32_t first[LS_MAX_MODEL_KINDS], tp = j->s->tp;
  for (uint32_t i = 0, n = ls_model_widths_differ (m) ? ls_model_first_of_kinds (m, first) : 0; i < n; i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, first[i]));
    uint32_t heads = own.n_heads, kv_heads = own.n_kv_heads, ffn = own.ffn;
    bool is_cut = heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0);
    bool is_usual = heads == m->n_heads && kv_heads == m->n_kv_heads && ffn == m->ffn;
    if (is_usual || (is_cut && ffn % tp == 0))
      continue;
    conflict (diags, "/tp",
              "expected a divisor of the %u heads and the ffn width %u of layer %u, and a "
              "divisor or a multiple of its %u key-value heads; got %u",
              heads, ffn, first[i], kv_heads, tp);
    return;
  }
}

/* Layers whose experts are not those of others. */
static void
check_listed_experts (const Job *j, LsDiagList *diags)
{
  const LsModel *m = j->m;
  const LsStrategy *s = j->s;
  uint32_t first[LS_MAX_MODEL_KINDS];
  if (!ls_model_experts_differ (m))
    return;
  if (s->experts.load || s->experts.capacity > 0)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, NULL, 0, 0,
                 s->experts.load ? "/expert_load" : "/expert_capacity", NULL, NULL,
                 "uneven loads and capacities where layers differ in their experts are not modelled; "
                 "expected none");
  for (uint32_t i = 0, n = ls_model_first_of_kinds (m, first); i < n; i++) {
    uint32_t kind = ls_model_layer_kind (m, first[i]);
    LsModel own = ls_model_of_kind (m, kind);
    if (!(kind & LS_LAYER_EXPERTS)
        || (own.moe.n_experts % s->ep == 0 && own.moe.expert_ffn % s->experts.etp == 0))
      continue;
    conflict (diags, "/ep",
              "expected ep that divides the %u experts of layer %u, and etp that divides their width %u; got "
              "%u and %u",
              own.moe.n_experts, first[i], own.moe.expert_ffn, s->ep, s->experts.etp);
    return;
  }
}

static void
check_expert_load (const Job *j, LsDiagList *diags)
{
  g_autofree char *why = NULL;
  g_free (ls_expert_shares (j->s->experts.load, j->m, &why));
  if (why)
    conflict (diags, "/expert_load", "%s", why);
}

/* An order names what there is more than one of; both divisions of the ranks have one pipeline, as
 * Megatron-LM asserts (core/parallel_state.py, initialize_model_parallel). */
static void
check_rank_order (const Job *j, LsDiagList *diags)
{
  const LsStrategy *s = j->s;
  bool has_experts = j->m->moe.n_experts > 0;
  const uint32_t degree[LS_N_DIMS] = { s->tp, s->cp, has_experts ? s->ep : 1, s->dp, s->pp };
  LsRankOrder order;
  uint32_t named, n_stage = s->tp * s->cp * s->dp;
  if (!s->layout.rank_order || !ls_rank_order_parse (s->layout.rank_order, &order, &named))
    return;
  for (int d = 0; d < LS_N_DIMS; d++)
    if (degree[d] > 1 && !(named & 1u << d))
      conflict (diags, "/rank_order", "expected %s in it, as %s is %u; got \"%s\"", ls_dim_names[d],
                ls_dim_names[d], degree[d], s->layout.rank_order);
  if (!has_experts || n_stage == 0 || s->experts.etp == 0
      || n_stage % ((uint64_t) s->ep * s->experts.etp) != 0)
    return;
  const LsMesh mesh = ls_strategy_mesh (s);
  if (!ls_mesh_has_one_pipeline (&mesh))
    conflict (diags, "/rank_order",
              "expected pp last, or as many ranks before pp with experts as without: their stages must be on "
              "the same ranks; got \"%s\"",
              s->layout.rank_order);
}

static void
check_lora_modules (const Job *j, LsDiagList *diags)
{
  uint32_t modules;
  g_autofree char *wrong = NULL;
  if (ls_lora_modules (j->m, j->s->lora.modules, &modules, &wrong))
    return;
  ls_lora_modules (j->m, NULL, &modules, NULL);
  g_autofree char *own = ls_lora_words (modules, ", ");
  conflict (diags, "/lora_modules",
            "expected all-linear or several of %s%s, which are the model's linear layers; got %s", own,
            j->m->latent.kv_lora > 0 ? " (k: keys and values, made of one latent)" : "", wrong);
}

static const char *operators_barred (const LsStrategy *s, const LsModel *m);

#include "strategy/rules_table.h"

/* --- looking through them --- */

static void
job_init (Job *j, const LsStrategy *s, const LsModel *m, const LsSched *sched)
{
  static const LsSched none;
  *j = (Job) {
    .s = s, .m = m, .sched = sched, .records = { s, m, sched ? sched : &none, &ls_mixers[m->mixer.kind], j }
  };
}

static const LsSched *
sched_of (const LsStrategy *s)
{
  return s->schedule ? ls_sched_find (s->schedule) : NULL;
}

static inline const void *
member_of (const Job *j, Base base, size_t offset)
{
  return (const char *) j->records[base] + offset;
}

static inline int64_t
value_at (const void *member, Kind kind)
{
  switch (kind) {
  case KIND_BYTE:
    return *(const uint8_t *) member;
  case KIND_INT:
    return *(const int *) member;
  case KIND_COUNT:
    return *(const uint32_t *) member;
  case KIND_REAL:
    return *(const double *) member > 0;
  default:
    return *(const void *const *) member != NULL;
  }
}

static int64_t
value_of (const Job *j, const Operand *o)
{
  return o->base < CONSTANT ? value_at (member_of (j, o->base, o->offset), o->kind)
      : o->base == CONSTANT ? o->value
      : o->base == CALL     ? o->call (j->s, j->m)
                            : o->text (j->s, j->m) != NULL;
}

static inline bool
is_in (uint32_t set, int64_t a, int64_t b)
{
  return set >> ((a >= b) + (a > b)) & 1;
}

static int64_t
result_of (Op op, int64_t a, int64_t b)
{
  switch (op) {
  case PLUS:
    return a + b;
  case MINUS:
    return a - b;
  case TIMES:
    return a * b;
  case OVER:
    return b ? a / b : 0;
  case REST:
    return b ? a % b : 0;
  default:
    return a & b;
  }
}

#define MOST_DEPTH 16 /* values that a condition holds */

static int64_t
evaluate (const Job *j, const Step *x)
{
  int64_t stack[MOST_DEPTH], *top = stack;
  for (;; x++)
    switch (x->op) {
    case TEST:
      *++top = is_in (x->set, value_of (j, &rule_operands[x->at]), x->value);
      break;
    case PUSH:
      *++top = value_of (j, &rule_operands[x->at]);
      break;
    case COMPARE:
      top--;
      *top = is_in (x->set, top[0], top[1]);
      break;
    case NOT:
      *top = !*top;
      break;
    case AND:
    case OR:
      if ((*top == 0) == (x->op == AND))
        x += x->at;
      else
        top--;
      break;
    case END:
      return *top;
    default:
      top--;
      *top = result_of ((Op) x->op, top[0], top[1]);
    }
}

static inline bool
may_hold (const Job *j, const Guard *g)
{
  return is_in (g->set, value_at (member_of (j, (Base) g->base, g->offset), (Kind) g->kind), g->value);
}

/* Of a row that may hold. */
static inline bool
holds (const Job *j, const Row *r)
{
  return r->guard.is_all || evaluate (j, &rule_code[r->code]) != 0;
}

static void
append_text (const Job *j, const Operand *o, GString *text)
{
  if (o->base == TEXT)
    g_string_append (text, o->text (j->s, j->m));
  else if (o->kind == KIND_REAL)
    g_string_append_printf (text, "%g", *(const double *) member_of (j, o->base, o->offset));
  else
    g_string_append (text, *(const char *const *) member_of (j, o->base, o->offset));
}

/* Newly allocated. */
static char *
text_of (const Job *j, const Word *w)
{
  GString *text = g_string_new (NULL);
  for (; w->kind != END_OF_WORDS; w++)
    if (w->kind == NUMBER)
      g_string_append_printf (text, "%" G_GINT64_FORMAT, evaluate (j, &rule_code[w->code]));
    else if (w->kind == NAME)
      g_string_append (text, w->name (evaluate (j, &rule_code[w->code])));
    else if (w->kind == TEXT_OF)
      append_text (j, &rule_operands[w->code], text);
    else
      g_string_append (text, w->kind == LITERAL || evaluate (j, &rule_code[w->code]) ? w->text : w->other);
  return g_string_free (text, FALSE);
}

/* A diagnostic for each rule that is broken; whether none is. */
static bool
check (const Job *j, const Row *rows, LsDiagList *diags)
{
  bool is_broken = false; /* the one before, or one before that which it is an else of */
  guint n_before = ls_diag_list_n (diags);
  for (const Row *r = rows; r->kind != END_OF_ROWS; r++) {
    if (r->is_else && is_broken)
      continue;
    is_broken = may_hold (j, &r->guard) && (r->kind == DO || holds (j, r));
    if (!is_broken || r->kind == WHEN) {
      r += is_broken ? 0 : r->n_below;
      continue;
    }
    if (r->kind == DO) {
      r->check (j, diags);
      continue;
    }
    g_autofree char *pointer = j->is_asked ? NULL : text_of (j, r->pointer),
                    *text = j->is_asked ? NULL : text_of (j, r->words);
    ls_diag_add (diags, r->error, NULL, 0, 0, pointer, NULL, NULL, "%s", text ? text : "");
    if (j->is_asked)
      return false;
  }
  return ls_diag_list_n (diags) == n_before;
}

static bool
has_word (const char *words, const char *word)
{
  size_t n = strlen (word);
  for (const char *at = strstr (words, word); at; at = strstr (at + 1, word))
    if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
      return true;
  return false;
}

/* The first row that holds; key: of those about it. NULL: there is none. */
static const Row *
first_that_holds (const Job *j, const Row *rows, const char *key)
{
  for (const Row *r = rows; r->kind != END_OF_ROWS; r++) {
    bool does = (!key || has_word (r->keys, key)) && may_hold (j, &r->guard) && holds (j, r);
    if (does && r->kind == RULE)
      return r;
    r += does || r->kind != WHEN ? 0 : r->n_below;
  }
  return NULL;
}

/* Its words; static. */
static const char *
reason (const Job *j, const Row *rows, const char *key)
{
  const Row *r = first_that_holds (j, rows, key);
  return r ? r->words->text : NULL;
}

const char *
ls_model_wrong (const LsModel *m, LsModelRules of, char **ret_key)
{
  static const Row *const lists[LS_N_MODEL_RULES] = {
    [LS_MODEL_EXPERTS] = rules_model_experts, [LS_MODEL_PATTERN] = rules_model_pattern,
    [LS_MODEL_MIXER] = rules_model_mixer,     [LS_MODEL_ATTENTION] = rules_model_attention,
    [LS_MODEL_LISTS] = rules_model_lists,     [LS_MODEL_LAYERS] = rules_model_layers,
    [LS_MODEL_HALVES] = rules_model_halves,   [LS_MODEL_PARTS] = rules_model_parts,
    [LS_MODEL_KEYS] = rules_model_keys,
  };
  Job j;
  job_init (&j, NULL, m, NULL);
  const Row *r = first_that_holds (&j, lists[of], NULL);
  if (r && ret_key) {
    g_autofree char *pointer = text_of (&j, r->pointer);
    *ret_key = g_strdup (pointer + 1);
  }
  return r ? r->words->text : NULL;
}

/* Why not some outputs of a layer can be kept and the rest run again. */
static const char *
operators_barred (const LsStrategy *s, const LsModel *m)
{
  Job j;
  job_init (&j, s, m, sched_of (s));
  return reason (&j, rules_operators, NULL);
}

const char *
ls_strategy_bars_adapters (const LsModel *m)
{
  const char *mixer = ls_mixers[m->mixer.kind].no_adapters;
  Job j;
  job_init (&j, NULL, m, NULL);
  return mixer ? mixer : reason (&j, rules_adapters, NULL);
}

const char *
ls_sched_job_refusal (const LsSched *sched, const LsStrategy *s, const LsModel *m, uint32_t n_micro_batches)
{
  Job j;
  job_init (&j, s, m, sched);
  j.n_micro_batches = n_micro_batches;
  return ls_sched_is_flushed (sched) ? NULL : reason (&j, rules_unflushed, NULL);
}

const char *
ls_strategy_why_even (const LsStrategy *s, const LsModel *m)
{
  Job j;
  job_init (&j, s, m, sched_of (s));
  return reason (&j, rules_even, NULL);
}

const char *
ls_strategy_idle (const LsStrategy *s, const LsModel *m, const char *key)
{
  Job j;
  job_init (&j, s, m, NULL);
  return reason (&j, rules_idle, key);
}

const char *
ls_strategy_decided_by (const LsStrategy *s, const LsModel *m, const char *key)
{
  Job j;
  job_init (&j, s, m, NULL);
  const char *knob = reason (&j, rules_decides, key);
  return knob ? knob : key;
}

void
ls_strategy_notes (const LsStrategy *s, const LsModel *m, GPtrArray *notes)
{
  Job j;
  job_init (&j, s, m, NULL);
  for (const Row *r = rules_notes; r->kind != END_OF_ROWS; r++)
    if (may_hold (&j, &r->guard) && holds (&j, r))
      g_ptr_array_add (notes, text_of (&j, r->words));
}

bool
ls_strategy_recompute_frees_nothing (const LsStrategy *s)
{
  return s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts == LS_RECOMPUTE_CORE
      && s->use.attention == LS_ATTENTION_FLASH;
}

bool
ls_strategy_recomputes_nothing (const LsStrategy *s)
{
  return ls_strategy_recompute_frees_nothing (s) && !s->memory.recompute_flash;
}

/* ---- a pipeline ---- */

/* Whether there is such a schedule. */
static bool
check_schedule (const Job *j, LsDiagList *diags)
{
  if (j->sched)
    return true;
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; ls_sched_at (i); i++)
    g_ptr_array_add (names, (gpointer) ls_sched_at (i)->name);
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (j->s->schedule, (const char *const *) names->pdata);
  g_autofree char *hint = near ? g_strdup_printf ("did you mean \"%s\"?", near)
                               : g_strdup ("lockstep list schedules names them");
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, "/schedule", NULL, hint,
               "expected a pipeline schedule; got \"%s\"", j->s->schedule);
  return false;
}

/* Of j->n_micro_batches, if that is known. */
static void
check_pipeline (const Job *j, LsDiagList *diags)
{
  const LsStrategy *s = j->s;
  if (!check_schedule (j, diags))
    return;
  check (j, rules_p2p, diags);
  if (j->n_micro_batches > 0 && !check (j, rules_flushes, diags))
    return;
  /* Without a number of micro-batches, the rules on pp and vpp still hold: pp
   * micro-batches are legal wherever any number is. */
  LsSchedShape shape = ls_strategy_sched_shape (s, j->n_micro_batches > 0 ? j->n_micro_batches : s->pp);
  /* Megatron-LM's rule; the order alone does not need it. Sizes are checked elsewhere. */
  bool lacks_stages = s->pp < 2 && j->sched->use == LS_SCHED_CHUNKS;
  const char *rule = lacks_stages ? "pp must be greater than 1" : ls_sched_own_refusal (j->sched, &shape);
  if (!rule)
    rule = ls_sched_job_refusal (j->sched, s, j->m, shape.n_micro_batches);
  if (rule)
    conflict (diags, "/schedule", "%s: %s; got pp %u, vpp %u, %u micro-batches", s->schedule, rule, s->pp,
              s->vpp, shape.n_micro_batches);
}

/* Of replicas with numbers of their own; and the pipeline of each. */
static void
check_replicas (Job *j, LsDiagList *diags)
{
  const LsStrategy *s = j->s;
  const char *why = reason (j, rules_even, NULL);
  if (why)
    conflict (diags, "/micro_batches_per_replica", "expected as many for all: %s", why);
  if (s->dp == 0 || !check (j, rules_replicas, diags))
    return;
  guint n_before = ls_diag_list_n (diags);
  for (uint32_t d = 0; d < s->dp && ls_diag_list_n (diags) == n_before; d++) {
    j->n_micro_batches = s->layout.micro_batches_per_replica[d];
    if (d == 0 || j->n_micro_batches != s->layout.micro_batches_per_replica[d - 1])
      check_pipeline (j, diags);
  }
}

/* Micro-batches of a rank, or 0, with a diagnostic if the numbers are there. */
static uint32_t
check_batch (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dp == 0 || s->global_batch == 0)
    return 0;
  uint64_t per_step = (uint64_t) s->dp * s->micro_batch;
  if (s->global_batch % per_step != 0) {
    conflict (diags, "/global_batch",
              "expected a multiple of dp * micro_batch = %u * %u = %" G_GUINT64_FORMAT "; got %u", s->dp,
              s->micro_batch, per_step, s->global_batch);
    return 0;
  }
  return (uint32_t) (s->global_batch / per_step);
}

/* ---- all of it ---- */

gboolean
ls_strategy_resolve (LsStrategy *s, const LsModel *model, uint32_t n_gpus, uint32_t gpus_per_node,
                     LsDiagList *diags)
{
  g_autoptr (LsDiagList) unheard = NULL;
  bool is_asked = diags == NULL;
  if (is_asked)
    diags = unheard = ls_diag_list_new_counting ();
  guint n_before = ls_diag_list_n (diags);
  Job j;
  job_init (&j, s, model, NULL);
  if (!check (&j, rules_values, diags))
    return FALSE;
  if (s->layout.layers_are_found)
    ls_strategy_forget_layers (s);
  ls_strategy_fill (s, model, n_gpus, diags);
  job_init (&j, s, model, sched_of (s));
  j.gpus_per_node = gpus_per_node;
  j.is_asked = is_asked;
  check (&j, rules_layout, diags);
  if (!is_asked)
    check (&j, rules_rest, diags);
  if (is_asked && ls_diag_list_n (diags) > n_before)
    return FALSE;
  ls_chunk_layers (s, model, NULL, diags);
  if (s->layout.micro_batches_per_replica)
    check_replicas (&j, diags);
  else {
    j.n_micro_batches = check_batch (s, diags);
    check_pipeline (&j, diags);
  }
  if (is_asked && ls_diag_list_n (diags) == n_before) /* what seldom is wrong comes last */
    check (&j, rules_rest, diags);
  return ls_diag_list_n (diags) == n_before;
}
