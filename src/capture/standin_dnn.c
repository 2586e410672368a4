/* capture/standin_dnn.c — cuDNN's graph interface: descriptors keep what they are given and give it back;
 * one engine runs every graph. What a plan takes as workspace is not known, and none.
 *
 * What a graph computes is found when its operations are set, as they may be gone when its plan is run,
 * and is handed on to whatever is made of it: products, the sizes of the first, bytes of all tensors that
 * lie in memory. Attention is a graph of two products, or of five on the way back; where it looks at the
 * places of its elements, half of them are masked. */
#include "capture/standin_answers.h"

#include <stdlib.h>
#include <string.h>

typedef struct Attribute Attribute;
struct Attribute {
  int key, type;
  int64_t n;
  char *values;
  Attribute *next;
};

typedef struct Part Part;
struct Part {
  int key;
  int64_t id, rows, columns, batch;
  double bytes; /* 0: it does not lie in memory */
  Part *next;
};

typedef struct {
  int type;
  Attribute *first;
  Part *parts;       /* of an operation: its tensors */
  bool is_of_places; /* it looks at the places of elements */
  LsDnnWork work;    /* of its graph */
} Descriptor;

/* cudnnBackendAttributeType_t: bytes of a value. */
static size_t
size_of (int type)
{
  switch (type) {
  case 3:  /* int64 */
  case 5:  /* double */
  case 0:  /* handle */
  case 6:  /* void * */
  case 15: /* descriptor */
    return 8;
  case 2:  /* bool */
  case 26: /* char */
    return 1;
  default:
    return 4; /* enumerators, int32, float */
  }
}

void *
ls_dnn_new (int type)
{
  Descriptor *d = calloc (1, sizeof *d);
  d->type = type;
  return d;
}

void
ls_dnn_free (void *descriptor)
{
  Descriptor *d = descriptor;
  for (Attribute *a = d ? d->first : NULL, *next; a; a = next) {
    next = a->next;
    free (a->values);
    free (a);
  }
  for (Part *part = d ? d->parts : NULL, *next; part; part = next) {
    next = part->next;
    free (part);
  }
  free (d);
}

static Attribute *
find (const Descriptor *d, int key)
{
  Attribute *a = d->first;
  while (a && a->key != key)
    a = a->next;
  return a;
}

/* --- what a graph computes ---------------------------------------------------------------------------- */

/* cudnnBackendDescriptorType_t and cudnnBackendAttributeName_t. */
enum { POINTWISE = 13, PLAN_OF = 15, PRODUCT = 19, ATTENTION = 41, ATTENTION_BACK = 43, BAND = 44 };
enum {
  MODE = 0,
  MODE_OF = 750,
  OPERATIONS = 801,
  TENSOR_TYPE = 901,
  SIZES = 902,
  IDENTITY = 906,
  IS_VIRTUAL = 907
};
enum {
  PRODUCT_A = 1520,
  PRODUCT_B = 1521,
  QUERIES = 2800,
  KEYS = 2801,
  QUERIES_BACK = 2851,
  KEYS_BACK = 2852
};
enum { GEN_INDEX = 501, OF_DESCRIPTORS = 15, MOST_TENSORS = 64 };

static int64_t
number_of (const Descriptor *d, int key)
{
  const Attribute *a = find (d, key);
  if (!a || a->n == 0)
    return 0;
  size_t n = size_of (a->type);
  return n == 8 ? *(int64_t *) (void *) a->values : n == 4 ? *(int *) (void *) a->values : *a->values;
}

static double
bytes_of (const Descriptor *tensor, const Attribute *sizes)
{
  static const unsigned char bytes[] = { 4, 8, 2, 1, 4, 4, 1, 4, 32, 2, 8, 1, 1, 1 }; /* cudnnDataType_t */
  int64_t type = number_of (tensor, TENSOR_TYPE);
  double n = type >= 0 && type < (int64_t) sizeof bytes ? bytes[type] : 4;
  for (int64_t i = 0; i < sizes->n; i++)
    n *= (double) ((int64_t *) (void *) sizes->values)[i];
  return n;
}

/* What is needed of a tensor, or of the mode of a pointwise operation, when it is set: it may be gone
 * later. */
static void
note_part (Descriptor *d, int key, const Descriptor *value)
{
  const Attribute *sizes = value ? find (value, SIZES) : NULL;
  if (value && d->type == POINTWISE && key == MODE_OF)
    d->is_of_places = number_of (value, MODE) == GEN_INDEX;
  d->is_of_places |= value && value->work.is_masked; /* a graph of what is done to scores */
  if (!sizes || sizes->n < 2)
    return;
  const int64_t *n = (int64_t *) (void *) sizes->values;
  Part *part = calloc (1, sizeof *part);
  *part = (Part) { key, number_of (value, IDENTITY), n[sizes->n - 2], n[sizes->n - 1], 1, 0, d->parts };
  for (int64_t i = 0; i < sizes->n - 2; i++)
    part->batch *= n[i];
  part->bytes = number_of (value, IS_VIRTUAL) ? 0 : bytes_of (value, sizes);
  d->parts = part;
}

static const Part *
part_of (const Descriptor *d, int key)
{
  const Part *part = d->parts;
  while (part && part->key != key)
    part = part->next;
  return part;
}

/* n products; where they are the first: of a, as many columns. */
static void
note_products (LsDnnWork *w, int n, const Part *a, int64_t columns)
{
  if (w->n_products == 0 && a) {
    w->batch = a->batch;
    w->m = a->rows;
    w->k = a->columns;
    w->n = columns;
  }
  w->n_products += n;
}

static void
note_operation (LsDnnWork *w, const Descriptor *d)
{
  bool is_forward = d->type == ATTENTION;
  const Part *b = part_of (d, PRODUCT_B), *keys = part_of (d, is_forward ? KEYS : KEYS_BACK);
  if (d->type == PRODUCT)
    note_products (w, 1, part_of (d, PRODUCT_A), b ? b->columns : 1);
  if (is_forward || d->type == ATTENTION_BACK)
    note_products (w, is_forward ? 2 : 5, part_of (d, is_forward ? QUERIES : QUERIES_BACK),
                   keys ? keys->rows : 1);
  w->is_masked |= d->is_of_places || d->type == BAND;
}

/* Each tensor in memory once. */
static void
note_graph (LsDnnWork *w, const Attribute *operations)
{
  int64_t seen[MOST_TENSORS];
  int n_seen = 0;
  *w = (LsDnnWork) { .is_known = true };
  for (int64_t i = 0; i < operations->n; i++) {
    const Descriptor *d = ((Descriptor **) (void *) operations->values)[i];
    note_operation (w, d);
    for (const Part *part = d->parts; part; part = part->next) {
      bool is_new = n_seen < MOST_TENSORS;
      for (int s = 0; s < n_seen && is_new; s++)
        is_new = seen[s] != part->id;
      if (is_new)
        seen[n_seen++] = part->id;
      w->bytes += is_new ? part->bytes : 0;
    }
  }
}

/* What is made of something that computes a graph computes the same. */
static void
hand_on (Descriptor *to, const Descriptor *from)
{
  if (to && from && from->work.is_known)
    to->work = from->work;
}

const LsDnnWork *
ls_dnn_work (const void *descriptor)
{
  return &((const Descriptor *) descriptor)->work;
}

void
ls_dnn_set (void *descriptor, int key, int type, int64_t n, const void *values)
{
  Descriptor *d = descriptor;
  Attribute *a = find (d, key);
  if (!a) {
    a = calloc (1, sizeof *a);
    a->key = key;
    a->next = d->first;
    d->first = a;
  }
  free (a->values);
  a->type = type;
  a->n = n;
  a->values = malloc ((size_t) n * size_of (type) + 1);
  memcpy (a->values, values, (size_t) n * size_of (type));
  if (type != OF_DESCRIPTORS || n == 0)
    return;
  if (key == OPERATIONS)
    note_graph (&d->work, a);
  else if (d->type < PLAN_OF && d->type != POINTWISE)
    hand_on (d, *(Descriptor **) (void *) a->values);
  note_part (d, key, *(Descriptor **) (void *) a->values);
}

/* What was set; of what was not, one descriptor of whatever is asked for, which the caller made, or a
 * zero. */
int
ls_dnn_get (void *descriptor, int key, int type, int64_t n, int64_t *ret_n, void *values)
{
  const Attribute *a = find (descriptor, key);
  int64_t have = a ? a->n : 1;
  if (ret_n)
    *ret_n = have;
  if (!values || n == 0)
    return 0;
  if (!a && type == OF_DESCRIPTORS)
    hand_on (*(Descriptor **) values, descriptor);
  if (a)
    memcpy (values, a->values, (size_t) (n < have ? n : have) * size_of (type));
  else if (type != 15)
    memset (values, 0, size_of (type));
  return 0;
}

void
ls_dnn_run (const void *plan, void *stream)
{
  const LsDnnWork *w = ls_dnn_work (plan);
  const int64_t is[] = { w->n_products, w->batch, w->m, w->n, w->k, w->is_masked, (int64_t) w->bytes };
  uint64_t key = ls_trace ("plan", is, sizeof is / sizeof *is);
  ls_record ('d', stream, " %d %lld %lld %lld %lld %d %.0f", w->n_products, (long long) w->batch,
             (long long) w->m, (long long) w->n, (long long) w->k, w->is_masked, w->bytes);
  ls_stream_work (stream, key, 100e-6);
  ls_count ("plans of cuDNN", 1);
}

/* cudnnDataType_t: 0 fp32, 1 fp64, 2 fp16, 9 bf16. */
double
ls_dnn_bytes (int type, int n, const int *sizes)
{
  double bytes = type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4;
  for (int i = 0; i < n; i++)
    bytes *= sizes[i];
  return bytes;
}
