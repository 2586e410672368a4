/* show/run/write_links.h — `run --links`: what each link of the cluster carried in the window, a
 * row per trunk, idle ones too, in the order of the cluster. */
#ifndef LS_SHOW_RUN_WRITE_LINKS_H
#define LS_SHOW_RUN_WRITE_LINKS_H

#include <glib.h>

#include "cluster/cluster.h"
#include "exec/timeline.h"

/* Errors as of ls_write_file(). */
gboolean ls_links_write (const LsTimeline *timeline, const LsCluster *cluster, const char *path,
                         GError **error);

#endif
