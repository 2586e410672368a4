#include "model/recipe.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/expression.h"

/* --- ownership -------------------------------------------------------------------- */

static void
kernels_free (GArray *kernels)
{
  for (guint i = 0; kernels && i < kernels->len; i++) {
    LsRecipeKernel *k = &g_array_index (kernels, LsRecipeKernel, i);
    g_free (k->name);
    g_free (k->elements_text);
    g_free (k->bytes_text);
    g_free (k->launches_text);
    ls_expression_free (k->launches);
    ls_expression_free (k->elements);
    ls_expression_free (k->bytes);
  }
  if (kernels)
    g_array_unref (kernels);
}

/* frees what it owns */
static void
ls_recipe_clear (LsRecipe *recipe)
{
  kernels_free (recipe->forward);
  kernels_free (recipe->backward);
  g_free (recipe->saved_text);
  g_free (recipe->source);
  g_free (recipe->widths);
  ls_expression_free (recipe->saved);
  memset (recipe, 0, sizeof *recipe);
}

static void
recipes_clear (gpointer data)
{
  LsRecipes *r = data;
  g_free (r->name);
  g_free (r->source);
  g_free (r->variant_of);
  g_free (r->based_on);
  ls_recipes_unref (r->base);
  for (guint i = 0; r->operators && i < r->operators->len; i++)
    ls_recipe_clear (&g_array_index (r->operators, LsRecipe, i));
  if (r->operators)
    g_array_unref (r->operators);
}

LsRecipes *
ls_recipes_new (void)
{
  return g_atomic_rc_box_new0 (LsRecipes);
}

LsRecipes *
ls_recipes_ref (LsRecipes *recipes)
{
  return recipes ? g_atomic_rc_box_acquire (recipes) : NULL;
}

void
ls_recipes_unref (LsRecipes *recipes)
{
  if (recipes)
    g_atomic_rc_box_release_full (recipes, recipes_clear);
}

/* --- use -------------------------------------------------------------------------- */

static bool
is_for (int models, const LsModel *m)
{
  switch ((LsRecipeFor) models) {
  case LS_FOR_RMSNORM:
    return !ls_norm_is_layernorm (m->norm);
  case LS_FOR_LAYERNORM:
    return ls_norm_is_layernorm (m->norm);
  case LS_FOR_SWIGLU:
    return ls_mlp_is_gated (m->mlp);
  case LS_FOR_GELU:
    return m->mlp == LS_MLP_GELU;
  case LS_FOR_RELU2:
    return m->mlp == LS_MLP_RELU2;
  case LS_FOR_GQA:
    return m->n_kv_heads < m->n_heads && m->latent.kv_lora == 0;
  case LS_FOR_MHA:
    return m->n_kv_heads == m->n_heads;
  case LS_FOR_MHA_ROPE:
    return m->n_kv_heads == m->n_heads && m->position == LS_POSITION_ROPE && m->latent.kv_lora == 0;
  case LS_FOR_UNNORMED_ROPE:
    return m->position == LS_POSITION_ROPE && !m->attn.qk_norm && m->latent.kv_lora == 0;
  case LS_FOR_SCALED_ROPE:
    return m->attn.scaled_rope && m->latent.kv_lora == 0;
  case LS_FOR_LIMITED_GEGLU:
    return m->mlp == LS_MLP_QUICK_GEGLU && m->act_limit;
  case LS_FOR_LINEAR_BIAS:
    return m->linear_bias;
  case LS_FOR_SIGMOID_ROUTER:
    return m->moe.sigmoid_router;
  case LS_FOR_MAMBA2:
    return m->mixer.kind == LS_MIXER_MAMBA2 && m->mixer.rank == 0;
  case LS_FOR_ALL:
  case LS_N_FOR:
    break;
  }
  return true;
}

#define ANY_WIDTH 0

static bool
has_width (const LsRecipe *r, uint64_t width)
{
  bool has = r->n_widths == 0 || width == ANY_WIDTH;
  for (uint32_t i = 0; i < r->n_widths && !has; i++)
    has = r->widths[i] == width;
  return has;
}

static const LsRecipe *
find (const LsRecipes *recipes, LsRecipeOperator which, const LsModel *m, uint64_t width)
{
  for (guint i = 0; i < recipes->operators->len; i++) {
    const LsRecipe *r = &g_array_index (recipes->operators, LsRecipe, i);
    if (r->operator_ == (int) which && is_for (r->models, m) && has_width (r, width))
      return r;
  }
  return NULL;
}

bool
ls_recipe_is_norm (LsRecipeOperator which)
{
  return which >= LS_RECIPE_NORM && which <= LS_RECIPE_FINAL_NORM;
}

const LsRecipe *
ls_recipe_find (const LsRecipes *recipes, LsRecipeOperator which, const LsModel *model)
{
  return ls_recipe_find_wide (recipes, which, model, ANY_WIDTH);
}

const LsRecipe *
ls_recipe_find_wide (const LsRecipes *recipes, LsRecipeOperator which, const LsModel *model, uint64_t width)
{
  static const LsRecipeOperator general[LS_N_RECIPE_OPERATORS] = {
    [LS_RECIPE_INPUT_NORM] = LS_RECIPE_NORM,  [LS_RECIPE_MLP_NORM] = LS_RECIPE_NORM,
    [LS_RECIPE_FINAL_NORM] = LS_RECIPE_NORM,  [LS_RECIPE_ATTENTION_ADD] = LS_RECIPE_RESIDUAL,
    [LS_RECIPE_MLP_ADD] = LS_RECIPE_RESIDUAL, [LS_RECIPE_EXPERT_ACTIVATION] = LS_RECIPE_ACTIVATION,
  };
  for (; recipes; recipes = recipes->base) {
    const LsRecipe *r = find (recipes, which, model, width);
    if (!r && general[which] != LS_RECIPE_EMBEDDING)
      r = find (recipes, general[which], model, width);
    if (r)
      return r;
  }
  return NULL;
}

bool
ls_recipes_fuse_experts (const LsRecipes *recipes)
{
  while (recipes && !recipes->fuses_experts)
    recipes = recipes->base;
  return recipes != NULL;
}

bool
ls_recipes_fit_alone (const LsRecipes *recipes, const LsModel *model)
{
  bool has_experts = model->moe.n_experts > 0;
  for (guint i = 0; i < recipes->operators->len; i++) {
    const LsRecipe *r = &g_array_index (recipes->operators, LsRecipe, i);
    bool is_experts = r->operator_ >= LS_RECIPE_EXPERT_FC1 && r->operator_ <= LS_RECIPE_UNPERMUTE;
    if (is_for (r->models, model) && (!is_experts || has_experts))
      return true;
  }
  return recipes->fuses_experts && has_experts;
}

bool
ls_recipes_fit (const LsRecipes *recipes, const LsModel *model)
{
  for (; recipes; recipes = recipes->base)
    if (ls_recipes_fit_alone (recipes, model))
      return true;
  return false;
}

bool
ls_recipes_loop (const LsRecipes *recipes, const LsModel *model)
{
  const LsRecipe *permute = ls_recipe_find (recipes, LS_RECIPE_PERMUTE, model);
  return permute && permute->loops && model->moe.n_experts > 0;
}

bool
ls_recipes_mask_tokens (const LsRecipes *recipes, const LsModel *model)
{
  const LsRecipe *permute = ls_recipe_find (recipes, LS_RECIPE_PERMUTE, model);
  return permute && permute->is_one_hot && model->moe.n_experts > 0;
}

const char *const ls_tp_copies[LS_N_TP_COPIES + 1] = {
  [LS_TP_COPIES_GATHERED] = "tp-gather-copy", [LS_TP_COPIES_GATHERED_OF_ONE] = "tp-gather-copy-of-one",
  [LS_TP_COPIES_LOGITS] = "tp-logits-copy",   [LS_TP_COPIES_SCATTERED] = "tp-scatter-copy",
  [LS_TP_COPIES_CUT] = "tp-cut-copy",
};

const char *const ls_fsdp_copies[LS_N_FSDP_COPIES + 1] = {
  [LS_FSDP_SHARD_CAST] = "shard-cast",
  [LS_FSDP_GATHER_COPY_IN] = "gather-copy-in",
  [LS_FSDP_GATHER_COPY_OUT] = "gather-copy-out",
  [LS_FSDP_RESHARD_COPY] = "reshard-copy",
  [LS_FSDP_REDUCE_COPY_IN] = "reduce-copy-in",
  [LS_FSDP_GRAD_CAST] = "grad-cast",
  [LS_FSDP_GRAD_ACCUMULATE] = "grad-accumulate",
  [LS_FSDP_GRAD_PREDIVIDE] = "grad-predivide",
  [LS_FSDP_GRAD_PAD] = "grad-pad",
  [LS_FSDP_GRAD_POSTDIVIDE] = "grad-postdivide",
  [LS_FSDP_GRAD_SHARD_CAST] = "grad-shard-cast",
  [LS_FSDP_GRAD_SHARD_ACCUMULATE] = "grad-shard-accumulate",
  [LS_FSDP_FLAT_GRAD] = "flat-grad",
  [LS_FSDP_FLAT_GRAD_ACCUMULATE] = "flat-grad-accumulate",
};

const LsRecipeKernel *
ls_recipe_kernel_named (const GArray *kernels, const char *name)
{
  for (guint i = 0; kernels && i < kernels->len; i++)
    if (g_strcmp0 (g_array_index (kernels, LsRecipeKernel, i).name, name) == 0)
      return &g_array_index (kernels, LsRecipeKernel, i);
  return NULL;
}

bool
ls_recipe_is_launched (const LsRecipeKernel *k, const LsSizes *sizes)
{
  const double *at = sizes->at;
  bool has_groups = at[LS_SIZE_K] > at[LS_SIZE_D] && at[LS_SIZE_Q] > at[LS_SIZE_K];
  switch ((LsRecipeWhere) k->where) {
  case LS_WHERE_GROUPS:
    return has_groups;
  case LS_WHERE_SEQUENCES:
    return at[LS_SIZE_B] > 1;
  case LS_WHERE_SENT_ONCE:
  case LS_WHERE_SENT_EACH:
    return sizes->is_sent_once == (k->where == LS_WHERE_SENT_ONCE);
  case LS_WHERE_UNPADDED:
    return !sizes->is_padded;
  case LS_WHERE_NORMED:
    return sizes->is_normed;
  case LS_WHERE_NORMED_VIEWS:
    return sizes->is_normed && !has_groups;
  case LS_WHERE_PLAIN_KEYS:
    return !sizes->is_normed && !sizes->is_rotated;
  case LS_WHERE_SHARDED:
    return sizes->is_sharded;
  case LS_WHERE_ALWAYS:
  case LS_N_WHERE:
    break;
  }
  return true;
}

#define MOST_ELEMENTS 9e15 /* exact in a double */

/* Multiply-adds as a batch of products of a chunk, c x d x N: what a GPU takes them for that no rate of such
 * kernels is known of. */
static LsKernel
product (LsKernel kernel, const LsSizes *sizes)
{
  double elements = (double) kernel.n, m = fmax (1, sizes->at[LS_SIZE_CHUNK]),
         n = fmax (1, sizes->at[LS_SIZE_D]), k = fmax (1, sizes->at[LS_SIZE_STATES]);
  kernel.kind = LS_KERNEL_BATCHED_GEMM;
  kernel.m = (uint64_t) m, kernel.n = (uint64_t) n, kernel.k = (uint64_t) k;
  kernel.batch = (uint64_t) fmax (1, round (elements / (m * n * k)));
  kernel.flops = 2 * elements;
  return kernel;
}

/* Whole elements and bytes: what a trace can hold. */
LsKernel
ls_recipe_kernel (const LsRecipeKernel *k, const LsSizes *sizes, LsKernelKind kind)
{
  double elements = fmin (round (ls_expression_value (k->elements, sizes)), MOST_ELEMENTS);
  double bytes = k->bytes ? ls_expression_value (k->bytes, sizes) : elements * (k->read + k->write);
  LsKernel kernel = ls_kernel_stream (g_intern_string (k->name), kind, (LsDtype) k->dtype, 1,
                                      (uint64_t) elements, round (bytes), 0);
  kernel.access = (LsAccess) k->access;
  if (k->is_product)
    return product (kernel, sizes);
  if (k->launches) {
    kernel.batch
        = (uint64_t) fmin (fmax (1, round (ls_expression_value (k->launches, sizes))), MOST_ELEMENTS);
    kernel.n_launches = (uint32_t) MIN (kernel.batch, G_MAXINT32);
  }
  return kernel;
}

typedef struct {
  double factor;
  guint8 power[LS_N_SIZES];
} Term;

struct LsExpression {
  GArray *terms; /* Term, to be added */
};

#define MAX_POWER 2 /* of one size in a product */

typedef struct {
  const char *text, *at; /* at: what comes next, no space */
  char *message;         /* what is wrong; NULL: nothing yet */
} Parser;

static void
skip_spaces (Parser *p)
{
  while (g_ascii_isspace (*p->at))
    p->at++;
}

static bool
complain (Parser *p, const char *expected)
{
  if (*p->at)
    p->message = g_strdup_printf ("expected %s at \"%s\" of \"%s\"", expected, p->at, p->text);
  else
    p->message = g_strdup_printf ("expected %s at the end of \"%s\"", expected, p->text);
  return false;
}

/* 'e' begins an exponent only behind a digit, so no size is named so. */
static bool
parse_number (Parser *p, Term *term)
{
  char *end = NULL;
  double value = g_ascii_strtod (p->at, &end);
  if (!isfinite (value) || end == p->at)
    return complain (p, "a number");
  term->factor *= value;
  p->at = end;
  return true;
}

static bool
parse_factor (Parser *p, Term *term)
{
  const char *size = *p->at ? strchr (LS_SIZE_LETTERS, *p->at) : NULL;
  if (g_ascii_isdigit (*p->at)) {
    if (!parse_number (p, term))
      return false;
  } else if (!size || g_ascii_isalnum (p->at[1])) {
    return complain (p, "a number or one of the sizes " LS_SIZE_LETTERS);
  } else if (++term->power[size - LS_SIZE_LETTERS] > MAX_POWER) {
    return complain (p, "fewer factors of one size");
  } else {
    p->at++;
  }
  skip_spaces (p);
  return true;
}

static bool
take (Parser *p, char what)
{
  if (*p->at != what)
    return false;
  p->at++;
  skip_spaces (p);
  return true;
}

static bool
parse_product (Parser *p, GArray *terms)
{
  Term term = { .factor = 1 };
  do
    if (!parse_factor (p, &term))
      return false;
  while (take (p, '*'));
  g_array_append_val (terms, term);
  return true;
}

LsExpression *
ls_expression_parse (const char *text, char **reterr_message)
{
  Parser p = { .text = text, .at = text };
  GArray *terms = g_array_new (FALSE, FALSE, sizeof (Term));
  skip_spaces (&p);
  bool ok = parse_product (&p, terms);
  while (ok && take (&p, '+'))
    ok = parse_product (&p, terms);
  if (!ok || (*p.at != '\0' && !complain (&p, "* or +"))) {
    g_array_unref (terms);
    *reterr_message = p.message;
    return NULL;
  }
  LsExpression *e = g_new (LsExpression, 1);
  e->terms = terms;
  return e;
}

void
ls_expression_free (LsExpression *expression)
{
  if (expression)
    g_array_unref (expression->terms);
  g_free (expression);
}

char
ls_expression_foreign_size (const LsExpression *expression, const char *letters)
{
  for (guint i = 0; i < expression->terms->len; i++)
    for (int size = 0; size < LS_N_SIZES; size++)
      if (g_array_index (expression->terms, Term, i).power[size] > 0
          && !strchr (letters, LS_SIZE_LETTERS[size]))
        return LS_SIZE_LETTERS[size];
  return '\0';
}

double
ls_expression_value (const LsExpression *expression, const LsSizes *sizes)
{
  double sum = 0;
  for (guint i = 0; i < expression->terms->len; i++) {
    const Term *term = &g_array_index (expression->terms, Term, i);
    double product = term->factor;
    for (int size = 0; size < LS_N_SIZES; size++)
      for (guint8 n = 0; n < term->power[size]; n++)
        product *= sizes->at[size];
    sum += product;
  }
  return sum;
}
