// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training checkpoints: weights, optimiser state, EMA weights and the position in the run.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::train {

// The position in a run.  It is also the complete random state, because every random number is a function of (seed,
// epoch, step, sample).
struct Position {
  int64_t epoch = 0;          // current epoch, from 0
  int64_t step_in_epoch = 0;  // batches of this epoch that are done
  int64_t step = 0;           // optimiser steps of the run
  int64_t batch_images = 0;   // images of a batch over all processes; 0 (old checkpoints): as in the resuming run

  // The epoch, from 1, that this position is in or has just ended; 0 before the first step.
  int64_t current_epoch() const { return step_in_epoch > 0 ? epoch + 1 : epoch; }
};

// The properties of the environment on which the bits of a result depend, besides the recipe.
struct Fingerprint {
  std::string build;  // checksum of the running program
  std::string isa;    // active instruction set (kernels::active_isa)
  int threads = 1, ranks = 1;
};
Fingerprint fingerprint(int threads, int ranks);
// Returns one line per difference, such as "threads: 2 → 4".
std::vector<std::string> differences(const Fingerprint& before, const Fingerprint& now);

// The images of one set of a run, to tell whether a resumed run has the same.
struct ImageSet {
  std::string name;       // "training"
  int64_t images = 0;     // 0: the run has no such set
  uint32_t checksum = 0;  // CRC-32C (image_sets_internal.h)
  bool operator==(const ImageSet&) const = default;
};

struct CheckpointState {
  Position position;
  std::string recipe;    // as write_recipe() returns it
  std::string counters;  // running sums and results so far, as JSON
  Fingerprint fingerprint;
  std::vector<nn::NamedTensor> model, optimizer, average;  // average: the EMA weights; empty without EMA
  std::vector<std::string> class_names = {};               // in index order; empty in files of versions before 0.2
  std::vector<ImageSet> image_sets = {};                   // empty in files of versions that did not write them
  std::string preprocessing = {};                          // likewise (validation_change_internal.h)
};

// Writes a safetensors file with the tensors "model/NAME", "optimizer/NAME" and "average/NAME"; the other members and a
// CRC-32C over all contents are metadata.  An existing file at `path` is renamed to previous_checkpoint(path).  The
// write is atomic: a complete checkpoint exists at any time.  Throws Error if it cannot be written, and then keeps the
// old file.
void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state);

// Throws Error for a missing or truncated file, for a wrong checksum, and for a position or fingerprint out of range:
// the file may come from anywhere.
CheckpointState load_checkpoint(const std::filesystem::path& path);

// Loads the checkpoint at `path`.  If that fails, loads the previous one and warns.  Throws Error with both reasons if
// neither can be read.
CheckpointState load_latest(const std::filesystem::path& path);

// Returns where save_checkpoint keeps the previous file: "last.safetensors" → "previous.safetensors".
std::filesystem::path previous_checkpoint(const std::filesystem::path& path);

// Returns the files that a process may leave if it is killed in save_checkpoint(path).
std::vector<std::filesystem::path> temporary_checkpoints(const std::filesystem::path& path);

}  // namespace vitrail::train
