// SPDX-License-Identifier: Apache-2.0
// A plugin of QEMU's user-mode emulation that prints the number of executed instructions at exit.  For one thread.
// cc -shared -fPIC -O2 -o qemu_instructions.so qemu_instructions.c
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Of QEMU's plugin interface, version 1 (docs/devel/tcg-plugins); distributions leave its header out.
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*callback)(uint64_t id, struct qemu_plugin_tb* block));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation, void* counter, uint64_t add);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*callback)(uint64_t id, void* data), void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);

#define EXPORT __attribute__((visibility("default")))
enum { kAddU64 = 0 };  // QEMU_PLUGIN_INLINE_ADD_U64

EXPORT int qemu_plugin_version = 1;

static uint64_t executed;

static void count_block(uint64_t id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAddU64, &executed, qemu_plugin_tb_n_insns(block));
}

static void print_count(uint64_t id, void* data) {
  (void)id;
  (void)data;
  fprintf(stderr, "insns: %" PRIu64 "\n", executed);
}

EXPORT int qemu_plugin_install(uint64_t id, const void* info, int argc, char** argv) {
  (void)info;
  (void)argc;
  (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
  qemu_plugin_register_atexit_cb(id, print_count, NULL);
  return 0;
}
