#include "exec/replay/place_classes.h"

void
place_classes_free (PlaceClasses *p)
{
  if (!p)
    return;
  g_free (p->class_of_place);
  g_free (p->first);
  g_free (p->class_of);
  g_free (p->n_of_resource);
  g_free (p->capacity);
  g_free (p);
}

uint32_t
place_classes_of (const PlaceClasses *p, uint32_t resource)
{
  uint32_t local, place = ls_places_find (&p->at, resource, &local);
  return p->class_of[p->first[p->class_of_place[place]] + local];
}
