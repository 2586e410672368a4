#include "base/near.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

static GMutex mutex;
static GPtrArray *folders; /* char *, with a '/' at the end; NULL: nobody has named anything */

/* With what stands behind a path (a member of a set, changes) or without. NULL: there is no such file. */
static char *
real_path (const char *path)
{
  char *real = realpath (path, NULL);
  for (const char *cut = path; !real && (cut = strpbrk (cut, "#:")); cut++) {
    g_autofree char *bare = g_strndup (path, (gsize) (cut - path));
    real = realpath (bare, NULL);
  }
  return real;
}

void
ls_near_add (const char *path)
{
  char *real = real_path (path);
  if (!real)
    return;
  g_autofree char *parent = g_path_get_dirname (real);
  const char *folder = g_file_test (real, G_FILE_TEST_IS_DIR) ? real : parent;
  g_autofree char *whole = g_strconcat (folder, g_str_has_suffix (folder, "/") ? "" : "/", NULL);
  g_mutex_lock (&mutex);
  if (!folders)
    folders = g_ptr_array_new ();
  if (!g_ptr_array_find_with_equal_func (folders, whole, g_str_equal, NULL))
    g_ptr_array_add (folders, g_steal_pointer (&whole));
  g_mutex_unlock (&mutex);
  free (real);
}

bool
ls_is_near (const char *path)
{
  char *real = real_path (path);
  g_mutex_lock (&mutex);
  bool is_near = !real || !folders || !g_file_test (real, G_FILE_TEST_IS_REGULAR);
  for (guint i = 0; !is_near && i < folders->len; i++)
    is_near = g_str_has_prefix (real, folders->pdata[i]);
  g_mutex_unlock (&mutex);
  free (real);
  return is_near;
}
