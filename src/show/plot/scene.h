/* show/plot/scene.h — a drawing of boxes, lines and words, for what is no chart; gnuplot draws
 * it. Pixels, from the top left corner; what is added later lies above, but lines lie
 * above areas and below boxes, and words above all. */
#ifndef LS_SHOW_PLOT_SCENE_H
#define LS_SHOW_PLOT_SCENE_H

#include <glib.h>

typedef struct LsScene LsScene;

typedef enum { LS_LEFT, LS_CENTER, LS_RIGHT } LsAlign;

typedef struct {
  double x, y;
} LsScenePoint;

LsScene *ls_scene_new (void);
void ls_scene_free (LsScene *scene); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsScene, ls_scene_free)

void ls_scene_resize (LsScene *scene, double width, double height);

/* Colours are 0xrrggbb. Rounded corners; an area is what boxes stand on. */
void ls_scene_box (LsScene *scene, double x, double y, double w, double h, guint32 fill, guint32 border);
void ls_scene_area (LsScene *scene, double x, double y, double w, double h, guint32 fill, guint32 border);
void ls_scene_line (LsScene *scene, const LsScenePoint *points, guint n, guint32 color, double width);
void ls_scene_segment (LsScene *scene, double x0, double y0, double x1, double y1, guint32 color,
                       double width);
/* A quadratic Bezier curve. */
void ls_scene_curve (LsScene *scene, LsScenePoint from, LsScenePoint control, LsScenePoint to, guint32 color,
                     double width);
/* y: the middle of the line; size in pixels. */
void ls_scene_text (LsScene *scene, double x, double y, double size, LsAlign align, guint32 color,
                    const char *text);

/* Errors as of show/plot/picture.h. */
gboolean ls_scene_draw (const LsScene *scene, const char *path, GError **error);

#endif
