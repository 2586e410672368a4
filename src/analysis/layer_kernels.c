#include "analysis/layer_kernels.h"

#include <string.h>

const char *const ls_layer_part_names[LS_N_LAYER_PARTS] = {
  [LS_LAYER_GEMM] = "gemm",
  [LS_LAYER_ATTENTION] = "attention",
  [LS_LAYER_NORM] = "norm",
  [LS_LAYER_RESIDUAL] = "residual sum",
  [LS_LAYER_ROPE] = "rope",
  [LS_LAYER_COPIES] = "copies around attention",
  [LS_LAYER_ACTIVATION] = "activation",
  [LS_LAYER_BESIDE] = "overlapping gemms",
  [LS_LAYER_REST] = "all other",
  [LS_LAYER_MEMSET] = "memset",
};

static void
add (LsPassKernels *p, LsLayerPart part, LsTime time)
{
  p->n[part]++;
  p->time[part] += time;
}

/* ---- of a profile ---- */

typedef enum { TOKEN_GEMM, TOKEN_FORWARD, TOKEN_BACKWARD, TOKEN_MEMSET, TOKEN_OTHER, TOKEN_END } TokenKind;

typedef struct {
  const char *name;
  LsTime time;
  TokenKind kind;
  bool is_norm;
} Token;

static TokenKind
kind_of (const LsStepOp *op)
{
  switch ((LsOpClass) op->class) {
  case LS_CLASS_GEMM:
    return TOKEN_GEMM;
  case LS_CLASS_ATTENTION_FWD:
    return TOKEN_FORWARD;
  case LS_CLASS_ATTENTION_BWD:
    return TOKEN_BACKWARD;
  case LS_CLASS_MEMSET:
    return TOKEN_MEMSET;
  case LS_CLASS_EMBEDDING:
  case LS_CLASS_CROSS_ENTROPY:
  case LS_CLASS_OPTIMIZER:
    return TOKEN_END;
  default:
    return TOKEN_OTHER;
  }
}

/* Token: without copies between GPU and host, and communication with FSDP's copies around it. What belongs to
 * the kernel before it is one with it. */
static GArray *
tokens_of (const LsStepSide *side)
{
  GArray *tokens = g_array_new (FALSE, FALSE, sizeof (Token));
  for (guint i = 0; i < side->ops->len; i++) {
    const LsStepOp *op = &g_array_index (side->ops, LsStepOp, i);
    if (ls_op_class_is_communication ((LsOpClass) op->class) || ls_kernel_does (op->name) == LS_DOES_SHARDING
        || (op->class == LS_CLASS_COPY && !strstr (op->name, "DtoD")))
      continue;
    const Token t = { .name = op->name,
                      .time = op->end - op->start,
                      .kind = kind_of (op),
                      .is_norm = op->class == LS_CLASS_NORM };
    Token *last = tokens->len > 0 ? &g_array_index (tokens, Token, tokens->len - 1) : NULL;
    bool is_attention = t.kind == TOKEN_FORWARD || t.kind == TOKEN_BACKWARD;
    if (last && last->kind == t.kind && (is_attention || (t.kind == TOKEN_GEMM && strstr (t.name, "splitK"))))
      last->time += t.time;
    else
      g_array_append_val (tokens, t);
  }
  return tokens;
}

/* ---- a stretch between two attentions ---- */

#define MAX_PRODUCTS 7

/* Which products there are, and what stands between them. */
typedef struct {
  const Token *tokens; /* behind the first attention, up to and with the second */
  guint n;
  guint n_products;
  guint n_between[MAX_PRODUCTS
                  + 1]; /* neither products nor memsets, before each product; the last: behind all */
} Span;

static bool
read_span (Span *s)
{
  for (guint i = 0; i + 1 < s->n; i++) {
    TokenKind kind = s->tokens[i].kind;
    if (kind == TOKEN_END)
      return false;
    if (kind == TOKEN_GEMM)
      s->n_products++;
    else if (kind == TOKEN_OTHER && s->n_products <= MAX_PRODUCTS)
      s->n_between[s->n_products]++;
  }
  return true;
}

/* Products of fc1, where it is proj, fc1, fc2, qkv; 0: it does not come out. */
static guint
find_split (const Span *s)
{
  for (guint n_fc1 = 1; n_fc1 <= 2; n_fc1++) {
    guint fc2 = 1 + n_fc1, qkv = fc2 + 1;
    bool is_it = s->n_products > qkv && s->n_products <= qkv + 3 && s->n_products <= MAX_PRODUCTS
        && s->n_between[1] > 0 && s->n_between[fc2] > 0 && s->n_between[qkv] > 0;
    for (guint i = qkv + 1; i < s->n_products && is_it; i++)
      is_it = s->n_between[i] == 0;
    if (is_it)
      return n_fc1;
  }
  return 0;
}

/* What stands before product number i. */
static LsLayerPart
place (guint i, guint n_fc1, guint n_products)
{
  guint fc2 = 1 + n_fc1, qkv = fc2 + 1;
  if (i == 0)
    return LS_LAYER_COPIES;
  if (i == 1 || i == qkv)
    return LS_LAYER_NORM;
  return i <= fc2 ? LS_LAYER_ACTIVATION : i < n_products ? LS_LAYER_BESIDE : LS_LAYER_ROPE;
}

/* From i on there are copies, and memsets, up to the attention. */
static bool
only_copies_follow (const Span *s, guint i)
{
  for (; i + 1 < s->n; i++)
    if (s->tokens[i].kind != TOKEN_MEMSET && ls_kernel_does (s->tokens[i].name) != LS_DOES_COPY)
      return false;
  return true;
}

typedef struct {
  guint n_fc1;      /* 0: not split */
  guint i_product;  /* the next one */
  bool is_past_sum; /* of the stretch before it */
} Place;

static LsLayerPart
part_of_other (const Span *s, guint i, Place *p)
{
  const Token *t = &s->tokens[i];
  LsKernelDoes does = ls_kernel_does (t->name);
  if (p->n_fc1 == 0 || t->is_norm)
    return p->n_fc1 == 0 ? LS_LAYER_REST : LS_LAYER_NORM;
  LsLayerPart part = place (p->i_product, p->n_fc1, s->n_products);
  if (part == LS_LAYER_ROPE && does == LS_DOES_COPY && only_copies_follow (s, i))
    return LS_LAYER_COPIES;
  if (part != LS_LAYER_NORM || p->is_past_sum)
    return part;
  p->is_past_sum = does != LS_DOES_DROPOUT;
  return does == LS_DOES_ADD || does == LS_DOES_DROPOUT ? LS_LAYER_RESIDUAL : LS_LAYER_NORM;
}

static LsPassKernels
kernels_of_span (const Span *s, bool is_forward)
{
  static const LsLayerPart parts[] = {
    [TOKEN_GEMM] = LS_LAYER_GEMM,
    [TOKEN_FORWARD] = LS_LAYER_ATTENTION,
    [TOKEN_BACKWARD] = LS_LAYER_ATTENTION,
    [TOKEN_MEMSET] = LS_LAYER_MEMSET,
  };
  Place at = { .n_fc1 = is_forward ? find_split (s) : 0 };
  LsPassKernels p = { .is_split = at.n_fc1 > 0 };
  for (guint i = 0; i < s->n; i++) {
    const Token *t = &s->tokens[i];
    add (&p, t->kind == TOKEN_OTHER ? part_of_other (s, i, &at) : parts[t->kind], t->time);
    if (t->kind == TOKEN_GEMM) {
      at.i_product++;
      at.is_past_sum = false;
    }
  }
  return p;
}

/* ---- the layer ---- */

/* Adds it to those that are like it. */
static void
count_span (GArray *kinds, const LsPassKernels *span)
{
  for (guint i = 0; i < kinds->len; i++) {
    LsPassKernels *k = &g_array_index (kinds, LsPassKernels, i);
    if (memcmp (k->n, span->n, sizeof k->n) != 0 || k->is_split != span->is_split)
      continue;
    for (int part = 0; part < LS_N_LAYER_PARTS; part++)
      k->time[part] += span->time[part];
    k->n_layers++;
    return;
  }
  g_array_append_vals (kinds, span, 1);
  g_array_index (kinds, LsPassKernels, kinds->len - 1).n_layers = 1;
}

/* The first of the most frequent. */
static LsPassKernels
most_frequent (const GArray *kinds)
{
  LsPassKernels best = { 0 };
  guint n = 0;
  for (guint i = 0; i < kinds->len; i++) {
    const LsPassKernels *k = &g_array_index (kinds, LsPassKernels, i);
    n += k->n_layers;
    best = k->n_layers > best.n_layers ? *k : best;
  }
  for (int part = 0; part < LS_N_LAYER_PARTS && best.n_layers > 0; part++)
    best.time[part] /= best.n_layers;
  best.n_spans = n;
  return best;
}

/* The attention behind the one at `from`; G_MAXUINT: none. */
static guint
next_attention (const GArray *tokens, guint from)
{
  for (guint i = from; i < tokens->len; i++) {
    TokenKind kind = g_array_index (tokens, Token, i).kind;
    if (kind == TOKEN_FORWARD || kind == TOKEN_BACKWARD)
      return i;
  }
  return G_MAXUINT;
}

static LsPassKernels
find_layer (const GArray *tokens, TokenKind attention)
{
  g_autoptr (GArray) kinds = g_array_new (FALSE, FALSE, sizeof (LsPassKernels));
  guint from = next_attention (tokens, 0), to;
  for (; from != G_MAXUINT && (to = next_attention (tokens, from + 1)) != G_MAXUINT; from = to) {
    Span s = { .tokens = &g_array_index (tokens, Token, from + 1), .n = to - from };
    bool is_one = g_array_index (tokens, Token, from).kind == attention
        && g_array_index (tokens, Token, to).kind == attention;
    if (!is_one || !read_span (&s))
      continue;
    const LsPassKernels p = kernels_of_span (&s, attention == TOKEN_FORWARD);
    count_span (kinds, &p);
  }
  return most_frequent (kinds);
}

LsLayerKernels
ls_layer_kernels_of_side (const LsStepSide *side)
{
  g_autoptr (GArray) tokens = tokens_of (side);
  return (LsLayerKernels) { .pass
                            = { find_layer (tokens, TOKEN_FORWARD), find_layer (tokens, TOKEN_BACKWARD) } };
}

/* ---- of a job ---- */

static LsLayerPart
part_of_operator (const LsOperator *op)
{
  static const LsLayerPart parts[] = {
    [LS_OPERATOR_OTHER] = LS_LAYER_BESIDE,     [LS_OPERATOR_NORM] = LS_LAYER_NORM,
    [LS_OPERATOR_QKV] = LS_LAYER_BESIDE,       [LS_OPERATOR_ROPE] = LS_LAYER_ROPE,
    [LS_OPERATOR_ATTENTION] = LS_LAYER_COPIES, [LS_OPERATOR_RESIDUAL] = LS_LAYER_RESIDUAL,
  };
  return op->kept.is_norm ? LS_LAYER_NORM : op->kept.is_activation ? LS_LAYER_ACTIVATION : parts[op->role];
}

static LsLayerPart
part_of_kernel (const LsOperator *op, const LsKernel *k)
{
  switch (k->kind) {
  case LS_KERNEL_GEMM:
  case LS_KERNEL_BATCHED_GEMM:
    return LS_LAYER_GEMM;
  case LS_KERNEL_ATTENTION_FWD:
  case LS_KERNEL_ATTENTION_BWD:
    return LS_LAYER_ATTENTION;
  case LS_KERNEL_MEMSET:
    return LS_LAYER_MEMSET;
  default:
    return part_of_operator (op);
  }
}

/* What stands behind the product of Q, K and V is beside the rotation. */
static void
add_kernels (LsPassKernels *p, const LsCalibration *calibration, const LsGpu *gpu, const LsOperator *op,
             const LsKernel *kernels, guint n)
{
  bool is_behind = false;
  for (guint i = 0; i < n; i++) {
    LsLayerPart part = part_of_kernel (op, &kernels[i]);
    is_behind |= op->role == LS_OPERATOR_QKV && part == LS_LAYER_GEMM;
    add (p, is_behind && part == LS_LAYER_BESIDE ? LS_LAYER_ROPE : part,
         ls_kernel_cost (calibration, gpu, &kernels[i]).alone);
  }
}

LsLayerKernels
ls_layer_kernels_of_operators (const GArray *operators, const LsCalibration *calibration, const LsGpu *gpu)
{
  const LsPassKernels blank = { .n_layers = 1, .n_spans = 1, .is_split = true };
  LsLayerKernels layer = { .pass = { blank, blank } };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    add_kernels (&layer.pass[LS_PASS_FORWARD], calibration, gpu, op, op->fwd, op->n_fwd);
    add_kernels (&layer.pass[LS_PASS_BACKWARD], calibration, gpu, op, op->igrad, op->n_igrad);
    add_kernels (&layer.pass[LS_PASS_BACKWARD], calibration, gpu, op, op->wgrad, op->n_wgrad);
  }
  return layer;
}

/* ---- beside each other ---- */

LsPassKernels
ls_pass_kernels_as (const LsPassKernels *of, const LsPassKernels *like)
{
  LsPassKernels p = *of;
  if (like->is_split || !of->is_split)
    return p;
  for (int part = LS_LAYER_NORM; part < LS_LAYER_REST; part++) {
    p.n[LS_LAYER_REST] += p.n[part];
    p.time[LS_LAYER_REST] += p.time[part];
    p.n[part] = 0;
    p.time[part] = 0;
  }
  p.is_split = false;
  return p;
}

guint
ls_pass_kernels_total (const LsPassKernels *p)
{
  guint n = 0;
  for (int part = 0; part < LS_LAYER_MEMSET; part++)
    n += p->n[part];
  return n;
}

guint
ls_layer_kernels_off (const LsLayerKernels *measured, const LsLayerKernels *other)
{
  guint off = 0;
  for (int pass = 0; pass < LS_N_PASSES; pass++) {
    const LsPassKernels *m = &measured->pass[pass];
    const LsPassKernels o = ls_pass_kernels_as (&other->pass[pass], m);
    for (int part = 0; part < LS_LAYER_MEMSET && m->n_layers > 0; part++)
      off += m->n[part] > o.n[part] ? m->n[part] - o.n[part] : o.n[part] - m->n[part];
  }
  return off;
}
