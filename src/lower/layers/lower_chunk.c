/* lower/layers/lower_chunk.c — the passes over one chunk on one rank: its operators one by one
 * (lower_operator.c), what data parallelism does between them (lower_dp.h), and what runs
 * again (lower_recompute.c). */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

/* --- the chunk -------------------------------------------------------------- */

/* Those in [from, to), which stay where they are. */
static void
append_part (Chunk *c, uint16_t layer, const GArray *operators, guint from, guint to)
{
  for (guint i = from; i < to; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    g_ptr_array_add (c->operators, (gpointer) o);
    g_array_append_val (c->layer_of, layer);
    c->n_products[o->params.is_expert] += n_scaled_products (o);
    for (uint32_t p = 0; p < o->params.n && o->params.is_frozen; p++) {
      c->n_frozen[o->params.is_expert] += o->params.numel[p];
      c->n_nf4 += o->params.is_nf4 && p == 0 ? o->params.numel[p] : 0;
      c->n_frozen_scaled += p == 0 && multiplies_scaled (o) ? o->params.numel[p] : 0;
    }
    for (uint32_t p = 0; p < o->params.n && !o->params.is_frozen; p++) {
      c->n_params += o->params.numel[p];
      if (p == 0 && multiplies_scaled (o))
        c->n_scaled[o->params.is_expert][scaled_dtype (o) == LS_DTYPE_NVFP4] += o->params.numel[p];
      c->n_expert += o->params.is_expert ? o->params.numel[p] : 0;
      c->n_partial += o->params.is_replicated && !o->params.has_whole_grad ? o->params.numel[p] : 0;
    }
  }
}

/* Of a layer, with whether its products are in bf16 where others are in a scaled format. */
static uint32_t
layer_kind (const Lower *l, uint32_t layer)
{
  bool is_apart = ls_layer_dtype (l->model, &l->shard, layer) != l->shard.dtype;
  return 2 * ls_model_layer_kind (l->model, layer) + is_apart;
}

/* d is dense, m has experts; in capitals with products in bf16; s, b, f, h: parts that stand for others,
 * stand beside others, or are not there; e, c: of an encoder, and of a decoder behind one; k, l: with
 * compressed keys, chosen or all; v, g: with keys of a layer before, with a sparse gate; @i: as wide as
 * layer i. */
static void
append_run (GString *text, uint32_t kind, uint32_t n)
{
  static const char letters[] = "dmwxnoyz";
  static const struct {
    LsLayerTrait trait;
    char letter;
  } traits[] = {
    { LS_LAYER_MIXER, 's' },     { LS_LAYER_BOTH, 'b' },   { LS_LAYER_ENCODER, 'e' },
    { LS_LAYER_CROSS, 'c' },     { LS_LAYER_CSA, 'k' },    { LS_LAYER_HCA, 'l' },
    { LS_LAYER_NO_MIXING, 'f' }, { LS_LAYER_NO_MLP, 'h' }, { LS_LAYER_KV_SHARED, 'v' },
    { LS_LAYER_SPARSE, 'g' },
  };
  char letter = letters[kind / 2 % (sizeof letters - 1)];
  g_string_append_c (text, ' ');
  g_string_append_c (text, kind % 2 ? g_ascii_toupper (letter) : letter);
  for (guint i = 0; i < G_N_ELEMENTS (traits); i++)
    if (kind / 2 & traits[i].trait)
      g_string_append_c (text, traits[i].letter);
  g_string_append_printf (text, "%u", n);
  if (kind / 2 >= LS_N_LAYER_TRAITS)
    g_string_append_printf (text, "@%u", kind / 2 / LS_N_LAYER_TRAITS);
}

/* In words, of which names of passes are made; layers by runs of a kind. */
static char *
what_it_holds (const Lower *l, const Chunk *c, uint32_t first)
{
  GString *text = g_string_new (NULL);
  bool has_kinds = l->model->moe.n_experts > 0 || ls_model_n_layer_kinds (l->model) > 1
      || l->shard.fp8.bf16_first + l->shard.fp8.bf16_last > 0;
  g_string_append_printf (text, " %u layers", c->n_layers);
  for (uint32_t i = 0, from = 0; i < c->n_layers && has_kinds; i++) {
    uint32_t kind = layer_kind (l, first + i);
    if (i + 1 < c->n_layers && layer_kind (l, first + i + 1) == kind)
      continue;
    append_run (text, kind, i + 1 - from);
    from = i + 1;
  }
  g_string_append (text, c->has_embedding ? " embedding" : "");
  g_string_append (text, c->begins_decoder ? " decoder embedding" : "");
  g_string_append (text, c->ends_encoder ? " encoder norm" : "");
  g_string_append (text, c->has_head ? " head" : "");
  return g_string_free (text, FALSE);
}

/* The operators of a kind of layer, in a shard. */
typedef struct {
  LsShard shard;
  uint32_t kind;
  GArray *operators; /* LsOperator */
} LayerMade;

static void
layer_made_free (gpointer made)
{
  g_array_unref (((LayerMade *) made)->operators);
  g_free (made);
}

/* An operator takes 5 KB, and most layers are alike: each kind is made once. */
static const GArray *
layer_operators (Lower *l, uint32_t layer)
{
  uint32_t kind = layer_kind (l, layer);
  if (!l->layers)
    l->layers = g_ptr_array_new_with_free_func (layer_made_free);
  for (guint i = 0; i < l->layers->len; i++) {
    const LayerMade *made = l->layers->pdata[i];
    if (made->kind == kind && memcmp (&made->shard, &l->shard, sizeof l->shard) == 0)
      return made->operators;
  }
  LayerMade *made = g_new (LayerMade, 1);
  memcpy (&made->shard, &l->shard, sizeof l->shard);
  made->kind = kind;
  made->operators = ls_operators_new ();
  ls_operators_layer (l->model, &l->shard, layer, made->operators);
  g_ptr_array_add (l->layers, made);
  return made->operators;
}

/* Which of an encoder's and a decoder's stages it is. */
static void
find_side (const Lower *l, Chunk *c, uint32_t first_layer)
{
  uint32_t end = l->model->sides.encoder_layers;
  if (!l->shard.sides_are_apart)
    return;
  c->ends_encoder = c->n_layers > 0 && first_layer + c->n_layers == end;
  c->begins_decoder = c->n_layers > 0 && first_layer == end;
  c->is_decoder = first_layer >= end;
}

/* What is before the layers; returns how many that are. */
static guint
make_begin (const Lower *l, Chunk *c)
{
  if (c->has_embedding)
    ls_operators_embedding (l->model, &l->shard, c->ends);
  if (c->is_decoder)
    ls_operators_encoder_output (l->model, &l->shard, c->ends);
  if (c->begins_decoder)
    ls_operators_decoder_embedding (l->model, &l->shard, c->ends);
  return c->ends->len;
}

static void
make_end (const Lower *l, Chunk *c)
{
  if (c->ends_encoder)
    ls_operators_encoder_end (l->model, &l->shard, c->ends);
  if (!c->has_head)
    return;
  bool shares_weight = l->model->tied_embeddings && !is_tied_over_ranks (l);
  ls_operators_head (l->model, &l->shard, !shares_weight, c->ends);
}

void
chunk_init (Lower *l, Chunk *c, uint32_t first_layer, uint32_t n_layers, bool has_embedding, bool has_head)
{
  *c = (Chunk) { .n_layers = n_layers, .has_embedding = has_embedding, .has_head = has_head };
  find_side (l, c, first_layer);
  c->holds = what_it_holds (l, c, first_layer);
  c->operators = g_ptr_array_new ();
  c->ends = ls_operators_new ();
  c->layer_of = g_array_new (FALSE, FALSE, sizeof (uint16_t));
  c->passes = g_new0 (uint32_t, 16);
  guint n_begin = make_begin (l, c);
  make_end (l, c);
  append_part (c, UINT16_MAX, c->ends, 0, n_begin);
  for (uint32_t i = 0; i < n_layers; i++) {
    const GArray *layer = layer_operators (l, first_layer + i);
    append_part (c, (uint16_t) i, layer, 0, layer->len);
  }
  append_part (c, UINT16_MAX, c->ends, n_begin, c->ends->len);
}

void
chunk_clear (Chunk *c)
{
  g_free (c->holds);
  g_free (c->passes);
  if (c->operators)
    g_ptr_array_unref (c->operators);
  if (c->ends)
    g_array_unref (c->ends);
  if (c->layer_of)
    g_array_unref (c->layer_of);
  if (c->again)
    g_array_unref (c->again);
  if (c->again_at)
    g_ptr_array_unref (c->again_at);
}

void
chunks_clear (Lower *l)
{
  for (uint32_t i = 0; l->all_chunks && i < l->n_ep_roles * l->n_stages; i++)
    chunk_clear (&l->all_chunks[i]);
  g_free (l->all_chunks);
  if (l->layers)
    g_ptr_array_unref (l->layers);
}

/* --- passes ----------------------------------------------------------------------- */

static void
hook (void (*f) (Build *b, DpPass *p), Build *b, DpPass *p)
{
  if (f)
    f (b, p);
}

/* Megatron-LM until late 2023: every stage calls get_batch () first, in which broadcast_data () reads the
 * sizes of the arrays back from the device (megatron/mpu/data.py: sizes_cuda.cpu ()). In DeepSpeed's pipeline
 * the first and the last stage do (engine.py: _exec_load_micro_batch ()), and where other stages keep their
 * attention mask (batch_ends). */
static bool
reads_batch (const Lower *l, const Chunk *c)
{
  bool is_at_end = c->has_embedding || c->has_head;
  return l->s->launch.batch_sync
      && (is_at_end || !(l->s->launch.batch_ends || l->s->mp.p2p == LS_P2P_DEEPSPEED));
}

static void
read_batch (Build *b)
{
  build_compute_sync (b, "sizes of a batch");
  build_host_calls (b, LS_TAG_SYNC, LS_HOST_BATCH, 1, "batch");
}

static void
build_forward (Build *b, DpPass *p, const DpBackend *backend)
{
  const Lower *l = b->l;
  const Chunk *c = p->c;
  Offload offload = { .is_under_way = false };
  if (reads_batch (l, c))
    read_batch (b);
  for (guint i = 0; i < c->operators->len; i++) {
    dp_hook (backend->before, b, p, i);
    build_at_operator (b, c, i);
    guint first = b->ops->len;
    build_forward_operator (b, c, i, LS_TAG_F, !is_recomputed (l, c, i));
    recompute_keep (b, c, i, first_op (b, first));
    offload_behind (b, c, i, &offload);
    dp_hook (backend->after, b, p, i);
  }
}

/* What shared experts need that run beside the exchanges of the layer is there before the first of these. */
static void
recompute_all_before (Build *b, const Chunk *c, guint i, guint *done_from)
{
  if (!runs_beside (c, i))
    recompute_before (b, c, i, done_from);
  if (operator_at (c, i)->beside == LS_BESIDE_SUM)
    for (guint k = first_beside (c, i); runs_beside (c, k); k++)
      recompute_before (b, c, k, done_from);
}

static void
build_backward (Build *b, DpPass *p, const DpBackend *backend)
{
  const Chunk *c = p->c;
  guint recomputed_from = c->operators->len;
  Reload reload = { .layer = UINT32_MAX };
  for (guint i = c->operators->len; i-- > 0;) {
    build_at_operator (b, c, i);
    dp_hook (backend->before, b, p, i);
    if (p->type == LS_ACTION_W) {
      build_weight_operator (b, c, i);
      dp_hook (backend->after, b, p, i);
      continue;
    }
    reload_before (b, c, i, &reload);
    recompute_all_before (b, c, i, &recomputed_from);
    build_backward_operator (b, c, i, b->delayed ? LS_ACTION_I : p->type);
    recompute_release (b, c, i);
    if (b->delayed)
      g_array_append_val (b->delayed, i);
    else
      dp_hook (backend->after, b, p, i);
  }
  if (b->delayed)
    build_delayed_weights (b);
  if (b->ops->len == 0) /* nothing to do for W */
    build_barrier (b);
}

/* transformers' Trainer: torch.isnan (tr_loss_step) after each backward (trainer.py,
 * logging_nan_inf_filter). */
static bool
reads_loss (const Lower *l, const DpPass *p)
{
  return l->s->launch.loss_sync && p->type != LS_ACTION_F && dp_has_weights (p) && p->c->has_embedding;
}

void
build_pass_by (Build *b, DpPass *p, const DpBackend *backend)
{
  p->backend = backend;
  b->pass = p;
  b->documents = documents_at (b->l, p->documents);
  if (b->l->s->mp.delay_wgrad && p->type == LS_ACTION_B) {
    b->delayed = g_array_new (FALSE, FALSE, sizeof (guint));
    b->behind_exchange = build_delayed_weights;
  }
  b->beside = b->l->shard.experts.shared_is_beside ? build_shared_beside : NULL;
  b->site = LS_SITE_DATA;
  hook (backend->begin, b, p);
  if (p->type == LS_ACTION_F)
    build_forward (b, p, backend);
  else
    build_backward (b, p, backend);
  b->layer = UINT16_MAX;
  b->site = LS_SITE_DATA;
  b->is_counted = false;
  hook (backend->end, b, p);
  if (reads_loss (b->l, p))
    build_compute_sync (b, "whether the loss is a number");
  b->pass = NULL;
  b->behind_exchange = NULL;
  b->beside = NULL;
  g_clear_pointer (&b->delayed, g_array_unref);
}

/* Segments are shared by all chunks of the same shape. */
char *
pass_name (const Lower *l, const DpPass *p)
{
  static const char *const names[] = {
    [LS_ACTION_F] = "forward",
    [LS_ACTION_B] = "backward",
    [LS_ACTION_I] = "input gradients",
    [LS_ACTION_W] = "weight gradients",
  };
  const Chunk *c = p->c;
  g_autofree char *variant = l->backend->variant ? l->backend->variant (l, p) : NULL;
  GString *name = g_string_new (names[p->type]);
  g_string_append (name, c->holds);
  if (c->n_recomputed > 0 && c->n_recomputed < c->n_layers)
    g_string_append_printf (name, " %u again", c->n_recomputed);
  g_string_append (name, variant ? variant : "");
  g_string_append (name, (l->shard.grad.is_own || grads_come_and_go (l)) && p->is_first ? " first" : "");
  if (p->documents > 0 && (c->n_layers > 0 || c->has_head))
    g_string_append_printf (name, " documents %u", p->documents - 1);
  if (scales_behind (l, p))
    g_string_append_printf (name, " %u amaxes", n_amaxes (l, p));
  return g_string_free (name, FALSE);
}

static uint32_t
segment_named (Lower *l, DpPass *p)
{
  g_autofree char *name = pass_name (l, p);
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  build_pass_by (&b, p, l->backend);
  build_scales (&b, p);
  return build_finish (&b, name);
}

/* Most micro-batches run the same: a name is made for the first of them. */
uint32_t
segment_pass (Lower *l, DpPass *p)
{
  if (p->documents > 0 || l->n_cp_roles > 1)
    return segment_named (l, p);
  uint32_t *known = &p->c->passes[p->type << 2 | p->is_first << 1 | p->is_last];
  if (*known == 0)
    *known = segment_named (l, p) + 1;
  return *known - 1;
}

void
build_pass (Build *b, const Chunk *c, LsActionType pass)
{
  DpPass p = { .c = c, .type = pass };
  build_pass_by (b, &p, &dp_backend_none);
}
