// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run needs to go on: weights, optimiser, average, and where it was.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::train {

// Random numbers are functions of (seed, epoch, step, sample), so the position is the whole random state.
struct Position {
  int64_t epoch = 0;          // from 0, the one under way
  int64_t step_in_epoch = 0;  // batches of it that are done
  int64_t step = 0;           // optimiser steps of the whole run
  int64_t batch_images = 0;   // of such a batch, all processes counted; 0: as in the run that goes on
};

// What bits depend on besides the recipe.
struct Fingerprint {
  std::string build;  // a checksum of the running program
  std::string isa;    // kernels::active_isa
  int threads = 1, ranks = 1;
};
Fingerprint fingerprint(int threads, int ranks);
// What differs, a line each: "threads: 2 → 4".
std::vector<std::string> differences(const Fingerprint& before, const Fingerprint& now);

struct CheckpointState {
  Position position;
  std::string recipe;    // write_recipe's text
  std::string counters;  // the trainer's running sums, as JSON
  Fingerprint fingerprint;
  std::vector<nn::NamedTensor> model, optimizer, average;  // average: empty without an EMA
};

// One file: safetensors (tensors "model/NAME", "optimizer/NAME", "average/NAME"; the rest in the metadata), whole or
// not at all, with a CRC-32C over everything in it.  The file that was there becomes `previous_of(path)`; at no moment
// is there none.  Throws Error when it cannot be written; what was there is left then.
void save_checkpoint(const std::filesystem::path& path, const CheckpointState& state);

// Throws Error for a file that is missing, cut short, or whose checksum does not fit.
CheckpointState load_checkpoint(const std::filesystem::path& path);

// load_checkpoint, or the previous one where that fails, with a warning that says so.  Throws Error with both reasons
// when neither can be read.
CheckpointState load_latest(const std::filesystem::path& path);
std::filesystem::path previous_of(const std::filesystem::path& path);  // "last.safetensors" → "previous.safetensors"

}  // namespace vitrail::train
