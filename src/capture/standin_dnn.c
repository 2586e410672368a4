/* capture/standin_dnn.c — cuDNN's graph interface: descriptors keep what they are given and give it back;
 * one engine runs every graph. What a plan takes as workspace is not known, and none. */
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

typedef struct {
  int type;
  Attribute *first;
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
  if (a)
    memcpy (values, a->values, (size_t) (n < have ? n : have) * size_of (type));
  else if (type != 15)
    memset (values, 0, size_of (type));
  return 0;
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
