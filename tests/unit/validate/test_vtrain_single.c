/* Pins what the rows vtrain-single are (tests/accuracy/DISSECTION.md): not measurements, but
 * what the formula of vTrain's simulator gives (VIA-Research/vTrain@f8dda84, src/predictor.py,
 * create_layer_graph). Without a pipeline that is
 *
 *     T = m (a L + c) + w L + d + R (dp, bytes)
 *
 * with m micro-batches, L layers, the all-reduce R of its table, and a, c, w, d of one profile
 * for each (hidden, micro-batch, tp). Four numbers for each such group reproduce 144 rows to
 * less than 1e-5, where steps of real runs scatter by 1e-2.
 *
 * And that Lockstep, told of a host as slow as that of a traced run, is near the others: 54 us
 * to launch a kernel were fitted to the rows with an even number; here are some with an odd one. */
#include "ls_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_multifit.h>

#include "data/measured/read_cases.h"
#include "validate/validate.h"

#define MIB            1048576.0
#define N_COEFFICIENTS 4
#define MAX_GPUS       8
#define TABLE_MIB      1024

typedef struct {
  double time_s[MAX_GPUS + 1][TABLE_MIB + 1]; /* of so many MiB; 0: not there */
  double busbw[MAX_GPUS + 1];                 /* of the largest, GB/s          */
} Table;

static char *
shared_file (const char *name)
{
  const char *shared = ls_test_shared_data ();
  return shared ? g_build_filename (shared, name, NULL) : NULL;
}

static gboolean
read_table (const char *path, Table *t)
{
  g_autofree char *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return FALSE;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines + 1; *line && **line; line++) {
    g_auto (GStrv) cell = g_strsplit (*line, ",", -1);
    guint n = (guint) atoi (cell[1]), mib = (guint) (g_ascii_strtod (cell[2], NULL) / MIB);
    if (strcmp (cell[0], "A100") != 0 || n > MAX_GPUS || mib > TABLE_MIB)
      continue;
    t->time_s[n][mib] = g_ascii_strtod (cell[6], NULL) * 1e-6;
    if (mib == TABLE_MIB)
      t->busbw[n] = g_ascii_strtod (cell[7], NULL);
  }
  return TRUE;
}

/* vTrain's list of 16-bit parameters: embedding and head apart, two pairs of vectors for each of
 * two norms. Beyond its table, the size over the bus bandwidth of the largest. */
static double
reduction_s (const Table *t, const LsCase *c)
{
  const LsModel *m = &c->model;
  double h = m->hidden, tp = c->strategy.tp;
  double layer = 12 * h * h / tp + 7 * h / tp + 6 * h;
  double ends = 2 * floor (m->vocab / tp) * h + m->seq * h;
  guint mib = (guint) rint (2 * (m->n_layers * layer + ends) / MIB);
  if (c->strategy.dp == 1)
    return 0;
  return mib <= TABLE_MIB ? t->time_s[c->strategy.dp][mib] : mib / (t->busbw[c->strategy.dp] * 1024);
}

static char *
group_of (const LsCase *c)
{
  return g_strdup_printf ("%u %u %u", c->model.hidden, c->strategy.micro_batch, c->strategy.tp);
}

static GHashTable *
groups_without_pipeline (const GPtrArray *cases)
{
  GHashTable *groups
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_ptr_array_unref);
  for (guint i = 0; i < cases->len; i++) {
    LsCase *c = g_ptr_array_index (cases, i);
    if (!g_str_has_prefix (c->id, "vtrain-single") || c->strategy.pp > 1)
      continue;
    g_autofree char *key = group_of (c);
    GPtrArray *rows = g_hash_table_lookup (groups, key);
    if (!rows)
      g_hash_table_insert (groups, g_steal_pointer (&key), rows = g_ptr_array_new ());
    g_ptr_array_add (rows, c);
  }
  return groups;
}

static double
worst_residual (const GPtrArray *rows, const Table *t)
{
  gsl_matrix *x = gsl_matrix_alloc (rows->len, N_COEFFICIENTS),
             *covariance = gsl_matrix_alloc (N_COEFFICIENTS, N_COEFFICIENTS);
  gsl_vector *y = gsl_vector_alloc (rows->len), *b = gsl_vector_alloc (N_COEFFICIENTS),
             *r = gsl_vector_alloc (rows->len);
  for (guint i = 0; i < rows->len; i++) {
    const LsCase *c = g_ptr_array_index (rows, i);
    double m = (double) c->strategy.global_batch / c->strategy.dp / c->strategy.micro_batch,
           l = c->model.n_layers;
    const double terms[N_COEFFICIENTS] = { m * l, m, l, 1 };
    for (guint j = 0; j < N_COEFFICIENTS; j++)
      gsl_matrix_set (x, i, j, terms[j]);
    gsl_vector_set (y, i, c->measured_s - reduction_s (t, c));
  }
  double chisq, worst = 0;
  gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc (rows->len, N_COEFFICIENTS);
  gsl_multifit_linear (x, y, b, covariance, &chisq, work);
  gsl_multifit_linear_residuals (x, y, b, r);
  for (guint i = 0; i < rows->len; i++)
    worst = MAX (worst, fabs (gsl_vector_get (r, i)) / ((LsCase *) g_ptr_array_index (rows, i))->measured_s);
  gsl_multifit_linear_free (work);
  gsl_matrix_free (x);
  gsl_matrix_free (covariance);
  gsl_vector_free (y);
  gsl_vector_free (b);
  gsl_vector_free (r);
  return worst;
}

static void
rows_are_the_formula_of_a_simulator (void)
{
  g_autofree char *cases_path = shared_file ("runs/cases.csv"),
                  *table_path = shared_file ("kernels/vtrain_allreduce_lut.csv");
  g_autofree Table *table = g_new0 (Table, 1);
  if (!cases_path || !read_table (table_path, table))
    return;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (cases_path, NULL, false, diags);
  if (!LS_CHECK (cases != NULL))
    return;
  g_autoptr (GHashTable) groups = groups_without_pipeline (cases);
  GHashTableIter iter;
  gpointer rows;
  guint n = 0;
  g_hash_table_iter_init (&iter, groups);
  while (g_hash_table_iter_next (&iter, NULL, &rows)) {
    if (((GPtrArray *) rows)->len < N_COEFFICIENTS + 2)
      continue;
    LS_CHECK_DOUBLE (worst_residual (rows, table), <, 1e-5);
    n += ((GPtrArray *) rows)->len;
  }
  LS_CHECK_INT (n, ==, 144);
}

static void
a_slow_host_explains_rows_it_was_not_fitted_to (void)
{
  g_autofree char *cases_path = shared_file ("runs/cases.csv");
  if (!cases_path)
    return;
  static const char *const slow_host[] = { "host-launch=54us", NULL };
  LsJobSpec job;
  ls_job_spec_init (&job);
  const char *const paths[] = { cases_path, NULL };
  LsValidateSpec spec
      = { .paths = paths, .only = "^vtrain-single-\\d*[13579]7$", .n_threads = 1, .job = &job };
  g_autoptr (GError) error = NULL;
  g_autoptr (LsValidationRun) as_given = ls_validate (&spec, &error);
  spec.assume = slow_host;
  g_autoptr (LsValidationRun) assumed = ls_validate (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (!as_given || !assumed)
    return;
  LS_CHECK_INT (ls_validation_run_scores (assumed)->total.n, >=, 15);
  LS_CHECK_DOUBLE (ls_validation_run_scores (as_given)->total.mape_pct, >, 20);
  LS_CHECK_DOUBLE (ls_validation_run_scores (assumed)->total.mape_pct, <, 10);
}

LS_TEST_SUITE (LS_TEST (rows_are_the_formula_of_a_simulator),
               LS_TEST (a_slow_host_explains_rows_it_was_not_fitted_to))
