#include "data/jobs/write_shapes.h"

#include <inttypes.h>
#include <string.h>

#include "data/text/json_out.h"

/* The first op that runs it; NULL: none does. */
static const LsOp *
find_op (const LsPlan *plan, uint32_t kernel)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      const LsOp *op = &plan->segments[s].ops[i];
      if (op->kind == LS_OP_KERNEL && op->kernel == kernel && op->recorded == LS_TIME_NEVER)
        return op;
    }
  return NULL;
}

static bool
is_same (const LsKernel *a, const LsKernel *b)
{
  return strcmp (a->name, b->name) == 0 && a->kind == b->kind && a->dtype == b->dtype && a->m == b->m
      && a->n == b->n && a->k == b->k && a->batch == b->batch && a->bytes == b->bytes && a->flops == b->flops;
}

static bool
is_written (const LsPlan *plan, uint32_t kernel)
{
  for (uint32_t i = 0; i < kernel; i++)
    if (is_same (&plan->kernels[i], &plan->kernels[kernel]) && find_op (plan, i))
      return true;
  return false;
}

static void
write_size (LsJsonOut *w, const char *key, uint64_t size)
{
  if (size > 0)
    ls_json_out_uint (w, key, size);
}

static void
write_kernel (LsJsonOut *w, const LsKernel *k, const LsOp *op)
{
  g_autofree char *bytes = g_strdup_printf ("%" PRIu64 "B", (uint64_t) k->bytes);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "name", k->name);
  ls_json_out_string (w, "kind", ls_kernel_kind_name (k->kind));
  ls_json_out_string (w, "dtype", ls_dtype_name (k->dtype));
  write_size (w, "m", k->m);
  write_size (w, "n", k->n);
  write_size (w, "k", k->k);
  ls_json_out_uint (w, "batch", k->batch);
  ls_json_out_double (w, "flops", k->flops);
  ls_json_out_string (w, "bytes", bytes);
  if (k->access != LS_ACCESS_NONE)
    ls_json_out_string (w, "access", ls_access_name (k->access));
  ls_json_out_string (w, "tag", ls_tag_name ((LsTag) op->tag));
  ls_json_out_end_object (w);
}

char *
ls_shapes_to_json (const LsPlan *plan, const char *source)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "shapes");
  ls_json_out_string (&w, "source", source);
  ls_json_out_begin_array (&w, "kernels");
  for (uint32_t i = 0; i < plan->n_kernels; i++) {
    const LsOp *op = find_op (plan, i);
    if (op && !is_written (plan, i))
      write_kernel (&w, &plan->kernels[i], op);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}
