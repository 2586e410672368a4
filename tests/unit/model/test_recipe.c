/* Pins: a list of kernels stands where an operator's own stood, with the elements and bytes that its
 * expressions say; products one by one compute what the joint one does; what the list does not name is as
 * built in. */
#include "recipe_layers.h"

static const char *
first_of (const LsRecipe *r)
{
  return r ? g_array_index (r->forward, LsRecipeKernel, 0).name : NULL;
}

static double
flops_of (const LsKernel *kernels, guint n)
{
  double sum = 0;
  for (guint i = 0; i < n; i++)
    sum += kernels[i].flops;
  return sum;
}

/* 512 tokens of 512: 262144 elements. The sum of the residual's gradients stays behind what a norm does. */
static void
a_norm_runs_the_kernels_of_its_list (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_NORM,
                                 .models = LS_FOR_RMSNORM,
                                 .saved = expression ("6*s*b*h"),
                                 .forward = LIST (kernel ("to fp32", LS_ACCESS_CASTUP, "s*b*h", 2, 4),
                                                  kernel ("rsqrt", LS_ACCESS_TINY, "s*b", 4, 4)),
                                 .backward = LIST (kernel ("dx", LS_ACCESS_VEC, "s*b*h", 8, 4)) });
  LsShard s = shard (r);
  g_autoptr (GArray) ops = layer (&m, &s);
  const LsOperator *o = named (ops, "input-norm");
  LS_CHECK_INT (o->n_fwd, ==, 2);
  LS_CHECK_STR (o->fwd[0].name, "to fp32");
  LS_CHECK_INT (o->fwd[0].access, ==, LS_ACCESS_CASTUP);
  LS_CHECK_INT (o->fwd[0].kind, ==, LS_KERNEL_NORM);
  LS_CHECK_INT (o->fwd[0].n, ==, 262144);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, 262144 * 6.0);
  LS_CHECK_INT (o->fwd[1].n, ==, 512);
  LS_CHECK_INT (o->n_igrad, ==, 2);
  LS_CHECK_STR (o->igrad[1].name, "residual-grad-add");
  LS_CHECK_INT (o->kept.saved_bytes, ==, 262144 * 6);
  LS_CHECK_INT (named (ops, "rope")->fwd[0].access, ==, LS_ACCESS_NONE);
}

/* A list for other models has no say. */
static void
lists_are_for_models_that_have_it (void)
{
  LsModel m = llama ();
  m.norm = LS_NORM_LAYERNORM;
  g_autoptr (LsRecipes) r = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_NORM, .models = LS_FOR_RMSNORM });
  LsShard s = shard (r), plain = shard (NULL);
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  LS_CHECK_STR (named (ops, "mlp-norm")->fwd[0].name, named (built_in, "mlp-norm")->fwd[0].name);
  m.norm = LS_NORM_RMSNORM;
  g_autoptr (GArray) gone = layer (&m, &s);
  LS_CHECK_INT (named (gone, "mlp-norm")->n_fwd, ==, 0); /* a list of none */
}

/* Q, K, V of 512, 128, 128 columns: the same FLOPs; each reads the input again. */
static void
products_one_by_one_compute_the_same (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_QKV,
                                 .one_by_one = true,
                                 .forward = LIST (kernel ("zero", LS_ACCESS_FILL, "1", 0, 4), CORE),
                                 .backward = LIST (CORE, kernel ("sum", LS_ACCESS_VEC, "s*b*h", 4, 2)),
                                 .saved = expression ("6*s*b*q") });
  LsShard s = shard (r), plain = shard (NULL);
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *o = named (ops, "qkv"), *joint = named (built_in, "qkv");
  LS_CHECK_INT (o->n_fwd, ==, 4);
  LS_CHECK_INT (o->n_igrad, ==, 4);
  LS_CHECK_INT (o->n_wgrad, ==, 3);
  LS_CHECK_INT (o->fwd[0].kind, ==, LS_KERNEL_MEMSET);
  LS_CHECK_INT (o->fwd[1].n, ==, 512);
  LS_CHECK_INT (o->fwd[3].n, ==, 128);
  LS_CHECK_INT (o->igrad[0].k, ==, 512);
  LS_CHECK_INT (o->wgrad[1].m, ==, 128);
  LS_CHECK_DOUBLE (flops_of (o->fwd, o->n_fwd), ==, flops_of (joint->fwd, joint->n_fwd));
  LS_CHECK_DOUBLE (flops_of (o->igrad, o->n_igrad), ==, flops_of (joint->igrad, joint->n_igrad));
  LS_CHECK_DOUBLE (flops_of (o->wgrad, o->n_wgrad), ==, flops_of (joint->wgrad, joint->n_wgrad));
  LS_CHECK_DOUBLE (o->fwd[1].bytes, ==, 2.0 * (512 * 512 + 512 * 512 + 512 * 512));
  double three = o->fwd[1].bytes + o->fwd[2].bytes + o->fwd[3].bytes;
  LS_CHECK_DOUBLE (three, ==, joint->fwd[0].bytes + 2 * 2.0 * 512 * 512);
  LS_CHECK_INT (o->kept.saved_bytes, ==, o->kept.input_bytes + 6 * 512 * 512);
  s.gathers_in_pieces = true; /* for all of them at once */
  g_autoptr (GArray) shared = layer (&m, &s);
  LS_CHECK_INT (named (shared, "qkv")->n_fwd, ==, 2);
  LS_CHECK_INT (named (shared, "qkv")->fwd[1].n, ==, 768);
}

/* Copies of K and V stand before attention, whose own kernel is untouched. */
static void
the_core_stands_where_the_list_says (void)
{
  LsModel m = llama ();
  LsRecipeKernel repeat = { .name = g_strdup ("repeat k"),
                            .access = LS_ACCESS_STRIDED16,
                            .elements = expression ("s*b*q"),
                            .bytes = expression ("2*s*b*k + 2*s*b*q"),
                            .dtype = LS_DTYPE_BF16 };
  g_autoptr (LsRecipes) r = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_ATTENTION,
                                                     .models = LS_FOR_GQA,
                                                     .forward = LIST (repeat, CORE),
                                                     .backward = LIST (CORE) });
  LsShard s = shard (r), plain = shard (NULL);
  g_autoptr (GArray) ops = layer (&m, &s);
  g_autoptr (GArray) built_in = layer (&m, &plain);
  const LsOperator *o = named (ops, "attention"), *own = named (built_in, "attention");
  LS_CHECK_INT (o->n_fwd, ==, 2);
  LS_CHECK_DOUBLE (o->fwd[0].bytes, ==, 2.0 * 512 * (128 + 512));
  LS_CHECK_INT (o->fwd[1].kind, ==, LS_KERNEL_ATTENTION_FWD);
  LS_CHECK_DOUBLE (o->fwd[1].flops, ==, own->fwd[0].flops);
  LS_CHECK (ls_operator_is_flash (o));
  LS_CHECK_INT (o->kept.saved_bytes, ==, own->kept.saved_bytes);
}

/* Of several entries for sums, the one with the place's name goes first; its backward stands with the norm. */
static void
sums_have_their_gradients_beside_a_norm (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_RESIDUAL,
                                 .forward = LIST (kernel ("add", LS_ACCESS_VEC, "s*b*h", 4, 2)),
                                 .backward = LIST (kernel ("grad add", LS_ACCESS_VEC, "s*b*h", 4, 2)) });
  LsRecipe fused = { .operator_ = LS_RECIPE_ATTENTION_ADD };
  g_array_append_val (r->operators, fused);
  LsShard s = shard (r);
  g_autoptr (GArray) ops = layer (&m, &s);
  LS_CHECK_INT (named (ops, "attention-add")->n_fwd, ==, 0);
  LS_CHECK_STR (named (ops, "mlp-add")->fwd[0].name, "add");
  LS_CHECK_INT (named (ops, "mlp-add")->n_igrad, ==, 0);
  LS_CHECK_INT (named (ops, "input-norm")->n_igrad, ==, 1); /* fused with attention-add's */
  LS_CHECK_INT (named (ops, "mlp-norm")->n_igrad, ==, 2);
  LS_CHECK_STR (named (ops, "mlp-norm")->igrad[1].name, "grad add");
}

/* An embedding has no gradient of its input: what it runs backwards is of its weight. */
static void
an_embedding_has_its_gradient_with_the_weights (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_EMBEDDING,
                                 .forward = LIST (kernel ("rows", LS_ACCESS_GATHER, "s*b*h", 2, 2)),
                                 .backward = LIST (kernel ("zero", LS_ACCESS_FILL, "V*h", 0, 2),
                                                   kernel ("add rows", LS_ACCESS_SCATTER, "s*b*h", 4, 2)) });
  LsShard s = shard (r);
  g_autoptr (GArray) ops = ls_operators_new ();
  ls_operators_embedding (&m, &s, ops);
  const LsOperator *o = named (ops, "word-embedding");
  LS_CHECK_STR (o->fwd[0].name, "rows");
  LS_CHECK_INT (o->n_igrad, ==, 0);
  LS_CHECK_INT (o->n_wgrad, ==, 2);
  LS_CHECK_STR (o->wgrad[1].name, "add rows");
  LS_CHECK_DOUBLE (o->wgrad[0].bytes, ==, 2.0 * 512 * (double) ls_model_padded_vocab (&m, 0, 1));
  s.grad.is_fresh = false; /* and added to what is there, which no list says */
  g_array_set_size (ops, 0);
  ls_operators_embedding (&m, &s, ops);
  LS_CHECK_STR (named (ops, "word-embedding")->wgrad[2].name, "embedding-grad-accumulate");
}

/* A metric has no backward, and is there as often as it is computed; the loss beside it is as built in. */
static void
metrics_run_the_kernels_of_their_list (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_METRIC,
                                 .forward = LIST (kernel ("cast", LS_ACCESS_CASTUP, "s*b*V", 2, 4),
                                                  kernel ("rows", LS_ACCESS_SOFTMAX, "s*b*V", 12, 4)) });
  LsShard s = shard (r);
  s.loss = LS_LOSS_FUSED;
  s.train_metrics = 2;
  g_autoptr (GArray) ops = ls_operators_new ();
  ls_operators_head (&m, &s, false, ops);
  const LsOperator *first = &g_array_index (ops, LsOperator, ops->len - 2), *second = first + 1;
  LS_CHECK_STR (first->name, "metric");
  LS_CHECK_STR (second->name, "metric");
  LS_CHECK_INT (second->n_fwd, ==, 2);
  LS_CHECK_INT (second->n_igrad + second->n_wgrad, ==, 0);
  LS_CHECK_STR (second->fwd[1].name, "rows");
  LS_CHECK_INT (second->fwd[1].kind, ==, LS_KERNEL_CROSS_ENTROPY);
  LS_CHECK_DOUBLE (second->fwd[1].bytes, ==, 16.0 * 2 * 256 * (double) ls_model_padded_vocab (&m, 0, 1));
  LS_CHECK_STR (named (ops, "loss")->fwd[0].name, "cross-entropy");
}

/* Norm, clip, steps in their places; what the norm is stays known; 1000 parameters. */
static void
an_optimizer_steps_as_listed (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_CLIP,
                                 .forward = LIST (kernel ("squares", LS_ACCESS_MULTI, "S", 4, 0),
                                                  kernel ("scale", LS_ACCESS_MULTI, "S", 4, 4)) });
  LsRecipe step = { .operator_ = LS_RECIPE_OPTIMIZER,
                    .forward = LIST (launched (kernel ("momentum", LS_ACCESS_MULTI, "S", 8, 4), "0.25*T"),
                                     kernel ("update", LS_ACCESS_MULTI, "S", 16, 4)) };
  g_array_append_val (r->operators, step);
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_optimizer_kernels (1000, LS_DTYPE_BF16, LS_DTYPE_FP32, kernels);
  ls_optimizer_as_launched (NULL, &m, (LsStepped) { 1000, 10 }, kernels);
  LS_CHECK_INT (kernels->len, ==, 4); /* norm, clip, adam, weight copy */
  ls_optimizer_as_launched (r, &m, (LsStepped) { 1000, 10 }, kernels);
  static const char *const names[] = { "squares", "scale", "momentum", "update", "weight-copy" };
  LS_CHECK_INT (kernels->len, ==, G_N_ELEMENTS (names));
  for (guint i = 0; i < kernels->len; i++)
    LS_CHECK_STR (g_array_index (kernels, LsKernel, i).name, names[i]);
  LS_CHECK_INT (g_array_index (kernels, LsKernel, 0).kind, ==, LS_KERNEL_REDUCTION);
  LS_CHECK_INT (g_array_index (kernels, LsKernel, 1).kind, ==, LS_KERNEL_OPTIMIZER);
  LS_CHECK_DOUBLE (g_array_index (kernels, LsKernel, 3).bytes, ==, 20000);
  LS_CHECK_INT (g_array_index (kernels, LsKernel, 3).access, ==, LS_ACCESS_MULTI);
  LS_CHECK_DOUBLE (g_array_index (kernels, LsKernel, 2).bytes, ==, 12000);
  LS_CHECK_INT (g_array_index (kernels, LsKernel, 2).batch, ==, 3); /* 2.5 of 10 tensors */
  LS_CHECK_INT (g_array_index (kernels, LsKernel, 3).batch, ==, 1);
}

/* Half of the bytes of a list of fp32, at the rate of 16 bits. */
static void
an_optimizer_in_16_bits_moves_half (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_CLIP,
                                 .forward = LIST (kernel ("squares", LS_ACCESS_MULTI, "S", 4, 0),
                                                  kernel ("scale", LS_ACCESS_VEC, "S", 4, 4)) });
  LsRecipe step = { .operator_ = LS_RECIPE_OPTIMIZER,
                    .forward = LIST (kernel ("adam fused", LS_ACCESS_ADAM, "S", 16, 12)) };
  g_array_append_val (r->operators, step);
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_optimizer_kernels_own (1000, LS_DTYPE_BF16, LS_DTYPE_BF16, kernels);
  ls_optimizer_as_launched (r, &m, (LsStepped) { .n_params = 1000, .n_tensors = 10, .is_narrow = true },
                            kernels);
  static const LsAccess access[] = { LS_ACCESS_MULTI16, LS_ACCESS_VEC, LS_ACCESS_ADAM16 };
  static const double bytes[] = { 2000, 4000, 14000 };
  LS_CHECK_INT (kernels->len, ==, G_N_ELEMENTS (access));
  for (guint i = 0; i < kernels->len; i++) {
    LS_CHECK_INT (g_array_index (kernels, LsKernel, i).access, ==, access[i]);
    LS_CHECK_DOUBLE (g_array_index (kernels, LsKernel, i).bytes, ==, bytes[i]);
  }
}

/* --- attention that is not fused, biases, words by a product ---------------------------------------- */

/* 2 sequences, 8 heads, 256 x 256 scores. Q K^T, P V and their gradients stay; what stands around them is the
 * list's, without copies of K and V for each head of Q, and without the copy of the context. */
static void
unfused_attention_runs_the_kernels_of_its_lists (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_SCORES,
                                 .forward = LIST (CORE, kernel ("scale", LS_ACCESS_XLA, "s*a*b*s", 2, 2)),
                                 .backward = LIST (CORE) });
  LsRecipe softmax = { .operator_ = LS_RECIPE_SOFTMAX,
                       .saved = expression ("4*s*a*b*s"),
                       .forward = LIST (kernel ("max", LS_ACCESS_XLA_RED, "s*a*b*s", 2, 0),
                                        kernel ("normalise", LS_ACCESS_XLA, "s*a*b*s", 2, 2)),
                       .backward = LIST (kernel ("grad", LS_ACCESS_XLA, "s*a*b*s", 4, 2)) };
  LsRecipe context = { .operator_ = LS_RECIPE_CONTEXT,
                       .forward = LIST (CORE),
                       .backward = LIST (kernel ("transpose", LS_ACCESS_XLA, "s*b*q", 2, 2), CORE) };
  g_array_append_val (r->operators, softmax);
  g_array_append_val (r->operators, context);
  LsShard s = shard (r);
  s.attention = LS_ATTENTION_UNFUSED;
  g_autoptr (GArray) ops = layer (&m, &s);
  const LsOperator *scores = named (ops, "attention-scores"), *rows = named (ops, "attention-softmax"),
                   *out = named (ops, "attention-context");
  LS_CHECK_INT (scores->n_fwd, ==, 2);
  LS_CHECK_INT (scores->n_igrad, ==, 2);
  LS_CHECK_INT (rows->n_fwd, ==, 2);
  LS_CHECK_DOUBLE (rows->fwd[1].bytes, ==, 4.0 * 2 * 8 * 256 * 256);
  LS_CHECK_INT (rows->kept.saved_bytes, ==, 4 * 2 * 8 * 256 * 256);
  LS_CHECK_INT (out->n_fwd, ==, 1);
  LS_CHECK_INT (out->n_igrad, ==, 3);
  LS_CHECK_STR (out->igrad[0].name, "transpose");
}

/* The gradient of a bias is there once: in a kernel of the list, if that says so. */
static void
gradients_of_biases_are_there_once (void)
{
  LsModel m = llama ();
  m.linear_bias = true;
  for (int is_listed = 0; is_listed < 2; is_listed++) {
    g_autoptr (LsRecipes) r = recipes_of (
        (LsRecipe) { .operator_ = LS_RECIPE_QKV,
                     .bias_grad_is_listed = is_listed,
                     .forward = LIST (CORE),
                     .backward = LIST (kernel ("sums", LS_ACCESS_XLA_COLRED, "s*b*q", 2, 2), CORE) });
    LsShard s = shard (r);
    g_autoptr (GArray) ops = layer (&m, &s);
    LS_CHECK_INT (named (ops, "qkv")->n_wgrad, ==, 2 - is_listed);
    LS_CHECK_INT (named (ops, "qkv")->params.n, ==, 2);
    LS_CHECK_INT (named (ops, "fc1")->n_wgrad, ==, 2);
  }
}

/* 2^20 multiply-adds, 64 x 32 x 16 in each product of a chunk. */
static void
chunks_are_batches_of_products (void)
{
  LsRecipeKernel of_chunks = kernel ("chunks", LS_ACCESS_NONE, "32768*n", 0, 0);
  of_chunks.is_product = true;
  LsSizes sizes = { .at = { [LS_SIZE_CHUNK] = 64, [LS_SIZE_D] = 32, [LS_SIZE_STATES] = 16 } };
  sizes.at[LS_SIZE_UNROTATED] = 32;
  LsKernel k = ls_recipe_kernel (&of_chunks, &sizes, LS_KERNEL_ELEMENTWISE);
  LS_CHECK_INT (k.m, ==, 64);
  LS_CHECK_INT (k.n, ==, 32);
  LS_CHECK_INT (k.k, ==, 16);
  LS_CHECK_INT (k.batch, ==, 32);
  g_free (of_chunks.name);
  ls_expression_free (of_chunks.elements);
}

/* 512 tokens, 1024 words (1000 and padding), 512 wide: two products of as many FLOPs, one each way. */
static void
words_are_looked_up_by_a_product (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_EMBEDDING,
                                 .is_one_hot = true,
                                 .forward = LIST (kernel ("one-hot", LS_ACCESS_XLA, "s*b*V", 0, 2), CORE),
                                 .backward = LIST (CORE) });
  LsShard s = shard (r);
  g_autoptr (GArray) ops = ls_operators_new ();
  ls_operators_embedding (&m, &s, ops);
  const LsOperator *words = named (ops, "word-embedding");
  LS_CHECK_INT (words->n_fwd, ==, 2);
  LS_CHECK_DOUBLE (words->fwd[0].bytes, ==, 2.0 * 512 * 1024);
  LS_CHECK_INT (words->fwd[1].kind, ==, LS_KERNEL_GEMM);
  LS_CHECK_DOUBLE (words->fwd[1].flops, ==, 2.0 * 512 * 1024 * 512);
  LS_CHECK_INT (words->n_wgrad, ==, 1);
  LS_CHECK_DOUBLE (words->wgrad[0].flops, ==, 2.0 * 512 * 1024 * 512);
}

/* The same head: no logits are kept, so that the backward multiplies once more, as much as the forward. */
static void
logits_are_computed_again (void)
{
  LsModel m = llama ();
  g_autoptr (LsRecipes) r
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_LOSS,
                                 .logits_again = true,
                                 .forward = LIST (kernel ("fold", LS_ACCESS_TRITON, "s*b*V", 2, 0)),
                                 .backward = LIST (kernel ("grad", LS_ACCESS_TRITON, "s*b*V", 2, 2)) });
  LsShard s = shard (r);
  g_autoptr (GArray) ops = ls_operators_new ();
  ls_operators_head (&m, &s, true, ops);
  const LsOperator *loss = named (ops, "loss"), *logits = named (ops, "logits");
  LS_CHECK_INT (loss->n_fwd, ==, 1);
  LS_CHECK_INT (loss->n_igrad, ==, 2);
  LS_CHECK_INT (loss->igrad[0].kind, ==, LS_KERNEL_GEMM);
  LS_CHECK_DOUBLE (loss->igrad[0].flops, ==, logits->fwd[0].flops);
  LS_CHECK_DOUBLE (loss->igrad[1].bytes, ==, 4.0 * 512 * 1024);
}

/* 1,001 words with tp 2: 501 a rank where they are padded to a multiple of tp alone, and the gradient of the
 * logits lies on no 16 bytes; 504 are on 16. 512 where nothing is said. The table has as many rows. */
static void
words_are_padded_to_a_multiple (void)
{
  static const uint32_t rows[][2] = { { 1, 501 }, { 8, 504 }, { 0, 512 } };
  LsModel m = llama ();
  m.vocab = 1001;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsShard s = shard (NULL);
    s.tp = 2;
    s.vocab_multiple = rows[i][0];
    g_autoptr (GArray) ops = ls_operators_new ();
    ls_operators_head (&m, &s, true, ops);
    const LsOperator *logits = named (ops, "logits");
    LS_CHECK_INT (logits->fwd[0].n, ==, rows[i][1]);
    LS_CHECK_INT (logits->params.numel[0], ==, (uint64_t) rows[i][1] * m.hidden);
    LS_CHECK_INT (logits->fwd[0].unaligned, ==, rows[i][0] == 1); /* writes them */
    LS_CHECK_INT (logits->igrad[0].unaligned, ==, rows[i][0] == 1);
    LS_CHECK_INT (logits->wgrad[0].unaligned, ==, rows[i][0] == 1);
  }
}

/* Products of a layer whose rows begin on no 16 bytes are told, all three of each; those of other widths, or
 * without weights, are not. */
static void
odd_rows_of_a_layer_are_told (void)
{
  static const struct {
    uint32_t hidden, ffn;
    const char *odd, *even;
  } cases[]
      = { { 1028, 2048, "qkv", "attention" }, { 1024, 2050, "fc1", "proj" }, { 1024, 2052, "fc2", "qkv" } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = llama ();
    m.hidden = cases[i].hidden, m.ffn = cases[i].ffn;
    LsShard s = shard (NULL);
    g_autoptr (GArray) ops = ls_operators_new ();
    ls_operators_layer (&m, &s, 0, ops);
    const LsOperator *odd = named (ops, cases[i].odd), *even = named (ops, cases[i].even);
    LS_CHECK (odd->fwd[0].unaligned && odd->igrad[odd->n_igrad - 1].unaligned && odd->wgrad[0].unaligned);
    LS_CHECK (!even->fwd[0].unaligned && !even->igrad[0].unaligned);
  }
}

/* 512 tokens, two of eight experts each; the fullest has a quarter of all, and others are padded to it. */
static void
experts_have_sizes_of_their_own (void)
{
  const LsRecipe permute
      = { .operator_ = LS_RECIPE_PERMUTE,
          .saved = expression ("16*P"),
          .forward = LIST (launched (kernel ("mask", LS_ACCESS_VEC, "O*C*s*b + E", 8, 0), "2*O"),
                           kernel ("rows", LS_ACCESS_GATHER, "P*h", 2, 2)),
          .backward = LIST (kernel ("rows grad", LS_ACCESS_SCATTER, "P*h", 4, 2)) },
      router = { .operator_ = LS_RECIPE_ROUTER,
                 .forward = LIST (kernel ("softmax", LS_ACCESS_SOFTMAX, "s*b*E", 2, 4), CORE),
                 .backward = LIST (CORE, kernel ("softmax grad", LS_ACCESS_SOFTMAX, "s*b*E", 8, 2)) };
  LsModel m = llama ();
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 256;
  m.moe.every = 1;
  g_autoptr (LsRecipes) r = recipes_of (permute);
  g_array_append_val (r->operators, router);
  LsShard s = shard (r);
  static const double shares[] = { 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0, 0 };
  s.experts.share = shares;
  s.experts.padding = LS_EXPERT_PADDING_FULLEST;
  g_autoptr (GArray) ops = layer (&m, &s);
  const LsOperator *o = named (ops, "permute"), *route = named (ops, "router");
  LS_CHECK_INT (o->n_fwd, ==, 2);
  LS_CHECK_INT (o->fwd[0].n, ==, 8 * 2 * 512 + 8);
  LS_CHECK_INT (o->fwd[0].n_launches, ==, 16);
  LS_CHECK_INT (o->fwd[1].n, ==, 8 * 256 * 512);
  LS_CHECK_INT (o->kept.saved_bytes, ==, 16 * 8 * 256);
  LS_CHECK_INT (named (ops, "dispatch")->n_fwd + named (ops, "combine")->n_fwd, ==, 0); /* sorted already */
  LS_CHECK_STR (named (ops, "unpermute")->fwd[0].name, "unpermute");
  LS_CHECK_STR (route->fwd[0].name, "softmax");
  LS_CHECK_INT (route->fwd[0].n, ==, 512 * 8);
  LS_CHECK_STR (route->fwd[1].name, "router");
  LS_CHECK_INT (route->n_fwd, ==, 2);
}

/* Two sequences of 256 tokens, two of eight experts each: 160 rows of an expert with a capacity of 1.25, 1,280 in
 * all. A mask has 640 rows for each sequence. */
static void
masks_bring_tokens_to_padded_experts (void)
{
  const double flops = 2.0 * 1280 * 256 * 512;
  LsModel m = llama ();
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 256;
  m.moe.every = 1;
  g_autoptr (LsRecipes) r = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_PERMUTE, .is_one_hot = true });
  LsShard s = shard (r), plain = shard (NULL), dropless = shard (r);
  s.experts.capacity = plain.experts.capacity = 1.25;
  s.experts.padding = plain.experts.padding = LS_EXPERT_PADDING_CAPACITY;
  g_autoptr (GArray) ops = layer (&m, &s), built_in = layer (&m, &plain), all = layer (&m, &dropless);
  const LsOperator *to = named (ops, "permute"), *back = named (ops, "unpermute");
  LS_CHECK (to->n_fwd == 1 && to->n_igrad == 1 && back->n_fwd == 1 && back->n_igrad == 2);
  LS_CHECK (to->fwd[0].m == 640 && to->fwd[0].n == 512 && to->fwd[0].k == 256 && to->fwd[0].batch == 2);
  LS_CHECK (to->igrad[0].m == 256 && to->igrad[0].k == 640 && back->fwd[0].m == 256);
  LS_CHECK (back->igrad[0].m == 640 && back->igrad[1].m == 640 && back->igrad[1].n == 256);
  LS_CHECK_DOUBLE (to->fwd[0].flops + to->igrad[0].flops, ==, 2 * flops);
  LS_CHECK_DOUBLE (back->fwd[0].flops + back->igrad[0].flops + back->igrad[1].flops, ==, 3 * flops);
  LS_CHECK_INT (back->kept.saved_bytes, ==,
                2 * 1280 * 512); /* what experts made, for the gradient of the mask */
  LS_CHECK_INT (named (ops, "dispatch")->n_fwd + named (ops, "combine")->n_fwd, ==, 0);
  LS_CHECK_INT (named (built_in, "unpermute")->kept.saved_bytes, ==, 0);
  LS_CHECK_STR (named (all, "dispatch")->fwd[0].name, "expert-sort"); /* no capacity: as built in */
  LS_CHECK_DOUBLE (named (all, "permute")->fwd[0].flops, ==, named (built_in, "permute")->fwd[0].flops);
}

/* What a list does not name is that of its base; a general entry of its own goes before a special one there. */
static void
a_base_has_what_a_list_does_not_name (void)
{
  g_autoptr (LsRecipes) base
      = recipes_of ((LsRecipe) { .operator_ = LS_RECIPE_INPUT_NORM,
                                 .forward = LIST (kernel ("base norm", LS_ACCESS_VEC, "s*b*h", 2, 2)) });
  const LsRecipe sum = { .operator_ = LS_RECIPE_RESIDUAL,
                         .forward = LIST (kernel ("base sum", LS_ACCESS_VEC, "s*b*h", 4, 2)) };
  g_array_append_val (base->operators, sum);
  g_autoptr (LsRecipes) r = recipes_of ((LsRecipe) {
      .operator_ = LS_RECIPE_NORM, .forward = LIST (kernel ("own norm", LS_ACCESS_VEC, "s*b*h", 2, 2)) });
  r->base = ls_recipes_ref (base);
  LsModel m = llama ();
  LS_CHECK_STR (first_of (ls_recipe_find (r, LS_RECIPE_INPUT_NORM, &m)), "own norm");
  LS_CHECK_STR (first_of (ls_recipe_find (base, LS_RECIPE_INPUT_NORM, &m)), "base norm");
  LS_CHECK_STR (first_of (ls_recipe_find (r, LS_RECIPE_MLP_ADD, &m)), "base sum");
  LS_CHECK (!ls_recipe_find (r, LS_RECIPE_LOGITS, &m) && !ls_recipe_find (base, LS_RECIPE_NORM, &m));
}

LS_TEST_SUITE (LS_TEST (a_base_has_what_a_list_does_not_name), LS_TEST (experts_have_sizes_of_their_own),
               LS_TEST (masks_bring_tokens_to_padded_experts), LS_TEST (a_norm_runs_the_kernels_of_its_list),
               LS_TEST (lists_are_for_models_that_have_it), LS_TEST (products_one_by_one_compute_the_same),
               LS_TEST (the_core_stands_where_the_list_says),
               LS_TEST (sums_have_their_gradients_beside_a_norm),
               LS_TEST (an_embedding_has_its_gradient_with_the_weights),
               LS_TEST (metrics_run_the_kernels_of_their_list), LS_TEST (an_optimizer_steps_as_listed),
               LS_TEST (an_optimizer_in_16_bits_moves_half),
               LS_TEST (unfused_attention_runs_the_kernels_of_its_lists),
               LS_TEST (gradients_of_biases_are_there_once), LS_TEST (words_are_looked_up_by_a_product),
               LS_TEST (logits_are_computed_again), LS_TEST (chunks_are_batches_of_products),
               LS_TEST (words_are_padded_to_a_multiple), LS_TEST (odd_rows_of_a_layer_are_told))
