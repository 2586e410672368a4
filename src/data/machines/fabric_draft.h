/* data/machines/fabric_draft.h — what joins nodes, as files of other programs show it, on its way to a listed
 * fabric (private to data/machines). A reader names switches and hosts, and says what is at what. */
#ifndef LS_DATA_MACHINES_FABRIC_DRAFT_H
#define LS_DATA_MACHINES_FABRIC_DRAFT_H

#include "data/machines/machines.h"

/* Each has a key that is unique, and a name for people, which need not be. */
typedef struct {
  char *key, *name;
} LsDraftPlace;

typedef struct {
  uint32_t from, to; /* switches; as many links as are counted from either end */
  double rate;       /* bytes/s of one; 0: as the nodes' NICs */
  double hosts;      /* not 0: one link as fast as all NICs of so many hosts together */
  bool is_back;      /* by ls_draft_link(): from > to before these were put in order */
} LsDraftLink;

/* A NIC of a host at a switch; or, without NICs, a host with all of its NICs. */
typedef struct {
  uint32_t host, at;
  double rate; /* bytes/s; 0: as the node says */
  char *nic;   /* its name; NULL: the host */
  int line;
} LsDraftPort;

typedef struct {
  const char *path;
  LsDiagList *diags;
  GArray *switches, *hosts; /* LsDraftPlace */
  GHashTable *by_key[2];    /* 1 + number of a switch, of a host; keys borrowed */
  GArray *links, *ports;    /* LsDraftLink, LsDraftPort */
  GArray *guessed;          /* char * */
} LsFabricDraft;

/* Free with ls_draft_free(). */
LsFabricDraft *ls_draft_new (LsDiagList *diags);
void ls_draft_free (LsFabricDraft *d); /* NULL allowed */

/* The number of the one with that key, which is new if there is none; name NULL: that is the key. */
uint32_t ls_draft_switch (LsFabricDraft *d, const char *key, const char *name);
uint32_t ls_draft_host (LsFabricDraft *d, const char *key);
/* Whether there is such a switch. */
bool ls_draft_has_switch (const LsFabricDraft *d, const char *key);

/* One more link, as it is seen from one end. */
void ls_draft_link (LsFabricDraft *d, LsDraftLink link);
void ls_draft_port (LsFabricDraft *d, uint32_t host, uint32_t at, double rate, const char *nic, int line);
void ls_draft_guess (LsFabricDraft *d, const char *format, ...) G_GNUC_PRINTF (2, 3);
bool ls_draft_wrong (const LsFabricDraft *d, int line, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Appends what makes `base` a cluster of so many nodes with that fabric (char *, data/text/override.h). Hosts
 * with another number of NICs than most have are left out. */
bool ls_draft_finish (LsFabricDraft *d, const LsClusterSpec *base, GPtrArray *changes);

/* A reader: fills the draft from n bytes with a NUL after them. */
typedef bool (*LsFabricReader) (LsFabricDraft *d, const char *text, gsize n);

bool ls_draft_read_ibnetdiscover (LsFabricDraft *d, const char *text, gsize n); /* read_ibnetdiscover.c */
bool ls_draft_read_ib_ports (LsFabricDraft *d, const char *text, gsize n);      /* read_ibnetdiscover.c */
bool ls_draft_read_slurm (LsFabricDraft *d, const char *text, gsize n);         /* read_slurm_topology.c */

/* read_infragraph.c: such a file has a node, and may have a fabric. */
bool ls_draft_read_infragraph (LsFabricDraft *d, const char *text, gsize n);
bool ls_draft_infragraph_has_fabric (const char *text, gsize n);

#endif
