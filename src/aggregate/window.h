/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_WINDOW_H
#define WR_AGGREGATE_WINDOW_H
/*
 * window: the open windows of a shard, and the slot of an entry in one of them.
 * Threads: owner.
 */
#include "aggregate/shard.h"

/* The start of the window that holds t_ns; saturates at the ends of time. */
int64_t wr_window_align(const struct wr_shard *s, int64_t t_ns);
/* The oldest start that is still open at s->now_ns. */
int64_t wr_window_oldest_open(const struct wr_shard *s);
/* The window with that start in list, made if need be; NULL: no memory. */
struct wr_window *wr_window_get(struct wr_shard *s, struct wr_windows *list, int64_t start_ns,
                                uint32_t flags);
/* The window with that start in list, or NULL. */
struct wr_window *wr_window_find(const struct wr_windows *list, int64_t start_ns);
/* Take window i out of list and keep it as a spare. Its slots must be gone. */
void wr_window_retire(struct wr_shard *s, struct wr_windows *list, size_t i);
void wr_windows_done(struct wr_shard *s, struct wr_windows *list);

/* The entry's slot in w, made if need be; NULL: no memory, nothing changed. */
struct wr_slot *wr_slot_get(struct wr_shard *s, struct wr_entry *e, struct wr_window *w);
/* The entry's slot in the window of that start; NULL if there is none. */
struct wr_slot *wr_slot_find(struct wr_entry *e, int64_t start_ns);
/* Where it keeps its place among the entries that the window of that start touched; the slot is
 * there. */
uint32_t *wr_slot_touched_at(struct wr_entry *e, int64_t start_ns);
/* Take the entry, which has a slot in w, from those that w touched. O(its slots). */
void wr_window_untouch(struct wr_window *w, struct wr_entry *e);
/* Empty the entry's slot in that window: its sketches were taken. */
void wr_slot_drop(struct wr_shard *s, struct wr_entry *e, int64_t start_ns);
void wr_slots_done(struct wr_shard *s); /* free the spares */
#endif
