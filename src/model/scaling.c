#include "model/scaling.h"

#include <math.h>

#define N_HALVINGS 200

void
ls_scaling_law_clear (LsScalingLaw *law)
{
  g_free (law->name);
  g_free (law->source);
  *law = (LsScalingLaw) { 0 };
}

static bool
is_there (const LsPowerTerm *t)
{
  return t->coefficient > 0 || t->scale > 0;
}

bool
ls_scaling_has_loss (const LsScalingLaw *law)
{
  return is_there (&law->tokens) || is_there (&law->steps);
}

bool
ls_scaling_has_critical (const LsScalingLaw *law)
{
  return law->critical.tokens > 0;
}

/* What a term is at x, and where it is y. */
static double
term_at (const LsPowerTerm *t, double x)
{
  return t->scale > 0 ? pow (t->scale / x, t->exponent) : t->coefficient * pow (x, -t->exponent);
}

static double
term_inverse (const LsPowerTerm *t, double y)
{
  return t->scale > 0 ? t->scale * pow (y, -1 / t->exponent) : pow (t->coefficient / y, 1 / t->exponent);
}

double
ls_scaling_params (const LsScalingLaw *law, const LsModel *m)
{
  if (law->params == LS_SCALING_ALL)
    return (double) ls_model_params (m, m->vocab);
  double n = 0;
  for (uint32_t i = 0; i < m->n_layers; i++)
    n += (double) ls_model_layer_params (m, i);
  return n;
}

double
ls_scaling_floor (const LsScalingLaw *law, double n_params)
{
  return law->irreducible + (is_there (&law->model) ? term_at (&law->model, n_params) : 0);
}

double
ls_scaling_critical (const LsScalingLaw *law, double loss, double tokens)
{
  double x = law->critical.of == LS_CRITICAL_OF_LOSS ? loss : tokens;
  return law->critical.tokens * pow (x, law->critical.exponent);
}

double
ls_scaling_tokens (const LsScalingLaw *law, double n_params, double loss)
{
  double left = loss - ls_scaling_floor (law, n_params);
  if (!(left > 0))
    return INFINITY;
  if (is_there (&law->tokens))
    return term_inverse (&law->tokens, left);
  return term_inverse (&law->steps, left) * ls_scaling_critical (law, loss, NAN);
}

/* Of a law of steps by halving: more tokens, less loss. */
double
ls_scaling_loss (const LsScalingLaw *law, double n_params, double tokens)
{
  double floor = ls_scaling_floor (law, n_params);
  if (is_there (&law->tokens))
    return floor + term_at (&law->tokens, tokens);
  double low = 1e-12, high = 1e6; /* above the least loss */
  for (int i = 0; i < N_HALVINGS; i++) {
    double middle = sqrt (low * high);
    if (ls_scaling_tokens (law, n_params, floor + middle) > tokens)
      low = middle;
    else
      high = middle;
  }
  return floor + high;
}
