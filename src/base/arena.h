/* base/arena.h — bump allocation for what lives and dies together.
 *
 * Blocks grow geometrically and never move, so pointers stay valid until
 * ls_arena_free(). Memory is zeroed. Allocation failure aborts as GLib's does;
 * sizes are checked against budgets before a plan is built, not here. */
#ifndef LS_BASE_ARENA_H
#define LS_BASE_ARENA_H

#include <glib.h>
#include <stddef.h>

typedef struct LsArena LsArena;

LsArena *ls_arena_new (void);
void ls_arena_free (LsArena *arena); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsArena, ls_arena_free)

/* n * size bytes, aligned for any type; aborts on overflow. n or size 0 gives a
 * unique non-NULL pointer. */
void *ls_arena_alloc (LsArena *arena, size_t n, size_t size);
char *ls_arena_strdup (LsArena *arena, const char *text);
size_t ls_arena_bytes (const LsArena *arena);

/* What is freed with the arena, the latest first: anything, by that function, which is returned; an empty
 * list of elements of that size; an empty table. */
gpointer ls_arena_own (LsArena *arena, gpointer what, GDestroyNotify free);
GArray *ls_arena_list (LsArena *arena, guint size);
GHashTable *ls_arena_table (LsArena *arena, GHashFunc hash, GEqualFunc equal);

#define ls_arena_new_array(arena, type, n) ((type *) ls_arena_alloc ((arena), (n), sizeof (type)))

#endif
