/* exec/replay/place_classes.h — which resources are alike, by where they lie (private to exec/). */
#ifndef LS_EXEC_REPLAY_PLACE_CLASSES_H
#define LS_EXEC_REPLAY_PLACE_CLASSES_H

#include "cluster/places.h"

#define NO_CLASS UINT32_MAX

/* The i-th resource of all places of a class is element first[class] + i. */
typedef struct PlaceClasses {
  LsPlaces at;
  uint32_t *class_of_place; /* [places]                               */
  uint32_t *first;          /* [classes of places]                    */
  uint32_t *class_of;       /* [elements] NO_CLASS: not loaded        */
  uint32_t *n_of_resource;  /* [classes of resources] in the class    */
  double *capacity;         /* [classes of resources + 1] of one; the last is the most of all */
} PlaceClasses;

void place_classes_free (PlaceClasses *p); /* NULL allowed */
/* NO_CLASS: not loaded. */
uint32_t place_classes_of (const PlaceClasses *p, uint32_t resource);

#endif
